"""What is counted of the rows of an export while they are made, and what whoever trains on them has to know."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ..amounts import plural
from .lines import Row
from .preferences import ExportMode

if TYPE_CHECKING:
    from ..messages import Message
    from .selected import Selected

SPOKEN = ("messages", "chosen", "rejected")  # columns with what a policy said
ONE_OF_SEVERAL = " A reward is of all branches; the field filter branches<=1 leaves such trajectories out."


@dataclass
class Written:
    """What was met while rows were made."""

    rows_of: Counter[int] = field(default_factory=Counter)  # rows, by the number of their run
    distinct: int = 0  # rows of different content
    repeats: int = 0  # rows left out, since one of the same content stands before
    rejected: Counter[str] = field(default_factory=Counter)  # by reason, over all attempts
    has_rejected: bool = False  # in this attempt
    is_beginning: bool = False  # the rows are only the first ones, as those of a preview
    redacted: Counter[str] = field(default_factory=Counter)
    without_tools: int = 0  # rows with tool calls and no tool definitions
    of_branches: int = 0  # rows that hold one branch of a trajectory of several
    unanswered: Counter[str] = field(default_factory=Counter)  # rows whose last message is no answer, by column

    @property
    def rows(self) -> int:
        """How many rows there are in all."""
        return self.rows_of.total()

    def count(self, row: Row, is_one_of_several: bool) -> None:
        """Count a row; `is_one_of_several` says whether it holds one branch of a trajectory of several."""
        columns = conversations_in(row)
        self.of_branches += is_one_of_several
        self.unanswered.update(name for name, said in columns.items() if said[-1].get("role") != "assistant")
        self.without_tools += "tools" not in row and any(map(calls_in, columns.values()))


def conversations_in(row: Row) -> dict[str, list[Message]]:
    """Return the conversations of a row by their column: one of an SFT row, two of a pair, none of an RL row."""
    return {name: row[name] for name in SPOKEN if name in row}


def calls_in(messages: list[Message]) -> int:
    """Return how many tool calls there are."""
    return sum(len(message.get("tool_calls", ())) for message in messages)


def row_notes(mode: ExportMode | str, selected: Selected, written: Written | None) -> list[str]:
    """Return sentences on what a trainer takes in that rows do not show at first sight; few before rows are made."""
    if mode is ExportMode.RL:
        return []
    in_pairs = mode is ExportMode.PREFERENCE
    whole = None if written is None or written.is_beginning else written
    notes = [_on_branches(selected.of_several_branches, in_pairs, whole), _on_limits(selected.cut_off, in_pairs)]
    if written is not None:
        met = [note for note in (_on_endings(written), _on_tools(written)) if note]
        notes += met if whole else [_on_beginning(written, in_pairs, met)]
    return [note for note in notes if note]


def _on_beginning(written: Written, in_pairs: bool, met: list[str]) -> str:
    """Return what was met in the first rows, and that the others were not looked into."""
    rows = plural(written.rows, "pair" if in_pairs else "row")
    found = " ".join(met) or "each ends with an answer, and defines the tools that it calls."
    return f"Looked into here are only the first {rows}: {found}"


def _on_branches(count: int, in_pairs: bool, written: Written | None) -> str:
    if not count:
        return ""
    if in_pairs:
        holds = f"{plural(count, 'pair')} {'holds' if count == 1 else 'hold'}"
        return f"{holds} one branch of several: the last that begins with the prompt.{ONE_OF_SEVERAL}"
    of_each = f"{plural(count, 'trajectory')} of several branches"
    if written is None:
        return f"Selected {of_each}: each branch with an answer is a row.{ONE_OF_SEVERAL}"
    are = "is" if written.of_branches == 1 else "are"
    return f"{plural(written.of_branches, 'row')} {are} one branch of several, out of {of_each}.{ONE_OF_SEVERAL}"


def _on_limits(count: int, in_pairs: bool) -> str:
    if not count:
        return ""
    if in_pairs:
        selected = f"{plural(count, 'pair')} {'has' if count == 1 else 'have'} an answer"
        return f"{selected} that a limit cut off; drop_truncated leaves out such trajectories."
    selected = f"{plural(count, 'selected trajectory')} {'was' if count == 1 else 'were'}"
    return f"{selected} cut off by a limit; drop_truncated leaves out such trajectories."


def _on_endings(written: Written) -> str:
    if not (ends := written.unanswered):
        return ""
    one = ends.total() == 1
    sides = " and ".join(f"{ends[name]:,} {name}" for name in ("chosen", "rejected") if ends[name])
    pairs = f"{sides} {'answer' if one else 'answers'} of {plural(written.rows, 'pair')}"
    which = f"{ends['messages']:,} of {plural(written.rows, 'row')}" if "messages" in ends else pairs
    return f"{which} {'ends' if one else 'end'} with the message of a tool or a user, and no answer to it."


def _on_tools(written: Written) -> str:
    if not (count := written.without_tools):
        return ""
    return f"{plural(count, 'row')} {'calls' if count == 1 else 'call'} tools that the record does not define."
