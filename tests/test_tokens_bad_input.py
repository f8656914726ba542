"""Token shards that are cut off or damaged: what is whole is read, the rest is told, and memory is bounded."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import msgpack
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rltracer_sqlite.sources.base import Entry, NotRollouts, Position, SourceError
from rltracer_sqlite.sources.prime_rl import msgpack_frames
from rltracer_sqlite.sources.prime_rl.token_scan import Tally, scan_token_shard
from rltracer_sqlite.tokens import TextTokenizer, load_tokenizer
from tests.token_layouts import export_line, micro_batch, question, training_sample, write_bin, write_tokenizer
from tests.token_scans import entries, load, problems, scan, shard_of

SAMPLES = [question("4"), question("5"), question("6")]
BATCHES = [micro_batch("g20", [sample]) for sample in SAMPLES]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> TextTokenizer:
    return load_tokenizer(write_tokenizer(tmp_path_factory.mktemp("tokenizer")))


@pytest.mark.parametrize("keep", [0.2, 0.5, 0.9])
def test_a_cut_off_shard_gives_what_is_whole_and_waits(tmp_path: Path, keep: float) -> None:
    file = write_bin(tmp_path / "rank_0.bin", BATCHES)
    whole = file.read_bytes()
    file.write_bytes(whole[: int(len(whole) * keep)])
    found = scan(tmp_path, file)
    rows = entries(found)
    assert len(rows) == int(keep * 3)
    assert problems(found) == [f"the file ends inside record {len(rows) + 1} of 3"]
    reached = found[-1]
    assert isinstance(reached, Position)
    assert reached.offset + reached.waiting == file.stat().st_size
    file.write_bytes(whole)
    assert len(entries(scan(tmp_path, file, None, Position(*reached[:2])))) == 3 - len(rows)


def test_a_cut_off_training_batch_gives_what_is_whole(tmp_path: Path) -> None:
    value = [[training_sample(12, "new", sample) for sample in SAMPLES], 3, None]
    file = write_bin(tmp_path / "train_rollouts.bin", value)
    file.write_bytes(file.read_bytes()[:-200])
    found = scan(tmp_path, file)
    assert (len(entries(found)), problems(found)) == (2, ["the file ends inside record 3 of 3"])


@pytest.mark.parametrize("second", [7, "text", {"a": 1}, [], [[1]], [["a"], 1, 1, 1, 1], [[-1], [True], [], [], []]])
def test_a_record_that_is_no_micro_batch_is_a_problem(tmp_path: Path, second: Any) -> None:
    found = scan(tmp_path, write_bin(tmp_path / "rank_0.bin", [BATCHES[0], second, BATCHES[2]]))
    assert len(entries(found)) == 2
    (reason,) = problems(found)
    assert reason.startswith("not readable as a micro batch: ")


def test_a_byte_that_is_no_messagepack_stops_reading(tmp_path: Path) -> None:
    file = tmp_path / "rank_0.bin"
    file.write_bytes(b"\x93" + msgpack.packb(BATCHES[0]) + b"\xc1" + msgpack.packb(BATCHES[1]))
    found = scan(tmp_path, file)
    assert len(entries(found)) == 1
    assert problems(found)[0].startswith("record 2 is no valid MessagePack")
    assert found[-1] == Position(1 + len(msgpack.packb(BATCHES[0])), 1)


def test_bytes_behind_the_last_micro_batch_are_told(tmp_path: Path) -> None:
    file = write_bin(tmp_path / "rank_0.bin", BATCHES)
    file.write_bytes(file.read_bytes() + b"more")
    assert problems(scan(tmp_path, file)) == ["not read: 4 bytes behind the last micro batch"]


@pytest.mark.threat("T3")
def test_a_micro_batch_that_claims_to_be_huge_takes_no_memory(tmp_path: Path) -> None:
    file = tmp_path / "rank_0.bin"
    file.write_bytes(b"\xdd\xff\xff\xff\xff" + b"\x96\xdd\xff\xff\xff\xff" + b"\x01" * 100)
    assert problems(scan(tmp_path, file)) == ["the file ends inside record 1 of 4,294,967,295"]


def test_a_value_larger_than_a_record_may_be_stops_reading(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(msgpack_frames, "MAX_RECORD_BYTES", 1 << 21)
    file = write_bin(tmp_path / "rank_0.bin", [BATCHES[0], [[1], [True], b"\0" * (1 << 22), [], []]])
    found = scan(tmp_path, file)
    assert (len(entries(found)), len(problems(found))) == (1, 1)


STREAMS = {1: "loss_mask", 2: "advantages", 3: "inference_logprobs", 7: "env_names"}


@pytest.mark.parametrize("place", list(STREAMS))
def test_a_list_of_another_length_is_left_out_and_told(tmp_path: Path, place: int) -> None:
    value = micro_batch("g20", SAMPLES)
    value[place] = value[place][:-3]
    file = write_bin(tmp_path / "rank_0.bin", [value])
    found = scan(tmp_path, file)
    rows = entries(found)
    count = len(value[0])
    assert problems(found) == [f"read in part: {STREAMS[place]} has {count - 3:,} values for {count:,} tokens"]
    missing = (rows[0].completion_tokens, rows[0].advantage, rows[0].logprob_mean, rows[0].env)
    assert missing[[1, 2, 3, 7].index(place)] is None
    assert len(load(tmp_path, file, rows[0]).tokens) == len(SAMPLES[0].ids)


@pytest.mark.parametrize("levels", [900, 1000])
@pytest.mark.parametrize("place", [0, 1, 5, 6, 7, 9, 19])
def test_a_field_that_is_nested_too_deeply_is_a_problem_or_not_read(tmp_path: Path, place: int, levels: int) -> None:
    parts = [msgpack.packb(field) for field in micro_batch("pE", SAMPLES)]
    parts[place] = b"\x91" * levels + b"\x90"
    file = tmp_path / "rank_0.bin"
    file.write_bytes(b"\x91\xdc\x00\x14" + b"".join(parts))
    found = scan(tmp_path, file)
    assert len(entries(found)) + len(problems(found)) > 0
    for row in entries(found):
        assert load(tmp_path, file, row).tokens.ids


def test_lengths_that_do_not_add_up_give_way_to_positions(tmp_path: Path) -> None:
    value = micro_batch("g20", SAMPLES)
    value[5] = [3, 4]
    found = scan(tmp_path, write_bin(tmp_path / "rank_0.bin", [value]))
    assert len(entries(found)) == 3
    assert problems(found) == [f"read in part: sequence_lengths add up to 7 for {len(value[0])} tokens"]


def test_numbers_that_are_none_are_missing(tmp_path: Path) -> None:
    value = micro_batch("g20", SAMPLES[:1])
    first = value[1].index(True)
    value[3][first], value[3][first + 1], value[2][first] = float("nan"), None, float("inf")
    file = write_bin(tmp_path / "rank_0.bin", [value])
    (row,) = entries(scan(tmp_path, file))
    assert (row.logprob_mean, row.advantage) == (-0.25 if sum(value[1]) > 2 else None, None)
    tokens = load(tmp_path, file, row).tokens
    assert tokens.logprobs[first : first + 2] == [None, None]
    assert tokens.advantages[first] is None


def test_ids_outside_the_vocabulary_are_told_once_per_run(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    value = micro_batch("g20", SAMPLES)
    value[0][10] = value[0][-2] = 151_000
    file, tally = write_bin(tmp_path / "rank_0.bin", [value, value]), Tally()
    found = scan(tmp_path, file, tokenizer, tally=tally)
    (reason,) = problems(found)
    count = len(SAMPLES[0].ids)
    assert f"does not fit these files: 1 of {count} token ids outside its vocabulary of 263" in reason
    assert "--tokenizer" in reason
    assert problems(scan(tmp_path, file, tokenizer, tally=tally)) == []
    assert "\ufffd" in load(tmp_path, file, entries(found)[0], tokenizer).messages[0]["content"]


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"", "an empty file"),
        (b"version https://git-lfs.github.com/spec/v1\n", "run git lfs pull"),
        (b"hello", "no micro batches"),
        (b"\x81\xa1a\x01", "no micro batches"),
        (b"\x93\x01\x02\x03", "no micro batches"),
        (b"\x91\x91\x01", "no micro batches"),
    ],
)
def test_another_file_is_no_rollouts(tmp_path: Path, content: bytes, reason: str) -> None:
    (tmp_path / "rank_0.bin").write_bytes(content)
    with pytest.raises(NotRollouts, match=reason):
        scan(tmp_path, tmp_path / "rank_0.bin")


def test_a_shard_without_micro_batches_is_empty(tmp_path: Path) -> None:
    assert scan(tmp_path, write_bin(tmp_path / "rank_0.bin", [])) == [Position(1, 0)]


@given(st.binary(max_size=300), st.integers(0, 400))
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_no_bytes_make_it_fail_otherwise(tmp_path: Path, noise: bytes, at: int) -> None:
    whole = msgpack.packb(BATCHES[:2])
    for ending in (".bin", ".pt", ".jsonl"):
        file = tmp_path / f"rank_0{ending}"
        file.write_bytes(whole[:at] + noise + whole[at + len(noise) :])
        try:
            found = scan(tmp_path, file)
        except SourceError:
            continue
        assert isinstance(found[-1], Position)


def test_a_long_shard_is_read_a_micro_batch_at_a_time(tmp_path: Path) -> None:
    one = micro_batch("g20", [question("word " * 400) for _ in range(5)])
    file = write_bin(tmp_path / "rank_0.bin", [one] * 40)
    largest = file.stat().st_size // 40
    tracemalloc.start()
    found = 0
    for row in scan_token_shard(tmp_path, shard_of(tmp_path, file)):
        found += isinstance(row, Entry)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found == 200
    assert peak < 4 * largest + (4 << 20) < file.stat().st_size


LINES = {
    b"[1, 2]": "no token export: it has no list of token ids",
    b'{"token_ids": [1], "x": ' + b"[" * 3000 + b"]" * 3000 + b"}": "not readable: nested too deeply",
    b"{}": "no token export: it has no list of token ids",
    b'{"token_ids": ["a"]}': "no token export: it has no list of token ids",
    b'{"token_ids": [-1]}': "no token export: it has no list of token ids",
    b'{"token_ids": [1': "not readable: ",
    b'{"token_ids": [1], "loss_mask": [true, false]}': "read in part: loss_mask has 2 values for 1 token",
}


@pytest.mark.parametrize("line", list(LINES), ids=lambda line: line[:40].decode())
def test_a_line_that_is_no_export_is_a_problem(tmp_path: Path, line: bytes) -> None:
    good = orjson.dumps(export_line(SAMPLES[0]))
    (tmp_path / "rank_0.jsonl").write_bytes(good + b"\n" + line + b"\n\n" + good + b"\n" + good[:50])
    found = scan(tmp_path, tmp_path / "rank_0.jsonl")
    assert len([row for row in entries(found) if row.line in (1, 4)]) == 2
    assert problems(found)[0].startswith(LINES[line])
    assert found[-1] == Position(2 * len(good) + len(line) + 4, 4, 50)


def test_literals_that_are_no_json_are_missing_numbers(tmp_path: Path) -> None:
    line = orjson.dumps(export_line(SAMPLES[0])).replace(b"-0.25", b"NaN", 1)
    (tmp_path / "rank_0.jsonl").write_bytes(line + b"\n")
    (row,) = entries(scan(tmp_path, tmp_path / "rank_0.jsonl"))
    assert row.logprob_mean == -0.25
    tokens = load(tmp_path, tmp_path / "rank_0.jsonl", row).tokens
    assert tokens.logprobs[tokens.mask.index(True)] is None
