"""The bytes behind each id of a byte-level BPE tokenizer (Qwen, Llama 3, GPT-2, …), for decoding by table look-up.

Such a vocabulary is written in an alphabet of 256 characters, one per byte: printable Latin-1 stands for itself, and
the other bytes, in order, for the characters from U+0100 on (openai/gpt-2, `bytes_to_unicode`).
"""

from __future__ import annotations

import codecs
import os
import sys
from array import array
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import accumulate
from pathlib import Path

import msgspec
import platformdirs

MAGIC = b"rltracer byte table 1\n"
HOLE = 0xFFFF  # the length of an id that the vocabulary lacks
MAX_ID = 1 << 24
REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()


class _Added(msgspec.Struct):
    id: int
    content: str
    special: bool = False


class _Decoder(msgspec.Struct):
    type: str | None = None


class _Model(msgspec.Struct):
    vocab: msgspec.Raw
    type: str | None = None


class _Tokenizer(msgspec.Struct):
    model: _Model
    decoder: _Decoder | None = None
    added_tokens: list[_Added] = []


class _Header(msgspec.Struct):
    size: int
    added: list[_Added]


class ByteTable:
    """Ids to text by the bytes of each id; equal to the `tokenizers` library's own decoding."""

    def __init__(self, tokens: list[bytes | None], added: list[_Added]) -> None:
        self.holes = frozenset(number for number, token in enumerate(tokens) if token is None)
        self.tokens = [REPLACEMENT if token is None else token for token in tokens]
        self.size = len(tokens)
        self.added = {token.content: token.id for token in added}
        self.special_ids = frozenset(token.id for token in added if token.special)

    def knows(self, token_id: int) -> bool:
        return 0 <= token_id < self.size and token_id not in self.holes

    def decode(self, ids: Sequence[int]) -> str:
        return self._bytes(ids).decode("utf-8", "replace")

    def pieces(self, ids: Sequence[int]) -> list[str]:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        pieces = [decoder.decode(token) for token in map(self._token, ids)]
        if pieces:
            pieces[-1] += decoder.decode(b"", True)
        return pieces

    def _bytes(self, ids: Sequence[int]) -> bytes:
        try:
            if ids and min(ids) >= 0:
                return b"".join(map(self.tokens.__getitem__, ids))
        except IndexError:
            pass
        return b"".join(map(self._token, ids))

    def _token(self, token_id: int) -> bytes:
        return self.tokens[token_id] if 0 <= token_id < self.size else REPLACEMENT


def read_byte_table(path: Path) -> ByteTable | None:
    """Return the byte table of a tokenizer.json, or None where it is another kind of tokenizer.

    The table is kept in the user's cache folder as plain bytes, since making it takes longer than reading a shard.
    Raises OSError, or ValueError for a file that is no tokenizer.
    """
    blob = _cache_file(path)
    with suppress(OSError, ValueError, IndexError):
        return _unpacked(blob.read_bytes())
    table = _from_json(path.read_bytes())
    if table is None:
        return None
    with suppress(OSError):
        _write(blob, _packed(*table))
    return ByteTable(*table)


def _from_json(data: bytes) -> tuple[list[bytes | None], list[_Added]] | None:
    tokenizer = msgspec.json.decode(data, type=_Tokenizer)
    if tokenizer.model.type != "BPE" or tokenizer.decoder is None or tokenizer.decoder.type != "ByteLevel":
        return None
    vocabulary = msgspec.json.decode(tokenizer.model.vocab, type=dict[str, int])
    vocabulary.update((token.content, token.id) for token in tokenizer.added_tokens)
    if not vocabulary or min(vocabulary.values()) < 0 or max(vocabulary.values()) >= MAX_ID:
        raise ValueError("its vocabulary has no ids, or impossible ones")
    tokens: list[bytes | None] = [None] * (max(vocabulary.values()) + 1)
    for text, token_id in vocabulary.items():
        tokens[token_id] = _token_bytes(text)
    return tokens, tokenizer.added_tokens


def _alphabet() -> str:
    printable = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
    others = iter(range(256, 512))
    return "".join(chr(byte) if byte in printable else chr(next(others)) for byte in range(256))


_ENCODING = codecs.charmap_build(_alphabet())


def _token_bytes(text: str) -> bytes:
    # A token with a character outside the alphabet, such as an added one, is its own text.
    try:
        return codecs.charmap_encode(text, "strict", _ENCODING)[0]
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def _cache_file(path: Path) -> Path:
    about = path.stat()
    key = f"{path.resolve()}\0{about.st_size}\0{about.st_mtime_ns}"
    return platformdirs.user_cache_path("rltracer") / f"tokenizer-{sha256(key.encode()).hexdigest()[:24]}.bytes"


def _packed(tokens: list[bytes | None], added: list[_Added]) -> bytes:
    lengths = array("H", (HOLE if token is None else min(len(token), HOLE - 1) for token in tokens))
    header = msgspec.json.encode(_Header(len(tokens), added))
    body = b"".join(token[: HOLE - 1] for token in tokens if token is not None)
    return b"".join((MAGIC, header, b"\n", _little_endian(lengths).tobytes(), body))


def _unpacked(blob: bytes) -> ByteTable:
    start = len(MAGIC)
    if not blob.startswith(MAGIC):
        raise ValueError("not a byte table")
    end = blob.index(b"\n", start)
    header = msgspec.json.decode(blob[start:end], type=_Header)
    lengths = array("H")
    lengths.frombytes(blob[end + 1 : end + 1 + 2 * header.size])
    lengths = _little_endian(lengths)
    body = end + 1 + 2 * header.size
    ends = list(accumulate((0 if length == HOLE else length for length in lengths), initial=body))
    if len(lengths) != header.size or ends[-1] != len(blob):
        raise ValueError("a byte table that was cut off")
    tokens = [
        None if length == HOLE else blob[begin : begin + length] for length, begin in zip(lengths, ends, strict=False)
    ]
    return ByteTable(tokens, header.added)


def _little_endian(lengths: array[int]) -> array[int]:
    if sys.byteorder == "big":
        lengths.byteswap()
    return lengths


def _write(file: Path, data: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_name(f"{file.name}.{os.getpid()}.tmp")
    part.write_bytes(data)
    os.replace(part, file)
