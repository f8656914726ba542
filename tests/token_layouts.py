"""Writers of small token shards in every form that prime-rl has written, and a tokenizer of one id per byte."""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import msgpack

SPECIALS = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")
ADDED = (*SPECIALS, "<tool_call>", "</tool_call>", "<think>", "</think>")
PAD = 1


def byte_alphabet() -> list[str]:
    """Return the character that byte-level BPE writes for each byte."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    return [chr(byte) if byte in printable else chr(256 + others.index(byte)) for byte in range(256)]


def write_tokenizer(folder: Path, vocabulary: int = 256) -> Path:
    """Write a byte-level tokenizer.json whose ids 0–255 are bytes, followed by the added tokens."""
    added = [
        {"id": 256 + number, "content": text, "special": text in SPECIALS, "single_word": False, "lstrip": False,
         "rstrip": False, "normalized": False}
        for number, text in enumerate(ADDED)
    ]  # fmt: skip
    tokenizer = {
        "version": "1.0", "truncation": None, "padding": None, "normalizer": None, "post_processor": None,
        "added_tokens": added,
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True},
        "decoder": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
        "model": {
            "type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
            "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
            "vocab": {text: number for number, text in enumerate(byte_alphabet()[:vocabulary])}, "merges": [],
        },
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    return folder


def encode(text: str) -> list[int]:
    """Return the ids of a text under that tokenizer."""
    ids: list[int] = []
    while text:
        number, mark = next(((n, m) for n, m in enumerate(ADDED) if text.startswith(m)), (None, text[0]))
        ids += [256 + number] if number is not None else list(mark.encode())
        text = text[len(mark) :]
    return ids


@dataclass
class Drawn:
    """One sample to write: turns as (text, is sampled)."""

    turns: Sequence[tuple[str, bool]]
    advantage: float = 0.5
    reward: float = 1.0
    env: str = "math"
    trace_id: str = "trace"
    branch: int = 0
    ids: list[int] = field(default_factory=list)
    mask: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        for text, sampled in self.turns:
            own = encode(text)
            self.ids += own
            self.mask += [sampled] * len(own)

    @property
    def logprobs(self) -> list[float]:
        return [-0.25 if sampled else 0.0 for sampled in self.mask]


def question(answer: str = "4", prompt: str = "What is 2 + 2?", **known: Any) -> Drawn:
    """Return a sample of one question and its answer."""
    asked = f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n"
    return Drawn([(asked, False), (f"{answer}<|im_end|>", True)], **known)


GENERATIONS = (
    *("g00", "g01", "g02", "g04", "g05", "g06", "g07", "g08", "g09", "g10", "g11", "g12", "g13", "g14", "g15"),
    *("g16", "g17", "g18", "g19", "g20", "pB", "pC", "pD", "pD'", "pE", "unknown"),
)
FOLDED = ("g19", "g20", "pB", "pC", "pD", "pD'", "pE")  # whose last recorded length includes the padding


def micro_batch(generation: str, samples: Sequence[Drawn], pad: int = 0, copy: bool = False) -> list[Any]:
    """Return a micro batch as prime-rl's struct of that generation writes it; `copy`: as a padding copy."""
    pad = 0 if generation == "g00" else pad
    ids = [token for sample in samples for token in sample.ids] + [PAD] * pad
    mask = [flag for sample in samples for flag in sample.mask] + [False] * pad
    from_g18 = generation in ("g18", *FOLDED, "unknown")
    advantages = [sample.advantage if flag or not from_g18 else 0.0 for sample in samples for flag in sample.mask] + [
        0.0
    ] * pad
    logprobs = [value for sample in samples for value in sample.logprobs] + [0.0] * pad
    positions = [at for sample in samples for at in range(len(sample.ids))] + list(range(pad))
    lengths = [len(sample.ids) for sample in samples]
    if pad and generation in (*FOLDED, "unknown"):
        lengths[-1] += pad
    elif pad:
        lengths.append(pad)
    temperatures = [0.7] * (len(ids) - pad) + [1.0] * pad
    envs = [sample.env for sample in samples for _ in sample.ids] + [""] * pad
    rewards = [sample.reward for sample in samples for _ in sample.ids] + [0.0] * pad
    if copy:
        mask, advantages = [False] * len(ids), [0.0] * len(ids)
    first = [ids, mask, advantages, logprobs, positions]
    traces, branches = [sample.trace_id for sample in samples], [sample.branch for sample in samples]
    g20 = [*first, lengths, temperatures, envs, lengths, None, None, None, None, None, None, None]
    lora = [len(ids)]
    forms: dict[str, list[Any]] = {
        "g00": [*first, 0.7],
        "g01": [*first, lora, 0.7],
        "g02": [*first, 0.7, None, lora],
        "g04": [*first, temperatures, None, lora],
        "g05": [*first, temperatures, None, lora, [[0.5]], [[1, 2, 2]]],
        "g06": [*first, temperatures, None, lora, [[[0, 1]]] * len(ids), None, None],
        "g07": [*first, temperatures, None, lora, None, b"\0\0\0\0", [1, 1], [[1, 2, 2]]],
        "g08": [*first, temperatures, None, lora, None, None, None, None, [0] * len(ids)],
        "g09": [*first, temperatures, None, lora, None, None, None, None, None, False],
        "g10": [*first, temperatures, envs, None, lora, None, None, None, None, None, False],
        "g11": [*first, temperatures, envs, None, lora, None, None, None, None, None, "rl"],
        "g12": [*first, temperatures, envs, None, lora, None, {"p": ["float32", [1], b"\0\0\0\0"]}, None, "rl"],
        "g13": [*first, temperatures, envs, None, lora, [[[0]]] * len(ids), None, None, "rl", rewards],
        "g14": [*first, temperatures, envs, None, lora, [b"\0", [1], "uint8"], None, None, "rl", rewards],
        "g15": [*first, temperatures, envs, None, lora, None, None, None, "rl", rewards, "run", 3],
        "g16": [*first, temperatures, envs, lengths, None, lora, None, None, None, "rl", rewards, None, None],
        "g17": [*first, lengths, temperatures, envs, None, lora, None, None, None, "rl", rewards, None, None],
        "g18": [*first, lengths, temperatures, envs, None, lora, None, None, None, None, None, None, None, None],
        "g19": [*first, lengths, temperatures, envs, lengths, None, lora, None, None, None, None, None, None, "r", 3],
        "g20": g20,
        "pB": [*g20, [b"\0", b"\0"]],
        "pC": [*g20, traces, branches],
        "pD": [*g20, None, traces, branches],
        "pD'": [*g20[:11], [["file:///etc/passwd", 0, 4]], *g20[12:], [b"", b"", b""], traces, branches],
        "pE": [*g20, None, traces, branches, [["routed_experts", "/etc/passwd", 0, 0, 1, "uint8", [1]]]],
        "unknown": [*first, lengths, *[{"new": True}] * 20],
    }  # fmt: skip
    return forms[generation]


def training_sample(fields: int, style: str, sample: Drawn) -> list[Any]:
    """Return a TrainingSample of that many fields; `style` as in rltracer's table of them."""
    split = sample.mask.index(True)
    old = [sample.ids[:split], sample.mask[:split], sample.ids[split:], sample.mask[split:], sample.logprobs[split:]]
    temperatures, advantage, reward = [0.7] * (len(sample.ids) - split), sample.advantage, sample.reward
    advantages = [sample.advantage if flag else 0.0 for flag in sample.mask]
    new = [sample.ids, sample.mask, sample.logprobs, [0.7] * len(sample.ids), sample.env]
    forms: dict[tuple[int, str], list[Any]] = {
        (6, "old"): [*old, advantage],
        (7, "old"): [*old, None, advantage],
        (8, "old"): [*old, None, advantage, reward],
        (9, "old"): [*old, temperatures, None, advantage, reward],
        (11, "old"): [*old, temperatures, None, advantage, reward, None, None],
        (12, "old"): [*old, temperatures, None, advantage, reward, None, None, None],
        (13, "old"): [*old, temperatures, None, advantage, reward, None, None, None, None],
        (14, "old"): [*old, temperatures, None, advantage, reward, None, None, None, None, None],
        (15, "old"): [*old, temperatures, None, advantage, reward, None, None, None, None, None, False],
        (16, "env"): [*old, temperatures, sample.env, None, advantage, reward, *[None] * 5, "rl"],
        (14, "env"): [*old, temperatures, sample.env, None, advantage, reward, None, None, None, "rl"],
        (12, "new"): [*new, None, advantage, reward, None, None, None, "rl"],
        (13, "new"): [*new, None, None, None, None, None, None, None, advantages],
    }
    return forms[fields, style]


def export_line(sample: Drawn, **more: Any) -> dict[str, Any]:
    """Return a line of a token export."""
    count = len(sample.ids)
    return {
        "schema_version": 1, "step": 3, "rank": 0, "micro_step": 0, "export_sequence_idx": 0, "env_name": sample.env,
        "token_ids": sample.ids, "position_ids": list(range(count)), "loss_mask": sample.mask,
        "advantages": [sample.advantage if flag else 0.0 for flag in sample.mask],
        "inference_logprobs": sample.logprobs,
        "trainer_logprobs": [-0.5 if flag else None for flag in sample.mask],
        "entropy": [0.1 if flag else None for flag in sample.mask],
        "mismatch_kl": [0.01 if flag else None for flag in sample.mask],
        "importance_ratio": [1.1 if flag else None for flag in sample.mask],
        "is_masked": [False] * count,
        **more,
    }  # fmt: skip


def write_bin(file: Path, value: Any) -> Path:
    """Write a value as MessagePack."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(msgpack.packb(value))
    return file


STORAGES = {"q": "LongStorage", "f": "FloatStorage", "?": "BoolStorage"}


def write_torch(file: Path, batches: Sequence[Sequence[Drawn]], compression: int = zipfile.ZIP_STORED) -> Path:
    """Write a torch archive of micro batches, as torch.save does, without torch."""
    parts, storages = [b"\x80\x02]"], []
    for samples in batches:
        ids = [token for sample in samples for token in sample.ids]
        mask = [flag for sample in samples for flag in sample.mask]
        columns = {
            "input_ids": ("q", ids),
            "position_ids": ("q", [at for sample in samples for at in range(len(sample.ids))]),
            "loss_mask": ("?", mask),
            "advantages": ("f", [sample.advantage for sample in samples for _ in sample.ids]),
            "inference_logprobs": ("f", [value for sample in samples for value in sample.logprobs]),
        }
        parts.append(b"}(")
        for name, (element, values) in columns.items():
            parts.append(_text(name) + _tensor(element, len(storages), len(values)))
            storages.append(struct.pack(f"<{len(values)}{element}", *values))
        parts.append(_text("temperature") + b"G" + struct.pack(">d", 0.7) + b"ua")
    return write_archive(file, b"".join([*parts, b"."]), storages, compression)


def write_archive(
    file: Path, pickle: bytes, storages: Sequence[bytes] = (), compression: int = zipfile.ZIP_STORED
) -> Path:
    """Write an archive in the layout of torch.save around any pickle."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(file, "w", compression) as archive:
        archive.writestr("rank_0/data.pkl", pickle)
        archive.writestr("rank_0/byteorder", b"little")
        for number, data in enumerate(storages):
            archive.writestr(f"rank_0/data/{number}", data)
    return file


def _text(text: str) -> bytes:
    return b"X" + struct.pack("<I", len(text.encode())) + text.encode()


def _tensor(element: str, key: int, count: int) -> bytes:
    number = b"J" + struct.pack("<i", count)
    storage = b"(" + _text("storage") + b"ctorch\n" + STORAGES[element].encode() + b"\n" + _text(str(key))
    storage += _text("cpu") + number + b"tQ"
    shape, strides = b"K\x01" + number + b"\x86", number + b"K\x01\x86"
    ordered = b"ccollections\nOrderedDict\n)R"
    return b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage + b"K\x00" + shape + strides + b"\x89" + ordered + b"tR"
