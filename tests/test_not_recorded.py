"""What has no environment, or no split, is chosen by the words that lists show for it, in commands and in Python."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite import open_run
from rltracer_sqlite.analysis import Selection
from rltracer_sqlite.export.filters import FieldFilter, parse_field
from rltracer_sqlite.search import SearchScope
from rltracer_sqlite.unrecorded import NOT_RECORDED
from tests.commands import indexed, rltracer
from tests.export_runs import rollout, write_steps
from tests.index_factory import make_index


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an index of three trajectories of math and two of no env, one of which has no split either."""
    rows: list[dict[str, Any]] = [{"prompt": f"p{number}", "reward": 1.0, "turns": 1} for number in range(3)]
    rows += [{"prompt": f"q{number}", "env": None, "reward": float(number), "turns": 1} for number in range(2)]
    rows[-1]["split"] = None
    return make_index(tmp_path_factory.mktemp("made") / "x.sqlite", rows)


def lines(*arguments: object) -> list[dict[str, Any]]:
    done = rltracer(*arguments)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


CHOSEN = {
    ("--env", NOT_RECORDED): 2,
    ("--split", NOT_RECORDED): 1,
    ("--env", NOT_RECORDED, "--split", "train"): 1,
    ("--env", "math"): 3,
}


@pytest.mark.parametrize("options", CHOSEN, ids=" ".join)
def test_commands_count_what_is_chosen(database: Path, tmp_path: Path, options: tuple[str, ...]) -> None:
    count = CHOSEN[options]
    steps = lines("inspect", database, *options, "--json")
    assert sum(step["trajectories"] for step in steps) == count
    assert (
        sum(prompt["trajectories"] for prompt in lines("inspect", database, "--step", 1, *options, "--json")) == count
    )
    assert len(lines("inspect", database, "--hardest", 9, *options, "--json")) == count
    [told] = lines("analyze", database, *options, "--json")
    assert sum(window["trajectories"] for window in told["windows"] if window["env"] is None) == count
    drawn = rltracer("plot", database, "pass-rate", *options).stdout.splitlines()
    assert sum(int(line.split("\t")[4]) for line in drawn[1:]) == count


@pytest.mark.parametrize("command", [["inspect"], ["analyze", "--json"], ["plot", "--split", "train", "pass-rate"]])
def test_where_all_is_recorded_the_names_are_told(tmp_path: Path, command: list[str]) -> None:
    made = make_index(tmp_path / "x.sqlite", [{"reward": 1.0}])
    done = rltracer(command[0], made, *command[1:], "--env", NOT_RECORDED)
    assert (done.returncode, "with split train, env not" in done.stderr) == (1, "plot" in command)
    assert "env not recorded. It has env math." in done.stderr.replace(" with split train", "")


def test_a_chart_names_what_it_is_of(database: Path, tmp_path: Path) -> None:
    options = ["--env", NOT_RECORDED, "--split", NOT_RECORDED, "-o", tmp_path / "x.html"]
    said = rltracer("plot", database, "histogram", *options).stdout
    assert "of 1 scored prompt of no split 0 always failed" in " ".join(said.split())
    assert (
        "<title>Pass rates of prompts per window, no split, no env: demo</title>" in (tmp_path / "x.html").read_text()
    )


def test_an_analysis_tells_the_windows_of_no_environment_from_those_of_all(database: Path) -> None:
    [told] = lines("analyze", database, "--json")
    found = [(window["split"], window["env"], window["trajectories"]) for window in told["windows"]]
    assert found == [(None, None, 1), ("train", None, 4), ("train", NOT_RECORDED, 1), ("train", "math", 3)]


def test_python_takes_the_same_words(database: Path) -> None:
    with open_run(database) as run:
        assert [row["prompt_id"] for row in run.ranked_prompts(env=NOT_RECORDED)] == [4, 5]
        assert [row["prompt_id"] for row in run.ranked_prompts(split=NOT_RECORDED)] == [5]
        assert run.prompt_over_steps(1, env=NOT_RECORDED) == []
    assert Selection(env=NOT_RECORDED).env == NOT_RECORDED
    assert SearchScope(env=NOT_RECORDED).where()[1] == {"env": NOT_RECORDED}


@pytest.mark.parametrize(
    ("text", "allowed", "said"),
    [
        ("step=not recorded", (), "step not recorded"),
        ("env=math,not recorded", ("math",), "env in math or missing"),
        ("stop_condition = not recorded", (), "stop_condition not recorded"),
    ],
)
def test_a_field_filter_takes_them_among_its_values(text: str, allowed: tuple[str, ...], said: str) -> None:
    one = parse_field(text)
    assert (one.allowed_values, one.include_missing, str(one)) == (allowed, True, said)
    assert one == FieldFilter(one.path, allowed_values=(*allowed, NOT_RECORDED))


@pytest.mark.parametrize(("path", "count"), [("split", 1), ("env", 2), ("step", 1)])
def test_an_export_chooses_by_what_the_index_has_and_records_have_not(tmp_path: Path, path: str, count: int) -> None:
    write_steps(tmp_path / "run", {1: [rollout("a", info={"env_name": "math"}), rollout("b"), rollout("c")]})
    indexed(tmp_path / "x.sqlite", tmp_path / "run")
    with closing(sqlite3.connect(tmp_path / "x.sqlite")) as connection, connection:
        connection.execute("update trajectories set split = null, step = null where uid = 'a'")
    field = f"{path}={NOT_RECORDED}"
    done = rltracer(
        "export", tmp_path / "x.sqlite", "--split", "any", "--per-prompt", "all", "--field", field, "--dry-run"
    )
    assert re.search(rf"^{path} not recorded +{count} ", done.stdout, re.MULTILINE)


def test_search_for_what_has_no_step(tmp_path: Path) -> None:
    write_steps(tmp_path / "run", {1: [rollout("a"), rollout("b"), rollout("c")]})
    assert indexed(tmp_path / "x.sqlite", tmp_path / "run", "--fts").returncode == 0
    asked = ("search", tmp_path / "x.sqlite", "brief", "--step")
    assert rltracer(*asked, NOT_RECORDED).stdout == "No match in 0 trajectories.\n"
    with closing(sqlite3.connect(tmp_path / "x.sqlite")) as connection, connection:
        connection.execute("update trajectories set step = null where uid = 'b'")
    assert [hit["uid"] for hit in lines(*asked, NOT_RECORDED, "--json")] == ["b"]
    assert sorted(hit["uid"] for hit in lines(*asked, "1", "--json")) == ["a", "c"]


def test_search_and_export(tmp_path: Path) -> None:
    write_steps(tmp_path / "run", {1: [rollout("a", info={"env_name": "math"}), rollout("b"), rollout("c")]})
    assert indexed(tmp_path / "x.sqlite", tmp_path / "run", "--fts").returncode == 0
    found = lines("search", tmp_path / "x.sqlite", "brief", "--env", NOT_RECORDED, "--json")
    assert sorted(hit["uid"] for hit in found) == ["b", "c"]
    asked = ["--env", NOT_RECORDED, "--per-prompt", "all", "--provenance"]
    done = rltracer("export", tmp_path / "x.sqlite", "-o", tmp_path / "x.jsonl", *asked)
    assert "env not recorded" in done.stdout
    assert len((tmp_path / "x.jsonl").read_text().splitlines()) == 2


@pytest.fixture(scope="module")
def with_steps(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an index of prompt 1 in a step and without one, and of prompt 2 in a step."""
    rows = [{"prompt": prompt, "step": step, "reward": 1.0} for prompt, step in (("p", 1), ("p", None), ("q", 1))]
    return make_index(tmp_path_factory.mktemp("steps") / "x.sqlite", rows)


def test_the_prompts_and_trajectories_without_a_step_are_listed(with_steps: Path) -> None:
    asked = ("inspect", with_steps, "--step", NOT_RECORDED)
    [prompt] = lines(*asked, "--json")
    assert (prompt["step"], prompt["prompt_id"], prompt["trajectories"]) == (None, 1, 1)
    assert rltracer(*asked).stdout.startswith("1 prompt without a step, in the order they were read; split train\n")
    assert [row["id"] for row in lines(*asked, "--prompt", 1, "--json")] == [2]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--prompt", "2"], "Prompt 2 has no trajectory without a step.\n"),
        (["--prompt", "1", "--split", "eval"], "The run demo has no trajectory with split eval."),
        (["--prompt", "3"], "The run has no prompt 3; it has 2 prompts, 1–2."),
    ],
    ids=["elsewhere", "split", "nowhere"],
)
def test_what_is_not_without_a_step_is_a_sentence(with_steps: Path, options: list[str], said: str) -> None:
    done = rltracer("inspect", with_steps, "--step", NOT_RECORDED, *options)
    assert (done.returncode, done.stdout, said in done.stderr) == (1, "", True)


def test_a_run_of_steps_alone_has_nothing_without_one(tmp_path: Path) -> None:
    made = make_index(tmp_path / "x.sqlite", [{"step": step, "reward": 1.0} for step in (1, 2)])
    done = rltracer("inspect", made, "--step", NOT_RECORDED)
    assert (done.returncode, done.stderr) == (1, "Error: The run has no trajectory without a step; it has steps 1–2.\n")
