"""The bytes behind each id of a byte-level BPE tokenizer (Qwen, Llama 3, GPT-2, …), for decoding by table look-up.

Such a vocabulary is written in an alphabet of 256 characters, one per byte: printable Latin-1 stands for itself, and
the characters from U+0100 on stand for the other bytes, in order (openai/gpt-2, `bytes_to_unicode`).
"""

from __future__ import annotations

import codecs
import sys
from array import array
from collections.abc import Sequence
from contextlib import suppress
from hashlib import sha256
from itertools import accumulate
from pathlib import Path

import msgspec

from ..replacing import replacing
from ..user_folders import cache_folder

MAGIC = b"rltracer byte table 1\n"
MAX_ID = 1 << 24
MAX_TOKEN = 4096  # bytes of one token, of which Qwen's longest has 128: a text repeats a token as often as it likes
WORD = 4  # bytes of an offset in the cache
REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()


class Added(msgspec.Struct):
    """A token that was added to a vocabulary, such as <|im_end|>."""

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
    added_tokens: list[Added] = []


class _Header(msgspec.Struct):
    size: int
    added: list[Added]


class ByteTable:
    """Ids to text by the bytes of each id; equal to the `tokenizers` library's own decoding.

    `offsets[i]` to `offsets[i + 1]` are the bytes of id i in `blob`; an id that the vocabulary lacks has none.
    """

    def __init__(self, blob: bytes, offsets: array[int], added: list[Added]) -> None:
        self.blob, self.offsets = blob, offsets
        self.size = len(offsets) - 1
        self.added = {token.content: token.id for token in added}
        self.added_tokens = added
        self.special_ids = frozenset(token.id for token in added if token.special)
        self.tokens = _Tokens(self)

    def knows(self, token_id: int) -> bool:
        return 0 <= token_id < self.size and self.offsets[token_id] < self.offsets[token_id + 1]

    def decode(self, ids: Sequence[int]) -> str:
        return b"".join(map(self.tokens.__getitem__, ids)).decode("utf-8", "replace")

    def pieces(self, ids: Sequence[int]) -> list[str]:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        pieces = [decoder.decode(token) for token in map(self.tokens.__getitem__, ids)]
        if pieces:
            pieces[-1] += decoder.decode(b"", True)
        return pieces


class _Tokens(dict[int, bytes]):
    """The bytes of the ids that have been met: a run uses a small part of a vocabulary, so none are cut in advance."""

    def __init__(self, table: ByteTable) -> None:
        super().__init__()
        self.table = table

    def __missing__(self, token_id: int) -> bytes:
        table = self.table
        known = table.knows(token_id)
        token = table.blob[table.offsets[token_id] : table.offsets[token_id + 1]] if known else REPLACEMENT
        self[token_id] = token
        return token


def read_byte_table(path: Path) -> ByteTable | None:
    """Return the byte table of a tokenizer.json, or None where it is another kind of tokenizer.

    The table is kept in the user's cache folder as plain bytes, since making it takes longer than reading a shard.
    Raises OSError, or ValueError for a file that is no tokenizer.
    """
    cache = _cache_file(path)
    with suppress(OSError, ValueError):
        return _unpacked(cache.read_bytes())
    table = _from_json(path.read_bytes())
    if table is not None:
        with suppress(OSError):
            _write(cache, _packed(table))
    return table


def _from_json(data: bytes) -> ByteTable | None:
    tokenizer = msgspec.json.decode(data, type=_Tokenizer)
    if tokenizer.model.type != "BPE" or tokenizer.decoder is None or tokenizer.decoder.type != "ByteLevel":
        return None
    vocabulary = msgspec.json.decode(tokenizer.model.vocab, type=dict[str, int])
    vocabulary.update((token.content, token.id) for token in tokenizer.added_tokens)
    if not vocabulary or min(vocabulary.values()) < 0 or max(vocabulary.values()) >= MAX_ID:
        raise ValueError("its vocabulary has no ids, or impossible ones")
    tokens = [b""] * (max(vocabulary.values()) + 1)
    for text, token_id in vocabulary.items():
        tokens[token_id] = _token_bytes(text)
    if (longest := max(map(len, tokens))) > MAX_TOKEN:
        raise ValueError(f"it has a token of {longest:,} bytes")
    return ByteTable(b"".join(tokens), array("I", accumulate(map(len, tokens), initial=0)), tokenizer.added_tokens)


def byte_alphabet() -> str:
    """Return the character that stands for each byte, from 0 to 255."""
    printable = {*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)}
    others = iter(range(256, 512))
    return "".join(chr(byte) if byte in printable else chr(next(others)) for byte in range(256))


_ENCODING = codecs.charmap_build(byte_alphabet())


def _token_bytes(text: str) -> bytes:
    # A token with a character outside the alphabet, such as an added one, is its own text.
    try:
        return codecs.charmap_encode(text, "strict", _ENCODING)[0]
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def _cache_file(path: Path) -> Path:
    about = path.stat()
    key = f"{path.resolve()}\0{about.st_size}\0{about.st_mtime_ns}"
    return cache_folder() / f"tokenizer-{sha256(key.encode()).hexdigest()[:24]}.bytes"


def _packed(table: ByteTable) -> bytes:
    header = msgspec.json.encode(_Header(table.size, table.added_tokens))
    return b"".join((MAGIC, header, b"\n", _little_endian(table.offsets[:]).tobytes(), table.blob))


def _unpacked(data: bytes) -> ByteTable:
    if not data.startswith(MAGIC):
        raise ValueError("not a byte table")
    end = data.index(b"\n", len(MAGIC))
    header = msgspec.json.decode(data[len(MAGIC) : end], type=_Header)
    start = end + 1 + WORD * (header.size + 1)
    offsets = array("I")
    offsets.frombytes(data[end + 1 : start])
    offsets = _little_endian(offsets)
    if len(offsets) != header.size + 1 or offsets[-1] != len(data) - start:
        raise ValueError("a byte table that was cut off")
    return ByteTable(data[start:], offsets, header.added)


def _little_endian(offsets: array[int]) -> array[int]:
    if sys.byteorder == "big":
        offsets.byteswap()
    return offsets


def _write(file: Path, data: bytes) -> None:
    with replacing(file) as part:
        part.write(data)
