"""`rank_R.bin`: packed micro batches of any generation, taken apart into the sequences that were trained on."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cached_property
from itertools import accumulate
from typing import Annotated, Any

import msgspec

from ..base import LocatorError, Position, Problem
from ..files import ByteReader
from .generations import micro_batch_fields
from .msgpack_frames import Beginning, Frame, Torn, array_header, frames
from .samples import Batch, Found, Sample, Splitter, finite, first_value

COMMIT_RECORDS = 4000
COMMIT_BYTES = 1 << 28
PAD_ID = 1  # what prime-rl fills a micro batch up with
PER_TOKEN = ("advantages", "inference_logprobs", "rewards", "temperatures")
SCANNED = ("advantages", "inference_logprobs", "rewards")  # the streams that an index entry is made of
SCALARS = ("temperature", "training_mode", "sft_loss", "run_id", "run_step")
TRUE = b"\xc3"

RAWS = msgspec.msgpack.Decoder(list[msgspec.Raw])
IDS = msgspec.msgpack.Decoder(list[Annotated[int, msgspec.Meta(ge=0, lt=2**32)]])
BOOLS = msgspec.msgpack.Decoder(list[bool])
NUMBERS = msgspec.msgpack.Decoder(list[float | None])
TEXTS = msgspec.msgpack.Decoder(list[str])
ANY = msgspec.msgpack.Decoder()


class MicroBatch:
    """One micro batch. Its parts are decoded when they are asked for; what cannot be used is told in `remarks`.

    Raises ValueError when the bytes are no micro batch.
    """

    def __init__(self, data: bytes) -> None:
        parts = RAWS.decode(data)
        if len(parts) < 5:
            raise ValueError(f"a list of {len(parts)} fields is no micro batch")
        self.ids = IDS.decode(parts[0])
        self.generation, self.parts = micro_batch_fields(parts, len(self.ids))
        self.remarks: list[str] = []

    @cached_property
    def mask(self) -> list[bool] | None:
        return self._per_token("loss_mask", BOOLS)

    @property
    def is_copy(self) -> bool:
        """Say whether nothing in it is trained: a copy that the packer added to give all ranks the same number."""
        part = memoryview(self.parts["loss_mask"])
        header = array_header(part, 0)
        if header is None or header[0] != len(self.ids) or not self.ids or TRUE in bytes(part[header[1] :]):
            return False
        # Tokens can also be trained by a loss of their own, outside the mask.
        return not any(any(self.stream(name) or ()) for name in ("ce_weights", "ref_kl_weights"))

    def stream(self, name: str) -> list[Any] | None:
        """Return a list with a number per token, or None where it is missing or has another length."""
        return self._per_token(name, NUMBERS)

    def scalar(self, name: str) -> Any:
        """Return a recorded value that is neither a list nor a map, else None."""
        value = ANY.decode(self.parts[name]) if name in self.parts else None
        return value if isinstance(value, (str, int, float)) else None

    def side_files(self) -> list[str]:
        """Return the names of the fields whose data lies in other files; such a file is never opened."""
        part = self.parts.get("payload")
        entries = ANY.decode(part) if part is not None else None
        return [str(entry[0]) for entry in entries or () if isinstance(entry, list) and entry]

    def _per_token(self, name: str, decoder: msgspec.msgpack.Decoder[Any]) -> list[Any] | None:
        part = self.parts.get(name)
        if part is None or bytes(part) == b"\xc0":
            return None
        try:
            values: list[Any] = decoder.decode(part)
        except msgspec.DecodeError:
            self.remarks.append(f"{name} is no list of the expected kind")
            return None
        if len(values) != len(self.ids):
            self.remarks.append(f"{name} has {len(values):,} values for {len(self.ids):,} tokens")
            return None
        return values

    def samples(self, names: Collection[str] = PER_TOKEN, splitter: Splitter | None = None) -> list[Sample]:
        """Return the sequences in their order, with the named streams; padding is left out.

        `splitter` finds the conversations in a micro batch that records no boundaries.
        """
        streams = {name: values for name in names if (values := self.stream(name)) is not None}
        envs, traces, branches = self._list("env_names", TEXTS), self._list("trace_ids", TEXTS), self._branches()
        facts = {name: value for name in SCALARS if (value := self.scalar(name)) is not None}
        samples = []
        for item, (start, end) in enumerate(self._spans(envs, splitter)):
            if end <= start:
                continue
            own = {name: values[start:end] for name, values in streams.items()}
            sample = Sample(self.ids[start:end], self.mask and self.mask[start:end], own, item)
            sample.env = (envs[start] or None) if envs else None
            sample.reward = finite(first_value(own.pop("rewards", None), sample.mask))
            sample.facts = {"generation": self.generation, **facts}
            if temperature := first_value(own.pop("temperatures", None), sample.mask):
                sample.facts["temperature"] = temperature
            sample.trace_id = traces[item] if traces and item < len(traces) else None
            sample.branch_index = branches[item] if branches and item < len(branches) else None
            samples.append(sample)
        return samples

    def _list(self, name: str, decoder: msgspec.msgpack.Decoder[Any]) -> list[Any] | None:
        part = self.parts.get(name)
        try:
            values: list[Any] = decoder.decode(part) if part is not None and bytes(part) != b"\xc0" else []
        except msgspec.DecodeError:
            self.remarks.append(f"{name} is no list of the expected kind")
            return None
        if name == "env_names" and values and len(values) != len(self.ids):
            self.remarks.append(f"{name} has {len(values):,} values for {len(self.ids):,} tokens")
            return None
        return values or None

    def _branches(self) -> list[int] | None:
        return self._list("branch_indices", IDS)

    def _spans(self, envs: list[str] | None, splitter: Splitter | None) -> list[tuple[int, int]]:
        """Return (start, end) of each sequence; an empty one where only padding is recorded."""
        starts = self._starts(splitter)
        return [
            (start, self._without_padding(start, end, envs))
            for start, end in zip(starts, [*starts[1:], len(self.ids)], strict=True)
        ]

    def _starts(self, splitter: Splitter | None) -> list[int]:
        lengths = self._list("sequence_lengths", IDS)
        if lengths:
            if sum(lengths) == len(self.ids):
                return list(accumulate(lengths[:-1], initial=0))
            self.remarks.append(f"sequence_lengths add up to {sum(lengths):,} for {len(self.ids):,} tokens")
        if self.positions is None:
            return splitter(self.ids) if splitter else [0]
        return [at for at, position in enumerate(self.positions) if position == 0 or at == 0]

    @cached_property
    def positions(self) -> list[int] | None:
        return self._per_token("position_ids", IDS)

    def _without_padding(self, start: int, end: int, envs: list[str] | None) -> int:
        """Return where a sequence ends before the padding that its recorded length may include."""
        ids, mask = self.ids, self.mask or []
        if end > start and ids[end - 1] == PAD_ID and not any(mask[end - 1 : end]):
            resets = [at for at in range(start + 1, end) if self.positions and self.positions[at] == 0]
            reset = resets[-1] if resets else start
            if all(token == PAD_ID for token in ids[reset:end]) and not any(mask[reset:end]):
                end = reset
        if envs and envs[start]:
            while end > start and not envs[end - 1] and not any(mask[end - 1 : end]):
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
            size = reader.size()
            yield Problem(found.number, found.offset, size - found.offset, found.reason)
            yield Position(found.offset, found.number - 1, size - found.offset if found.cut_off else 0)
            return
        batch = _batch(reader, found, splitter)
        yield batch
        offset, records = found.offset + found.length, records + (len(batch.samples) if isinstance(batch, Batch) else 1)
        if records >= COMMIT_RECORDS or offset - committed >= COMMIT_BYTES:
            yield Position(offset, found.number)
            records, committed = 0, offset
    rest = reader.size() - offset
    if rest:
        yield Problem(None, offset, rest, f"{rest:,} bytes behind the last micro batch are not read")
    yield Position(offset, beginning.records)


def _batch(reader: ByteReader, frame: Frame, splitter: Splitter | None) -> Batch | Problem:
    try:
        micro_batch = MicroBatch(reader.pread(frame.length, frame.offset))
        if micro_batch.is_copy:
            return Batch(*frame, [], is_copy=True)
        samples = micro_batch.samples(SCANNED, splitter)
    except ValueError as error:
        return Problem(frame.number, frame.offset, frame.length, f"not readable as a micro batch: {error}")
    return Batch(*frame, samples, micro_batch.remarks)


def read_micro_batch_sample(data: bytes, item: int | None, splitter: Splitter | None = None) -> Sample:
    """Return one sequence of a micro batch, with every stream. Raises LocatorError when it has none such."""
    try:
        samples = MicroBatch(data).samples(PER_TOKEN, splitter)
    except ValueError as error:
        raise LocatorError(f"There is no micro batch at that place any more ({error}). Index the run again.") from None
    sample = next((sample for sample in samples if sample.item == item), None)
    if sample is None:
        raise LocatorError(f"The micro batch has no sequence {item} any more. Index the run again.")
    return sample
