"""Reading many records at once gives what `load` gives for each of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from rltracer_sqlite.sources.base import Locator, LocatorError
from rltracer_sqlite.sources.prime_rl import PrimeRLSource
from rltracer_sqlite.sources.prime_rl.conversations import read_conversations, read_records
from tests.export_runs import indexed, rollout
from tests.indexing import index, rows
from tests.layouts import LAYOUTS


def places(database: Path) -> list[Locator]:
    """Return where every record of an index is, in the order of the files."""
    found = rows(
        database,
        """
        select t.uid, s.path, s.layout, t.byte_offset, t.byte_length, t.item, t.line
        from trajectories t join shards s on s.id = t.shard_id where turns > 0 order by s.path, t.byte_offset, t.item
        """,
    )
    return [Locator(*row) for row in found]


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_conversations_and_records_are_those_of_load(tmp_path: Path, layout: str) -> None:
    LAYOUTS[layout](tmp_path / "run")
    index(tmp_path / "x.sqlite", tmp_path / "run")
    source, root, found = PrimeRLSource(), tmp_path / "run", places(tmp_path / "x.sqlite")
    whole = [source.load(root, [place]) for place in found]
    quick = list(read_conversations(root, found, source.load))
    assert [one.branches for one in quick] == [one.branches for one in whole]
    assert [one.messages for one in quick] == [one.messages for one in whole]
    assert [one.tools for one in quick] == [one.tools for one in whole]
    assert [(one.trained, one.branch_nodes) for one in quick] == [(one.trained, one.branch_nodes) for one in whole]
    for record, one in zip(read_records(root, found, source.load), whole, strict=True):
        assert one.record.items() <= record.items() or record == one.record


def test_one_record_is_read_for_one_place(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: [rollout(f"t{n}") for n in range(3)]})
    taken: list[str] = []

    def asked() -> Iterator[Locator]:
        for place in places(database):
            taken.append(place.uid)
            yield place

    reading = read_conversations(tmp_path / "run", asked(), PrimeRLSource().load)
    assert next(reading).messages[-1]["content"] == "42 (t0)"
    assert taken == ["t0"]


@pytest.mark.parametrize(("offset", "length"), [(-1, 10), (0, 0), (0, 1 << 40), (10**9, 10), ("0", 10)])
def test_places_that_cannot_be(tmp_path: Path, offset: int, length: int) -> None:
    database = indexed(tmp_path, {1: [rollout("a")]})
    [place] = places(database)
    with pytest.raises(LocatorError):
        list(
            read_conversations(
                tmp_path / "run", [replace(place, byte_offset=offset, byte_length=length)], PrimeRLSource().load
            )
        )
