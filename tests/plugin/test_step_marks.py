"""Beside each step of a run stands what of it was not read, on the run's page and in the terminal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from datasette.app import Datasette

from tests.commands import indexed, rltracer
from tests.export_runs import rollout, write_steps
from tests.indexing import rows
from tests.plugin.conftest import get
from tests.plugin.html import links, table_rows, words

TRACES = "rollouts/step_{}/{}/all/traces.jsonl"
UNREAD = "1 of 2 files could not be read; 1 of 2 trajectories cannot be opened"
MARKS = {
    (1, "train"): "1 problem",
    (2, "train"): UNREAD,
    (2, "eval"): "",
    (3, "train"): "1 of 1 file has an unfinished last line",
    (3, "eval"): "",
    (4, "train"): "1 of 1 file is empty",
    (5, "train"): "1 of 1 file could not be read",
}


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Return the index of a run of which every step but one has a fault of its own, and one file has no step."""
    run, database = tmp_path / "run", tmp_path / "x.sqlite"
    kept = {step: rollout(f"kept{step}") for step in (1, 2, 3)}
    write_steps(run, {1: [kept[1]], 2: [kept[2], rollout("lost")], 3: [kept[3]]})
    write_steps(run, {2: [rollout("exam")], 3: [rollout("second exam")]}, split="eval")
    copy = run / TRACES.format(2, "train").replace("all", "effective")
    copy.parent.mkdir()
    copy.write_text(json.dumps(kept[2]) + "\n")
    (run / TRACES.format(4, "train")).parent.mkdir(parents=True)
    (run / TRACES.format(4, "train")).touch()
    (run / TRACES.format(5, "train")).mkdir(parents=True)
    chunk = run / "monitors/file/traces/annotations/trainer/00000.jsonl"
    chunk.parent.mkdir(parents=True)
    chunk.write_text('{"broken": \n')
    indexed(database, run)
    for step, text in ((1, '{"broken": \n'), (3, '{"waiting')):
        with (run / TRACES.format(step, "train")).open("a") as file:
            file.write(text)
    (run / TRACES.format(2, "train")).unlink()
    (run / TRACES.format(2, "train")).mkdir()
    assert indexed(database, run).returncode == 1
    return database


@pytest.mark.asyncio
async def test_the_page_of_a_run_has_it_beneath_each_row(database: Path) -> None:
    page = await get(Datasette([str(database)]), "/-/rltracer/x/run/1")
    listed = table_rows(page, "steps")
    found = {
        (int(row[0]), row[1]): following[1] if following[0] == "" else ""
        for row, following in zip(listed, [*listed[1:], ["end"]], strict=True)
        if row[0]
    }
    assert found == MARKS
    assert page.count(f">{UNREAD}</a>") == 1
    assert "4 problems" in words(page)  # with that of the file without a step


@pytest.mark.asyncio
async def test_a_mark_leads_to_the_problems_of_its_step_or_to_its_files(database: Path) -> None:
    datasette = Datasette([str(database)])
    page = await get(datasette, "/-/rltracer/x/run/1")
    leads = {mark: links(page, mark)[0] for mark in MARKS.values() if mark}
    of_files = {"1 of 1 file has an unfinished last line": "waiting", "1 of 1 file is empty": "complete"}
    for mark, state in of_files.items():
        [file] = await table(datasette, leads[mark])
        assert (file["state"], file["step"] in (3, 4)) == (state, True)
    for mark in set(MARKS.values()) - {"", *of_files}:
        [problem] = await table(datasette, leads[mark])
        [step] = {step for (step, _), words in MARKS.items() if words == mark}
        [(path,)] = rows(database, f"select path from shards where id = {int(problem['shard_id'])}")
        assert path == TRACES.format(step, "train")


async def table(datasette: Datasette, address: str) -> list[dict[str, Any]]:
    path, _, query = address.partition("?")
    answer = await datasette.client.get(f"{path}.json?{query}&_shape=array")
    return list(answer.json())


def test_the_terminal_says_of_a_step_that_some_files_may_hold_it(database: Path) -> None:
    said = rltracer("inspect", database, "--step", "3").stderr
    assert "1 of 3 files that may hold it has an unfinished last line: " in said


@pytest.mark.asyncio
async def test_a_step_says_what_cannot_be_opened(database: Path) -> None:
    page = words(await get(Datasette([str(database)]), "/-/rltracer/x/step/1/2"))
    assert "1 of this step’s 3 trajectories cannot be opened any more; what the index keeps of it is shown." in page
    assert "gone" not in page


def test_the_terminal_has_it_beneath_each_row(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = rltracer("inspect", database).stdout.splitlines()
    assert max(map(len, lines)) <= 80
    [begins] = [place for place, line in enumerate(lines) if line.startswith("  step 2     train")]
    wrapped = lines[begins + 1 : begins + 3]
    assert " ".join(line.strip() for line in wrapped) == UNREAD
    assert {len(line) - len(line.lstrip()) for line in wrapped} == {lines[begins].index("train")}
    told = [json.loads(line) for line in rltracer("inspect", database, "--json").stdout.splitlines()]
    assert {(fact["step"], fact["split"]): fact["amiss"] for fact in told} == MARKS
    assert [fact["problems"] for fact in told] == [1, 0, 1, 0, 0, 0, 1]
