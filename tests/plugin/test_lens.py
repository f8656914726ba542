"""The token lens: the text stays the text, its colours are the recorded numbers, and nothing else is claimed."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

from datasette_rltracer import lens, lens_kinds
from rltracer_sqlite.sample import write_sample
from rltracer_sqlite.tokens import Tokens, load_tokenizer
from tests.indexing import rows
from tests.layouts.records import message, node, trace
from tests.token_layouts import Drawn, encode, export_line, micro_batch, write_bin, write_tokenizer

from .conftest import get, read, write_run
from .html import links, words
from .lens_pages import ASKED, HEAD, SAID, SAMPLED, conversation, looks, serve, spans, text_of, tokenised, tokens_page

pytestmark = pytest.mark.asyncio


async def test_the_text_of_the_page_is_the_text_of_the_tokens(tmp_path, tokenizer):
    write_run(tmp_path / "run", [conversation()])
    page = await tokens_page(serve(tmp_path, tokenizer))
    assert text_of(page) == ASKED + HEAD + SAID
    assert len(spans(page)) == len(encode(ASKED + HEAD + SAID))
    assert f"tokens 1 – {len(spans(page))} of {len(spans(page))}" in words(page)


async def test_what_was_not_sampled_is_hatched_and_special_tokens_are_chips(tmp_path, tokenizer):
    write_run(tmp_path / "run", [conversation()])
    page = await tokens_page(serve(tmp_path, tokenizer))
    found = [(text, set(classes.split())) for classes, _, text in spans(page)]
    context = len(encode(ASKED + HEAD))
    assert ["m" in look for _, look in found] == [True] * context + [False] * len(encode(SAID))
    assert {text for text, look in found if "special" in look} == {"<|im_start|>", "<|im_end|>", "<think>", "</think>"}


async def test_a_part_of_a_character_and_a_line_end_can_be_pointed_at(tmp_path, tokenizer):
    write_run(tmp_path / "run", [conversation()])
    page = await tokens_page(serve(tmp_path, tokenizer))
    parts = [(title, text) for classes, title, text in spans(page) if "part" in classes.split()]
    assert [text for _, text in parts] == [""]  # the first byte of ß
    assert "part of the next character" in parts[0][0]
    assert "<i></i>\n</span>" in page


async def test_a_title_names_the_token_and_every_recorded_value(tmp_path, tokenizer):
    streams = {"advantages": [0.5] * 14, "trainer_logprobs": [-0.25] * 14, "entropies": [None] * 14}
    write_run(tmp_path / "run", [conversation(**streams)])
    page = await tokens_page(serve(tmp_path, tokenizer))
    title = next(title for _, title, text in spans(page) if text == "c")
    place, total = encode(ASKED + HEAD + SAID).index(ord("c")) + 1, len(spans(page))
    assert title == (
        f"{place} of {total} · “c” · id 99 · sampled · logprob −0.1 · advantage 0.5 · trainer logprob −0.25 · "
        "entropy missing"
    )
    assert spans(page)[1][1] == f"2 of {total} · “u” · id 117 · not sampled"


@pytest.mark.parametrize(
    ("name", "streams", "last", "said"),
    [
        ("logprob", {"logprobs": [-0.01] * 13 + [-0.6]}, "s3", "missing for 0 of 14 sampled tokens"),
        ("advantage", {"advantages": [0.5] * 13 + [-0.1]}, "n1", "missing for 0 of 14"),
        ("advantage", {"advantages": [0.5] * 13 + [0.0]}, "z", "the scale reaches to the largest"),
        ("entropy", {"entropies": [None] * 12 + [0.05, 7.0]}, "e7", "missing for 12 of 14"),
        ("mismatch", {"trainer_logprobs": [-0.01 * n for n in range(13)] + [-1.13]}, "n4", "worked out here"),
    ],
)
async def test_each_lens_colours_by_its_own_number(tmp_path, tokenizer, name, streams, last, said):
    write_run(tmp_path / "run", [conversation(**streams)])
    page = await tokens_page(serve(tmp_path, tokenizer), f"&lens={name}")
    assert looks(page)[-1] - {"k", "special"} == {last}
    assert said in words(page)
    assert f'class="k {last}"' in page[page.index('aria-label="Legend"') :]


async def test_a_missing_value_has_no_colour_and_is_counted(tmp_path, tokenizer):
    write_run(tmp_path / "run", [conversation(logprobs=[None] * 2 + [-9.0] * 12)])
    page = await tokens_page(serve(tmp_path, tokenizer))
    assert [look - {"k", "special"} for look in looks(page)[-SAMPLED:]] == [set()] * 2 + [{"s7"}] * 12
    assert "missing for 2 of 14 sampled tokens; none of " in words(page)


async def test_the_mask_counts_what_the_trainer_left_out(tmp_path):
    count = len(encode(ASKED + HEAD + SAID))
    masked = [None] * (count - SAMPLED) + [True, False] * 7
    line = export_line(Drawn([(ASKED + HEAD, False), (SAID, True)]), is_masked=masked)
    file = tmp_path / "run/token_exports/step_3/rank_0.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(line) + "\n")
    page = await tokens_page(serve(tmp_path, write_tokenizer(tmp_path / "small")), "&lens=mask")
    assert "sampled, and trained on: 7" in page
    assert "left out of the loss by the trainer: 7" in page
    assert f"not sampled: {count - SAMPLED}" in page
    assert looks(page)[-2:] == [{"k", "t", "x"}, {"k", "t", "special"}]
    assert "log of the recorded importance ratio" in await tokens_page(serve(tmp_path), "&lens=mismatch")


async def test_a_token_shard_has_the_same_page(tmp_path, tokenizer):
    drawn = Drawn([(ASKED + HEAD, False), (SAID, True)], advantage=-1.5)
    write_bin(tmp_path / "run/rollouts/step_0/rank_0.bin", [micro_batch("g20", [drawn], pad=8)])
    page = await tokens_page(serve(tmp_path, tokenizer), "&lens=advantage")
    assert text_of(page) == ASKED + HEAD + SAID
    assert looks(page)[-2] == {"k", "n3"}  # −1.5 on a scale that reaches to 2
    assert "sequence 1 of micro batch 1 · bytes" in page


async def test_the_numbers_of_a_batch_lie_over_those_of_its_trace(tmp_path, tokenizer):
    write_run(tmp_path / "run", [conversation()])
    drawn = Drawn([(ASKED + HEAD, False), (SAID, True)], advantage=0.75, trace_id="asked")
    write_bin(tmp_path / "run/batches/step_1/rank_0.bin", [micro_batch("pC", [drawn])])
    page = await tokens_page(serve(tmp_path, tokenizer), "&lens=advantage")
    assert [look - {"k", "special"} for look in looks(page)[-3:]] == [{"p4"}] * 3
    assert "advantage 0.75" in spans(page)[-1][1]


async def test_without_a_tokenizer_the_ids_are_shown(tmp_path):
    write_run(tmp_path / "run", [conversation()])
    page = await tokens_page(serve(tmp_path))
    assert text_of(page).split() == [str(token) for token in encode(ASKED + HEAD + SAID)]
    assert "--tokenizer PATH" in page
    assert looks(page)[-1] == {"k", "s1"}


async def test_many_tokens_come_by_page(tmp_path, tokenizer):
    assistant = tokenised(message("assistant", "x"), HEAD, "x" * 4500, 0)
    write_run(tmp_path / "run", [trace(nodes=[tokenised(message("user", "?"), ASKED), assistant])])
    datasette = serve(tmp_path, tokenizer)
    page, seen, pages = await tokens_page(datasette, "&lens=logprob"), "", 0
    while True:
        seen, pages = seen + text_of(page), pages + 1
        later = re.search(r'href="([^"]+)" rel="next">later tokens', page)
        if not later:
            break
        assert len(spans(page)) == lens.PAGE_TOKENS
        page = await get(datasette, later[1].replace("&amp;", "&"))
        assert "lens=logprob" in later[1]
    assert (seen, pages) == (ASKED + HEAD + "x" * 4500, 3)
    assert f"tokens 4,001 – {4500 + len(encode(ASKED + HEAD)):,} of" in words(page)
    assert "earlier tokens" in page
    assert len(spans(await tokens_page(datasette, "&start=999999999"))) == 1


async def test_runs_of_sampled_tokens_are_listed(tmp_path, tokenizer):
    write_run(tmp_path / "run", [conversation()])
    page = await tokens_page(serve(tmp_path, tokenizer))
    outline = page[page.index('class="outline"') : page.index("<main>")]
    first = len(encode(ASKED + HEAD))
    assert links(outline, "sampled 1 14") == [f"#k{first}"]
    assert f'id="k{first}"' in page


async def test_a_branch_is_its_own_and_one_without_ids_says_so(tmp_path, tokenizer):
    user = tokenised(message("user", "?"), ASKED)
    left = tokenised(message("assistant", "left"), HEAD, "left", 0)
    right = tokenised(message("assistant", "right"), HEAD, "right", 0)
    apart = node(message("user", "apart"), None)
    write_run(tmp_path / "run", [trace(nodes=[user, left, right, {**apart, "token_ids": []}])])
    datasette = serve(tmp_path, tokenizer)
    assert text_of(await tokens_page(datasette, "&branch=1")) == ASKED + HEAD + "left"
    assert text_of(await tokens_page(datasette, "&branch=2")) == ASKED + HEAD + "right"
    assert "No token ids are recorded for this branch. Branch 1, 2 has some." in await tokens_page(datasette)
    await read(datasette, 1, "?view=tokens&branch=4", 404)


async def test_the_view_is_offered_where_tokens_may_be(tmp_path, tokenizer):
    plain = trace([message("user", "hi"), message("assistant", "ho")], id="plain")
    write_run(tmp_path / "run", [conversation(), plain])
    datasette = serve(tmp_path, tokenizer)
    assert links(await read(datasette, 1), "tokens") == ["/-/rltracer/run/trajectory/1?view=tokens"]
    assert links(await read(datasette, 2), "tokens") == []
    assert "No token ids are recorded" in await tokens_page(datasette, number=2)
    page = await tokens_page(datasette, "&lens=mask&start=3")
    assert links(page, "conversation") == ["/-/rltracer/run/trajectory/1"]
    assert 'data-key="t"' in page


async def test_a_lens_without_numbers_says_so(tmp_path, tokenizer):
    write_run(tmp_path / "run", [conversation()])
    page = await tokens_page(serve(tmp_path, tokenizer), "&lens=entropy")
    assert "entropy not recorded" in words(page)
    assert all(look <= {"k", "m", "special", "part"} for look in looks(page))
    assert "mismatch: not recorded" in words(page)


async def test_every_address_stays_below_the_base_url(tmp_path, tokenizer):
    write_run(tmp_path / "run", [conversation()])
    page = await tokens_page(serve(tmp_path, tokenizer, settings={"base_url": "/prefix/"}))
    found = re.findall(r'(?:href|src)="(/[^"]*)', page)
    assert [address for address in found if "lens" in address]
    assert all(address.startswith("/prefix/") for address in found)


async def test_a_ratio_that_is_none_has_no_logarithm():
    tokens = Tokens([1, 2, 3], mask=[True, True, True], importance_ratio=[-1.0, None, 1.0])
    found = lens_kinds._mismatch(tokens)
    assert found is not None
    assert found[0] == [None, None, 0.0]


async def test_the_sample_shows_where_a_rollout_goes_wrong(tmp_path):
    await asyncio.to_thread(write_sample, tmp_path / "run")
    datasette = serve(tmp_path, tmp_path / "run/tokenizer")
    [failed] = rows(
        tmp_path / "run.sqlite",
        """select id from trajectories where step = 8 and split = 'train'
        and env = 'word-problems' and success = 0""",
    )
    page = await tokens_page(datasette, number=failed[0])
    unlikely = [text for classes, _, text in spans(page) if {"s6", "s7"} & set(classes.split())]
    assert unlikely == [" und"]
    assert text_of(page) == load_tokenizer(tmp_path / "run/tokenizer").decode(
        [int(re.search(r"id (\d+)", title)[1]) for _, title, _ in spans(page)]
    )
