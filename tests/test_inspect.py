"""`rltracer inspect`: the steps of a run and the runs of an index, as the index knows them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.commands import indexed, rltracer, sentence
from tests.indexing import rows, value
from tests.layouts import append, message, trace
from tests.small_runs import TRACES, make_run


def test_steps_are_listed_with_what_the_index_knows(demo: Path) -> None:
    database = demo / "x.sqlite"
    done = rltracer("inspect", database)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 3 + value(database, "select count(*) from steps")
    listed = [json.loads(line) for line in rltracer("inspect", "--run", database, "--json").stdout.splitlines()]
    assert [tuple(fact.values()) for fact in listed] == rows(
        database,
        """
        select step, split, trajectories, scored, prompt_groups, pass_rate,
            (select count(reward) from trajectories t where t.step = s.step and t.split = s.split), reward_mean,
            0, 0, ''
        from steps s order by step, split
        """,
    )
    assert f"{listed[-1]['pass_rate']:.3f}" in done.stdout.splitlines()[-1]


def test_what_has_vanished_is_told_beside_its_step(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", 3)
    append(run / "rollouts" / TRACES.format(4), trace([message("user", "?"), message("assistant", "!")], id="b"))
    indexed(tmp_path / "x.sqlite", run)
    (run / "rollouts" / TRACES.format(3)).unlink()
    indexed(tmp_path / "x.sqlite", run)
    done = rltracer("inspect", tmp_path / "x.sqlite")
    assert [line.strip() for line in done.stdout.splitlines()[4:-1]] == [
        "1 of 1 file gone since it was read; 1 of 1 trajectory cannot be", "opened"
    ]  # fmt: skip
    command = f"rltracer inspect {tmp_path / 'x.sqlite'} --problems"
    assert done.stderr == f"run: 1 of 2 files gone since it was read, of step 3: {command} lists them.\n"


def test_a_folder_of_which_nothing_was_read_lists_its_steps(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", 3, 4)
    assert rltracer("inspect", run).stdout.splitlines()[2].split() == ["step", "3", *"–" * 5]
    assert rltracer("inspect", run, "--step", 3).returncode == 0
    assert rltracer("inspect", run).stdout.splitlines()[3].split()[:5] == ["step", "3", "train", "1", "1"]


def test_a_folder_says_how_its_unread_steps_are_read(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", 3)
    assert "not been read yet: --step N reads one, rltracer-index" in rltracer("inspect", run).stdout
    assert rltracer("inspect", run, "--step", 3).returncode == 0
    assert "have not been read" not in rltracer("inspect", run).stdout


@pytest.mark.parametrize("chosen", [{"split": "eval"}, {"env": "pictures"}, {"split": "train", "env": "shell-jobs"}])
def test_every_list_takes_a_split_and_an_environment(demo: Path, chosen: dict[str, str]) -> None:
    database = demo / "x.sqlite"
    options = [part for name, text in chosen.items() for part in (f"--{name}", text)]
    where = " and ".join(f"t.{name} = '{text}'" for name, text in chosen.items())

    def told(*asked: object) -> list[dict[str, Any]]:
        return [
            json.loads(line)
            for line in rltracer("inspect", database, *asked, *options, "--json").stdout.split("\n")[:-1]
        ]

    of_steps = f"select step, split, count(*), avg(success) from trajectories t where {where} group by step, split"
    facts = ("step", "split", "trajectories", "pass_rate")
    assert [tuple(one[name] for name in facts) for one in told()] == rows(database, of_steps)
    of_prompts = f"""
        select g.prompt_id, t.split, count(*), avg(t.success) from trajectories t
        join prompt_groups g on g.id = t.prompt_group_id where {where} and t.step = 8 group by 1, 2
    """
    facts = ("prompt_id", "split", "trajectories", "pass_rate")
    assert sorted(tuple(one[name] for name in facts) for one in told("--step", 8)) == rows(database, of_prompts)
    prompt = rows(database, of_prompts)[0][0]
    for number in {one["id"] for one in told("--step", 8, "--prompt", prompt)}:
        assert value(database, f"select count(*) from trajectories t where {where} and id = {number}") == 1
    assert {one["prompt_id"] for one in told("--prompt", prompt)} == {prompt}
    shown = rltracer("inspect", database, *options).stdout.splitlines()[0]
    assert all(f"; {'split' if name == 'split' else 'env'} {text}" in shown for name, text in chosen.items())


def test_an_index_of_several_runs_lists_them(demo: Path, tmp_path: Path) -> None:
    make_run(tmp_path / "small", 3)
    database = tmp_path / "x.sqlite"
    indexed(database, demo / "run", tmp_path / "small")
    first, second = map(json.loads, rltracer("inspect", database, "--json").stdout.splitlines())
    scored, successes = rows(
        database, "select count(success), sum(success) from trajectories where run_id = 1 and split = 'train'"
    )[0]
    assert (first["run"], first["steps"], first["trajectories"]) == ("run", [*range(1, 9)], 368)
    assert (first["scored"], first["successes"], first["pass_rate"]) == (scored, successes, successes / scored)
    assert first["split"] == "train"
    assert (second["run"], second["steps"], second["trajectories"], second["reward_mean"]) == ("small", [3], 1, 1)
    lines = rltracer("inspect", database).stdout.splitlines()
    assert lines[0].endswith("x.sqlite: 2 runs; --run NAME or its number shows one")
    assert lines[1] == "Scored, pass rate and reward are of the split named, over all its steps."
    assert " ".join(lines[2:4]) == (
        "System: prime-rl. Success: metrics.correct_final_label >= 1 (run 1), reward >= 1 (run 2)."
    )
    assert lines[-1].split() == ["2", "small", "1", "train", "1", "1.000", "1.000", "3"]
    [_, small] = map(json.loads, rltracer("inspect", database, "--json", "--split", "eval").stdout.splitlines())
    assert (small["trajectories"], small["pass_rate"], small["split"]) == (0, None, None)
    said = sentence(rltracer("inspect", database, "--env", "nope"))
    assert said.startswith("None of the 2 runs has a trajectory with env nope. They have env not recorded, ")
    assert rltracer("inspect", database, "--run", "2").stdout.splitlines()[3].split()[:2] == ["step", "3"]
