"""`token_exports/…/rank_R.jsonl`: a line per sequence that a trainer rank saw, with the trainer's own numbers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ...amounts import plural
from ...tokens.streams import first_of_trained
from ..base import LocatorError, Position, Problem
from ..lines import Line, Tail, complete_lines, decode_leniently
from ..readers import ByteReader
from .microbatch import COMMIT_BYTES, COMMIT_RECORDS
from .samples import Batch, Found, Sample

STREAMS = (
    "advantages",
    "inference_logprobs",
    "trainer_logprobs",
    "entropy",
    "mismatch_kl",
    "importance_ratio",
    "is_masked",
)
FACTS = ("rank", "micro_step", "micro_sequence_idx", "export_sequence_idx", "export_step", "run_id", "training_mode")
Numbers = list[float | None]
BOOLEANS: frozenset[type] = frozenset({bool})
NUMBERS: frozenset[type] = frozenset({int, float, bool, type(None)})  # is_masked holds booleans


class _Scanned(msgspec.Struct, gc=False):
    """What an index entry is made of; the rest of the line is skipped."""

    token_ids: list[int]
    loss_mask: list[bool] | None = None
    advantages: Numbers | None = None
    inference_logprobs: Numbers | None = None
    rewards: Numbers | None = None
    step: int | None = None
    export_step: int | None = None
    env_name: str | None = None


SCANNED = msgspec.json.Decoder(_Scanned)


def exported_sequences(reader: ByteReader, start: Position) -> Iterator[Found]:
    """Yield the sequences of a token export from `start` on. A last line without a newline waits for the rest."""
    number, records, committed = start.line, 0, start.offset
    for line in complete_lines(reader, start.offset):
        if isinstance(line, Tail):
            yield Position(line.offset, number, line.length)
            return
        number += 1
        if line.buffer[line.start : line.end].strip():
            yield _batch(line, number)
        records += 1
        after = line.offset + line.end - line.start + 1
        if records >= COMMIT_RECORDS or after - committed >= COMMIT_BYTES:
            yield Position(after, number)
            records, committed = 0, after


def _batch(line: Line, number: int) -> Batch | Problem:
    length = line.end - line.start
    with memoryview(line.buffer) as whole, whole[line.start : line.end] as data:
        try:
            row, remark = msgspec.structs.asdict(SCANNED.decode(data)), None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            try:
                row, remark = decode_leniently(bytes(data))
            except ValueError as error:
                return Problem(number, line.offset, length, f"not readable: {error}")
    try:
        sample, remarks = exported_sample(row)
    except ValueError as error:
        return Problem(number, line.offset, length, f"no token export: {error}")
    return Batch(line.offset, length, number, [sample], remarks + ([remark] if remark else []))


def exported_sample(row: Any) -> tuple[Sample, list[str]]:
    """Return the sample of a decoded line, and remarks about what could not be used. Raises ValueError."""
    ids = row.get("token_ids") if isinstance(row, Mapping) else None
    if not isinstance(ids, list) or not all(isinstance(token, int) and 0 <= token < 2**32 for token in ids):
        raise ValueError("it has no list of token ids")
    remarks: list[str] = []
    mask = _fitting(row, "loss_mask", len(ids), remarks, BOOLEANS)
    found = {name: _fitting(row, name, len(ids), remarks) for name in STREAMS}
    streams = {name: values for name, values in found.items() if values is not None}
    sample = Sample(ids, None if mask is None else bytes(value is True for value in mask), streams)
    sample.env = row.get("env_name") if isinstance(row.get("env_name"), str) else None
    sample.reward = first_of_trained(_fitting(row, "rewards", len(ids), remarks), sample.mask)
    sample.facts = {name: row[name] for name in ("step", *FACTS) if isinstance(row.get(name), (int, str))}
    return sample, remarks


def _fitting(
    row: Mapping[str, Any], name: str, length: int, remarks: list[str], kinds: frozenset[type] = NUMBERS
) -> list[Any] | None:
    values = row.get(name)
    if not isinstance(values, list):
        return None
    if not kinds.issuperset(map(type, values)):
        remarks.append(f"{name} is no list of the expected kind")
        return None
    if len(values) != length:
        remarks.append(f"{name} has {plural(len(values), 'value')} for {plural(length, 'token')}")
        return None
    return values


def load_exported_sample(data: bytes) -> tuple[Sample, dict[str, Any]]:
    """Return the sample at a locator's bytes and its whole row. Raises LocatorError when it is none any more."""
    try:
        row, _ = decode_leniently(data)
        return exported_sample(row)[0], row
    except ValueError as error:
        raise LocatorError(f"There is no token export at that place any more ({error}). Index the run again.") from None
