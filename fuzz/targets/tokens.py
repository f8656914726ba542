"""The trainer's token shards: MessagePack and JSONL."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import msgpack

from rltracer_sqlite.sources.base import START, NotRollouts, Position, Problem, Shard
from rltracer_sqlite.sources.files import open_shard
from rltracer_sqlite.sources.prime_rl import PrimeRLSource, microbatch, msgpack_frames, token_export
from rltracer_sqlite.sources.prime_rl.samples import Batch
from rltracer_sqlite.sources.prime_rl.token_readers import read_shard
from tests.token_layouts import export_line, micro_batch, question, training_sample, write_tokenizer

from ..invariants import check_nothing_lost, check_resumed, entries, patched, place_of, remarked, scanned
from ..scratch import scratch
from ..target import Target

SAMPLES = [question("4"), question("5"), question("<think>\n6")]
GENERATIONS = ("g12", "g20", "pE")


@cache
def sources() -> list[PrimeRLSource]:
    """Return a source without a tokenizer, and one with."""
    folder = write_tokenizer(scratch("tokenizer"))
    return [PrimeRLSource(), PrimeRLSource(str(folder))]


def check_shard(data: bytes, name: str) -> None:
    """Every record is told, pieces and restarts change nothing, and each entry loads as what was counted."""
    source, content = sources()[data[0] % 2 if data else 0], data[1:]
    root, shard = scratch("tokens"), Shard(name, name, "micro_batches", None if data[:1] > b"\x7f" else 1, "train")
    (root / name).write_bytes(content)
    source.__dict__.pop("tally", None)  # what a scan says once per run it may say again
    found = scanned(source, root, shard)
    if found is None:
        return
    _check_records(root, name, content)
    small = {"COMMIT_RECORDS": 1}
    with patched(microbatch, **small), patched(token_export, **small), patched(msgpack_frames, BLOCK=37):
        source.__dict__.pop("tally", None)
        pieces = scanned(source, root, shard)
        assert pieces is not None
        assert [one for one in pieces if not isinstance(one, Position)] == [
            one for one in found if not isinstance(one, Position)
        ]
        if source.tokenizer is None:  # that a tokenizer does not fit is said once a run, and not again
            check_resumed(source, root, shard, pieces)
    in_part = remarked(found)
    for entry in entries(found):
        shown = source.load(root, [place_of(entry, shard)])
        tokens = shown.tokens
        assert tokens is not None
        assert shown.metadata["uid"] == entry.uid
        assert (tokens.pieces is None) == (source.tokenizer is None)
        if entry.byte_offset not in in_part:
            assert shown.metadata["completion"]["completion_tokens"] == entry.completion_tokens
            assert shown.metadata["advantage"] == entry.advantage
            assert shown.metadata["reward"] == entry.reward


def _check_records(root: Path, name: str, content: bytes) -> None:
    """Check that every byte of the records is in a batch, a problem or a waiting tail."""
    with open_shard(root, name) as reader:
        try:
            found = list(read_shard(reader, name, START))
            start = 0 if name.endswith(".jsonl") else msgpack_frames.read_beginning(reader).offset
            training = not name.endswith(".jsonl") and msgpack_frames.read_beginning(reader).is_training_batch
        except NotRollouts:
            return
    told = [Problem(one.line, one.offset, one.length, "told") if isinstance(one, Batch) else one for one in found]
    if training and not any(isinstance(one, Problem) and one.reason.startswith("the file ends") for one in found):
        return  # what stands behind the samples is the step and the run's number
    check_nothing_lost(content, told, start)


def check_micro_batches(data: bytes) -> None:
    check_shard(data, "rank_0.bin")


def check_token_exports(data: bytes) -> None:
    check_shard(data, "rank_0.jsonl")


def micro_batch_seeds() -> list[bytes]:
    """Return micro batches of several generations, and training batches of two styles."""
    lists = [[micro_batch(generation, SAMPLES), micro_batch(generation, SAMPLES[:1])] for generation in GENERATIONS]
    lists += [[micro_batch("g20", SAMPLES[:1], pad=3), micro_batch("g20", SAMPLES[:1], copy=True)]]
    lists += [[[training_sample(fields, style, sample) for sample in SAMPLES], 3, None] for fields, style in STYLES]
    return [bytes([number]) + bytes(msgpack.packb(value)) for value in lists for number in (0, 1)]


STYLES = ((12, "new"), (8, "old"))


def token_export_seeds() -> list[bytes]:
    """Return a token export of three sequences."""
    lines = [json.dumps(export_line(sample), separators=(",", ":")).encode() for sample in SAMPLES]
    whole = [bytes([number]) + b"\n".join([*lines, b""]) for number in (0, 1, 128)]
    return [*whole, b"\0" + lines[0] + b"\n" + lines[1]]


WORDS = tuple(export_line(SAMPLES[0]))
TARGETS = {
    "micro-batches": Target(
        "micro-batches", "MessagePack shards of the trainer", check_micro_batches, micro_batch_seeds, "msgpack",
        ("train", "<|im_start|>", "token"),
    ),
    "token-exports": Target(
        "token-exports", "JSONL shards of the trainer", check_token_exports, token_export_seeds, "json", WORDS
    ),
}  # fmt: skip
