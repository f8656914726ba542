"""`rollouts.bin` and `train_rollouts.bin`: the orchestrator's TrainingBatch, one sample per branch of a rollout."""

from __future__ import annotations

from collections.abc import Iterator

from ..base import LocatorError, Position, Problem
from ..readers import ByteReader
from .generations import training_sample_fields
from .microbatch import COMMIT_RECORDS, stopped
from .msgpack_fields import NUMBERS, Fields, split_record
from .msgpack_frames import Beginning, Frame, Torn, frames
from .samples import Batch, Found, Sample, finite

FACTS = ("training_mode", "sft_loss")


def read_training_sample(data: bytes, frame: Frame | None = None) -> tuple[Sample, list[str]]:
    """Return a sample from its bytes, and remarks about what could not be used. Raises ValueError."""
    parts = split_record(data, frame)
    style, named = training_sample_fields(parts)
    fields = Fields(named)
    sample = _new_sample(fields) if style == "new" else _old_sample(fields)
    env = fields.scalar("env_name")
    sample.env = env if isinstance(env, str) and env else None
    sample.advantage, sample.reward = finite(fields.scalar("advantage")), finite(fields.scalar("reward"))
    sample.facts["generation"] = f"TrainingSample of {len(parts)} fields"
    for name in FACTS:
        if (value := fields.scalar(name)) is not None:
            sample.facts[name] = value
    temperatures = fields.list_of("temperatures" if style == "new" else "completion_temperatures", NUMBERS)
    if temperatures and (temperature := finite(temperatures[0])):
        sample.facts["temperature"] = temperature
    return sample, fields.remarks


def _new_sample(fields: Fields) -> Sample:
    ids = fields.ids("token_ids")
    recorded = {"inference_logprobs": "logprobs", "advantages": "advantages"}
    streams = {name: fields.numbers(written, len(ids)) for name, written in recorded.items()}
    return Sample(
        ids, fields.mask("mask", len(ids)), {name: values for name, values in streams.items() if values is not None}
    )


def _old_sample(fields: Fields) -> Sample:
    prompt, completion = fields.ids("prompt_ids"), fields.ids("completion_ids")
    prompt_mask = fields.mask("prompt_mask", len(prompt))
    completion_mask = fields.mask("completion_mask", len(completion))
    logprobs = fields.numbers("completion_logprobs", len(completion))
    mask = None if prompt_mask is None or completion_mask is None else prompt_mask + completion_mask
    streams = {} if logprobs is None else {"inference_logprobs": [None] * len(prompt) + logprobs}
    return Sample(prompt + completion, mask, streams)


def training_samples(reader: ByteReader, beginning: Beginning, start: Position) -> Iterator[Found]:
    """Yield the samples of a TrainingBatch from `start` on, one decoded at a time."""
    for found in frames(reader, beginning, start.offset or beginning.offset, start.line):
        if isinstance(found, Torn):
            yield from stopped(reader, found)
            return
        yield _batch(reader, found)
        if found.number % COMMIT_RECORDS == 0:
            yield Position(found.offset + found.length, found.number)
    # The step and the run's number stand behind the samples.
    yield Position(reader.size(), beginning.records)


def _batch(reader: ByteReader, frame: Frame) -> Batch | Problem:
    try:
        sample, remarks = read_training_sample(reader.pread(frame.length, frame.offset), frame)
    except (ValueError, RecursionError) as error:
        return Problem(frame.number, frame.offset, frame.length, f"not readable as a training sample: {error}")
    return Batch(frame.offset, frame.length, frame.number, [sample], remarks)


def load_training_sample(data: bytes) -> Sample:
    """Return the sample at a locator's bytes. Raises LocatorError when it is none any more."""
    try:
        return read_training_sample(data)[0]
    except (ValueError, RecursionError) as error:
        raise LocatorError(f"There is no sample at that place any more ({error}). Index the run again.") from None
