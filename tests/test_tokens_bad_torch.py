"""Torch files that are damaged or hostile: refused in a sentence, bounded in memory, and never run."""

from __future__ import annotations

import os
import pickle
import struct
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.sources.base import NotRollouts
from rltracer_sqlite.sources.prime_rl.torch_pickle import PickleRefused, read_tensors
from tests.token_layouts import question, write_archive, write_torch
from tests.token_scans import entries, problems, scan


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


@pytest.mark.threat("T3")
def test_a_compressed_archive_is_refused(tmp_path: Path) -> None:
    file = write_torch(tmp_path / "rank_0.pt", [[question("4")]], zipfile.ZIP_DEFLATED)
    with pytest.raises(NotRollouts, match="a compressed archive, which torch does not write"):
        scan(tmp_path, file)
