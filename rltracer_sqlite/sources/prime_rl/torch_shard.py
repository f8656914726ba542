"""`rank_R.pt`: the micro batches of 2025, dictionaries of tensors that torch.save wrote. Read without torch."""

from __future__ import annotations

import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from itertools import pairwise
from math import prod
from typing import IO, Any, cast

from ..base import LocatorError, NotRollouts, Position, Problem
from ..byte_file import ByteFile
from ..files import open_shard
from ..places import Root
from ..readers import ByteReader
from .microbatch import PAD_ID
from .samples import Batch, Found, Sample, finite
from .torch_pickle import TensorView, read_tensors

# What Python's module raises for an archive that is damaged, encrypted or of an unknown kind; a refused pickle too.
DAMAGED = (
    zipfile.BadZipFile, zlib.error, struct.error, ValueError, EOFError, OverflowError, RuntimeError,
    NotImplementedError,
)  # fmt: skip
MAX_PICKLE_BYTES = 1 << 26
MAX_ELEMENTS = 1 << 27
# A tensor may repeat the numbers of its storage, and a pickle its tensors; the trainer's do so at most a few times.
MOST_REPEATED = 16
FEW_ELEMENTS = 1 << 20  # that may be repeated as often as wanted
STREAMS = {"advantages": "advantages", "logprobs": "inference_logprobs", "inference_logprobs": "inference_logprobs"}


def torch_micro_batches(reader: ByteReader, name: str) -> Iterator[Found]:
    """Yield the sequences of all micro batches. Always from the start: a .pt file is written as a whole.

    Raises NotRollouts when it is no archive of torch, or one with something else in it.
    """
    size = reader.size()
    with _opened(reader, name) as archive:
        item, elements = 0, 0
        for number, micro_batch in enumerate(_micro_batches(archive), start=1):
            try:
                elements += _elements(micro_batch)
                if elements > max(FEW_ELEMENTS, MOST_REPEATED * size):
                    yield Problem(
                        number, 0, size, f"from micro batch {number:,} on: more numbers than the file can hold"
                    )
                    break
                samples, remarks, is_copy = _samples(archive, micro_batch, item)
            except (*DAMAGED, KeyError, TypeError) as error:
                yield Problem(number, 0, size, f"micro batch {number:,} is not readable: {error}")
                continue
            item += len(samples)
            yield Batch(0, size, number, samples, remarks, is_copy)
    yield Position(size, 1)


def load_torch_sample(root: Root, path: str, item: int | None) -> Sample:
    """Return one sequence of a torch shard by its number in the file. Raises LocatorError."""
    try:
        with open_shard(root, path) as reader:
            for found in torch_micro_batches(reader, path):
                for sample in found.samples if isinstance(found, Batch) else ():
                    if sample.item == item:
                        return sample
    except NotRollouts as error:
        raise LocatorError(f"{path} has changed since it was indexed: {error}. Index the run again.") from None
    raise LocatorError(f"{path} has no sequence {item} any more. Index the run again.")


def _opened(reader: ByteReader, name: str) -> zipfile.ZipFile:
    try:
        return zipfile.ZipFile(cast(IO[bytes], ByteFile(reader)))
    except DAMAGED as error:
        raise NotRollouts(f"{name.rsplit('/', 1)[-1]} is no archive of torch ({error})") from None


def _micro_batches(archive: zipfile.ZipFile) -> list[Mapping[str, Any]]:
    pickles = [info for info in archive.infolist() if info.filename.endswith("/data.pkl")]
    if len(pickles) != 1 or pickles[0].file_size > MAX_PICKLE_BYTES:
        raise NotRollouts("an archive without a pickle of torch")
    _refuse_compression(pickles[0])
    try:
        value = read_tensors(archive.read(pickles[0]))
    except DAMAGED as error:
        raise NotRollouts(f"a torch file that is not read: {error}") from None
    several = value if isinstance(value, list) else [value]
    if not all(isinstance(one, dict) and "input_ids" in one for one in several):
        raise NotRollouts("a torch file without micro batches")
    return several


def _elements(micro_batch: Mapping[str, Any]) -> int:
    return sum(prod(value.shape) for value in micro_batch.values() if isinstance(value, TensorView))


def _refuse_compression(info: zipfile.ZipInfo) -> None:
    # torch.save stores without compressing; what is compressed may unpack to any size.
    if info.compress_type != zipfile.ZIP_STORED:
        raise NotRollouts("a compressed archive, which torch does not write")


def _samples(
    archive: zipfile.ZipFile, micro_batch: Mapping[str, Any], first_item: int
) -> tuple[list[Sample], list[str], bool]:
    """Return the sequences of one micro batch of shape [rows, tokens], remarks, and whether it is a padding copy."""
    columns = {
        name: _rows(archive, value, name) for name, value in micro_batch.items() if isinstance(value, TensorView)
    }
    ids = columns["input_ids"]
    remarks: list[str] = []
    for name in [name for name, rows in columns.items() if list(map(len, rows)) != list(map(len, ids))]:
        remarks.append(f"{name} has another shape than input_ids")
        del columns[name]
    masks = columns.get("loss_mask")
    if masks is not None and not any(any(row) for row in masks):
        return [], remarks, True
    facts = {"generation": "torch"}
    if temperature := finite(micro_batch.get("temperature")):
        facts["temperature"] = temperature  # type: ignore[assignment]
    samples: list[Sample] = []
    for row, tokens in enumerate(ids):
        positions = columns["position_ids"][row] if "position_ids" in columns else []
        bounds = [at for at, position in enumerate(positions) if position == 0 or at == 0] or [0]
        for start, end in pairwise([*bounds, len(tokens)]):
            mask = bytes(map(bool, masks[row][start:end])) if masks else None
            if all(token == PAD_ID for token in tokens[start:end]) and not any(mask or ()):
                continue
            own = {new: columns[old][row][start:end] for old, new in STREAMS.items() if old in columns}
            samples.append(Sample(tokens[start:end], mask, own, first_item + len(samples), facts=dict(facts)))
    return samples, remarks, False


def _rows(archive: zipfile.ZipFile, tensor: TensorView, name: str) -> list[list[Any]]:
    """Return a tensor of one or two dimensions as rows."""
    shape = (1, *tensor.shape) if len(tensor.shape) == 1 else tensor.shape
    strides = (0, *tensor.strides) if len(tensor.strides) == 1 else tensor.strides
    if len(shape) != 2 or shape[0] * shape[1] > MAX_ELEMENTS:
        raise ValueError(f"{name} has the shape {list(tensor.shape)}")
    if not shape[0] or not shape[1]:
        return [[] for _ in range(min(shape[0], 1))]
    last = tensor.offset + (shape[0] - 1) * strides[0] + (shape[1] - 1) * strides[1]
    if last >= tensor.storage.count or last - tensor.offset > MAX_ELEMENTS:
        raise ValueError(f"{name} reaches beyond its storage")
    numbers = _numbers(archive, tensor, last - tensor.offset + 1)
    return [[numbers[row * strides[0] + column * strides[1]] for column in range(shape[1])] for row in range(shape[0])]


def _numbers(archive: zipfile.ZipFile, tensor: TensorView, count: int) -> list[Any]:
    prefix = next(name for name in archive.namelist() if name.endswith("/data.pkl")).removesuffix("data.pkl")
    info = archive.getinfo(f"{prefix}data/{tensor.storage.key}")
    _refuse_compression(info)
    element = "H" if tensor.storage.element == "bfloat16" else tensor.storage.element
    size = struct.calcsize(f"<{element}")
    if (tensor.offset + count) * size > info.file_size:
        raise ValueError(f"storage {tensor.storage.key} is shorter than its tensor")
    with archive.open(info) as stored:
        stored.seek(tensor.offset * size)
        data = stored.read(count * size)
    if len(data) != count * size:
        raise ValueError(f"storage {tensor.storage.key} ends before its tensor")
    order = ">" if _is_big_endian(archive, prefix) else "<"
    values = list(struct.unpack(f"{order}{len(data) // size}{element}", data))
    if tensor.storage.element == "bfloat16":
        # A bfloat16 is the upper half of a float32.
        return [struct.unpack("<f", struct.pack("<I", value << 16))[0] for value in values]
    return values


def _is_big_endian(archive: zipfile.ZipFile, prefix: str) -> bool:
    try:
        info = archive.getinfo(f"{prefix}byteorder")
    except KeyError:
        return False
    _refuse_compression(info)
    with archive.open(info) as stored:
        return stored.read(3) == b"big"
