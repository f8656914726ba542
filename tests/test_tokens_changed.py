"""Token shards that have changed since they were indexed: a sentence, and no other record in their place."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from rltracer_sqlite.sources.base import LocatorError, SourceError
from rltracer_sqlite.sources.prime_rl.token_load import load_token_trajectory
from tests.indexing import index, rows
from tests.token_layouts import micro_batch, question, write_bin, write_torch
from tests.token_scans import entries, locator, scan

SAMPLES = [question("4"), question("5"), question("6")]
BATCHES = [micro_batch("g20", [sample]) for sample in SAMPLES]


def stale(change: Callable[[Path], None], ending: str, tmp_path: Path) -> None:
    write = {".bin": lambda file: write_bin(file, BATCHES), ".pt": lambda file: write_torch(file, [SAMPLES])}[ending]
    file = write(tmp_path / f"rank_0{ending}")
    row = entries(scan(tmp_path, file))[-1]
    change(file)
    load_token_trajectory(tmp_path, [locator(row, file, tmp_path)])


@pytest.mark.parametrize("ending", [".bin", ".pt"])
@pytest.mark.parametrize(
    "change",
    [
        lambda file: file.write_bytes(b"\x91" * 2000),
        lambda file: file.write_bytes(b""),
        lambda file: write_bin(file, BATCHES[:1]) if file.suffix == ".bin" else write_torch(file, [SAMPLES[:1]]),
        lambda file: file.unlink(),
    ],
)
def test_a_record_that_has_changed_is_a_sentence(tmp_path: Path, ending: str, change: Callable[[Path], None]) -> None:
    with pytest.raises(SourceError, match=r"\.$"):
        stale(change, ending, tmp_path)


@pytest.mark.parametrize("item", [None, -1, 3, 10**12])
def test_an_item_that_is_not_there_is_a_sentence(tmp_path: Path, item: int | None) -> None:
    file = write_bin(tmp_path / "rank_0.bin", [micro_batch("g20", SAMPLES)])
    row = entries(scan(tmp_path, file))[0]
    row.item = item
    with pytest.raises(LocatorError, match="Index the run again"):
        load_token_trajectory(tmp_path, [locator(row, file, tmp_path)])


def test_a_record_that_is_not_complete_is_told_once_and_no_more_when_it_is(tmp_path: Path) -> None:
    database, file = tmp_path / "x.sqlite", tmp_path / "run/rollouts/step_1/rank_0.bin"
    whole = write_bin(file, BATCHES[:1]).read_bytes()
    problems = []
    for length in (100, 200, len(whole)):
        file.write_bytes(whole[:length])
        index(database, tmp_path / "run")
        problems.append(
            rows(database, "select s.problems, p.reason from shards s left join problems p on shard_id = s.id")
        )
    assert problems == [[(1, "the file ends inside record 1 of 1")]] * 2 + [[(0, None)]]
