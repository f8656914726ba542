"""Token shards that are cut off, damaged or hostile: said clearly, bounded in memory, and never run."""

from __future__ import annotations

import os
import pickle
import struct
import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgpack
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rltracer_sqlite.sources.base import Entry, LocatorError, NotRollouts, Position, SourceError
from rltracer_sqlite.sources.prime_rl import msgpack_frames
from rltracer_sqlite.sources.prime_rl.token_load import load_token_trajectory
from rltracer_sqlite.sources.prime_rl.token_shards import Tally, scan_token_shard
from rltracer_sqlite.sources.prime_rl.torch_pickle import PickleRefused, read_tensors
from rltracer_sqlite.tokens import TextTokenizer, load_tokenizer
from tests.token_layouts import (
    export_line,
    micro_batch,
    question,
    training_sample,
    write_archive,
    write_bin,
    write_tokenizer,
    write_torch,
)  # fmt: skip
from tests.token_scans import entries, load, locator, problems, scan, shard_of

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


@pytest.mark.parametrize("place", [0, 1, 5, 6, 7, 9, 19])
def test_a_field_that_is_nested_too_deeply_is_a_problem_or_not_read(tmp_path: Path, place: int) -> None:
    parts = [msgpack.packb(field) for field in micro_batch("pE", SAMPLES)]
    parts[place] = b"\x91" * 900 + b"\x90"
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


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return os.system, ("touch evil",)


HOSTILE: dict[str, bytes] = {
    "a call of the system": pickle.dumps([Evil()], protocol=2),
    "a call of the system, in text": b"cos\nsystem\n(S'touch evil'\ntR.",
    "a call of a builtin": b"cbuiltins\neval\n(X\x01\x00\x00\x001tR.",
    "an instance": b"(ios\nsystem\n.",
    "a name of torch that is no tensor": b"ctorch\nload\n.",
    "an attribute of a known name": b"ctorch._utils\n_rebuild_tensor_v2.__globals__\n.",
    "a class with state": pickle.dumps([Path("x")], protocol=2),
    "keys that are no text": b"\x80\x02]}(K\x01K\x02ua.",
    "a memo that is not there": b"\x80\x02h\x05.",
    "an empty stack": b"\x80\x02a.",
    "no end": b"\x80\x02]",
    "an append to no list": b"\x80\x02}K\x01a.",
    "a set": pickle.dumps({1, 2}, protocol=4),
    "a long number": b"\x80\x02\x8b\xff\xff\xff\x7f.",
    "an extension": b"\x80\x02\x82\x01.",
    "a reference to no storage": b"\x80\x02K\x01Q.",
}


@pytest.mark.threat("T4")
@pytest.mark.parametrize("name", list(HOSTILE))
def test_a_pickle_that_asks_for_more_is_refused(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PickleRefused):
        read_tensors(HOSTILE[name])
    file = write_archive(tmp_path / "rank_0.pt", HOSTILE[name])
    with pytest.raises(NotRollouts, match="a torch file that is not read: its pickle"):
        scan(tmp_path, file)
    assert not (tmp_path / "evil").exists()


def test_the_refused_name_is_said() -> None:
    with pytest.raises(PickleRefused, match=r"asks for 'posix\.system', which is not a tensor"):
        read_tensors(HOSTILE["a call of the system"])


def tensor_of(count: int, offset: int = 0) -> bytes:
    """Return the pickle of one micro batch whose ids claim `count` numbers from `offset` on."""
    storage = b"(X\x07\x00\x00\x00storagectorch\nLongStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuJ"
    size = struct.pack("<i", count)
    storage += size + b"tQJ" + struct.pack("<i", offset)
    tensor = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\x01J" + size + b"\x86J" + size + b"K\x01\x86\x89tR"
    return b"\x80\x02]}(X\x09\x00\x00\x00input_ids" + tensor + b"ua."


@pytest.mark.parametrize(("count", "offset"), [(1000, 0), (3, 2), (2**31 - 1, 0)])
def test_a_tensor_beyond_its_storage_is_a_problem(tmp_path: Path, count: int, offset: int) -> None:
    file = write_archive(tmp_path / "rank_0.pt", tensor_of(count, offset), [struct.pack("<3q", 1, 2, 3)])
    found = scan(tmp_path, file)
    assert (len(entries(found)), len(problems(found))) == (0, 1)


@pytest.mark.parametrize(("count", "offset"), [(-1, 0), (3, -1)])
def test_a_tensor_of_negative_size_is_refused(tmp_path: Path, count: int, offset: int) -> None:
    file = write_archive(tmp_path / "rank_0.pt", tensor_of(count, offset), [struct.pack("<3q", 1, 2, 3)])
    with pytest.raises(NotRollouts, match="impossible size"):
        scan(tmp_path, file)


@pytest.mark.parametrize("rows", [1 << 25, 1 << 40])
def test_numbers_that_are_repeated_without_end_take_no_memory(tmp_path: Path, rows: int) -> None:
    # A stride of 0 makes a tensor of any size out of one number.
    one = b"J" + struct.pack("<i", 1)
    huge = b"\x8a\x08" + struct.pack("<q", rows)
    shape_and_strides = b"K\x01" + one + b"\x86" + one + b"K\x01\x86"
    assert shape_and_strides in tensor_of(1)
    pickled = tensor_of(1).replace(shape_and_strides, b"K\x01" + huge + b"\x86" + one + b"K\x00\x86")
    file = write_archive(tmp_path / "rank_0.pt", pickled, [struct.pack("<q", 1)])
    tracemalloc.start()
    found = scan(tmp_path, file)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (len(entries(found)), len(problems(found))) == (0, 1)
    assert peak < 8 << 20


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


@pytest.mark.threat("T3")
def test_a_compressed_archive_is_refused(tmp_path: Path) -> None:
    file = write_torch(tmp_path / "rank_0.pt", [SAMPLES], zipfile.ZIP_DEFLATED)
    with pytest.raises(NotRollouts, match="a compressed archive, which torch does not write"):
        scan(tmp_path, file)


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
