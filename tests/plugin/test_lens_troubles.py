"""The token lens over what is amiss: tokenizers, addresses, arrays and texts that are not as they should be."""

from __future__ import annotations

import json
import re

import pytest

from datasette_rltracer import lens
from tests.layouts.records import ABSENT, trace
from tests.token_layouts import encode, write_tokenizer

from .conftest import read, write_run
from .hostile import PAYLOADS, Elements
from .html import words
from .lens_pages import ASKED, HEAD, SAID, SAMPLED, conversation, serve, spans, text_of, tokens_page

pytestmark = pytest.mark.asyncio


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda file: file.unlink(), "no tokenizer.json at"),
        (lambda file: file.write_text('{"model": 1}'), "cannot be read as a tokenizer"),
        (lambda file: file.rename(file.with_name("moved.json")) and file.symlink_to("/dev/zero"), "not among what"),
    ],
)
async def test_a_tokenizer_that_cannot_be_used_is_one_sentence_and_ids(tmp_path, tokenizer, spoil, said):
    write_run(tmp_path / "run", [conversation()])
    datasette = serve(tmp_path, tokenizer)
    spoil(tokenizer / "tokenizer.json")
    page = await tokens_page(datasette)
    assert said in words(page)
    assert text_of(page).split() == [str(token) for token in encode(ASKED + HEAD + SAID)]


async def test_a_tokenizer_outside_the_roots_is_not_opened(tmp_path, tmp_path_factory):
    elsewhere = write_tokenizer(tmp_path_factory.mktemp("elsewhere") / "t")
    write_run(tmp_path / "run", [conversation()])
    page = await tokens_page(serve(tmp_path, elsewhere))
    assert f"rltracer roots add '{elsewhere}/tokenizer.json'" in words(page)
    assert "wie" not in text_of(page)


@pytest.mark.parametrize("asked", ["", "&lens=", "&lens=nope", "&lens=%3Cb%3E", "&start=-1", "&start=x"])
async def test_what_is_asked_for_wrongly_is_the_usual_page(tmp_path, tokenizer, asked):
    write_run(tmp_path / "run", [conversation()])
    page = await tokens_page(serve(tmp_path, tokenizer), asked)
    assert '<b aria-current="true">logprob</b>' in page
    assert len(spans(page)) == len(encode(ASKED + HEAD + SAID))
    assert ("There is no lens" in page) == (asked in ("&lens=nope", "&lens=%3Cb%3E"))
    assert "“nope”, so this is “logprob”; known are logprob, advantage, " in page or asked != "&lens=nope"


@pytest.mark.parametrize("text", [*PAYLOADS, "<|im_start|><script>|>", "\r\n", "\u0600\u202e"])
async def test_a_token_that_means_harm_is_only_text(tmp_path, tokenizer, text):
    file = tokenizer / "tokenizer.json"
    made = json.loads(file.read_text())
    made["added_tokens"].append({**made["added_tokens"][0], "id": 999, "content": text})
    file.write_text(json.dumps(made))
    harm = {**conversation()["nodes"][1], "parent": None}
    harm |= {"token_ids": [*harm["token_ids"], 999], "mask": [*harm["mask"], True], "logprobs": [-1.0] * (SAMPLED + 1)}
    write_run(tmp_path / "run", [trace(nodes=[harm])])
    page = await tokens_page(serve(tmp_path, tokenizer))
    parser = Elements()
    parser.feed(page[page.index('<div class="reading">') : page.index("<script type")])
    for tag, attributes in parser.found:
        assert tag not in {"script", "img", "svg", "template", "style"}
        assert not any(name.startswith("on") for name in attributes)
        assert attributes.get("href", "/").startswith(("/", "#"))
    assert not re.search("[\x00-\x08\x0b\x0c\x0d\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]", page)
    if "\ud800" in text:
        assert "cannot be read as a tokenizer" in page  # half a surrogate pair is no text
    else:
        assert text_of(page).endswith(text)


@pytest.mark.parametrize(
    "streams",
    [
        {"token_ids": "<b>"}, {"token_ids": [1, None]}, {"token_ids": [-1, 10**18]}, {"mask": "x"}, {"mask": [True]},
        {"logprobs": [10**400] * 14}, {"logprobs": {"a": 1}}, {"logprobs": ["<b>"] * 14}, {"advantages": [1e308] * 14},
        {"advantages": [5e-324] * 14}, {"entropies": [-1e-300] * 14}, {"token_ids": ABSENT},
    ],
)  # fmt: skip
async def test_arrays_that_are_none_break_nothing(tmp_path, tokenizer, streams):
    write_run(tmp_path / "run", [conversation(**streams)])
    datasette = serve(tmp_path, tokenizer)
    for name in ("logprob", "advantage", "mismatch", "entropy", "mask"):
        page = await tokens_page(datasette, f"&lens={name}")
        assert "<b>" not in text_of(page)


async def test_huge_tokens_are_cut_and_said(tmp_path, tokenizer):
    file = tokenizer / "tokenizer.json"
    made = json.loads(file.read_text())
    made["added_tokens"].append({**made["added_tokens"][0], "id": 999, "content": "y" * 4_000})
    file.write_text(json.dumps(made))
    one = {**conversation()["nodes"][0], "token_ids": [999] * 500, "mask": [False] * 500}
    write_run(tmp_path / "run", [trace(nodes=[one])])
    page = await tokens_page(serve(tmp_path, tokenizer))
    assert len(page) < 4 * lens.PAGE_CHARACTERS
    assert "2,000 characters more" in page
    assert "tokens 1 – 51 of 500" in words(page)


async def test_a_record_that_has_gone_is_said_in_this_view_too(tmp_path, tokenizer):
    file = write_run(tmp_path / "run", [conversation()])
    datasette = serve(tmp_path, tokenizer)
    file.unlink()
    page = await read(datasette, 1, "?view=tokens&lens=mask", 404)
    assert "Its record was not read" in page
    assert 'class="legend' not in page
