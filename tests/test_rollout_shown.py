"""What is shown and exported of rollouts of several outputs: each with its branches, and which are in no pair."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

from rltracer_sqlite.adapter import IndexedAdapter
from rltracer_sqlite.model import RLTracer
from rltracer_sqlite.sources import source_named
from tests.commands import rltracer
from tests.indexing import index
from tests.rollout_rows import ROLLOUTS, asked, output
from tests.table_rows import write_lines


def test_a_rollout_is_shown_with_its_outputs(tmp_path: Path) -> None:
    write_lines(tmp_path / "run/1.jsonl", *ROLLOUTS)
    index(tmp_path / "x.sqlite", tmp_path / "run")
    shown = rltracer("inspect", tmp_path / "x.sqlite", "--trajectory", 2).stdout
    assert "note: a rollout of 3 outputs, each with a context of its own" in shown
    assert "branch 3 of 3; --branch N shows another" in shown
    assert "said 1.2" in shown
    assert "said 1.0" in rltracer("inspect", tmp_path / "x.sqlite", "--trajectory", 2, "--branch", 1).stdout


def test_the_prompt_is_that_of_the_first_output(tmp_path: Path) -> None:
    write_lines(tmp_path / "run/1.jsonl", *ROLLOUTS[1:])
    with IndexedAdapter(source_named("verl"), tmp_path / "run", tmp_path / "x.sqlite") as adapter:
        tracer = RLTracer(adapter, prompt_parser=lambda prompt: str(prompt[-1]["content"]).upper())
        (group,) = tracer.step(1).prompts()
        assert group.preview == asked(0).upper()
        assert group.trajectories()[0].load().prompt == [{"role": "user", "content": asked(0)}]


def test_no_unfinished_output_is_a_side_of_a_pair_and_rows_of_outputs_are_told(tmp_path: Path) -> None:
    write_lines(tmp_path / "run/1.jsonl", output(0, 0, 1.0), output(1, 0), output(1, 1))
    pairs = ("export", tmp_path / "run", "--mode", "preference", "-o", tmp_path / "pairs.jsonl")
    done = rltracer(*pairs)
    assert "There is no pair" in done.stderr
    assert "1 rollout of several outputs is in no pair: the last output begins with another prompt." in done.stderr
    asked_for = ("--acceptance", "any", "--per-prompt", "all", "-o", tmp_path / "rows.jsonl")
    done = rltracer("export", tmp_path / "run", *asked_for)
    assert "2 rows are one branch of several, out of 1 trajectory of several branches" in done.stderr
    # A context that begins with the prompt again ends in an answer to it.
    write_lines(
        tmp_path / "run/1.jsonl", output(0, 0, 1.0), output(1, 0), {**output(1, 1), "input": output(1, 0)["input"]}
    )
    rltracer(*pairs)
    (row,) = map(json.loads, (tmp_path / "pairs.jsonl").read_text(encoding="utf-8").splitlines())
    assert row["rejected"][-1]["content"] == "said 1.1"


def pairs_of_several_outputs(folder: Path) -> Path:
    """Write and index four rollouts, of which one that passed has two outputs; return the index."""
    lines = [output(n, 0, float(n % 2)) for n in range(3)]
    write_lines(folder / "run/1.jsonl", *lines, output(3, 0, 1.0), output(3, 1, 1.0))
    index(folder / "x.sqlite", folder / "run")
    return folder / "x.sqlite"


def test_a_dry_run_knows_which_rollouts_are_in_no_pair(tmp_path: Path) -> None:
    pairs = ("export", pairs_of_several_outputs(tmp_path), "--mode", "preference")
    told = rltracer(*pairs, "--dry-run").stdout
    assert [line.split()[-2:] for line in told.splitlines() if line.startswith("answers its prompt")] == [["3", "1"]]
    assert "Selected 1 pair " in told
    written = rltracer(*pairs, "-o", tmp_path / "pairs.jsonl").stdout
    assert told.replace("when read", f"{'–':>9}").splitlines() == written.splitlines()[:-1]
    done = rltracer(*pairs, "--target", "2", "--dry-run")
    assert done.stderr.startswith(
        "Error: 2 pairs asked for, 1 available, of 1 prompt. 1 rollout of several outputs is in no pair: the last "
        "output begins with another prompt. Of 4 trajectories the condition answers its prompt leaves 3, "
    )
    assert "answers its prompt" not in rltracer("export", tmp_path / "x.sqlite", "--dry-run").stdout


def test_of_an_earlier_index_only_reading_tells_which_pairs_are_none(tmp_path: Path) -> None:
    pairs = ("export", pairs_of_several_outputs(tmp_path), "--mode", "preference", "--target", "2")
    with closing(sqlite3.connect(tmp_path / "x.sqlite")) as connection, connection:
        connection.execute("alter table trajectories drop column info_outputs_same_prompt")
        connection.execute("delete from fields where path = 'info.outputs.same_prompt'")
    assert "; where none does, the pair is left out when it is read" in rltracer(*pairs, "--dry-run").stderr
    done = rltracer(*pairs, "-o", tmp_path / "pairs.jsonl")
    assert done.returncode == 1
    assert done.stderr.startswith(
        "Error: 2 pairs asked for, 1 available, of 1 prompt. Left out when they were read: the last output of a "
        "rollout of several begins with another prompt (1). "
    )
    assert done.stderr.rstrip().endswith("then in a pair (chosen passed) 2. Ask for fewer.")
