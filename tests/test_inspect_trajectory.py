"""`rltracer inspect --trajectory`: which one is meant, in which run, and where its messages are."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests import export_runs
from tests.areal_rows import write_areal
from tests.commands import indexed, rltracer, sentence
from tests.indexing import rows, value
from tests.layouts import episode, message, trace
from tests.small_runs import TRACES, make_run
from tests.table_rows import write_lines


def test_a_trajectory_is_found_by_its_recorded_id_or_its_beginning(demo: Path, tmp_path: Path) -> None:
    database = demo / "x.sqlite"
    uid = value(database, "select uid from trajectories where id = 17")
    for asked in (17, uid, uid[:12]):
        assert rltracer("inspect", database, "--trajectory", asked).stdout.startswith(f"trajectory 17 · {uid} ·")
    assert sentence(rltracer("inspect", database, "--trajectory", "zz")) == (
        "The index has no trajectory zz; it has 368, from 1 to 368."
    )
    runs = make_run(tmp_path / "a"), make_run(tmp_path / "b")  # with trajectories of the same id
    indexed(tmp_path / "x.sqlite", *runs)
    said = sentence(rltracer("inspect", tmp_path / "x.sqlite", "--trajectory", "goo"))
    assert said == "Several trajectories have the id goo: give one by number, 1, 2."


@pytest.mark.parametrize("asked", ["17", "uid"])
def test_a_trajectory_of_a_run_that_was_not_read_is_shown(
    demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, asked: str
) -> None:
    monkeypatch.setenv("RLTRACER_HOME", str(tmp_path))
    uid = value(demo / "x.sqlite", "select uid from trajectories where id = 17")
    shown = rltracer("inspect", demo / "run", "--trajectory", uid if asked == "uid" else asked)
    assert shown.stdout.startswith(f"trajectory 17 · {uid} ·")
    assert sentence(rltracer("inspect", demo / "run", "--trajectory", "zz")) == (
        "The index has no trajectory zz; it has 368, from 1 to 368."
    )


def test_a_trajectory_and_problems_need_no_run(tmp_path: Path) -> None:
    database = tmp_path / "x.sqlite"
    for name in ("a", "b"):
        run = make_run(tmp_path / name)
        file = run / "rollouts" / TRACES.format(1)
        file.write_bytes(file.read_bytes() + b"no JSON\n")
        assert indexed(database, run).returncode == 0
    lines = rltracer("inspect", database, "--problems", "--json").stdout.splitlines()
    assert [json.loads(line)["run"] for line in lines] == ["a", "b"]
    assert rltracer("inspect", database, "--problems").stdout.endswith("\n2 problems\n")
    assert rltracer("inspect", database, "--problems", "--run", "b").stdout.endswith("\n1 problem\n")
    assert f"/{tmp_path.name}/b: 1 step; split train\n" in rltracer("inspect", database, "--run", "b").stdout
    for options in ([], ["--name", "b"], ["--run", "2"]):
        told = json.loads(rltracer("inspect", database, "--trajectory", 2, "--json", *options).stdout)
        assert told["metadata"]["id"] == 2
    done = rltracer("inspect", database, "--run", "a", "--trajectory", 2)
    how = f"rltracer inspect {database} --trajectory 2"
    assert sentence(done) == f"Trajectory 2 is not of this run but of the run b. Show it with: {how}"


def test_messages_and_bytes_are_numbered_as_on_the_page(demo: Path) -> None:
    offset, length = rows(demo / "x.sqlite", "select byte_offset, byte_length from trajectories where id = 9")[0]
    shown = rltracer("inspect", demo / "x.sqlite", "--trajectory", 9).stdout
    assert f" bytes {offset:,} – {offset + length - 1:,} ── #1 " in " ".join(shown.split())
    assert shown.index("── #1 ") < shown.index("── #2 ")
    assert "── #0 " not in shown


def test_the_agents_of_an_episode_lead_to_one_another(tmp_path: Path) -> None:
    said = [message("user", "6 * 7?"), message("assistant", "42")]
    alone, *both = (trace(said, agent=name) for name in ("agent", "solver", "judge\npassed"))
    database = export_runs.indexed(tmp_path, {1: [episode([alone]), episode(both)]})
    shown = [rltracer("inspect", database, "--trajectory", n).stdout.splitlines()[3] for n in (1, 2, 3)]
    assert "episode" not in shown[0]
    assert shown[1] == "agent solver · its episode has 2 trajectories: beside it judge␊passed 3"
    assert shown[2] == "agent judge␊passed · its episode has 2 trajectories: beside it solver 2"


@pytest.mark.parametrize("before", ["<think>", ""], ids=["both tags", "the closing tag"])
def test_a_long_thought_within_the_text_does_not_cut_off_the_answer(tmp_path: Path, before: str) -> None:
    said = f"{before}{'hm ' * 5000}</think>\n\nIt is 42."
    write_lines(tmp_path / "run/chats.jsonl", {"messages": [message("user", "6 * 7?"), message("assistant", said)]})
    assert indexed(tmp_path / "x.sqlite", tmp_path / "run").returncode == 0
    shown = rltracer("inspect", tmp_path / "x.sqlite", "--trajectory", 1).stdout.splitlines()
    thought, more, answer = shown[-3:]
    of_all = len(said) - len("\n\nIt is 42.")
    assert thought.startswith("│ hm ")
    assert more == f"… {of_all - 4000:,} of {of_all:,} characters more; --full shows them"
    assert answer == "It is 42."
    assert said in rltracer("inspect", tmp_path / "x.sqlite", "--trajectory", 1, "--full").stdout


def test_of_several_runs_a_trajectory_names_its_own_and_the_next_command_chooses_it(tmp_path: Path) -> None:
    database = tmp_path / "x.sqlite"
    indexed(database, make_run(tmp_path / "a"))
    assert "run 1: " not in rltracer("inspect", database, "--trajectory", 1).stdout
    indexed(database, make_run(tmp_path / "b"))
    lines = rltracer("inspect", database, "--trajectory", 2).stdout.splitlines()
    assert lines[1] == "run 2: b"
    command = lines[2].partition("its trajectories: ")[2].split()
    assert command[-2:] == ["--run", "2"]
    shown = rltracer("inspect", database, *command)
    assert shown.returncode == 0
    assert "\n" in shown.stdout


def test_what_a_trajectory_took_is_told_as_on_its_page(demo: Path, tmp_path: Path) -> None:
    for name in ("policy_version", "prompt_tokens", "completion_tokens", "seconds"):
        assert value(demo / "x.sqlite", f"select {name} from trajectories where id = 3") is not None
    shown = rltracer("inspect", demo / "x.sqlite", "--trajectory", 3).stdout
    assert re.search(r"^policy version 0 · prompt tokens \d+ · completion tokens \d+ · took [\d.]+ s$", shown, re.M)
    indexed(tmp_path / "x.sqlite", write_areal(tmp_path / "run", [(0, 1)]))
    shown = rltracer("inspect", tmp_path / "x.sqlite", "--trajectory", 1).stdout
    assert "\npolicy version 0 – 1 · prompt tokens 5 · completion tokens 4\n" in shown
    indexed(tmp_path / "less.sqlite", make_run(tmp_path / "less"))
    assert "\nstopped: " in (shown := rltracer("inspect", tmp_path / "less.sqlite", "--trajectory", 1).stdout)
    assert "policy version" not in shown
