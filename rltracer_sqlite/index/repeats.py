"""Records whose id stands twice: a trajectory is counted once, and which of its records has the row is decided here."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ..sources.base import Entry, Problem

# What is told of a record that is not counted: its id, and where it stands again.
THE_ID, STANDS_AGAIN = "the id ", " stands again in "
LATER_LINE = "a later line"
OF_LINES = "by its last line"
OF_FILES = "in the latest step that has it, and there by the last of its files"


class Existing(NamedTuple):
    """What the index already knows of a uid."""

    id: int
    shard_id: int
    prompt_group_id: int | None
    step: int | None
    split: str | None
    line: int
    byte_offset: int
    byte_length: int
    is_gone: bool  # it cannot be read any more where it was


class Place(NamedTuple):
    """A shard, as far as it decides to which of two a record belongs."""

    path: str
    file: str
    producer: str | None = None
    step: int | None = None

    @property
    def order(self) -> tuple[int, str]:
        """What is the greatest for the shard that has the row."""
        return -1 if self.step is None else self.step, self.path


@dataclass
class Sorted:
    """Entries whose row belongs to a shard, copies of records that belong elsewhere, and rows that move to it.

    `repeats` are the records that are not counted: (number of their shard, what is told of them).
    """

    mine: list[Entry] = field(default_factory=list)
    copies: list[Entry] = field(default_factory=list)
    moving: list[int] = field(default_factory=list)
    repeats: list[tuple[int, Problem]] = field(default_factory=list)


def sort_out(
    entries: list[Entry],
    existing: Mapping[str, Existing],
    shard_id: int,
    places: Mapping[int, Place],
) -> Sorted:
    """Part the entries whose row belongs to this shard from copies of records that belong elsewhere.

    A complete record comes before the copy under effective/, and one that can be read before one that is gone.
    Of two files that hold the same record that of the later step has the row, of the same step the later path,
    whichever was read first; of the other record it is told that it repeats one.
    """
    found, here = Sorted(), places[shard_id]
    for entry in entries:
        known = existing.get(entry.uid)
        if known is None or known.shard_id == shard_id or known.is_gone:
            found.mine.append(entry)
            continue
        there = places.get(known.shard_id)
        is_later = there is None or here.order > there.order
        if here.producer is None and (there is None or there.producer is None):
            if is_later:
                found.repeats.append((known.shard_id, _repeats(entry.uid, known, here.file, OF_FILES)))
                found.mine.append(entry)
                found.moving.append(known.id)
            else:
                other = there.file if there else "another file"
                found.repeats.append((shard_id, _repeats(entry.uid, entry, other, OF_FILES)))
                found.copies.append(entry)
        elif here.producer is None or (there is not None and there.producer is not None and is_later):
            found.mine.append(entry)
    return found


def distinct(entries: list[Entry]) -> tuple[list[Entry], list[Problem]]:
    """Keep the last entry of each uid of a batch; tell the others as problems."""
    last = {entry.uid: entry for entry in entries}
    if len(last) == len(entries):
        return entries, []
    earlier = [entry for entry in entries if last[entry.uid] is not entry]
    return list(last.values()), [_repeats(entry.uid, entry, LATER_LINE, OF_LINES) for entry in earlier]


def seen_before(
    entries: list[Entry], existing: Mapping[str, Existing], shard_id: int, seen: set[int] | None
) -> list[Problem]:
    """Tell the records in an earlier part of the same shard whose ids stand again here."""
    found = []
    for entry in entries:
        known = existing.get(entry.uid)
        stood = known is not None and known.shard_id == shard_id and known.byte_offset < entry.byte_offset
        if known is not None and stood and (seen is None or known.id in seen):
            found.append(_repeats(entry.uid, known, LATER_LINE, OF_LINES))
    return found


def _repeats(uid: str, where: Entry | Existing, other: str, which: str) -> Problem:
    """Return what is told of a record that is not counted, as another one of the same id is."""
    reason = f"{THE_ID}{uid[:80]}{STANDS_AGAIN}{other[:200]}; a trajectory is counted once, {which}"
    return Problem(where.line, where.byte_offset, where.byte_length, reason)
