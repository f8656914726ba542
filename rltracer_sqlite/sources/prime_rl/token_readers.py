"""Which reader a shard of packed token ids takes: its ending says so, and of MessagePack the first bytes."""

from __future__ import annotations

from collections.abc import Iterator

from ...tokens.tokenizer import TextTokenizer
from ..base import START, Locator, Position
from ..files import open_shard, read_bytes
from ..places import Root
from ..readers import ByteReader
from .microbatch import micro_batches, read_micro_batch_sample
from .msgpack_frames import read_beginning
from .samples import Found, Sample, Splitter
from .token_export import exported_sequences, load_exported_sample
from .token_prompts import system_turn_starts
from .training_batch import load_training_sample, training_samples


def read_shard(
    reader: ByteReader, path: str, start: Position = START, tokenizer: TextTokenizer | None = None
) -> Iterator[Found]:
    """Yield what the records of a token shard hold. Its ending and its first bytes say which kind it is."""
    if path.endswith(".pt"):
        from .torch_shard import torch_micro_batches

        return torch_micro_batches(reader, path)
    if path.endswith(".parquet"):
        from .early_parquet import parquet_rows

        return parquet_rows(reader, path)
    if path.endswith(".jsonl"):
        return exported_sequences(reader, start)
    beginning = read_beginning(reader)
    if beginning.is_training_batch:
        return training_samples(reader, beginning, start)
    return micro_batches(reader, beginning, start, splitter_of(tokenizer))


def read_sample(root: Root, locator: Locator, tokenizer: TextTokenizer | None) -> Sample:
    """Return the sequence at a locator with every stream of it. Raises LocatorError."""
    path = locator.path
    if path.endswith(".pt"):
        from .torch_shard import load_torch_sample

        return load_torch_sample(root, path, locator.item)
    if path.endswith(".parquet"):
        from .early_parquet import load_parquet_row

        return load_parquet_row(root, path, locator.item)
    data = read_bytes(root, path, locator.byte_offset, locator.byte_length)
    if path.endswith(".jsonl"):
        return load_exported_sample(data)[0]
    if _is_training_batch(root, path):
        return load_training_sample(data)
    return read_micro_batch_sample(data, locator.item, splitter_of(tokenizer))


def _is_training_batch(root: Root, path: str) -> bool:
    with open_shard(root, path) as reader:
        return read_beginning(reader).is_training_batch


def splitter_of(tokenizer: TextTokenizer | None) -> Splitter | None:
    """Return how a sequence without recorded boundaries is split into conversations; None without a tokenizer."""
    return (lambda ids: system_turn_starts(ids, tokenizer)) if tokenizer else None
