"""The whole way for every system: inspect, pages, the pass-rate facet, and training data, from small files of each.

Nothing here knows a system: what stands in its files is told by its writer, or by an independent reading.
"""

from __future__ import annotations

import json
import re
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
from click.testing import CliRunner
from datasette.app import Datasette

from rltracer_sqlite.cli.inspect import command as inspect
from rltracer_sqlite.index.database import finish_writing, open_for_writing
from rltracer_sqlite.index.refresh import refresh_run
from rltracer_sqlite.index.runs import ensure_run, set_success
from rltracer_sqlite.messages import content_text, prompt_context, prompt_key
from rltracer_sqlite.passrates import pass_bin
from rltracer_sqlite.sources import BUILT_IN, source_for
from rltracer_sqlite.sources.parquet_file import has_pyarrow
from tests import layouts
from tests.indexing import rows
from tests.layouts.records import message, trace
from tests.table_decoding import READINGS
from tests.table_rows import BAD, BAD_SPLIT, CONTEXT, GOOD_SPLIT, said, write_lines
from tests.table_samples import SAMPLES
from tests.token_layouts import write_tokenizer

from .conftest import get, write_run
from .html import links, words

pytestmark = pytest.mark.asyncio(loop_scope="module")
CORPORA = (layouts.corpora() or Path("absent")) / "other"
Message = dict[str, Any]


class Written(NamedTuple):
    """One trajectory as its file has it."""

    reward: float | None
    step: int | None
    split: str | None
    messages: list[Message]
    earlier: tuple[list[Message], ...] = ()  # of a rollout of several outputs those before the last


def prime_rl(root: Path) -> list[Written]:
    answers = {"42": 1.0, BAD: 0.0}
    spoken = [[message(m["role"], m["content"]) for m in said(text)] for text in answers]
    rewards = [{"right": {"score": score, "weight": 1.0}} for score in answers.values()]
    write_run(root, [trace(one, id=f"t{n}", rewards=rewards[n]) for n, one in enumerate(spoken)])
    return [Written(score, 1, "train", said(text)) for text, score in answers.items()]


def workflow(root: Path) -> list[Written]:
    answers = {"42": 1.0, BAD: 0.0}
    records = [{"final_row": {"rubric": {"messages": said(text), "score": s}}} for text, s in answers.items()]
    write_lines(root / "math_check.jsonl", *records)
    return [Written(None, None, None, said(text)) for text in answers]


def sample(name: str) -> Callable[[Path], list[Written]]:
    def write(root: Path) -> list[Written]:
        made = [Written(row.reward, row.step, row.split, row.messages) for row in SAMPLES[name][1](root)]
        if name != "open-instruct":
            return made
        # Its token ids have text when the tokenizer is given, as it is here.
        return [one._replace(messages=text) for one, text in zip(made, (GOOD_SPLIT, BAD_SPLIT), strict=True)]

    return write


def copied(folder: str) -> Callable[[Path], list[Written]]:
    def copy(root: Path) -> list[Written]:
        shutil.copytree(CORPORA / folder, root)
        return [
            Written(one.reward, one.step, one.split, one.messages, one.earlier) for one in READINGS[folder][1](root)
        ]

    return copy


OWN = {"prime-rl": prime_rl, "workflow": workflow, **{name: sample(name) for name in SAMPLES}}
COPIED = {f"corpora/{folder}": copied(folder) for folder in READINGS}
# What a step counts, where the system says it.
STEP_KINDS = {
    "verl": "training step", "trl": "optimizer step", "ms-swift": "optimizer step (generation step with Megatron)",
    "nemo-rl": "training step", "skyrl": "global step", "areal": "policy version", "roll": "global step",
    "open-instruct": "training step", "chat": None, "nemo-gym": None, "workflow": None,
}  # fmt: skip
# Facts that a page shows, and the columns they come from.
FACTS = {
    "total": "reward", "advantage": "advantage", "prompt tokens": "prompt_tokens", "stopped": "stop_condition",
    "completion tokens": "completion_tokens", "truncated": "truncated", "took": "seconds",
    "policy version": "policy_version",
}  # fmt: skip


class Index(NamedTuple):
    """All systems in one database."""

    path: Path
    written: dict[str, list[Written]]
    runs: dict[str, int]  # by the name of the system


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("every")
    tokenizer = str(write_tokenizer(folder / "tokenizer"))
    made = Index(folder / "every.sqlite", {}, {})
    connection = open_for_writing(made.path)
    try:
        for name, write in {**OWN, **(COPIED if CORPORA.is_dir() else {})}.items():
            if "trl" in name and not has_pyarrow():
                continue
            root = folder / name.replace("/", "-")
            made.written[name] = write(root)
            source = source_for(root, tokenizer if name in OWN else None)
            made.runs[name] = ensure_run(connection, source, root, name)
            if source.name == "workflow":
                set_success(connection, made.runs[name], "final_row.rubric.score", 1.0)
            refresh_run(connection, source, root, made.runs[name])
    finally:
        finish_writing(connection)
    return made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def datasette(index: Index) -> Datasette:
    return Datasette([str(index.path)], settings={"suggest_facets": False})


@pytest.fixture(params=[*OWN, *COPIED])
def system(request: pytest.FixtureRequest, index: Index) -> str:
    if request.param in COPIED and not CORPORA.is_dir():
        pytest.skip("the corpora are not beside this repository")
    if request.param not in index.runs:
        pytest.importorskip("pyarrow")
    return str(request.param)


def trajectories(index: Index, system: str) -> list[dict[str, Any]]:
    """Return the rows of a run's trajectories."""
    connection = sqlite3.connect(index.path)
    connection.row_factory = sqlite3.Row
    try:
        found = connection.execute("select * from trajectories where run_id = ?", (index.runs[system],)).fetchall()
    finally:
        connection.close()
    assert len(found) == len(index.written[system])
    return [dict(row) for row in found]


def text_of(said: Message) -> str:
    """Return what a message says in one line, without its pictures."""
    content = said["content"]
    parts = [part for part in content if part["type"] == "text"] if isinstance(content, list) else content
    return " ".join(content_text(parts).split())


def plain(messages: list[Message]) -> str:
    """Return messages as text to compare, without null keys and the ids that an export has to make up."""
    return json.dumps([{key: value for key, value in m.items() if value is not None} for m in messages], sort_keys=True)


def trained(messages: list[Message]) -> str:
    """Return messages as training data has them: empty text instead of none, and an id for each call."""
    kept = ("role", "content", "reasoning_content", "tool_call_id", "name", "tool_calls")
    shown = [
        {key: m[key] for key in kept if m.get(key) is not None} | {"content": m.get("content") or ""} for m in messages
    ]
    return re.sub(r'"id": (null|"[^"]*"), ', "", json.dumps(shown, sort_keys=True))


def answered(index: Index, system: str) -> list[list[Message]]:
    """Return the conversations of a run that have an answer; skips a run whose text is not there."""
    if not any(one.messages for one in index.written[system]):
        pytest.skip("token ids of a run whose tokenizer is not here have no text")
    spoken = (one.messages for one in index.written[system])
    return [messages for messages in spoken if any(m["role"] == "assistant" for m in messages)]


async def exported(datasette: Datasette, index: Index, system: str, mode: str, more: str = "") -> list[dict[str, Any]]:
    response = await datasette.client.get(f"/every/trajectories.{mode}?run_id={index.runs[system]}{more}")
    assert response.status_code == 200, response.text
    return [json.loads(line) for line in response.content.splitlines()]


async def test_a_run_keeps_what_its_steps_count(index: Index, system: str) -> None:
    [(source, kind)] = rows(index.path, "select source, step_kind from runs where id = ?", (index.runs[system],))
    assert {*STEP_KINDS, "prime-rl"} == {*BUILT_IN}
    assert kind == STEP_KINDS.get(source, kind)


async def test_inspect_shows_what_the_files_hold(index: Index, system: str) -> None:
    command = ["--run", str(index.path), "--name", system, "--json"]
    steps = CliRunner().invoke(inspect, command, catch_exceptions=False).stdout.splitlines()
    assert {json.loads(line)["step"] for line in steps} >= {one.step for one in index.written[system]}
    shown = Counter()
    for row in trajectories(index, system):
        one = json.loads(CliRunner().invoke(inspect, [*command, "--trajectory", str(row["id"])]).stdout)
        shown[one["metadata"]["reward"], row["step"], row["split"], plain(one["messages"])] += 1
    assert shown == Counter((w.reward, w.step, w.split, plain(w.messages)) for w in index.written[system])


async def test_the_page_of_a_trajectory(datasette: Datasette, index: Index, system: str) -> None:
    written = {plain(one.messages) for one in index.written[system]}
    for row in trajectories(index, system)[:3]:
        url = f"/-/rltracer/every/trajectory/{row['id']}"
        page, decoded = await get(datasette, url), json.loads(await get(datasette, f"{url}.json"))
        assert plain(decoded["messages"]) in written
        shown = words(page)
        for one in decoded["messages"]:
            assert text_of(one) in shown
            assert all(call["function"]["name"] in shown for call in one.get("tool_calls", ()))
        # A link to the tokens is there where there are any.
        assert bool(links(page, "tokens")) == ("No token ids are" not in await get(datasette, f"{url}?view=tokens"))
        missing = set(re.findall(r'<dt>([^<]+)</dt><dd class="muted">not recorded', page))
        is_derived = "<dt>derived advantage</dt>" in page
        [(in_group,)] = rows(
            index.path, "select trajectories from prompt_groups where id = ?", (row["prompt_group_id"],)
        )
        assert is_derived == (row["advantage"] is None and row["reward"] is not None and in_group > 1)
        unknown = {fact for fact, column in FACTS.items() if row[column] is None} - (
            {"advantage"} if is_derived else set()
        )
        assert missing & set(FACTS) == unknown


async def test_the_page_of_a_group(datasette: Datasette, index: Index, system: str) -> None:
    groups = rows(index.path, "select id, trajectories from prompt_groups where run_id = ?", (index.runs[system],))
    assert sum(count for _, count in groups) == len(index.written[system])
    prompts = {text_of(one) for written in index.written[system] for one in prompt_context(written.messages)}
    for group, count in groups[:3]:
        page = await get(datasette, f"/-/rltracer/every/group/{group}")
        assert page.count("<tr data-row>") == count
        shown = words(page[page.index('<section class="prompt"') :])
        assert any(prompt in shown for prompt in prompts) or not prompts
        assert "not recorded" in page  # no system records why a trajectory was not trained on


async def test_the_pages_of_a_run_and_its_steps(datasette: Datasette, index: Index, system: str) -> None:
    run = index.runs[system]
    page = await get(datasette, f"/-/rltracer/every/run/{run}")
    steps = set(re.findall(rf'"(/-/rltracer/every/step/{run}/[^"?]*)', unescape(page)))
    assert len(steps) >= len({one.step for one in index.written[system]})
    for step in sorted(steps)[:2]:
        assert "pass rate" in words(await get(datasette, step))


async def test_the_facet_of_pass_rates(datasette: Datasette, index: Index, system: str) -> None:
    scored: dict[int, list[int]] = {}
    for row in trajectories(index, system):
        outcome = row["success"] if system == "workflow" else None if row["reward"] is None else int(row["reward"] >= 1)
        scored.setdefault(row["prompt_group_id"], []).extend([] if outcome is None else [outcome])
    expected = Counter(pass_bin(len(one), sum(one)) or "unscored" for one in scored.values())
    assert set(expected) - {"unscored"}
    query = f"run_id={index.runs[system]}&_facet_passrate=pass_rate&_extra=facet_results"
    found = json.loads(await get(datasette, f"/every/prompt_groups.json?{query}"))["facet_results"]
    facet = next(one for one in found.get("results", found).values() if "passrate" in (one["type"], one["name"]))
    assert {value["label"]: value["count"] for value in facet["results"]} == expected


async def test_conversations_for_training(datasette: Datasette, index: Index, system: str) -> None:
    earlier = [output for one in index.written[system] for output in one.earlier]
    expected = Counter(map(trained, [*answered(index, system), *earlier]))
    made = await exported(datasette, index, system, "sft", "&_keep_errors=1")
    assert Counter(trained(row["messages"]) for row in made) == expected


async def test_pairs_for_preference_training(datasette: Datasette, index: Index, system: str) -> None:
    answered(index, system)
    if system == "workflow":
        pytest.skip("a workflow records no reward of a fixed name, and a pair needs two")
    rewards: dict[str, list[float]] = {}
    prompts: dict[Any, set[tuple[str, float]]] = {}
    for one in index.written[system]:
        if one.reward is not None:
            rewards.setdefault(trained(one.messages), []).append(one.reward)
            prompt = (one.step, one.split, trained(list(prompt_context(one.messages))))
            prompts.setdefault(prompt, set()).add((trained(one.messages), one.reward))
    if not any(a != b and x != y for told in prompts.values() for a, x in told for b, y in told):
        assert system in COPIED
        pytest.skip("no prompt of these files has two answers with different rewards")
    made = await exported(datasette, index, system, "preference", "&_keep_errors=1")
    assert made
    for row in made:
        assert max(rewards[trained(row["prompt"] + row["chosen"])]) > min(
            rewards[trained(row["prompt"] + row["rejected"])]
        )


async def test_systems_compare_on_the_same_prompt(datasette: Datasette, index: Index) -> None:
    asked = {name for name in OWN if name in index.runs and name not in ("chat", "workflow")}
    found = rows(
        index.path,
        """
        select r.name, sum(g.trajectories), sum(g.successes) from prompts p join prompt_groups g on g.prompt_id = p.id
        join runs r on r.id = g.run_id where p.key = ? group by r.id
        """,
        (prompt_key(CONTEXT),),
    )
    assert asked <= {name for name, _, _ in found}
    assert {name: successes for name, _, successes in found if name in ("prime-rl", "verl", "skyrl", "roll-rlvr")} == {
        "prime-rl": 1, "verl": 1, "skyrl": 1, "roll-rlvr": 1}  # fmt: skip
    [(group,)] = rows(index.path, "select id from prompt_groups where run_id = ? and step = 3", (index.runs["verl"],))
    page = await get(datasette, f"/-/rltracer/every/group/{group}")
    # Both record the ground truth, so this is one task to the page; where it is not recorded the key alone compares.
    assert "roll-rlvr" in words(page[page.index('id="runs"') :])
