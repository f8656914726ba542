"""Torch files: the pickle, which may only build lists, dictionaries and tensors, and the archive around it."""

from __future__ import annotations

import pickle
import struct
from typing import Any

from rltracer_sqlite.sources.base import NotRollouts, Position, Shard
from rltracer_sqlite.sources.prime_rl import PrimeRLSource
from rltracer_sqlite.sources.prime_rl.torch_pickle import Name, PickleRefused, Storage, TensorView, read_tensors
from tests.token_layouts import question, write_archive, write_torch

from ..invariants import entries, place_of, scanned
from ..scratch import scratch
from ..target import Target

SAMPLES = [question("4"), question("5")]
PLAIN = (dict, list, tuple, str, bytes, int, float, bool, type(None), TensorView, Storage, Name)
MOST_VALUES = 10_000
SOURCE = PrimeRLSource()


def check_pickle(data: bytes) -> None:
    """A pickle gives plain values and tensors only, or is refused; nothing of it is imported or called."""
    try:
        value = read_tensors(data)
    except PickleRefused as error:
        assert str(error).startswith("its pickle ")
        return
    pending, seen = [value], set()
    while pending and len(seen) < MOST_VALUES:
        one = pending.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if type(one) is object:
            continue  # the mark
        assert type(one) in PLAIN, type(one)
        pending += one.values() if isinstance(one, dict) else one if isinstance(one, (list, tuple)) else ()


def pickle_seeds() -> list[bytes]:
    plain: list[Any] = [
        [{"a": [1, 2.5, None, True, "x"], "b": (1, (2,), (1, 2, 3, 4))}], {"input_ids": 2**40, "n": -1}, [[]] * 3,
    ]  # fmt: skip
    hostile = [
        b"cos\nsystem\n(S'touch evil'\ntR.",
        b"cbuiltins\neval\n(X\x01\x00\x00\x001tR.",
        b"\x80\x02]}(K\x01K\x02ua.",
    ]
    return [pickle.dumps(value, protocol) for value in plain for protocol in (2, 4)] + [*hostile, tensor_pickle()]


def tensor_pickle(count: int = 3) -> bytes:
    """Return the pickle of one micro batch whose ids are a tensor of `count` numbers."""
    storage = b"(X\x07\x00\x00\x00storagectorch\nLongStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpuJ"
    size = struct.pack("<i", count)
    tensor = (
        b"ctorch._utils\n_rebuild_tensor_v2\n("
        + storage
        + size
        + b"tQK\x00K\x01J"
        + size
        + b"\x86J"
        + size
        + b"K\x01\x86\x89tR"
    )
    return b"\x80\x02]}(X\x09\x00\x00\x00input_ids" + tensor + b"ua."


def check_torch(data: bytes) -> None:
    """A torch file is read or refused, and each entry loads. The first byte chooses: the archive or its pickle."""
    root, shard = scratch("torch"), Shard("rank_0.pt", "rank_0.pt", "micro_batches", 1, "train")
    if data[:1] < b"\x80":
        write_archive(root / "rank_0.pt", data[1:], [struct.pack("<3q", 1, 2, 3)])
    else:
        (root / "rank_0.pt").write_bytes(data[1:])
    try:
        found = scanned(SOURCE, root, shard)
    except NotRollouts:
        return
    if found is None:
        return
    last = found[-1]
    assert isinstance(last, Position)
    assert last.offset == (root / "rank_0.pt").stat().st_size
    for entry in entries(found)[:5]:
        shown = SOURCE.load(root, [place_of(entry, shard)])
        assert shown.metadata["uid"] == entry.uid
        assert shown.metadata["completion"]["completion_tokens"] == entry.completion_tokens


def torch_seeds() -> list[bytes]:
    file = write_torch(scratch("torch-seeds") / "a.pt", [SAMPLES, SAMPLES[:1]])
    return [b"\xff" + file.read_bytes(), *(b"\0" + data for data in pickle_seeds())]


NAMES = (
    "ctorch\nLongStorage\n",
    "ctorch._utils\n_rebuild_tensor_v2\n",
    "ccollections\nOrderedDict\n",
    "input_ids",
    "loss_mask",
    "position_ids",
    "storage",
    "data.pkl",
)
TARGETS = {
    "pickle": Target("pickle", "the pickle of a torch file, run by nobody", check_pickle, pickle_seeds, "bytes", NAMES),
    "torch": Target("torch", "torch files", check_torch, torch_seeds, "bytes", NAMES),
}
