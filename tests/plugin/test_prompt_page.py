"""The page of a prompt over all steps: the figures of `rltracer inspect`, its best and its worst, where it leads."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing

import pytest
from datasette.app import Datasette

from datasette_rltracer import prompt_queries
from datasette_rltracer.prompt_queries import page_queries
from rltracer_sqlite.index.among import Among
from tests.commands import rltracer
from tests.index_factory import make_index, make_large_index
from tests.indexing import index
from tests.layouts import append_torn
from tests.watching import record

from .conftest import TRACES, get
from .html import links, query_of, sql_link, table_rows, words
from .rows import sql_rows, table_rows_of
from .test_all_pages import ENDLESS

pytestmark = pytest.mark.asyncio
PAGE = "/-/rltracer/index/prompt/1"


def trajectories():
    """Yield prompt 1 in two splits and two environments, and five others: one level, alone, unrewarded, empty, rare."""
    for step, rewards in {1: (0.0, 0.25, None), 3: (1.0, 1.0, 0.0), 10: (0.5, 1.0)}.items():
        for reward in rewards:
            yield {"prompt": "moving", "step": step, "reward": reward, "stop_condition": f"ended {reward}"}
    for env, reward in (("math", 1.0), ("code", 2.0), ("code", None)):
        yield {"prompt": "moving", "step": 3, "split": "eval", "env": env, "reward": reward}
    for step in (1, 2, None):
        yield {"prompt": "level", "step": step, "reward": 0.5}
    yield {"prompt": "alone", "reward": 0.75}
    yield {"prompt": "unrewarded", "reward": None}
    yield {"prompt": "", "reward": 1.0}


async def ends(datasette, path):
    return [row[:4] for row in table_rows(await get(datasette, path), "ends")]


@pytest.mark.parametrize("chosen", [{}, {"split": "train"}, {"split": "eval"}, {"split": "eval", "env": "code"}])
@pytest.mark.parametrize("prompt", [1, 2, 4])
async def test_the_steps_are_those_of_the_terminal(made, datasette, prompt, chosen):
    options = [word for name, text in chosen.items() for word in (f"--{name}", text)]
    done = rltracer("inspect", made, "--prompt", prompt, *options, "--json")
    if done.returncode:
        assert "This prompt has no " in words(await get(datasette, f"{PAGE}/{prompt}?{query(chosen)}"))
        return
    told = [json.loads(line) for line in done.stdout.splitlines()]
    page = await get(datasette, f"{PAGE}/{prompt}?{query(chosen)}")
    shown = [
        [
            "no step" if one["step"] is None else str(one["step"]),
            one["split"],
            f"{one['pass_rate']:.3f} {one['successes']} of {one['scored']}"
            if one["scored"]
            else f"– {one['trajectories']} unscored",
            "–" if one["reward_mean"] is None else f"{one['reward_mean']:.3f}",
            *(
                [f"{one[worth]:.3f} {one[end]}" for end, worth in (("best", "reward_max"), ("worst", "reward_min"))]
                if one["best"] is not None
                else {0: ["–", "–"], 1: ["only one reward"]}.get(one["rewarded"], ["all rewards equal"])
            ),
        ]
        for one in sorted(told, key=lambda one: (one["step"] is None, one["step"] or 0, one["split"] != "train"))
    ]
    assert [[row[0].split(" several")[0], *(cell.split(",")[0] for cell in row[1:])] for row in rows_of(page)] == shown
    ours = await sql_rows(datasette, sql_link(page, "steps"))
    assert [(one["step"], one["best"], one["worst"]) for one in ours] == [
        (one["step"], one["best"], one["worst"]) for one in told
    ]


def query(chosen):
    return "&".join(f"{name}={text}" for name, text in chosen.items())


def rows_of(page):
    return table_rows(page, "steps")


async def test_the_hardest_of_a_run_are_those_of_the_terminal_and_lead_to_the_same_figures(made, datasette):
    told = [json.loads(line) for line in rltracer("inspect", made, "--hardest", "--json").stdout.splitlines()]
    page = await get(datasette, "/-/rltracer/index/run/1")
    shown = table_rows(page, "hardest")
    below = page[page.index('id="hardest"') :]
    assert len(shown) == len(told) == 3
    for row, one in zip(shown, told, strict=True):
        assert prompt_of(row) == numbered(**one)
        rate = f"{one['pass_rate']:.3f} {one['successes']} of {one['scored']}"
        assert row[1].split(",")[0] == rate
        assert row[2] == f"{one['reward_mean']:.3f}"
        assert row[3] == str(one["steps"] or "–")
        kind = f"?split={one['split']}&env={one['env']}"
        [address] = [found for found in links(below, one["preview"] or "no text") if found.endswith(kind)]
        head = words(await get(datasette, address))
        assert f"{one['split']} pass rate {rate}" in head
        assert f"mean reward {row[2]}" in head


def prompt_of(row):
    return "prompt " + row[0].split("prompt ")[-1]


def numbered(prompt_id, env, split, **rest):
    return f"prompt {prompt_id} · {env} · {split}"


async def test_the_head_has_each_split_apart_with_what_is_unscored(datasette):
    page = words(await get(datasette, f"{PAGE}/1"))
    head = page[page.index("Prompt 1 ") : page.index("over 3 steps")]
    assert "train pass rate 0.429 3 of 7, 1 unscored" in head
    assert "mean reward 0.536" in head
    assert "eval pass rate 1.000 2 of 2, 1 unscored · mean reward 1.500" in head
    assert "math · code · success is reward >= 1" in page


async def test_what_has_no_step_is_told_beside_the_steps_that_a_prompt_is_over(tmp_path):
    rows = [{"step": step, "prompt": "p", "reward": 1.0} for step in (1, 2, 2, None)]
    database = make_index(tmp_path / "index.sqlite", rows)
    page = words(await get(Datasette([str(database)]), "/-/rltracer/index/prompt/1/1"))
    assert "pass rate 1.000 4 of 4" in page
    assert "over 2 steps and 1 trajectory without a step, of demo" in page


async def test_best_and_worst_are_told_with_how_many_are_as_good_or_as_bad(datasette):
    assert await ends(datasette, f"{PAGE}/1?split=train") == [
        ["best", "✓passed 4", "1.000 (as 2 others)", "3 train"],
        ["worst", "✗failed 1", "0.000 (as 1 other)", "1 train"],
    ]
    assert await ends(datasette, f"{PAGE}/1") == [
        ["best", "✓passed 10", "2.000", "3 eval"],
        ["worst", "✗failed 1", "0.000 (as 1 other)", "1 train"],
    ]
    page = await get(datasette, f"{PAGE}/1")
    [compare] = links(page, "compare the best with the worst")
    assert query_of(compare) == {"a": "10", "b": "1"}
    assert "trajectories 10 and 1" in await get(datasette, compare, 404)  # there are no files to read them from


@pytest.mark.parametrize(
    ("prompt", "sentence", "count"),
    [
        (2, "All 3 rewards are 0.500, so none is best or worst. This is one of them.", 1),
        (3, "Only one trajectory has a reward, so it is neither best nor worst.", 1),
        (4, "No trajectory here has a reward, so none is best or worst.", 0),
    ],
)
async def test_what_has_no_best_says_why(datasette, prompt, sentence, count):
    page = await get(datasette, f"{PAGE}/{prompt}")
    assert sentence in words(page)
    assert not links(page, "compare the best with the worst")
    assert ("<b>best</b>" in page) is False
    assert page.count('title="trajectory ') == count


async def test_two_of_equal_rewards_are_shown(tmp_path):
    rows = [{"reward": 0.0}, {"reward": 0.0}, {"reward": 0.0}]
    datasette = Datasette([str(make_index(tmp_path / "index.sqlite", rows))])
    page = await get(datasette, f"{PAGE}/1")
    assert "All 3 rewards are 0.000, so none is best or worst. These are two of them." in words(page)
    assert [row[0] for row in table_rows(page, "ends")] == ["✗failed 1", "✗failed 3"]


async def test_a_step_leads_to_its_group_and_from_there_to_the_same_prompt_at_other_steps(datasette):
    page = await get(datasette, f"{PAGE}/1?split=train")
    [address] = links(page[page.index('id="steps"') :], "3")
    group = await get(datasette, address)
    assert "group 2 of 3 in this run where" in words(group)
    assert links(group, "next group")
    [back] = links(group, "this prompt over all steps (3 groups), its best and its worst")
    assert back == f"{PAGE}/1?split=train&env=math"
    assert links(group, "prompt 1") == [back]


async def test_a_step_of_several_groups_leads_to_all_of_them(datasette):
    page = await get(datasette, f"{PAGE}/1")
    [address] = links(page, "several groups")
    assert {row["env"] for row in await table_rows_of(datasette, address)} == {"math", "code"}
    assert not links(await get(datasette, f"{PAGE}/1?split=eval&env=code"), "several groups")


async def test_splits_and_environments_can_be_chosen(datasette):
    page = await get(datasette, f"{PAGE}/1")
    for name, count in (("train · math", 3), ("eval · code", 1)):
        [address] = links(page, name)
        chosen = await get(datasette, address)
        assert len(rows_of(chosen)) == count
        assert links(chosen, "all") == [f"{PAGE}/1"]
    assert not links(await get(datasette, f"{PAGE}/2"), "train · math")  # there is nothing else


@pytest.mark.parametrize("asked", ["split=trian", "env=none"])
async def test_a_split_that_a_prompt_is_not_in_is_answered_with_those_it_is_in(datasette, asked):
    name, text = asked.split("=")
    page = await get(datasette, f"{PAGE}/2?{asked}")
    there = {"split": "train", "env": "math"}[name]
    assert f"This prompt has no {name} {text}; it has {there}." in words(page)
    assert links(page, there) == [f"{PAGE}/2?{name}={there}"]
    assert 'id="ends"' not in page


@pytest.mark.parametrize(
    ("path", "sentence", "way"),
    [
        ("1/40", "The run demo has no prompt 40.", "prompt 5, the last"),
        ("1/" + "9" * 19, "The run demo has no prompt 9223372036854775807.", "the hardest prompts of demo"),
        ("7/1", "This index has no run number 7.", "the run demo, number 1"),
    ],
)
async def test_a_prompt_that_is_not_there_is_answered_with_those_that_are(datasette, path, sentence, way):
    page = await get(datasette, f"/-/rltracer/index/prompt/{path}", 404)
    assert sentence in words(page)
    [address] = links(page, way)
    await get(datasette, address.partition("#")[0])


@pytest.mark.parametrize("asked", ["success=1", "splt=train", "_sort=reward"])
async def test_a_name_that_the_page_does_not_know_is_refused(datasette, asked):
    assert "This page has no option" in await get(datasette, f"{PAGE}/1?{asked}", 400)


async def test_without_steps_splits_and_environments_nothing_is_said_of_them(tmp_path):
    bare = {"step": None, "split": None, "env": None}
    rows = [{**bare, "reward": 1.0}, {**bare, "reward": 0.0}]
    datasette = Datasette([str(make_index(tmp_path / "index.sqlite", rows))])
    [address, *_] = links(await get(datasette, "/-/rltracer/index/run/1"), "2 + 2?")
    assert address == f"{PAGE}/1"
    page = await get(datasette, address)
    assert "Prompt 1 pass rate 0.500 1 of 2 · mean reward 0.500 success is reward >= 1" in words(page)
    assert rows_of(page) == [["no step", "–", "0.500 1 of 2", "0.500", "1.000 1", "0.000 2"]]


async def test_many_steps_come_in_pages_and_the_ends_are_of_all(tmp_path):
    rows = ({"step": step, "reward": step / 130} for step in range(130))
    datasette = Datasette([str(make_index(tmp_path / "index.sqlite", rows))])
    page = await get(datasette, f"{PAGE}/1?split=train")
    assert "100 of 130 steps shown" in words(page)
    [later] = links(page, "next: 30 more")
    for shown in (page, await get(datasette, later)):
        assert [row[1] for row in table_rows(shown, "ends")] == ["✗failed 130", "✗failed 1"]
    assert [row[0] for row in rows_of(await get(datasette, later))] == [str(step) for step in range(100, 130)]


async def test_the_prompt_and_the_last_words_are_read_from_the_records(serve):
    page = await get(serve(), "/-/rltracer/run/prompt/1/2")
    assert "Pick one." in words(page[: page.index('id="ends"')])
    last = [row[-1] for row in table_rows(page, "ends")]
    assert last[0] == "right"
    assert "pass rate 0.500 1 of 2, 1 unscored" in words(page)


async def test_what_was_not_read_and_what_is_gone_is_said(folder, serve):
    torn = folder / "run" / str(TRACES).replace("step_1", "step_2")
    torn.parent.mkdir(parents=True)
    append_torn(torn, record("t"))
    index(folder / "run.sqlite", folder / "run")
    page = words(await get(serve(), "/-/rltracer/run/prompt/1/2"))
    assert "Of this run not all was read: 1 of 2 files has an unfinished last line, of step 2." in page
    (folder / "run" / TRACES).unlink()
    index(folder / "run.sqlite", folder / "run")
    page = words(await get(serve(), "/-/rltracer/run/prompt/1/2"))
    assert "3 of 3 trajectories counted here cannot be opened: their files are gone." in page
    assert "No record of this prompt can be read; this is its beginning as the index keeps it." in page


async def test_steps_that_take_too_long_leave_the_prompt(made, monkeypatch):
    monkeypatch.setattr(prompt_queries, "over_steps_query", lambda *_: (ENDLESS, {}))
    datasette = Datasette([str(made)], settings={"sql_time_limit_ms": 200})
    page = words(await get(datasette, f"{PAGE}/1"))
    assert "Best and worst Not shown: the query took longer than this server allows." in page
    assert "Step by step not shown: the query took longer than this server allows" in page


async def test_a_prompt_is_found_by_its_index_in_a_large_run(tmp_path):
    path = make_large_index(tmp_path / "large.sqlite", 20, 50, 4)
    with closing(sqlite3.connect(path)) as connection:
        head, kinds, steps, _, readable = page_queries(1, 7, Among("train", "math"))
        plans = [
            [row[3] for row in connection.execute(f"explain query plan {asked.sql}", asked.parameters)]
            for asked in (head, kinds, steps, readable)
        ]
    for plan in plans:
        assert not [line for line in plan if line.startswith(("SCAN g", "SCAN t", "SCAN prompt"))], plan
    for plan in plans[2:]:
        assert "SEARCH g USING INDEX prompt_groups_prompt (prompt_id=?)" in plan
        assert "SEARCH t USING INDEX trajectories_group (prompt_group_id=?)" in plan


async def test_infinite_rewards_have_no_mean_and_no_error(tmp_path):
    rewards = (float("inf"), float("-inf"), 1.0, None)
    rows = [{"step": step, "prompt": "p", "reward": reward} for step in (1, 2) for reward in rewards]
    datasette = Datasette([str(make_index(tmp_path / "index.sqlite", rows))])
    steps = table_rows(await get(datasette, f"{PAGE}/1"), "steps")
    assert [row[2:] for row in steps] == [
        ["0.667 2 of 3, 1 unscored", "–", "inf 1", "−inf 2"], ["0.667 2 of 3, 1 unscored", "–", "inf 5", "−inf 6"]
    ]  # fmt: skip
