"""Long lines: held once, skipped where nothing of them is needed, and read back alone."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest

from rltracer_sqlite.sources import readers, source_named
from rltracer_sqlite.sources.base import Entry
from rltracer_sqlite.sources.lines import CHUNK_BYTES
from tests.table_rows import GOOD, RENDERED, write_lines
from tests.table_scans import locator, read

TOKENS = 16_000


def long_row(number: int, tokens: int = TOKENS) -> dict[str, object]:
    return {
        "content": [[RENDERED, GOOD]],
        "rewards": [float(number)],
        "token_ids": [[100_000 + n for n in range(tokens)]],
        "token_loss_mask": [[0] * 10 + [1] * (tokens - 10)],
        "advantages": [[0.123456789] * tokens],
        "generation_logprobs": [[-0.123456789] * tokens],
        "prev_logprobs": [[-0.987654321] * tokens],
        "idx": number,
    }


def peak_of(root: Path, rows: int) -> tuple[int, list[Entry]]:
    reader = source_named("nemo-rl")
    (shard,) = reader.shards(root)
    list(reader.scan(root, shard))  # what is imported and compiled once is not counted
    tracemalloc.start()
    entries = [one for one in reader.scan(root, shard) if isinstance(one, Entry)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert len(entries) == rows
    return peak, entries


def test_lines_of_a_megabyte_are_not_held_twice(tmp_path: Path) -> None:
    rows = 4
    write_lines(tmp_path / "train_data_step1.jsonl", *map(long_row, range(rows)))
    length = (tmp_path / "train_data_step1.jsonl").stat().st_size // rows
    assert length > 600_000
    peak, entries = peak_of(tmp_path, rows)
    # The buffer of whole lines, and the numbers of one row that are looked at: lists of 16,000.
    assert peak < CHUNK_BYTES + 3 * TOKENS * 40 + (1 << 20)
    assert [entry.reward for entry in entries] == list(range(rows))
    assert {(entry.advantage, entry.completion_tokens, entry.prompt_tokens) for entry in entries} == {
        (0.123456789, TOKENS - 10, 10)
    }


@pytest.mark.parametrize("rows", [50, 200])
def test_memory_does_not_grow_with_the_rows_of_a_file(rows: int, tmp_path: Path) -> None:
    write_lines(tmp_path / "train_data_step1.jsonl", *(long_row(n, 200) for n in range(rows)))
    peak, _ = peak_of(tmp_path, rows)
    assert peak < CHUNK_BYTES + rows * 4000 + (1 << 20)


def test_a_row_is_loaded_from_its_own_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_lines(tmp_path / "train_data_step1.jsonl", *map(long_row, range(4)))
    reader = source_named("nemo-rl")
    shard, entry = read(reader, tmp_path)[0][2]
    asked: list[int] = []

    plain = readers.PlainFile.pread
    monkeypatch.setattr(
        readers.PlainFile, "pread", lambda self, length, offset: asked.append(length) or plain(self, length, offset)
    )
    trajectory = reader.load(tmp_path, [locator(shard, entry)])
    assert asked == [entry.byte_length]
    assert trajectory.tokens is not None
    assert (len(trajectory.tokens), trajectory.metadata["logprobs"]["count"]) == (TOKENS, TOKENS - 10)


def test_a_long_line_of_columns_is_read_once_for_all_its_rows(tmp_path: Path) -> None:
    count = 300
    line = {"step": [1] * count, "prompt": [RENDERED] * count, "completion": [f"{n} " * 500 for n in range(count)],
            "advantages": [0.5] * count, "Acc": [1.0] * count}  # fmt: skip
    write_lines(tmp_path / "completions.jsonl", line)
    reader = source_named("ms-swift")
    entries = read(reader, tmp_path)[0]
    locators = [locator(shard, entry) for shard, entry in entries]
    tracemalloc.start()
    loaded = [one.messages[-1]["content"] for one in reader.conversations(tmp_path, locators)]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert loaded == line["completion"]
    assert peak < 4 * len(json.dumps(line))
