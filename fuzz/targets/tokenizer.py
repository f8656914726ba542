"""A tokenizer.json that anybody may have written, and ids to decode by it."""

from __future__ import annotations

import json
from typing import Any

from rltracer_sqlite.tokens import TokenizerError, bytetable, load_tokenizer
from rltracer_sqlite.tokens.tokenizer import TextTokenizer
from tests.token_layouts import write_tokenizer

from ..invariants import patched
from ..scratch import scratch
from ..target import Target

LARGEST_ID = 1 << 12  # a table of all the ids that are allowed takes a second to make
IDS = ([], [0], [72, 105], [3, 199, 258, 259, 260, 261], [0xE6, 0x95, 0xB0, 300, -1, 1 << 40], list(range(300)))


def check(data: bytes) -> None:
    """A tokenizer is refused in a sentence, or gives pieces that join to the text; its cache changes nothing."""
    file = scratch("tokenizer-files") / "tokenizer.json"
    cache = file.with_name("cache")
    cache.unlink(missing_ok=True)
    file.write_bytes(data[1:])
    ids = IDS[data[0] % len(IDS)] if data else []
    with patched(bytetable, MAX_ID=LARGEST_ID, _cache_file=lambda path: cache):
        read = _decoded(load_tokenizer(file), ids)
        if cache.exists():  # the library chooses among several tokens of one id as it happens
            assert _decoded(load_tokenizer(file), ids) == read


def _decoded(tokenizer: TextTokenizer, ids: list[int]) -> Any:
    try:
        text, pieces = tokenizer.decode(ids), tokenizer.pieces(ids)
    except TokenizerError as error:
        assert str(error).encode()
        return None
    assert "".join(pieces) == text
    assert len(pieces) == len(ids)
    assert 0 <= tokenizer.unknown(ids) <= len(ids)
    assert (tokenizer.misfit(ids) or "").encode() is not None
    assert text.encode() is not None
    return text, pieces, tokenizer.size, tokenizer.special_ids, tokenizer.id_of("<|im_end|>")


def seeds() -> list[bytes]:
    """Return a byte-level tokenizer, and small ones of other kinds with every decoder."""
    byte_level = (write_tokenizer(scratch("tokenizer-seeds")) / "tokenizer.json").read_bytes()
    words = {"<unk>": 0, "\u2581a": 1, "##b": 2, "<0xE6>": 3, "c</w>": 4, "|": 5, "\u010a": 6}
    models: list[dict[str, Any]] = [
        {"type": "BPE", "vocab": words, "merges": [], "unk_token": "<unk>", "byte_fallback": True},
        {"type": "WordPiece", "vocab": words, "unk_token": "<unk>", "continuing_subword_prefix": "##",
         "max_input_chars_per_word": 100},
        {"type": "WordLevel", "vocab": words, "unk_token": "<unk>"},
        {"type": "Unigram", "vocab": [[word, -1.0] for word in words], "unk_id": 0, "byte_fallback": True},
    ]  # fmt: skip
    decoders: list[Any] = [
        {"type": "Sequence", "decoders": [
            {"type": "Replace", "pattern": {"String": "\u2581"}, "content": " "}, {"type": "ByteFallback"},
            {"type": "Fuse"}, {"type": "Strip", "content": " ", "start": 1, "stop": 0},
        ]},
        {"type": "WordPiece", "prefix": "##", "cleanup": True},
        {"type": "Metaspace", "replacement": "\u2581", "prepend_scheme": "always", "split": True},
        {"type": "BPEDecoder", "suffix": "</w>"},
        {"type": "CTC", "pad_token": "<unk>", "word_delimiter_token": "|", "cleanup": True},
        {"type": "Replace", "pattern": {"Regex": "(a+)+$"}, "content": "x"}, {"type": "ByteLevel"}, None,
    ]  # fmt: skip
    added = {"id": 7, "content": "<|im_end|>", "special": True, "single_word": False, "lstrip": False,
             "rstrip": False, "normalized": False}  # fmt: skip
    files = [
        {"version": "1.0", "added_tokens": [added], "decoder": decoder, "model": models[number % len(models)]}
        for number, decoder in enumerate([*decoders, *decoders[:3]])
    ]
    return [
        bytes([number]) + content
        for number, content in enumerate([byte_level, *(json.dumps(one).encode() for one in files)], 2)
    ]


WORDS = (
    "type", "decoder", "decoders", "Sequence", "Replace", "pattern", "String", "Regex", "content", "ByteFallback",
    "Fuse", "Strip", "start", "stop", "WordPiece", "prefix", "cleanup", "Metaspace", "replacement", "BPEDecoder",
    "suffix", "CTC", "pad_token", "word_delimiter_token", "ByteLevel", "model", "vocab", "merges", "added_tokens",
    "id", "special", "unk_id", "unk_token", "Unigram", "WordLevel", "BPE", "version", "1.0", "byte_fallback",
)  # fmt: skip
TARGETS = {
    "tokenizer": Target("tokenizer", "tokenizers of anybody, and ids to decode by them", check, seeds, "json", WORDS)
}
