"""Rows that are outputs of one rollout: a trajectory together, with a branch for each.

An agent loop may return several outputs for a rollout, each sampled behind a context of its own: it was compacted, or
begins anew. The rollout is one sample of its prompt and has one reward: verl takes that of the last output, writes it
beside each (`_agent_loop_postprocess` of verl/trainer/ppo/v1/agent_loop_tq.py), and counts the last one alone in
advantages and metrics (`compute_advantage` of verl/trainer/ppo/v1/utils.py, `_validate` of trainer_base.py). So here
it is counted once, with the prompt of its first output and the reward of its last.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import chain, pairwise
from typing import TypeVar

from ...amounts import Range, ranges_in_words
from ...tool_names import kept_names, names_json, names_of
from ..base import SAME_PROMPT, Entry
from ..values import integer, number
from .mapping import Shape
from .roles import RoleValues
from .rows import kind_of

MOST_DIGITS = 9
FIELDS = Entry.__struct_fields__
OF_FIRST = ("prompt_key", "task", "preview", "data_idx", "task_key")
Number = TypeVar("Number", int, float)


class Output(Entry, gc=False):
    """The entry of a row that is one of the outputs of a rollout."""

    rollout: str = ""  # its shape and its rollout: what the outputs of one share
    number: int = 0  # in the order in which they were sampled, from 0


def as_output(entry: Entry, values: RoleValues, shape: Shape) -> Entry:
    """Return the entry of a row as that of an output, where the row says of which rollout it is, and which one.

    Of a number that is none of an output, such as -1 or 0.5, there is a remark; a text may be an id of another kind.
    """
    rollout, recorded = _without_fraction(values.get("rollout")), _without_fraction(values.get("output"))
    number = _whole(recorded)
    if number is None and recorded is not None and not isinstance(recorded, str):
        found = f"{recorded:.15g}" if kind_of(recorded) == "number" else kind_of(recorded)
        values.remarks.append(f"the number of an output: expected a whole number, found {found}; it is counted alone")
    if number is None or isinstance(rollout, bool) or not isinstance(rollout, (str, int)):
        return entry
    output = Output(*(getattr(entry, name) for name in FIELDS))
    output.rollout, output.number = f"{shape.name}\0{rollout}", number
    return output


def _without_fraction(value: object) -> object:
    # A column of integers in which some are missing is written as 1.0 by pandas.
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _whole(value: object) -> int | None:
    if isinstance(value, str) and value.isdecimal() and len(value) <= MOST_DIGITS:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def one_rollout(outputs: Sequence[Output]) -> Entry:
    """Return the entry of a rollout, given its outputs as they follow each other in their file.

    Its place is that of all of them. What a model has done is added up; the rest is as the last output says it.
    """
    placed, ordered = outputs[0], in_order(outputs)
    entry = Entry(*(getattr(ordered[-1], name) for name in FIELDS))
    if len(ordered) == 1:
        return entry
    entry.uid, entry.line, entry.byte_offset = placed.uid, placed.line, placed.byte_offset
    entry.byte_length = outputs[-1].byte_offset + outputs[-1].byte_length - placed.byte_offset
    entry.values = {**entry.values, SAME_PROMPT: float(entry.prompt_key == ordered[0].prompt_key)}
    for name in OF_FIRST:
        setattr(entry, name, getattr(ordered[0], name))
    for name in ("turns", "branches"):
        setattr(entry, name, sum(getattr(one, name) for one in ordered))
    entry.tool_calls = _sum(one.tool_calls for one in ordered)
    entry.tools = names_json(kept_names(chain.from_iterable(names_of(one.tools) for one in ordered)))
    entry.completion_tokens = integer(_sum(one.completion_tokens for one in ordered))  # what SQLite can hold
    entry.seconds = number(_sum(one.seconds for one in ordered))
    entry.started_at = ordered[0].started_at
    entry.logprob_mean = None  # of how many tokens the mean of each is, is not kept
    return entry


def gaps(outputs: Iterable[Output]) -> list[Range]:
    """Return which outputs are missing between those that are there: the first and the last of each gap."""
    numbers = sorted({output.number for output in outputs})
    return [(one + 1, other - 1) for one, other in pairwise(numbers) if other - one > 1]


def gap_words(missing: Sequence[Range]) -> str:
    """Return that outputs of a rollout are missing between those that are there."""
    is_one = len(missing) == 1 and missing[0][0] == missing[0][1]
    which = f"output{'' if is_one else 's'} {ranges_in_words(missing)}"
    return f"{which} of its rollout {'is' if is_one else 'are'} missing between the others"


def in_order(outputs: Iterable[Output]) -> list[Output]:
    """Return outputs as they were sampled."""
    return sorted(outputs, key=lambda output: output.number)


def _sum(values: Iterable[Number | None]) -> Number | None:
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)
