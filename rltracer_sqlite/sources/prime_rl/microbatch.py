"""`rank_R.bin`: packed micro batches of any generation, taken apart into the sequences that were trained on."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import accumulate
from typing import Any

from ...amounts import plural
from ..base import LocatorError, Position, Problem
from ..readers import ByteReader
from .generations import micro_batch_fields
from .msgpack_fields import IDS, TEXTS, VALUES, Fields, split_record, text_at
from .msgpack_frames import Beginning, Frame, Torn, frames
from .samples import Batch, Found, Sample, Splitter, finite

COMMIT_RECORDS = 4000
COMMIT_BYTES = 1 << 28
PAD_ID = 1  # what prime-rl fills a micro batch up with
SCALARS = ("temperature", "training_mode", "sft_loss", "run_id", "run_step")
CUT = "There is no micro batch at that place any more ({}). Index the run again."


class MicroBatch:
    """One micro batch. What of it cannot be used is told in `remarks`. Raises ValueError when it is none."""

    def __init__(self, data: bytes, frame: Frame | None = None) -> None:
        parts = split_record(data, frame)
        self.ids = IDS.decode(parts[0])
        self.generation, named = micro_batch_fields(parts, len(self.ids))
        self.fields = Fields(named)
        self.mask = self.fields.mask("loss_mask", len(self.ids))

    @property
    def remarks(self) -> list[str]:
        return self.fields.remarks

    @property
    def is_copy(self) -> bool:
        """Say whether nothing in it is trained: a copy that the packer added to give all ranks the same number."""
        if not self.ids or self.mask is None or 1 in self.mask:
            return False
        # Tokens can also be trained by a loss of their own, outside the mask.
        weights = [self.fields.numbers(name, len(self.ids)) for name in ("ce_weights", "ref_kl_weights")]
        return not any(any(values or ()) for values in weights)

    def samples(self, splitter: Splitter | None = None, with_all: bool = True) -> list[Sample]:
        """Return the sequences in their order; padding is left out.

        `splitter` finds the conversations in a micro batch that records no boundaries. Without `with_all` only what
        an index entry is made of is decoded.
        """
        length, fields = len(self.ids), self.fields
        logprobs = fields.numbers("inference_logprobs", length)
        advantages = fields.numbers("advantages", length) if with_all else None
        traces, branches = fields.list_of("trace_ids", TEXTS) or [], fields.list_of("branch_indices", IDS) or []
        facts = self._facts(with_all)
        samples = []
        for item, (start, end) in enumerate(self._spans(splitter)):
            if end <= start:
                continue
            sample = Sample(self.ids[start:end], self.mask and self.mask[start:end], {}, item, facts=dict(facts))
            if logprobs:
                sample.streams["inference_logprobs"] = logprobs[start:end]
            if advantages:
                sample.streams["advantages"] = advantages[start:end]
            first = start + sample.first_trained if sample.first_trained is not None else None
            if first is not None:
                if not advantages:  # or where the list cannot be used, of which a scan looks at one number only
                    sample.advantage = finite(fields.number_at("advantages", first, length))
                sample.reward = finite(fields.number_at("rewards", first, length))
            if temperature := finite(fields.number_at("temperatures", start if first is None else first, length)):
                sample.facts["temperature"] = temperature
            sample.env = text_at(self.envs, start) or None
            sample.trace_id = traces[item] if item < len(traces) else None
            sample.branch_index = branches[item] if item < len(branches) else None
            samples.append(sample)
        return samples

    def _facts(self, with_all: bool) -> dict[str, Any]:
        facts: dict[str, Any] = {"generation": self.generation}
        for name in SCALARS if with_all else ("temperature",):
            if (value := self.fields.scalar(name)) is not None:
                facts[name] = value
        if with_all and "payload" in self.fields.parts:
            # Some big fields lie in files of their own, which are named and never opened.
            entries = self.fields.list_of("payload", VALUES) or []
            facts["side_files"] = [str(entry[0]) for entry in entries if isinstance(entry, list) and entry]
        return facts

    @cached_property
    def envs(self) -> list[tuple[int, str]] | None:
        return self.fields.text_runs("env_names", len(self.ids))

    @cached_property
    def positions(self) -> list[int] | None:
        values = self.fields.list_of("position_ids", IDS)
        return values if values is not None and len(values) == len(self.ids) else None

    def _spans(self, splitter: Splitter | None) -> list[tuple[int, int]]:
        """Return (start, end) of each sequence; an empty one where only padding is recorded."""
        starts = self._starts(splitter)
        ends = [*starts[1:], len(self.ids)]
        return [(start, self._without_padding(start, end)) for start, end in zip(starts, ends, strict=True)]

    def _starts(self, splitter: Splitter | None) -> list[int]:
        lengths = self.fields.list_of("sequence_lengths", IDS)
        if lengths:
            if sum(lengths) == len(self.ids):
                return list(accumulate(lengths[:-1], initial=0))
            self.remarks.append(f"sequence_lengths add up to {sum(lengths):,} for {plural(len(self.ids), 'token')}")
        if self.positions is None:
            what = "split at each system turn" if splitter else "taken as one sequence"
            self.remarks.append(f"no boundaries are recorded: {what}")
            return splitter(self.ids) if splitter and self.ids else [0]
        return [at for at, position in enumerate(self.positions) if position == 0 or at == 0] or [0]

    def _without_padding(self, start: int, end: int) -> int:
        """Return where a sequence ends before the padding that its recorded length may include."""
        trained = self.mask or bytes(len(self.ids))
        if end > start and self.ids[end - 1] == PAD_ID and not trained[end - 1]:
            resets = [at for at in range(start + 1, end) if self.positions and self.positions[at] == 0]
            reset = resets[-1] if resets else start
            if self.ids[reset:end].count(PAD_ID) == end - reset and 1 not in trained[reset:end]:
                end = reset
        if text_at(self.envs, start):
            while end > start and not trained[end - 1] and not text_at(self.envs, end - 1):
                end -= 1
        return end


def micro_batches(
    reader: ByteReader, beginning: Beginning, start: Position, splitter: Splitter | None = None
) -> Iterator[Found]:
    """Yield what the micro batches hold from `start` on, one decoded at a time."""
    offset = start.offset or beginning.offset
    records, committed = 0, offset
    for found in frames(reader, beginning, offset, start.line):
        if isinstance(found, Torn):
            yield from stopped(reader, found)
            return
        batch = _batch(reader, found, splitter)
        yield batch
        offset, records = found.offset + found.length, records + (len(batch.samples) if isinstance(batch, Batch) else 1)
        if records >= COMMIT_RECORDS or offset - committed >= COMMIT_BYTES:
            yield Position(offset, found.number)
            records, committed = 0, offset
    rest = reader.size() - offset
    if rest:
        yield Problem(None, offset, rest, f"not read: {plural(rest, 'byte')} behind the last micro batch")
    yield Position(offset, beginning.records)


def stopped(reader: ByteReader, torn: Torn) -> Iterator[Problem | Position]:
    """Yield what is to be said where a shard cannot be read on. A file that is cut off may still grow."""
    rest = reader.size() - torn.offset
    yield Problem(torn.number, torn.offset, rest, torn.reason)
    yield Position(torn.offset, torn.number - 1, rest if torn.cut_off else 0)


def _batch(reader: ByteReader, frame: Frame, splitter: Splitter | None) -> Batch | Problem:
    try:
        micro_batch = MicroBatch(reader.pread(frame.length, frame.offset), frame)
        if micro_batch.is_copy:
            return Batch(frame.offset, frame.length, frame.number, [], is_copy=True)
        samples = micro_batch.samples(splitter, with_all=False)
    except (ValueError, RecursionError) as error:
        return Problem(frame.number, frame.offset, frame.length, f"not readable as a micro batch: {error}")
    return Batch(frame.offset, frame.length, frame.number, samples, micro_batch.remarks)


def read_micro_batch_sample(data: bytes, item: int | None, splitter: Splitter | None = None) -> Sample:
    """Return one sequence of a micro batch, with every stream. Raises LocatorError when it has none such."""
    try:
        samples = MicroBatch(data).samples(splitter)
    except (ValueError, RecursionError) as error:
        raise LocatorError(CUT.format(error)) from None
    sample = next((sample for sample in samples if sample.item == item), None)
    if sample is None:
        raise LocatorError(CUT.format(f"no sequence {item}"))
    return sample
