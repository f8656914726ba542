"""`step_N/<uuid>.parquet`: the rollouts of prime-rl before 2025-07, one row each. Needs pyarrow."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ...amounts import plural
from ..base import LocatorError, NotRollouts, Position, Problem
from ..files import open_shard
from ..parquet_file import ParquetError, batches, decoded_rows, decoding, open_parquet
from ..places import Root
from ..readers import ByteReader
from .samples import Batch, Found, Sample, finite

FACTS = ("task_type", "problem_id", "seed", "target_lengths", "task_rewards", "length_penalties", "step", "temperature")


def parquet_rows(reader: ByteReader, name: str) -> Iterator[Found]:
    """Yield one batch per row. Always from the start: a parquet file is written as a whole.

    Raises NotRollouts when it is no parquet file of rollouts, SourceError where pyarrow is not installed.
    """
    table, size, item = _opened(reader, name), reader.size(), 0
    try:
        for row in (row for batch in batches(table, _columns(table)) for row in decoded_rows(batch)):
            item += 1
            try:
                sample, remarks = _sample(row, item - 1)
            except ValueError as error:
                yield Problem(item, 0, size, f"row {item:,} is not readable: {error}")
                continue
            yield Batch(0, size, item, [sample], remarks)
    except ParquetError as error:
        yield Problem(item + 1, 0, size, f"not readable from row {item + 1:,} on: {error}")
    yield Position(size, item)


def load_parquet_row(root: Root, path: str, item: int | None) -> Sample:
    """Return one row by its number, reading its row group only. Raises LocatorError."""
    try:
        with open_shard(root, path) as reader:
            table = _opened(reader, path)
            with decoding():
                row = _row(table, item) if item is not None else None
                if row is not None:
                    return _sample(row, item)[0]
    except (ParquetError, ValueError) as error:
        raise LocatorError(f"{path} cannot be read: {error}.") from None
    except NotRollouts as error:
        raise LocatorError(f"{path} has changed since it was indexed: {error}. Index the run again.") from None
    raise LocatorError(f"{path} has no row {item} any more. Index the run again.")


def _row(table: Any, item: int) -> Any:
    """Return a row by its number, or None where there is none."""
    first = 0
    for group in range(table.num_row_groups):
        rows = table.metadata.row_group(group).num_rows
        if first <= item < first + rows:
            return table.read_row_group(group, columns=_columns(table)).slice(item - first, 1).to_pylist()[0]
        first += rows
    return None


def _opened(reader: ByteReader, name: str) -> Any:
    try:
        table = open_parquet(reader, name)
        with decoding():
            names = set(table.schema_arrow.names)
    except ParquetError as error:
        raise NotRollouts(f"no parquet file ({error})") from None
    if not {"input_tokens", "output_tokens"} <= names:
        raise NotRollouts("a parquet file without tokens of rollouts")
    return table


def _columns(table: Any) -> list[str]:
    wanted = {"input_tokens", "output_tokens", "input_logprobs", "output_logprobs", "prompt", "completion", "rewards"}
    wanted |= {"advantages", *FACTS}
    return [name for name in table.schema_arrow.names if name in wanted]


def _sample(row: Mapping[str, Any], item: int | None) -> tuple[Sample, list[str]]:
    """Return the sample of a row, and remarks about what could not be used. Raises ValueError."""
    prompt, completion = _ids(row, "input_tokens"), _ids(row, "output_tokens")
    sample = Sample(prompt + completion, bytes(len(prompt)) + b"\1" * len(completion), {}, item)
    remarks = []
    logprobs = row.get("output_logprobs")
    if isinstance(logprobs, list) and len(logprobs) == len(completion):
        sample.streams["inference_logprobs"] = [None] * len(prompt) + [finite(value) for value in logprobs]
    elif isinstance(logprobs, list) and logprobs:
        remarks.append(f"output_logprobs has {plural(len(logprobs), 'value')} for {plural(len(completion), 'token')}")
    elif logprobs is not None and logprobs != []:
        remarks.append("output_logprobs is no list")
    sample.advantage, sample.reward = finite(row.get("advantages")), finite(row.get("rewards"))
    sample.facts = {"generation": "parquet"}
    sample.facts.update((name, row[name]) for name in FACTS if _is_fact(row.get(name)))
    if isinstance(row.get("prompt"), str) and isinstance(row.get("completion"), str):
        sample.text = (row["prompt"], row["completion"])
    return sample, remarks


def _ids(row: Mapping[str, Any], name: str) -> list[int]:
    recorded = row.get(name)
    ids: list[int] = [] if recorded is None else recorded
    if not isinstance(ids, list) or not all(type(token) is int and 0 <= token < 2**32 for token in ids):
        raise ValueError(f"{name} is no list of token ids")
    return ids


def _is_fact(value: Any) -> bool:
    return isinstance(value, (int, str)) or finite(value) is not None
