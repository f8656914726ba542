"""What tests of tables ask: scan the files at a place, and say where what was found is."""

from __future__ import annotations

from pathlib import Path

from rltracer_sqlite.sources.base import Entry, Locator, NotRollouts, Problem, Shard
from rltracer_sqlite.sources.table import TableSource

Found = tuple[Shard, Entry]


def read(found: TableSource, root: Path) -> tuple[list[Found], list[Problem], list[str]]:
    """Return the entries with their shards, the problems, and what files left aside say."""
    entries: list[Found] = []
    problems: list[Problem] = []
    asides: list[str] = []
    for shard in found.shards(root):
        if shard.aside:
            asides.append(shard.aside)
            continue
        try:
            for one in found.scan(root, shard):
                if isinstance(one, Entry):
                    entries.append((shard, one))
                elif isinstance(one, Problem):
                    problems.append(one)
        except NotRollouts as error:
            asides.append(str(error))
    return entries, problems, asides


def locator(shard: Shard, entry: Entry) -> Locator:
    return Locator(
        entry.uid, shard.path, shard.layout, entry.byte_offset, entry.byte_length, entry.item, entry.line, None
    )
