"""Ids to text: the byte table against the tokenizers library, pieces, unknown ids, and what goes wrong."""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rltracer_sqlite.tokens import TokenizerError, load_tokenizer
from rltracer_sqlite.tokens.tokenizer import LibraryEngine
from tests.layouts.corpora import corpora
from tests.token_layouts import ADDED, encode, write_tokenizer

TEXT = "<|im_start|>user\nwie groß? 数一数 ✅<|im_end|>"
SHARED = corpora()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tokenizer(tmp_path_factory.mktemp("own") / "small")


def test_text_comes_back(folder: Path) -> None:
    tokenizer = load_tokenizer(folder)
    assert tokenizer.decode(encode(TEXT)) == TEXT
    assert tokenizer.name == "small"
    assert tokenizer.size == 256 + len(ADDED)
    assert tokenizer.special_ids == {256, 257, 258}
    assert tokenizer.id_of("<tool_call>") == 259


def test_a_character_stands_at_its_last_token(folder: Path) -> None:
    pieces = load_tokenizer(folder).pieces(encode("a数b"))
    assert pieces == ["a", "", "", "数", "b"]


@given(st.lists(st.integers(-3, 300), max_size=40))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_pieces_join_to_the_text(folder: Path, ids: list[int]) -> None:
    tokenizer = load_tokenizer(folder)
    pieces = tokenizer.pieces(ids)
    assert "".join(pieces) == tokenizer.decode(ids)
    assert len(pieces) == len(ids)


@given(st.lists(st.integers(0, 262), max_size=60))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_byte_table_equals_the_library(folder: Path, ids: list[int]) -> None:
    library = LibraryEngine(folder / "tokenizer.json")
    assert load_tokenizer(folder).decode(ids) == library.decode(ids)


@pytest.mark.skipif(SHARED is None, reason="no corpora")
@given(st.lists(st.integers(0, 151_668), max_size=60))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_the_byte_table_equals_the_library_on_a_real_vocabulary(real: tuple[object, object], ids: list[int]) -> None:
    tokenizer, library = real
    assert tokenizer.decode(ids) == library.decode(ids)  # type: ignore[attr-defined]


@pytest.fixture(scope="module")
def real() -> tuple[object, object]:
    assert SHARED
    path = SHARED.parent / "tokenizer"
    return load_tokenizer(path), LibraryEngine(path / "tokenizer.json")


def test_ids_outside_the_vocabulary_are_seen_and_counted(folder: Path) -> None:
    tokenizer = load_tokenizer(folder)
    ids = [*encode("ab"), 999, -1, 2**40]
    assert tokenizer.decode(ids) == "ab\ufffd\ufffd\ufffd"
    assert tokenizer.unknown(ids) == 3
    assert "3 of 5 token ids outside its vocabulary of 263" in (tokenizer.misfit(ids) or "")


def test_a_tokenizer_that_gives_no_text_does_not_fit(folder: Path) -> None:
    assert "no valid text" in (load_tokenizer(folder).misfit([0xFF] * 20) or "")
    assert load_tokenizer(folder).misfit(encode(TEXT)) is None


def test_a_character_that_was_cut_off_says_nothing_of_a_tokenizer(folder: Path) -> None:
    cut = list("\N{GRINNING FACE}".encode())
    for ids in (cut[:1], [*cut[2:], *encode("ab"), *cut[:3]]):
        assert load_tokenizer(folder).misfit(ids) is None


def test_a_hole_in_the_vocabulary_is_unknown(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(write_tokenizer(tmp_path, vocabulary=200))
    assert tokenizer.unknown([199, 200, 255, 256]) == 2
    assert tokenizer.decode([200]) == "\ufffd"


def test_the_cache_is_used_and_survives_damage(tmp_path: Path, own_home: Path) -> None:
    folder = write_tokenizer(tmp_path)
    expected = load_tokenizer(folder).decode(encode(TEXT))
    (cached,) = (own_home / "cache").glob("tokenizer-*.bytes")
    assert load_tokenizer(folder).decode(encode(TEXT)) == expected
    cached.write_bytes(cached.read_bytes()[:-7])
    assert load_tokenizer(folder).decode(encode(TEXT)) == expected


def test_a_tokenizer_travels_to_another_process_by_its_path(folder: Path) -> None:
    tokenizer = load_tokenizer(folder)
    assert tokenizer.size
    assert pickle.loads(pickle.dumps(tokenizer)).decode(encode(TEXT)) == TEXT


def test_a_missing_tokenizer_is_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(TokenizerError, match=r"There is no tokenizer\.json at .*the name of a model is not looked up"):
        load_tokenizer(tmp_path)


@pytest.mark.threat("T60")
@pytest.mark.parametrize("text", ["", "{", '{"model": 3}', "[]", '{"model": {"type": "BPE", "vocab": {"a": -4}}}'])
def test_a_broken_tokenizer_is_a_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "tokenizer.json").write_text(text)
    with pytest.raises(TokenizerError, match="cannot be read as a tokenizer"):
        load_tokenizer(tmp_path).decode([1])


def write_metaspace(folder: Path) -> Path:
    """Write a tokenizer in the manner of Llama 2: words with a mark for the space, bytes for the rest."""
    words = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁hello", "▁world", "!"]
    steps = [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    ]
    tokenizer = {
        "version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": None, "post_processor": None,
        "truncation": None, "padding": None, "decoder": {"type": "Sequence", "decoders": steps},
        "model": {"type": "BPE", "vocab": {word: at for at, word in enumerate(words)}, "merges": [],
                  "unk_token": "<unk>", "byte_fallback": True, "fuse_unk": True, "dropout": None,
                  "continuing_subword_prefix": None, "end_of_word_suffix": None, "ignore_merges": False},
    }  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    return folder


HELLO, WORLD, MARK = 259, 260, 261


def test_another_kind_of_tokenizer_goes_through_the_library(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(write_metaspace(tmp_path))
    ids = [HELLO, WORLD, *(3 + byte for byte in "数".encode()), MARK, 5000]
    assert tokenizer.decode(ids) == "hello world数!\ufffd"
    assert tokenizer.pieces(ids) == ["hello", " world", "", "", "数", "!", "\ufffd"]


@given(st.lists(st.sampled_from([*range(3, 12), *range(198, 240), HELLO, WORLD, MARK, 999]), max_size=20))
@settings(deadline=None)
def test_pieces_of_the_library_join_to_the_text(tmp_path_factory: pytest.TempPathFactory, ids: list[int]) -> None:
    folder = tmp_path_factory.getbasetemp() / "metaspace"
    tokenizer = load_tokenizer(folder if folder.exists() else write_metaspace(folder))
    pieces = tokenizer.pieces(ids)
    assert "".join(pieces) == tokenizer.decode(ids)
    assert len(pieces) == len(ids)


BYTES = 3  # the id of <0x00>


def test_characters_of_many_byte_tokens_stand_at_their_last(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(write_metaspace(tmp_path))
    ids = [BYTES + byte for byte in ("数一" * 20).encode()]
    assert tokenizer.pieces([*ids, MARK]) == [*(["", "", "数", "", "", "一"] * 20), "!"]


def test_bytes_that_are_no_text_leave_later_tokens_their_own(tmp_path: Path) -> None:
    tokenizer = load_tokenizer(write_metaspace(tmp_path))
    pieces = tokenizer.pieces([*(BYTES + byte for byte in "数".encode()), BYTES + 0xFF, *[WORLD, MARK] * 20])
    assert pieces[-20:] == [" world", "!"] * 10
    assert "".join(pieces) == "\ufffd" * 4 + " world!" * 20


@pytest.mark.threat("T60")
@pytest.mark.parametrize("byte", [0xFF, 0xE6, 0x80])
def test_bytes_that_are_no_text_are_not_decoded_again_and_again(
    tmp_path: Path, byte: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoded: list[int] = []
    text = LibraryEngine._text
    monkeypatch.setattr(LibraryEngine, "_text", lambda engine, ids: decoded.append(len(ids)) or text(engine, ids))
    ids = [BYTES + byte] * 2000
    assert load_tokenizer(write_metaspace(tmp_path)).pieces(ids).count("") > 1800
    assert sum(decoded) < 30 * len(ids)


def test_without_the_library_the_sentence_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(TokenizerError, match=r"pip install 'datasette-rltracer\[primerl\]'"):
        load_tokenizer(write_metaspace(tmp_path)).decode([HELLO])


def with_decoders(folder: Path, *decoders: dict[str, object], **others: object) -> Path:
    """Write that tokenizer with other decoders, and whatever else is given."""
    file = write_metaspace(folder) / "tokenizer.json"
    tokenizer = json.loads(file.read_text(encoding="utf-8"))
    tokenizer.update(decoder={"type": "Sequence", "decoders": decoders}, **others)
    file.write_text(json.dumps(tokenizer), encoding="utf-8")
    return folder


BY_EXPRESSION = {"type": "Replace", "pattern": {"Regex": "(a+)+$"}, "content": "x"}
TWICE = {"type": "Replace", "pattern": {"String": "l"}, "content": "ll"}
IN_NOTHING = {"type": "BPEDecoder", "suffix": ""}


@pytest.mark.threat("T60")
@pytest.mark.parametrize(
    ("decoders", "sentence"),
    [
        ([BY_EXPRESSION], "decodes by regular expressions"),
        ([{"type": "Sequence", "decoders": [BY_EXPRESSION]}], "decodes by regular expressions"),
        ([TWICE] * 40, r"makes a text \d+ times as long as its tokens"),
        ([IN_NOTHING], "replaces what is no text"),
        ([{"type": "Replace", "pattern": {"String": ""}, "content": "x"}], "replaces what is no text"),
        ([["Replace", {"Regex": "a"}, "x"]], "in a way that is not known here"),
        ([{"type": "Later"}], "in a way that is not known here"),
        ([{"type": "Fuse", "x": "\ud800"}], "cannot be read as a tokenizer"),
    ],
    ids=["expression", "inner expression", "doubling", "empty suffix", "empty text", "list", "unknown", "surrogate"],
)
def test_a_decoder_that_may_not_end_is_refused(
    tmp_path: Path, decoders: list[dict[str, object]], sentence: str
) -> None:
    with pytest.raises(TokenizerError, match=sentence):
        load_tokenizer(with_decoders(tmp_path, *decoders)).decode([HELLO])


@pytest.mark.threat("T60")
def test_an_expression_cannot_hide_behind_what_one_reader_of_json_refuses(tmp_path: Path) -> None:
    truncation = {"direction": "Right", "max_length": 5, "strategy": "LongestFirst", "stride": 0, "x": 0}
    file = with_decoders(tmp_path, BY_EXPRESSION, truncation=truncation) / "tokenizer.json"
    file.write_text(file.read_text(encoding="utf-8").replace('"x": 0', f'"x": {"1" * 5000}'), encoding="utf-8")
    with pytest.raises(TokenizerError, match="cannot be read as a tokenizer"):
        load_tokenizer(tmp_path).decode([HELLO])


def test_what_only_encoding_needs_is_not_given_to_the_library(tmp_path: Path) -> None:
    pattern = {"type": "Split", "pattern": {"Regex": "("}, "behavior": "Isolated", "invert": False}
    tokenizer = load_tokenizer(with_decoders(tmp_path, TWICE, {"type": "Fuse"}, pre_tokenizer=pattern))
    assert tokenizer.decode([HELLO]) == "▁hellllo"


@pytest.mark.threat("T60")
def test_a_token_without_end_is_refused(tmp_path: Path) -> None:
    added = {"id": 262, "content": "a" * 5000, "special": False, "single_word": False, "lstrip": False,
             "rstrip": False, "normalized": False}  # fmt: skip
    with pytest.raises(TokenizerError, match="a token of 5,000 bytes"):
        load_tokenizer(with_decoders(tmp_path, added_tokens=[added])).decode([HELLO])


@pytest.mark.threat("T60")
def test_a_tokenizer_nested_without_end_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text('{"x":' + "[" * 100_000 + "]" * 100_000 + ',"model":{"vocab":{}}}')
    with pytest.raises(TokenizerError, match="cannot be read as a tokenizer"):
        load_tokenizer(tmp_path).decode([1])


def test_a_panic_of_the_library_is_a_sentence(tmp_path: Path) -> None:
    class Panic(BaseException): ...

    class Panicking:
        def decode(self, *_: object, **__: object) -> str:
            raise Panic("index out of bounds")

    engine = LibraryEngine(write_metaspace(tmp_path) / "tokenizer.json")
    engine.tokenizer = Panicking()
    with pytest.raises(TokenizerError, match="index out of bounds"):
        engine.decode([HELLO])
