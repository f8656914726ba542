"""`rollouts.bin` and `train_rollouts.bin`: the orchestrator's TrainingBatch, one sample per branch of a rollout."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from ..base import LocatorError, Position, Problem
from ..files import ByteReader
from .generations import training_sample_fields
from .microbatch import ANY, BOOLS, COMMIT_RECORDS, IDS, NUMBERS, RAWS
from .msgpack_frames import Beginning, Frame, Torn, frames
from .samples import Batch, Found, Sample, finite, first_value

FACTS = ("training_mode", "sft_loss")
NIL = b"\xc0"


def read_training_sample(data: bytes) -> tuple[Sample, list[str]]:
    """Return a sample from its bytes, and remarks about what could not be used. Raises ValueError."""
    parts = RAWS.decode(data)
    if len(parts) < 5:
        raise ValueError(f"a list of {len(parts)} fields is no training sample")
    style, named = training_sample_fields(parts)
    fields = _Fields(named)
    sample = _new_sample(fields) if style == "new" else _old_sample(fields)
    env, advantage, reward = (fields.value(name) for name in ("env_name", "advantage", "reward"))
    sample.env = env if isinstance(env, str) and env else None
    sample.advantage, sample.reward = finite(advantage), finite(reward)
    facts = {name: value for name in FACTS if isinstance(value := fields.value(name), (str, bool))}
    sample.facts = {"generation": f"TrainingSample of {len(parts)} fields", **facts}
    if temperature := finite(first_value(fields.values(_temperatures(named), NUMBERS), None)):
        sample.facts["temperature"] = temperature
    return sample, fields.remarks


def _temperatures(named: dict[str, msgspec.Raw]) -> str:
    return "temperatures" if "temperatures" in named else "completion_temperatures"


def _new_sample(fields: _Fields) -> Sample:
    ids = IDS.decode(fields.named["token_ids"])
    mask = fields.values("mask", BOOLS, len(ids))
    recorded = {"inference_logprobs": "logprobs", "advantages": "advantages"}
    streams = {name: fields.values(written, NUMBERS, len(ids)) for name, written in recorded.items()}
    return Sample(ids, mask, {name: values for name, values in streams.items() if values is not None})


def _old_sample(fields: _Fields) -> Sample:
    prompt, completion = IDS.decode(fields.named["prompt_ids"]), IDS.decode(fields.named["completion_ids"])
    prompt_mask = fields.values("prompt_mask", BOOLS, len(prompt))
    completion_mask = fields.values("completion_mask", BOOLS, len(completion))
    logprobs = fields.values("completion_logprobs", NUMBERS, len(completion))
    mask = None if prompt_mask is None or completion_mask is None else prompt_mask + completion_mask
    streams = {} if logprobs is None else {"inference_logprobs": [None] * len(prompt) + logprobs}
    return Sample(prompt + completion, mask, streams)


class _Fields:
    """The parts of a sample by name, and what of them could not be used."""

    def __init__(self, named: dict[str, msgspec.Raw]) -> None:
        self.named, self.remarks = named, list[str]()

    def value(self, name: str) -> Any:
        return ANY.decode(self.named[name]) if name in self.named else None

    def values(self, name: str, decoder: msgspec.msgpack.Decoder[Any], length: int | None = None) -> list[Any] | None:
        """Return a list, or None where it is missing or has another length than it must have."""
        part = self.named.get(name)
        if part is None or bytes(part) == NIL:
            return None
        try:
            values: list[Any] = decoder.decode(part)
        except msgspec.DecodeError:
            self.remarks.append(f"{name} is no list of the expected kind")
            return None
        if length is not None and len(values) != length:
            self.remarks.append(f"{name} has {len(values):,} values for {length:,} tokens")
            return None
        return values


def training_samples(reader: ByteReader, beginning: Beginning, start: Position) -> Iterator[Found]:
    """Yield the samples of a TrainingBatch from `start` on, one decoded at a time."""
    offset = start.offset or beginning.offset
    for found in frames(reader, beginning, offset, start.line):
        if isinstance(found, Torn):
            size = reader.size()
            yield Problem(found.number, found.offset, size - found.offset, found.reason)
            yield Position(found.offset, found.number - 1, size - found.offset if found.cut_off else 0)
            return
        yield _batch(reader, found)
        if found.number % COMMIT_RECORDS == 0:
            yield Position(found.offset + found.length, found.number)
    # The step and the run's number stand behind the samples.
    yield Position(reader.size(), beginning.records)


def _batch(reader: ByteReader, frame: Frame) -> Batch | Problem:
    try:
        sample, remarks = read_training_sample(reader.pread(frame.length, frame.offset))
    except ValueError as error:
        return Problem(frame.number, frame.offset, frame.length, f"not readable as a training sample: {error}")
    return Batch(*frame, [sample], remarks)


def load_training_sample(data: bytes) -> Sample:
    """Return the sample at a locator's bytes. Raises LocatorError when it is none any more."""
    try:
        return read_training_sample(data)[0]
    except ValueError as error:
        raise LocatorError(f"There is no sample at that place any more ({error}). Index the run again.") from None
