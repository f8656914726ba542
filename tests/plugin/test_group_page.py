"""The workbench of a prompt group: rows, derived advantages, neighbours under a filter, the prompt elsewhere."""

from __future__ import annotations

import re
import sqlite3

import pytest
from datasette.app import Datasette

from datasette_rltracer.group_records import last_words
from datasette_rltracer.group_rows import ending_words
from datasette_rltracer.trained import training_words, unlisted_words
from tests.index_factory import make_index

from .conftest import get
from .html import links, query_of, sql_link, table_rows, words
from .rows import sql_rows, table_rows_of

pytestmark = pytest.mark.asyncio
PAGE = "/-/rltracer/index/group"
WORDS_ALONE = " · the same words; not both record their task"


def trajectories():
    scored = [(1.0, None), (0.5, 0.7), (0.0, None), (None, None)]
    for reward, advantage in scored:
        yield {
            "prompt": "first", "reward": reward, "advantage": advantage, "rewards.format.score": reward,
            "rewards.never.score": None, "completion_tokens": 100, "stop_condition": "stop",
        }  # fmt: skip
    for step in (1, 2, 4):
        for number in range(2):
            yield {"prompt": "again", "step": step, "reward": float(number < step - 1)}
    yield {"run": "other", "prompt": "again", "step": 9, "reward": 1.0}
    yield {"prompt": "third", "reward": 1.0}


async def rows(datasette, query="", group=1):
    return table_rows(await get(datasette, f"{PAGE}/{group}{query}"), "trajectories")


async def test_the_headline_has_mean_and_spread(datasette):
    assert "reward 0.500 ± 0.408 0.000 to 1.000" in words(await get(datasette, f"{PAGE}/1"))


async def test_equal_rewards_have_no_advantage_of_a_rounding_error(tmp_path):
    equal = [{"prompt": "equal", "reward": 1.1} for _ in range(6)]
    middle = [{"prompt": "middle", "reward": reward} for reward in (0.1, 0.2, 0.3)]
    datasette = Datasette([str(make_index(tmp_path / "index.sqlite", [*equal, *middle]))])
    page = await get(datasette, f"{PAGE}/1")
    assert "<h1>Prompt group 1</h1>" in page
    assert "e−1" not in words(page)
    assert "e−1" not in words(await get(datasette, f"{PAGE}/2"))


async def test_a_row_leads_to_its_trajectory_by_its_number_and_shows_its_id(datasette):
    page = await get(datasette, f"{PAGE}/1")
    found = await sql_rows(datasette, sql_link(page, "trajectories"))
    for row, cells in zip(found, table_rows(page, "trajectories"), strict=True):
        assert f"/trajectory/{row['id']}" in links(page, str(row["id"]))[0]
        assert cells[0].endswith(f" {row['id']} {row['uid'][:8]}…")
        assert f'title="{row["uid"]}"' in page


async def test_a_missing_advantage_is_derived_and_labelled(datasette):
    found = await rows(datasette)
    assert [row[3] for row in found] == ["+0.5 derived", "+0.7", "−0.5 derived", "not recorded"]
    page = words(await get(datasette, f"{PAGE}/1"))
    assert (
        "A derived advantage is the reward minus the mean of its prompt group. 1 of 4 advantages is recorded." in page
    )


async def test_named_rewards_have_columns_where_the_group_has_them(datasette):
    page = await get(datasette, f"{PAGE}/1")
    assert [row[2] for row in table_rows(page, "trajectories")] == ["1.000", "0.500", "0.000", "–"]
    assert links(page, "format")
    assert not links(page, "never")


@pytest.mark.parametrize(
    ("query", "rewards"),
    [
        ("?_sort=reward", ["0.000", "0.500", "1.000", "–"]),
        ("?_sort_desc=reward", ["1.000", "0.500", "0.000", "–"]),
        ("?_sort_desc=advantage", ["0.500", "1.000", "0.000", "–"]),
        ("?_sort=advantage", ["0.000", "1.000", "0.500", "–"]),
        ("?success=0", ["0.500", "0.000"]),
        ("?success__isnull=1", ["–"]),
        ("?reward__gte=0.5", ["1.000", "0.500"]),
    ],
)
async def test_rows_are_sorted_and_filtered(datasette, query, rewards):
    assert [row[1] for row in await rows(datasette, query)] == rewards


@pytest.mark.parametrize("query", ["", "?success=0", "?_sort_desc=advantage", "?reward__gte=0.5&_sort=reward"])
async def test_the_sql_gives_exactly_the_rows(datasette, query):
    page = await get(datasette, f"{PAGE}/1{query}")
    found = await sql_rows(datasette, sql_link(page, "trajectories"))
    shown = [row[1] for row in table_rows(page, "trajectories")]
    assert ["–" if row["reward"] is None else f"{row['reward']:.3f}" for row in found] == shown
    [table] = links(page, "as a table")[-1:]
    assert len(await table_rows_of(datasette, table)) == len(shown)


@pytest.mark.parametrize(
    ("query", "said", "order"),
    [
        ("", "best reward first", [2, 3, 5, 1, 6, 4]),
        ("?_sort=reward", "worst reward first", [1, 6, 5, 2, 3, 4]),
        ("?_sort_desc=completion_tokens", "by completion_tokens from the highest", [6, 5, 4, 3, 2, 1]),
        ("?_sort=turns&reward__gte=0.5", "by turns", [5, 3, 2]),
    ],
)
async def test_a_group_and_its_trajectories_are_walked_in_one_order(tmp_path, query, said, order):
    rewards = [0.0, 1.0, 1.0, None, 0.5, 0.0]
    rows = ({"reward": one, "completion_tokens": n, "turns": 9 - n} for n, one in enumerate(rewards, start=1))
    datasette = Datasette([str(make_index(tmp_path / "index.sqlite", rows))])
    page = await get(datasette, f"{PAGE}/1{query}")
    assert said in words(page)
    walked, [address] = [], links(page, "read from the first")
    while address:
        walked.append(int(re.search(r"trajectory/(\d+)", address)[1]))
        page = await get(datasette, address, 403)  # its file is not there
        strip = [int(number) for number in re.findall(r'class="cell \w+" href="[^"]*trajectory/(\d+)', page)]
        assert f"{strip.index(walked[-1]) + 1} of 6 in its prompt group" in words(page)
        assert said in words(page)
        assert [number for number in strip if number in order] == order
        address = next(iter(links(page, "next")), None)
    assert walked == order


@pytest.mark.parametrize(
    ("query", "title", "following"),
    [
        ("", "reward ▾", ("_sort", "reward")),
        ("?_sort=reward", "reward ▴", None),
        ("?_sort_desc=advantage", "reward", None),
        ("?_sort_desc=advantage", "advantage ▾", ("_sort", "advantage")),
    ],
)
async def test_a_title_leads_to_the_next_order(datasette, query, title, following):
    page = await get(datasette, f"{PAGE}/1{query}")
    [address] = links(page, title)
    assert [pair for pair in query_of(address).items() if pair[0].startswith("_sort")] == [following] * bool(following)
    assert len(links(page, "best reward first")) == bool(query)


async def test_neighbours_are_those_of_the_step_unless_a_filter_says_otherwise(datasette):
    page = await get(datasette, f"{PAGE}/2")
    assert "group 2 of 3 in this step" in words(page)
    [following] = links(page, "next group")
    assert following == f"{PAGE}/6?run_id=1&step=1"


@pytest.mark.parametrize(
    ("query", "said", "previous", "following"),
    [
        ("?run_id=1&prompt_id=2&_sort=step", "group 2 of 3 in this run where prompt_id = 2, by step", 2, 4),
        ("?run_id=1&prompt_id=2&_sort_desc=step", "by step from the highest", 4, 2),
        ("?pass_rate=1", "not among the 3 groups in this index where pass_rate = 1", None, 4),
        ("?run_id=1&step=2", "group 1 of 1 in this step", None, None),
    ],
)
async def test_previous_and_next_stay_under_the_filter(datasette, query, said, previous, following):
    page = await get(datasette, f"{PAGE}/3{query}")
    assert said in words(page)
    for text, group in (("previous group", previous), ("next group", following)):
        assert links(page, text) == ([f"{PAGE}/{group}{query}"] if group else [])


async def test_filters_of_groups_and_of_trajectories_travel_together(datasette):
    page = await get(datasette, f"{PAGE}/1?step=1&success=0&_sort=pass_rate&_sort_desc=reward")
    assert [row[1] for row in table_rows(page, "trajectories")] == ["0.500", "0.000"]
    [address] = links(page, "read from the first")
    assert query_of(address) == {"step": "1", "_sort": "pass_rate", "success": "0", "_sort_desc": "reward"}
    [following] = links(page, "next group")
    assert query_of(following) == {"step": "1", "_sort": "pass_rate"}


async def test_the_same_prompt_at_other_steps_and_in_other_runs(datasette):
    page = await get(datasette, f"{PAGE}/3")
    text = words(page)
    assert "pass rate of this prompt: from 0 at step 1 to 1 at step 4" in page
    assert "1 0/2 2 1/2 4 2/2 3 groups: step, passed/scored" in text
    assert "other train 1 group 1.000 1 of 1" in text
    assert links(page, "1 group") == [f"{PAGE}/5?run_id=2&prompt_id=2&_sort=step"]


@pytest.mark.parametrize(
    ("own", "others", "found"),
    [
        ("", ["", "a", "b"], ["run0 train", f"run1 train{WORDS_ALONE}", f"run2 train{WORDS_ALONE}"]),
        ("a", ["", "a", "b"], ["run1 train", f"run0 train{WORDS_ALONE}"]),
        ("a", ["b", "c"], []),
    ],
)
async def test_the_same_words_elsewhere_where_one_side_records_no_task(tmp_path, own, others, found):
    rows = [{"task": own}, *({"run": f"run{number}", "task": task} for number, task in enumerate(others))]
    page = await get(Datasette([str(make_index(tmp_path / "index.sqlite", rows))]), f"{PAGE}/1")
    elsewhere = table_rows(page, "runs") if found else []
    assert [row[0] for row in elsewhere] == found
    assert ("Nowhere else in this index" in words(page)) == (not found)


async def test_best_and_worst_are_compared(datasette):
    page = await get(datasette, f"{PAGE}/1")
    assert links(page, "compare the best with the worst") == ["/-/rltracer/index/compare?a=1&b=3"]
    assert not links(await get(datasette, f"{PAGE}/2"), "compare the best with the worst")


async def test_without_a_record_the_beginning_of_the_prompt_is_shown(datasette):
    text = words(await get(datasette, f"{PAGE}/1"))
    assert "first No record of this group can be read" in text


async def test_a_large_group_comes_in_pages(tmp_path):
    path = make_index(tmp_path / "index.sqlite", ({"reward": float(number)} for number in range(130)))
    datasette = Datasette([str(path)])
    page = await get(datasette, f"{PAGE}/1?_sort=reward")
    assert "100 of 130 trajectories shown" in words(page)
    [later] = links(page, "next: 30 more")
    assert [row[1] for row in table_rows(await get(datasette, later), "trajectories")] == [
        f"{n}.0" for n in range(100, 130)
    ]


async def test_a_group_that_is_not_there_is_not_found(datasette):
    await get(datasette, f"{PAGE}/99", 404)


ROW = {"effective": None, "ship_step": None, "error_type": None, "ok": 1, "reward": 1.0}


@pytest.mark.parametrize(
    ("row", "silent", "known", "said"),
    [
        ({"effective": 1}, 0, "yes", "yes"),
        ({"effective": 1, "ship_step": 4}, 0, "yes", "yes, in step 4"),
        ({"effective": 1, "ship_step": 3}, 0, "yes", "yes"),
        ({"effective": 0}, 0, "no", "no, and why is not recorded"),
        ({"effective": 0}, 1, "no", "no: all rewards of the group are equal"),
        ({"effective": 0, "error_type": "E"}, 1, "no", "no: it ended with an error"),
        ({"effective": 0, "reward": None}, 1, "no", "no: it has no reward"),
        ({}, 0, "unknown", "not recorded"),
        ({}, 1, "unknown", "not recorded; all rewards of the group are equal"),
    ],
)
async def test_whether_and_why_it_was_trained_on(row, silent, known, said):
    assert training_words({**ROW, **row}, {"zero_variance": silent, "step": 3, "split": "train"}) == (known, said)


@pytest.mark.parametrize(
    ("row", "split", "said"),
    [
        ({"layout": "traces"}, "train", "not in the effective batch's file, which may yet be written"),
        ({"layout": "traces"}, "eval", "not in the file of what the evaluation kept, which may yet be written"),
        ({"layout": "traces", "effective": 1}, "train", ""),
        ({"layout": "traces", "effective": 0}, "train", ""),
        ({"layout": "stream"}, "train", ""),
    ],
)
async def test_why_it_is_not_known_whether_it_was_trained_on(tmp_path, row, split, said):
    assert unlisted_words({**ROW, **row}, split) == said
    path = make_index(tmp_path / "index.sqlite", [{"split": split, "effective": row.get("effective")}])
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("update shards set layout = ?", (row["layout"],))
    connection.close()
    page = words(await get(Datasette([str(path)]), f"{PAGE}/1"))
    assert re.findall(r"Not recorded: ([^.]*)\.", page) == [said] * bool(said)


async def test_no_step_trains_on_an_evaluation(tmp_path):
    assert training_words({**ROW, "effective": 1, "ship_step": 4}, {"step": 3, "split": "eval"}) == ("yes", "yes")
    for split, said in {"eval": "kept", "train": "trained on"}.items():
        rows = [{"step": 1, "split": split, "group": "g", "reward": value} for value in (0, 1)]
        datasette = Datasette([str(make_index(tmp_path / f"{split}.sqlite", rows))])
        page = await get(datasette, f"/-/rltracer/{split}/group/1")
        assert f"<th>{said}</th>" in page
        assert f"Why a trajectory was not {said} is not recorded" in page


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ({"stop_condition": "stop"}, "stop"),
        ({"stop_condition": "length", "truncated": 1}, "length · truncated"),
        ({"ok": 0}, "error"),
        ({"ok": 0, "error_type": "SandboxError"}, "SandboxError"),
        ({"stop_condition": "error", "ok": 0}, "error"),
        ({}, "not recorded"),
    ],
)
async def test_why_it_ended(row, said):
    assert ending_words({"stop_condition": None, "truncated": None, "ok": 1, "error_type": None, **row}) == said


@pytest.mark.parametrize(
    ("messages", "end", "characters"),
    [
        ([{"role": "assistant", "content": "yes "}, {"role": "tool", "content": "no"}], "yes", 3),
        ([{"role": "assistant", "content": "x" * 500}], "x" * 200, 500),
        ([{"role": "assistant", "content": "first"}, {"role": "assistant", "content": None}], "first", 5),
        ([{"role": "assistant", "content": "<think>so</think>\n\n 42"}], "42", 2),
        ([{"role": "assistant", "content": "so</think>" + "x" * 300}], "x" * 200, 300),
        ([{"role": "assistant", "content": "<think>so</think>\n"}], "<think>so</think>", 17),
        ([{"role": "assistant", "content": "<think>so"}], "<think>so", 9),
    ],
)
async def test_the_last_words_are_the_end_of_the_last_answer(messages, end, characters):
    found = last_words(messages)
    assert (found.text, found.characters) == (end, characters)


async def test_without_an_answer_there_are_no_last_words():
    assert last_words([{"role": "user", "content": "hi"}]) is None
