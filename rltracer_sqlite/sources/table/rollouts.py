"""Putting the outputs of a rollout together while a file is read: those whose lines stand beside each other.

verl writes them so, sorted by rollout and output. Others are told, and each is counted by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ..base import Problem, Shard
from ..files import MAX_RECORD_BYTES
from .joined import Finding, Read, Remark
from .outputs import Output, gap_words, gaps, one_rollout

LINES = "lines"  # the layout of files whose lines are records
MOST_OUTPUTS = 1000  # of one rollout
APART = (
    "outputs of its rollout that come before it are missing, or their lines do not stand beside its own: it is "
    "counted by itself"
)
AGAIN = "the same output of its rollout stands before it: both are counted, each in a trajectory of its own"


class Told(Output, gc=False):
    """An output that was told when the shard was read before; what is new may belong to its rollout."""


def told_before(output: Output) -> Told:
    """Return an output of an earlier reading."""
    return Told(*(getattr(output, name) for name in output.__struct_fields__))


def whole_rollouts(shard: Shard, found: Iterable[Finding]) -> Iterator[Finding]:
    """Yield the findings of a shard with one entry for each rollout, where the shard has lines.

    What was found behind an output follows its rollout, so that no position lies between two of its outputs.
    """
    most = MOST_OUTPUTS if shard.layout == LINES else 1
    outputs: list[Output] = []
    behind: list[Finding] = []
    again = False  # do they begin with an output that the rollout before them has?
    for one in found:
        if outputs and _belongs(one, outputs[-1]):
            if behind and isinstance(one, Read) and isinstance(behind[-1], Read):
                behind.pop()  # of an empty line
            behind.append(one)
            continue
        if not (isinstance(one, Output) and len(outputs) < most and _goes_on(outputs, one)):
            yield from _rollout(outputs, behind, again)
            again = isinstance(one, Output) and _stands_again(outputs, one)
            outputs, behind = [], []
        if isinstance(one, Output):
            outputs.append(one)
        else:
            yield one
    yield from _rollout(outputs, behind, again)


def _belongs(one: Finding, output: Output) -> bool:
    """Say whether a finding says nothing of another line than that of the output before it."""
    # A remark comes before the entry of its own line, and says that this could be read.
    is_of_it = isinstance(one, Problem) and one.byte_offset == output.byte_offset
    return is_of_it or isinstance(one, (Read, Remark))


def _goes_on(outputs: list[Output], one: Output) -> bool:
    if not outputs or _has_number(outputs, one):
        return False
    begun = outputs[0]
    length = one.byte_offset + one.byte_length - begun.byte_offset
    return _identity(one) == _identity(begun) and length <= MAX_RECORD_BYTES


def _stands_again(outputs: list[Output], one: Output) -> bool:
    return _has_number(outputs, one) and _identity(one) == _identity(outputs[0])


def _has_number(outputs: list[Output], one: Output) -> bool:
    return any(one.number == other.number for other in outputs)


def _identity(output: Output) -> tuple[object, ...]:
    # The same id in another step is another rollout.
    return output.rollout, output.step, output.split, output.group_id


def _rollout(outputs: list[Output], behind: list[Finding], again: bool) -> Iterator[Finding]:
    if outputs and not isinstance(outputs[-1], Told):
        entry = one_rollout(outputs)
        yield entry
        is_apart = again or min(output.number for output in outputs) > 0
        if is_apart and not isinstance(outputs[0], Told):
            yield Remark(entry.line, entry.byte_offset, entry.byte_length, AGAIN if again else APART)
        known = gaps(output for output in outputs if isinstance(output, Told))
        if missing := [gap for gap in gaps(outputs) if gap not in known]:
            yield Remark(entry.line, entry.byte_offset, entry.byte_length, gap_words(missing))
    last = next((one for one in reversed(behind) if isinstance(one, Read)), None)
    if last:
        last.fitted = True  # as an output has, also where what came last is of another part of the shard
    yield from (one for one in behind if one is last or not isinstance(one, Read))
