"""The page of a run: steps, environments, prompts and errors, each as its SQL gives them."""

from __future__ import annotations

import html
import json
import re

import pytest
from datasette.app import Datasette

from tests.commands import rltracer
from tests.index_factory import make_index
from tests.indexing import index
from tests.layouts import append, append_torn
from tests.watching import ALL, record

from .conftest import get, traces, write_run
from .html import links, sql_link, table_rows, words
from .rows import sql_rows, table_rows_of

pytestmark = pytest.mark.asyncio
PAGE = "/-/rltracer/index/run/1"


def trajectories():
    for step in (1, 2):
        for prompt, passed in (("easy", 4), ("middling", 2), ("hard", 0)):
            for number in range(4):
                yield {"step": step, "prompt": prompt, "reward": float(number < passed), "completion_tokens": 10 * step}
    for number in range(6):
        kind = "SandboxError" if number < 4 else "TimeoutError"
        yield {"step": 2, "split": "eval", "env": "shell", "prompt": "broken", "ok": 0, "error_type": kind}


async def test_the_headline_says_how_success_is_decided(datasette):
    assert "success is reward >= 1" in words(await get(datasette, PAGE))


async def test_steps_come_newest_first(datasette):
    rows = table_rows(await get(datasette, PAGE), "steps")
    assert [row[:4] for row in rows] == [
        ["2", "train", "12", "3"],
        ["2", "eval", "6", "1"],
        ["1", "train", "12", "3"],
    ]
    assert rows[0][4:9] == ["0.500 6 of 12", "0.500", "0.500", "2 of 3", "20.0"]
    assert rows[1][4:8] == ["– 6 unscored", "–", "–", "–"]


async def test_zero_signal_is_a_share_of_the_groups_with_rewards(datasette):
    page = await get(datasette, PAGE)
    assert (
        "Without signal, train: 0.667 of the groups of two or more trajectories with any reward, 4 of 6, have equal"
        in words(page)
    )
    [address] = links(page, "4")[:1]
    assert len(await table_rows_of(datasette, address)) == 4


@pytest.mark.parametrize(
    ("split", "other", "said"),
    [("train", "eval", ", train: 0.250"), (None, "eval", ": 0.250"), ("eval", "validation", ", eval: 0.250")],
)
async def test_signal_is_of_one_split_as_its_chart_says(tmp_path, split, other, said):
    rows = [
        {"step": step, "split": name, "prompt": f"{name} {number}", "reward": float(number < mixed and n)}
        for name, prompts, mixed in ((split, 4, 3), (other, 3, 1))
        for number in range(prompts)
        for step in (1, 2)
        for n in range(2)
    ]
    datasette = Datasette([str(make_index(tmp_path / "index.sqlite", rows))])
    page = await get(datasette, PAGE)
    assert f"Without signal{said} of the groups of two or more trajectories with any reward, 2 of 8, " in words(page)
    [address] = re.findall(r'class="small">Without signal.*?<a href="(.*?)"', page)
    silent = await table_rows_of(datasette, html.unescape(address))
    assert [row["split"] for row in silent] == [split] * 2
    chart = await get(datasette, f"{PAGE}/charts/zero_variance.json?split={split or 'not+recorded'}")
    assert [(row["prompt_groups"], row["zero_variance"]) for row in json.loads(chart)["rows"]] == [(4, 0.25)] * 2


async def test_without_a_training_group_to_judge_nothing_is_said_of_others(tmp_path):
    rows = [{"reward": 1.0}, *({"split": "eval", "reward": 1.0} for _ in range(2))]
    page = words(await get(Datasette([str(make_index(tmp_path / "index.sqlite", rows))]), PAGE))
    assert "No group of train has two trajectories and a reward, so nothing can be said of their signal." in page
    assert "Without signal" not in page


@pytest.mark.parametrize(
    ("steps", "said"),
    [([1, 3, 3, None], "1, 3"), ([5, 4, 9], "4–5, 9"), (range(0, 6000, 2), "0, 2, 4, 6, 8, 10, 12, 14, 16, …, 5998")],
    ids=["two", "ranges", "thousands"],
)
async def test_steps_of_an_error_are_those_that_have_it(tmp_path, steps, said):
    rows = [{"step": step, "ok": 0, "error_type": "SandboxError"} for step in steps]
    database = make_index(tmp_path / "index.sqlite", rows)
    page = await get(Datasette([str(database)]), PAGE)
    assert table_rows(page, "errors") == [["SandboxError", f"{len(rows):,}", said]]
    known = sorted({step for step in steps if step is not None})
    errors = page[page.index('id="errors"') :]
    assert [links(errors, str(step))[0] for step in (known[0], known[-1])] == [
        f"/-/rltracer/index/step/1/{step}" for step in (known[0], known[-1])
    ]


async def test_a_run_without_steps_has_a_reward_and_no_curve(tmp_path):
    rows = [{"step": None, "prompt": f"p{number}", "reward": float(number)} for number in range(2)]
    datasette = Datasette([str(make_index(tmp_path / "index.sqlite", rows))])
    page = words(await get(datasette, PAGE))
    assert "pass rate 0.500 1 of 2 mean reward 0.500 over all trajectories prime-rl · no steps ·" in page
    assert "Steps 1 split without a step ·" in page
    assert "0.5 not recorded" not in words(await get(datasette, "/-/rltracer/index/"))


async def test_mean_tokens_and_turns_have_one_decimal_on_a_run_and_its_steps(tmp_path):
    tokens = {1: [5, 5], 2: [26, 27]}
    rows = [{"step": s, "reward": 1.0, "completion_tokens": n, "turns": 2} for s in tokens for n in tokens[s]]
    datasette = Datasette([str(make_index(tmp_path / "index.sqlite", rows))])
    page = await get(datasette, PAGE)
    assert [row[8:10] for row in table_rows(page, "steps")] == [["26.5", "2.0"], ["5.0", "2.0"]]
    page = await get(datasette, PAGE.replace("/run/1", "/step/1/1"))
    assert ["5.0" in row for row in table_rows(page, "groups")] == [True]


async def test_pass_rate_and_reward_of_the_head_are_over_the_same_steps(tmp_path):
    rewards = {1: [0.0, 0.0, None], 2: [1.0, 1.0, 1.0], 3: [1.0]}
    rows = [{"step": step, "reward": one} for step, several in rewards.items() for one in several]
    exam = {"step": 2, "split": "eval", "prompt": "exam", "reward": 0.25}
    datasette = Datasette([str(make_index(tmp_path / "index.sqlite", [*rows, exam]))])
    page = words(await get(datasette, PAGE))
    head = page[page.index("read completely") : page.index("prime-rl ·")]
    assert "train pass rate 0.667 4 of 6, 1 unscored mean reward 0.667 over all steps" in head
    assert "; eval pass rate 0.000 0 of 1, mean reward 0.250" in head
    [row] = table_rows(await get(datasette, "/-/rltracer/index/"), "runs")
    assert (row[5], row[7]) == ("0.667 train, 4 of 6, 1 unscored", "0.667")


async def test_hardest_and_easiest_prompts(datasette):
    page = await get(datasette, PAGE)
    assert [row[:1] + row[2:] for row in table_rows(page, "hardest")] == [
        ["hardprompt 3 · math · train", "0.000", "2"],
        ["middlingprompt 2 · math · train", "0.500", "2"],
    ]
    assert [row[:1] + row[2:] for row in table_rows(page, "easiest")] == [["easyprompt 1 · math · train", "1.000", "2"]]
    assert "The other 1 always passed." in words(page)
    assert (
        words(page).count("1 of 4 prompts has no score by the success rule, and is in neither list: it has no reward.")
        == 1
    )
    for name, shown in (("hardest", 3), ("easiest", 1)):
        [table] = links(page[page.index(f'id="{name}"') :], "as a table")[:1]
        assert [row["prompt_id"] for row in await table_rows_of(datasette, table)][:1] == [shown]


# Prompts that never, sometimes and always passed, how many are in each list, and what is said there.
LISTS = [
    ((1, 0, 0), (1, 0), "No scored prompt ever passed."),
    ((0, 1, 0), (1, 0), "The only scored prompt is in the other list."),
    ((0, 0, 1), (0, 1), "Every scored prompt always passed."),
    ((2, 0, 13), (2, 10), "The other 13 always passed."),
    ((0, 10, 0), (10, 0), "All 10 scored prompts are in the other list."),
    ((2, 3, 0), (5, 0), "All 3 scored prompts that ever passed are in the other list."),
    ((1, 11, 2), (10, 4), "The other 10 are in the list of the hardest."),
    ((12, 0, 12), (10, 10), "Of 24 scored prompts 12 never passed and 12 always did."),
]


@pytest.mark.parametrize(("prompts", "counts", "said"), LISTS, ids=[str(prompts) for prompts, *_ in LISTS])
async def test_the_lists_of_prompts_are_those_of_the_terminal_and_none_is_in_both(tmp_path, prompts, counts, said):
    rewards = [each for each, count in zip([(0, 0), (0, 1), (1, 1)], prompts, strict=True) for _ in range(count)]
    rows = [{"prompt": f"p{n:02}", "reward": float(one)} for n, each in enumerate(rewards) for one in each]
    made = make_index(tmp_path / "index.sqlite", rows)
    page = await get(Datasette([str(made)]), PAGE)
    lists = {
        name: [row[0] for row in table_rows(page, name)] if count else []
        for name, count in zip(("hardest", "easiest"), counts, strict=True)
    }
    assert tuple(len(one) for one in lists.values()) == counts
    assert len({*lists["hardest"], *lists["easiest"]}) == sum(counts)
    for name, shown in lists.items():
        told = map(json.loads, rltracer("inspect", made, f"--{name}", 99, "--json").stdout.splitlines())
        listed = [f"{one['preview']}prompt {one['prompt_id']} · math · train" for one in told]
        assert [one for one in listed if name == "hardest" or one not in lists["hardest"]][: len(shown)] == shown
    assert said in words(page)


async def test_what_stands_out_is_one_click_away(tmp_path):
    kinds = {"never": (0.0, 0.0, 0.0), "always": (1.0, 1.0, 1.0), "gained": (0.0, 0.0, 1.0), "lost": (1.0, 1.0, 0.0)}
    rows = [
        {"prompt": prompt, "step": step, "reward": reward, "truncated": int(not reward), "tools": '["bash"]',
         "tool_calls": 1}
        for prompt, rewards in kinds.items() for step, reward in zip((1, 2, 6), rewards, strict=True)
    ]  # fmt: skip
    datasette = Datasette([str(make_index(tmp_path / "index.sqlite", [*rows, {"prompt": "?", "reward": None}]))])
    page = await get(datasette, PAGE)
    said = "Of 4 scored prompts 1 never passed and 1 always did. Which gained and which lost between steps."
    assert said in words(page)
    below = page[page.index('id="prompts"') :]
    found = [
        (await table_rows_of(datasette, address))
        for address in (links(below, "1") + links(below, "Which gained and which lost"))
    ]
    assert [[row["prompt_id"] for row in rows] for rows in found] == [[1], [2], [3, 4]]
    assert {row["change"] for row in found[2]} == {"gained", "lost"}
    [tools] = links(page, "Each tool that was called")
    assert {row["tool"] for row in await table_rows_of(datasette, tools)} == {"bash"}
    step = await get(datasette, "/-/rltracer/index/step/1/2")
    of_run = links(table_of_steps(page), "2")[2]  # after that of step 6, and the step itself
    for truncated in (of_run, *links(step, "2 truncated")):
        assert [row["preview"] for row in await table_rows_of(datasette, truncated)] == ["never", "gained"]


AMISS = [(0, None), (0, "SandboxError"), (1, "TimeoutError"), (None, "TimeoutError"), (1, None), (None, None)]


async def test_the_errors_of_a_step_lead_to_as_many_trajectories(tmp_path):
    rows = [
        {"step": step, "split": split, "ok": ok, "error_type": kind}
        for step, split, failed in (
            (1, "train", AMISS),
            (2, "train", AMISS[:3]),
            (2, "eval", AMISS[1:]),
            (3, None, AMISS),
        )
        for ok, kind in failed
    ]
    path = make_index(tmp_path / "index.sqlite", rows)
    datasette = Datasette([str(path)])
    page = await get(datasette, PAGE)
    listed = [(int(row[0]), row[1], int(row[-1])) for row in table_rows(page, "steps")]
    assert listed == [(3, "–", 4), (2, "train", 3), (2, "eval", 3), (1, "train", 4)]
    of_run = [html.unescape(one) for one in re.findall(r'data-label="errors"><a href="([^"]*)"', page)]
    of_step = links(await get(datasette, "/-/rltracer/index/step/1/2?split=eval"), "3 with errors")
    for (step, split, errors), address in zip([*listed, listed[2]], [*of_run, *of_step], strict=True):
        found = await table_rows_of(datasette, address)
        assert [(row["step"], row["split"] or "–") for row in found] == [(step, split)] * errors
        assert all(row["ok"] == 0 or row["error_type"] for row in found)
    [of_both] = links(await get(datasette, "/-/rltracer/index/step/1/2"), "6 with errors")
    assert len(await table_rows_of(datasette, of_both)) == 6
    closed = Datasette([str(path)], settings={"default_allow_sql": False})  # which refuses such an address
    assert 'data-label="errors">4</td>' in await get(closed, PAGE)
    assert links(await get(closed, "/-/rltracer/index/step/1/2"), "6 with errors") == []


def table_of_steps(page):
    return page[page.index('id="steps"') : page.index('id="environments"')]


async def test_a_run_of_one_step_without_tools_has_nothing_that_moved(tmp_path):
    page = await get(Datasette([str(make_index(tmp_path / "index.sqlite", [{"reward": 0.5}]))]), PAGE)
    assert "Of 1 scored prompt 1 never passed and 0 always did. Hardest" in words(page)
    assert "Each tool" not in words(page)


async def test_the_count_of_problems_leads_to_their_table(tmp_path):
    for name, spoilt in (("one", 1), ("two", 2)):
        with write_run(tmp_path / name, traces()[2:3]).open("a") as file:
            file.write("no record\n" * spoilt)
        index(tmp_path / "index.sqlite", tmp_path / name)
    datasette = Datasette([str(tmp_path / "index.sqlite")])
    for run, said in ((1, "1 problem ·"), (2, "2 problems ·")):
        page = await get(datasette, f"/-/rltracer/index/run/{run}")
        below = page[page.index('id="problems"') :]
        assert f"Problems while reading {said}" in words(page)
        [address] = links(below, "as a table")
        assert len(await table_rows_of(datasette, address)) == run


async def test_thousands_of_equal_problems_hide_no_other_and_no_file(tmp_path):
    run, other = tmp_path / "run", ALL.replace("step_1", "step_2")
    append(run / ALL, record("t0"))
    with (run / ALL).open("a") as file:
        file.write('{"broken": \n' * 30_000)
    append(run / other, record("t1"))
    append_torn(run / other, record("t2"))
    last = run / ALL.replace("step_1", "step_3")
    append(last, record("t3"))
    with last.open("a") as file:
        file.write("no record\n")
    index(tmp_path / "index.sqlite", run)
    datasette = Datasette([str(tmp_path / "index.sqlite")])
    page = await get(datasette, PAGE)
    below = page[page.index('id="problems"') :]
    assert "Problems while reading 30,001 problems ·" in words(page)
    assert "the first of 30,000 like this" in words(below)
    assert words(below).count("not readable") == 2
    assert "has an unfinished last line, which is read when it is complete" in words(below)
    [address] = links(below, "30,000 like this")
    assert {row["shard_id"] for row in await table_rows_of(datasette, address)} == {1}


async def test_a_prompt_leads_to_its_page_over_all_steps(datasette):
    page = await get(datasette, PAGE)
    address = links(page[page.index('id="hardest"') :], "hard")[0]
    assert address == "/-/rltracer/index/prompt/1/3?split=train&env=math"
    assert "train pass rate 0.000 0 of 8" in words(await get(datasette, address))


async def test_errors_by_type_lead_to_their_trajectories(datasette):
    page = await get(datasette, PAGE)
    assert table_rows(page, "errors") == [["SandboxError", "4", "2"], ["TimeoutError", "2", "2"]]
    [address] = links(page, "SandboxError")
    assert len(await table_rows_of(datasette, address)) == 4


@pytest.mark.parametrize(
    ("heading", "column", "cell"),
    [("steps", "trajectories", 2), ("environments", "prompt_groups", 3), ("errors", "trajectories", 1)],
)
async def test_the_sql_of_a_list_gives_exactly_its_rows(datasette, heading, column, cell):
    page = await get(datasette, PAGE)
    rows = await sql_rows(datasette, sql_link(page, heading))
    assert [str(row[column]) for row in rows] == [row[cell] for row in table_rows(page, heading)]


@pytest.mark.parametrize("heading", ["hardest", "easiest"])
async def test_the_sql_of_the_prompts_gives_exactly_them(tmp_path, heading):
    rows = [{"prompt": f"p{number}", "reward": float(number > 4)} for number in range(12)]
    datasette = Datasette([str(make_index(tmp_path / "index.sqlite", rows))])
    page = await get(datasette, PAGE)
    rows = await sql_rows(datasette, sql_link(page, heading))
    told = [f"{row['preview']}prompt {row['prompt_id']} · {row['env']} · {row['split']}" for row in rows]
    assert told == [row[0] for row in table_rows(page, heading)] != []


async def test_a_run_without_anything_says_so(tmp_path):
    path = make_index(tmp_path / "index.sqlite", [{"reward": None}])
    page = words(await get(Datasette([str(path)]), PAGE))
    for sentence in (
        "No prompt of this run is scored.",
        "No trajectory of this run ended with an error.",
        "Every line of every file was read.",
        "No group of train has two trajectories and a reward",
    ):
        assert sentence in page


async def test_a_file_that_ends_in_the_middle_of_a_line_is_told_with_the_problems(tmp_path):
    run = tmp_path / "run"
    append(run / ALL, record("t0"))
    append_torn(run / ALL, record("t1"))
    index(tmp_path / "index.sqlite", run)
    page = words(await get(Datasette([str(tmp_path / "index.sqlite")]), PAGE))
    assert "No problem in what was read; 1 of 1 file has an unfinished last line, of step 1." in page
    assert "Every line of every file was read." not in page


async def test_many_steps_come_in_pages(tmp_path):
    path = make_index(tmp_path / "index.sqlite", ({"step": step, "reward": 1.0} for step in range(130)))
    datasette = Datasette([str(path)])
    page = await get(datasette, PAGE)
    assert "100 of 130 steps and splits shown" in words(page)
    [later] = links(page, "next: 30 more")
    assert [row[0] for row in table_rows(await get(datasette, later), "steps")] == [str(n) for n in range(29, -1, -1)]


@pytest.mark.parametrize("path", [f"{PAGE}1", PAGE.replace("1", "9" * 18), "/-/rltracer/index/run/x"])
async def test_a_run_that_is_not_there_is_not_found(datasette, path):
    await get(datasette, path, 404)


async def test_mean_rewards_are_those_of_all_rewards_whatever_is_scored(tmp_path):
    rows = [
        {"step": step, "env": env, "prompt": f"{env} {number % 2}", "reward": reward, "metrics.right": right}
        for step, env, values in (
            (1, "math", [(0.5, 1), (0.25, None), (0.75, None), (None, 1)]),
            (2, "math", [(0.0, 0), (None, 1), (None, None)]),
            (2, "code", [(1.0, None), (None, 0), (0.5, 1)]),
        )
        for number, (reward, right) in enumerate(values)
    ]
    path = make_index(tmp_path / "index.sqlite", rows, ("metrics.right", 1.0))
    page = await get(Datasette([str(path)]), "/-/rltracer/index/run/1")
    assert "mean reward 0.500 " in words(page)  # of six rewards
    assert {row[0]: row[6] for row in table_rows(page, "environments")} == {"math": "0.375", "code": "0.750"}
