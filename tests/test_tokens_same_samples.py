"""One sample in several files of a step: found again by its ids, counted once, and told apart from its like."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import orjson
import pytest

from rltracer_sqlite.sources.files import open_shard
from rltracer_sqlite.sources.prime_rl.same_samples import KnownSamples
from rltracer_sqlite.sources.prime_rl.samples import Batch, Sample
from rltracer_sqlite.sources.prime_rl.token_load import load_token_trajectory
from rltracer_sqlite.sources.prime_rl.token_scan import Tally, known_samples
from tests.layouts.corpora import corpora
from tests.token_layouts import Drawn, export_line, micro_batch, question, training_sample, write_bin
from tests.token_scans import entries, locator, scan, shard_of, updates

SAMPLES = [question("4"), question("5", advantage=-0.5), question("longer answer")]


def orchestrator(folder: Path, samples: list[Drawn]) -> Path:
    return write_bin(folder / "rollouts.bin", [[training_sample(12, "new", one) for one in samples], 1, None])


def test_a_rank_adds_to_what_the_orchestrator_wrote(tmp_path: Path) -> None:
    first = orchestrator(tmp_path, SAMPLES)
    rank = write_bin(tmp_path / "rank_0.bin", [micro_batch("g17", SAMPLES[::-1], 3)])
    rows = entries(scan(tmp_path, first))
    known, tally = known_samples(tmp_path, [shard_of(tmp_path, first)]), Tally()
    found = scan(tmp_path, rank, known=known, tally=tally)
    assert entries(found) == []
    assert [one.uid for one in updates(found)] == [row.uid for row in rows][::-1]
    assert (tally.sequences, tally.duplicates) == (3, 3)


def test_what_is_not_known_is_a_row_of_its_own(tmp_path: Path) -> None:
    first = orchestrator(tmp_path, SAMPLES[:1])
    rank = write_bin(tmp_path / "rank_0.bin", [micro_batch("g20", SAMPLES)])
    found = scan(tmp_path, rank, known=known_samples(tmp_path, [shard_of(tmp_path, first)]))
    assert (len(entries(found)), len(updates(found))) == (2, 1)


def test_a_copy_that_was_cut_at_the_sequence_length_is_found(tmp_path: Path) -> None:
    first = orchestrator(tmp_path, SAMPLES)
    cut = question("longer answer")
    cut.ids, cut.mask = cut.ids[:-6], cut.mask[:-6]
    rank = write_bin(tmp_path / "rank_0.bin", [micro_batch("g20", [cut])])
    found = scan(tmp_path, rank, known=known_samples(tmp_path, [shard_of(tmp_path, first)]))
    assert [one.uid for one in updates(found)] == [entries(scan(tmp_path, first))[2].uid]


def test_equal_ids_are_told_apart_by_their_logprobs() -> None:
    def read() -> Iterator[tuple[str, Sample]]:
        for number in range(3):
            yield f"known {number}", Sample([1, 2, 3], b"\0\1\1", {"inference_logprobs": [0.0, -0.1 * number, -1.0]})

    known = KnownSamples(read)
    for number in (2, 0, 1):
        near = Sample([1, 2, 3], b"\0\1\1", {"inference_logprobs": [0.0, -0.1 * number - 1e-7, -1.0]})
        assert known.match(near) == f"known {number}"
    assert known.match(Sample([1, 2], b"\0\1", {})) is not None
    assert known.match(Sample([1, 9], b"\0\1", {})) is None


def test_what_an_export_knows_is_in_the_loaded_trajectory(tmp_path: Path) -> None:
    first = orchestrator(tmp_path, SAMPLES)
    export = tmp_path / "rank_0.jsonl"
    export.write_bytes(orjson.dumps(export_line(SAMPLES[1])) + b"\n")
    known = known_samples(tmp_path, [shard_of(tmp_path, first)])
    (update,) = updates(scan(tmp_path, export, known=known))
    row = next(row for row in entries(scan(tmp_path, first)) if row.uid == update.uid)
    trajectory = load_token_trajectory(tmp_path, [locator(row, first, tmp_path), locator(update, export, tmp_path)])
    assert trajectory.tokens.trainer_logprobs == [-0.5 if flag else None for flag in SAMPLES[1].mask]
    assert (trajectory.metadata["reward"], trajectory.metadata["advantage"]) == (1.0, -0.5)
    assert len(trajectory.metadata["annotations"]) == 1


SHARED = corpora()
SETS = ["00-2025-12-15-b8697b0f0", "08-2026-04-10-2d577a42e", "16-2026-06-15-fa21395a6", "18-2026-06-27-0be5ac452"]


@pytest.mark.skipif(SHARED is None, reason="no corpora")
@pytest.mark.parametrize("name", SETS)
def test_recorded_ranks_hold_the_samples_of_the_orchestrator(name: str) -> None:
    assert SHARED
    root = SHARED / "prime-rl" / "bin" / name
    for batch in sorted(root.glob("run_default/rollouts/step_*/*rollouts.bin")):
        known = known_samples(root, [shard_of(root, batch)])
        ranks = sorted(root.glob(f"rollouts/{batch.parent.name}/rank_*.bin"))
        found = [one for rank in ranks for one in scan(root, rank, known=known)]
        assert entries(found) == []
        assert sorted(one.uid for one in updates(found)) == sorted(row.uid for row in entries(scan(root, batch)))


def test_samples_of_a_shard_are_read_as_they_are_asked_for(tmp_path: Path) -> None:
    file = orchestrator(tmp_path, SAMPLES)
    from rltracer_sqlite.sources.prime_rl.token_readers import read_shard

    with open_shard(tmp_path, "rollouts.bin") as reader:
        first = next(iter(read_shard(reader, file.name)))
    assert isinstance(first, Batch)
