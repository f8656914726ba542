"""Records whose id stands twice: a trajectory is counted once, and which of its records has the row is decided here."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ..sources.base import Entry, Problem


class Existing(NamedTuple):
    """What the index already knows of a uid."""

    id: int
    shard_id: int
    prompt_group_id: int | None
    step: int | None
    split: str | None
    byte_offset: int


class Place(NamedTuple):
    """A shard, as far as it decides to which of two a record belongs."""

    path: str
    file: str
    producer: str | None = None


@dataclass
class Sorted:
    """Entries whose row belongs to a shard, copies of records that belong elsewhere, and rows that move to it."""

    mine: list[Entry] = field(default_factory=list)
    copies: list[Entry] = field(default_factory=list)
    moving: list[int] = field(default_factory=list)


def sort_out(
    entries: list[Entry],
    existing: Mapping[str, Existing],
    shard_id: int,
    places: Mapping[int, Place],
    gone: Collection[int],
    repeated: list[Problem],
) -> Sorted:
    """Part the entries whose row belongs to this shard from copies of records that belong elsewhere.

    A complete record comes before the copy under effective/, and a file that is there before one that is gone.
    Of two files that hold the same record the later path has the row, whichever was read first; that is told in
    `repeated`.
    """
    found, here = Sorted(), places[shard_id]
    for entry in entries:
        known = existing.get(entry.uid)
        if known is None or known.shard_id == shard_id or known.shard_id in gone:
            found.mine.append(entry)
            continue
        there = places.get(known.shard_id)
        is_later = here.path > (there.path if there else "")
        if here.producer is None and (there is None or there.producer is None):
            repeated.append(_repeats(entry, there.file if there else "another file"))
            if is_later:
                found.mine.append(entry)
                found.moving.append(known.id)
            else:
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
    return list(last.values()), [_repeats(entry, "a later line") for entry in earlier]


def seen_before(
    entries: list[Entry], existing: Mapping[str, Existing], shard_id: int, seen: set[int] | None
) -> list[Problem]:
    """Tell the ids that stood in an earlier part of the same shard."""
    found = []
    for entry in entries:
        known = existing.get(entry.uid)
        stood = known is not None and known.shard_id == shard_id and known.byte_offset < entry.byte_offset
        if known is not None and stood and (seen is None or known.id in seen):
            found.append(_repeats(entry, "an earlier line"))
    return found


def _repeats(entry: Entry, other: str) -> Problem:
    reason = f"the id {entry.uid[:80]} stands again in {other}; a trajectory is counted once"
    return Problem(entry.line, entry.byte_offset, entry.byte_length, reason)
