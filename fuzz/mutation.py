"""Changing an input at random: bytes, words and numbers, and the values inside of JSON and MessagePack."""

from __future__ import annotations

import json
from random import Random
from typing import Any

import msgpack

LONGEST = 1 << 16
NUMBERS = (0, 1, -1, 2, 7, 127, 128, 255, 256, 65535, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, -(2**63), 2**64)
FLOATS = (0.0, -0.0, 0.5, 1.0, -2.5, 1e-308, 1e308, -1e308, float("nan"), float("inf"), float("-inf"))
TEXTS = ("", "a", "\0", "\n", "\u2028", "\ud800", "\U0001f600", "true", "null", "1", "a" * 300, "../x", "é\u0301")
DEEP, LEVELS = "<nested>", 3000  # a text that stands for a value nested deeper than Python's own writers go
KINDS: tuple[Any, ...] = (None, True, False, [], {}, [[]], [None], {"": None}, [{}], [0, 1], ["a"])


def mutated(data: bytes, random: Random, kind: str = "bytes", words: tuple[str, ...] = ()) -> bytes:
    """Return a changed copy of an input of at most LONGEST bytes."""
    for _ in range(random.choice((1, 1, 1, 2, 4))):
        data = _structured(data, random, kind, words) if random.random() < 0.6 else _bytes(data, random, words)
    return data[:LONGEST]


def _structured(data: bytes, random: Random, kind: str, words: tuple[str, ...]) -> bytes:
    try:
        if kind == "json":
            return _json_lines(data, random, words)
        if kind == "msgpack":
            value = msgpack.unpackb(data[1:], strict_map_key=False)
            packed = bytes(msgpack.packb(_changed(value, random, words, 0)))
            return data[:1] + packed.replace(bytes(msgpack.packb(DEEP)), b"\x91" * LEVELS + b"\xc0")
    except (ValueError, TypeError, OverflowError, RecursionError, msgpack.exceptions.UnpackException):
        pass
    return _bytes(data, random, words)


def _json_lines(data: bytes, random: Random, words: tuple[str, ...]) -> bytes:
    # The first byte of a file's input chooses how it is read, and is no part of the file.
    lines = data[1:].split(b"\n")
    at = random.randrange(len(lines))
    choice = random.random()
    if choice < 0.1:
        lines.insert(at, random.choice(lines))
    elif choice < 0.15 and len(lines) > 1:
        del lines[at]
    else:
        value = _changed(json.loads(lines[at]), random, words, 0)
        separators = (",", ":") if random.random() < 0.8 else (", ", ": ")
        text = json.dumps(value, separators=separators, ensure_ascii=random.random() < 0.7)
        text = text.replace(f'"{DEEP}"', "[" * LEVELS + "]" * LEVELS)
        lines[at] = text.encode("utf-8", "surrogatepass")
    return data[:1] + b"\n".join(lines)


def _changed(value: Any, random: Random, words: tuple[str, ...], depth: int) -> Any:
    """Return a value with one change somewhere inside of it."""
    inside = isinstance(value, (dict, list)) and value and depth < 12 and random.random() < 0.85
    if not inside:
        return _other(value, random, words)
    if isinstance(value, dict):
        return _changed_object(value, random, words, depth)
    copy, at = list(value), random.randrange(len(value))
    choice = random.random()
    if choice < 0.08:
        del copy[at]
    elif choice < 0.16:
        copy.insert(at, random.choice(copy))
    else:
        copy[at] = _changed(copy[at], random, words, depth + 1)
    return copy


def _changed_object(value: dict[Any, Any], random: Random, words: tuple[str, ...], depth: int) -> dict[Any, Any]:
    copy, key = dict(value), random.choice(list(value))
    choice = random.random()
    if choice < 0.08:
        del copy[key]
    elif choice < 0.16:
        copy[random.choice(words) if words else random.choice(TEXTS)] = copy[key]
    elif choice < 0.2 and words:
        copy[random.choice(words)] = _other(None, random, words)
    else:
        copy[key] = _changed(copy[key], random, words, depth + 1)
    return copy


def _other(value: Any, random: Random, words: tuple[str, ...]) -> Any:
    choice = random.random()
    if choice < 0.25:
        return random.choice(KINDS)
    if choice < 0.45:
        return random.choice(NUMBERS)
    if choice < 0.6:
        return random.choice(FLOATS)
    if choice < 0.7:
        return _nested(random)
    if isinstance(value, str) and choice < 0.85:
        at = random.randrange(len(value) + 1)
        return value[:at] + random.choice((*TEXTS, *words)) + value[at + random.randrange(3) :]
    if isinstance(value, int) and not isinstance(value, bool) and choice < 0.95:
        return value + random.choice((-1, 1))
    return random.choice((*TEXTS, *words))


def _nested(random: Random) -> Any:
    if random.random() < 0.2:
        return DEEP
    value: Any = random.choice(KINDS)
    for _ in range(random.choice((1, 2, 5, 30, 200, 600))):
        value = [value] if random.random() < 0.5 else {"a": value}
    return value


def _bytes(data: bytes, random: Random, words: tuple[str, ...]) -> bytes:
    at = random.randrange(len(data) + 1)
    end = min(len(data), at + random.choice((1, 1, 2, 4, 8, 32, 200)))
    match random.randrange(8):
        case 0:
            return data[:at] + data[end:]
        case 1:
            return data[:at] + data[at:end] + data[at:]
        case 2:
            return data[:at] + random.randbytes(random.choice((1, 2, 4, 8))) + data[at:]
        case 3:
            return data[:at] + bytes([random.randrange(256)]) + data[at + 1 :]
        case 4:
            number = random.choice(NUMBERS) & (2**64 - 1)
            size = random.choice((1, 2, 4, 8))
            piece = (number % 256**size).to_bytes(size, random.choice(("little", "big")))
            return data[:at] + piece + data[at + size :]
        case 5 if words:
            return data[:at] + random.choice(words).encode("utf-8", "surrogatepass") + data[at:]
        case 6:
            return data[:at]
        case _:
            other = random.randrange(len(data) + 1)
            return data[:at] + data[other : other + end - at] + data[end:]
