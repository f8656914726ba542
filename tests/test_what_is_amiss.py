"""What a list does not have is said beneath it: unreadable lines, texts that are missing, vanished files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from rltracer_sqlite import TraceDataExporter, open_run, search_text
from rltracer_sqlite.cli.columns import width_of
from rltracer_sqlite.tokens.templates import NO_TEXT
from tests.commands import indexed, rltracer
from tests.layouts import append, message, trace
from tests.test_wrong_tokenizer import LONG, SHARD, wrong
from tests.token_layouts import micro_batch, question, write_bin, write_tokenizer

TRACES = "rollouts/step_{}/train/all/traces.jsonl"
ONE = "1 problem: --problems lists them."


def said(number: int) -> dict[str, object]:
    """Return a scored trace that says its number."""
    answer = message("assistant", f"word{number}", reasoning_content="hm")
    return trace([message("user", "Well?"), answer], id=f"t{number}", reward=number % 2)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    append(tmp_path / "run" / TRACES.format(1), *map(said, range(4)))
    append(tmp_path / "run" / TRACES.format(2), *map(said, range(4, 6)))
    return tmp_path / "run"


@pytest.fixture
def database(tmp_path: Path, run: Path) -> Path:
    """Return the index of a run with one line that nobody can read."""
    with (run / TRACES.format(1)).open("a") as file:
        file.write('{"broken": \n')
    indexed(tmp_path / "x.sqlite", run, "--fts")
    return tmp_path / "x.sqlite"


@pytest.mark.parametrize(
    "asked", [(), ("--step", 1), ("--step", 1, "--prompt", 1), ("--prompt", 1), ("--hardest",), ("--easiest", 3)]
)
def test_every_list_counts_the_problems_of_its_run(database: Path, run: Path, asked: tuple[object, ...]) -> None:
    assert rltracer("inspect", database, *asked).stdout.splitlines()[-1] == ONE
    rltracer("inspect", run, "--problems")  # reads it
    assert rltracer("inspect", run, *asked).stdout.splitlines()[-1] == ONE
    assert all(json.loads(line) for line in rltracer("inspect", database, *asked, "--json").stdout.splitlines())


def test_runs_searches_and_exports_count_them_too(database: Path, run: Path) -> None:
    listed = rltracer("runs", database).stdout.splitlines()
    command = f"rltracer inspect {database} --problems"
    assert listed[1:] == ["  1  run: 6 trajectories, read to the end, 1 problem", f"     {run}", f"  {command}"]
    assert f"1 problem: {command} lists them." in rltracer("search", database, "word1").stderr
    note = "run: 1 problem: rltracer inspect --problems lists them."
    assert note in rltracer("export", database, "--dry-run").stdout.splitlines()
    assert TraceDataExporter(database).inspect()["notes"] == [note]
    shutil.copytree(run, run.parent / "other")
    indexed(database, run.parent / "other")
    assert rltracer("inspect", database).stdout.splitlines()[-1] == "2 problems: --problems lists them."


def test_nothing_is_said_where_nothing_is_amiss(run: Path, tmp_path: Path) -> None:
    indexed(tmp_path / "x.sqlite", run, "--fts")
    listed = [rltracer("inspect", tmp_path / "x.sqlite", *more).stdout for more in ((), ("--step", 1), ("--hardest",))]
    assert not any("problem" in one.lower() or "gone" in one for one in listed)
    assert rltracer("runs", tmp_path / "x.sqlite").stdout.splitlines()[1:] == [
        "  1  run: 6 trajectories, read completely", f"     {run}",
    ]  # fmt: skip
    assert rltracer("search", tmp_path / "x.sqlite", "word1").stderr == ""
    assert TraceDataExporter(tmp_path / "x.sqlite").inspect()["notes"] == []


def test_what_has_vanished_is_counted_and_shown_as_far_as_it_is_known(database: Path, run: Path) -> None:
    (run / TRACES.format(1)).unlink()
    indexed(database, run)
    gone = "4 of {} trajectories counted here cannot be opened: their files are gone."
    assert gone.format(4) in rltracer("inspect", database, "--step", 1).stdout.splitlines()
    assert gone.format(6) in rltracer("inspect", database, "--hardest").stdout.splitlines()
    assert "counted here" not in rltracer("inspect", database, "--step", 2).stdout
    done = rltracer("inspect", database, "--trajectory", 2)
    assert done.returncode == 1
    shown = done.stdout.splitlines()
    assert shown[0] == "trajectory 2 · t1 · step 1 · train"
    assert shown[-2:] == [f"{TRACES.format(1)} line 2 · bytes {shown[-2].split('bytes ')[1]}", "prompt: Well?"]
    assert "success yes (reward >= 1)" in shown
    assert done.stderr == (
        f"Error: {TRACES.format(1)} is not there any more (looked under {run}). If the run is in another folder now:\n"
        f"  rltracer runs {database} --move run FOLDER\n"
    )
    assert rltracer("inspect", database, "--trajectory", 5, "--with", 2).stderr == done.stderr
    assert rltracer("inspect", database, "--trajectory", 5).returncode == 0


def test_a_search_counts_what_it_cannot_open_or_never_read(database: Path, run: Path) -> None:
    (run / TRACES.format(1)).unlink()
    indexed(database, run)
    assert (
        "6 of 6 trajectories can be searched; 4 have a file that is gone: found by their words"
        in rltracer("search", database, "word5").stderr
    )
    rltracer("fts", database, "--rebuild")
    lost = "2 of 6 trajectories can be searched; 4 have a file that is gone, and was never read for its words"
    assert rltracer("search", database, "nowhere").stdout == "No match in 2 trajectories.\n"
    assert lost in rltracer("search", database, "nowhere").stderr
    found = search_text(database, "word5")
    assert (found.unsearched, found.without_text, found.gone) == (0, 0, 4)
    assert repr(found) == "<Matches: 1 of 1 trajectory; 4 whose file is gone>"


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    write_bin(tmp_path / "run" / SHARD, [micro_batch("g20", [LONG, question()])])
    return tmp_path / "run"


def test_token_ids_say_why_they_have_no_text(shards: Path, tmp_path: Path) -> None:
    database = tmp_path / "x.sqlite"
    indexed(database, shards, "--fts")
    done = rltracer("inspect", database, "--trajectory", 1)
    assert done.stdout.splitlines()[-1] == f"note: {NO_TEXT}"
    assert width_of(f"note: {NO_TEXT}") <= 80
    beside = rltracer("inspect", database, "--trajectory", 1, "--with", 2).stdout
    assert beside.endswith("\nThere is nothing to compare: neither has a message.\n")
    with open_run(database) as adapter:
        loaded = adapter.load_trajectory(1)
    assert (loaded.messages, loaded.metadata["remarks"]) == ([], [NO_TEXT])
    none = "0 of 2 trajectories can be searched; 2 have no text: token ids without a tokenizer"
    assert none in rltracer("fts", database).stdout.splitlines()
    done = rltracer("search", database, "anything")
    assert (done.stdout, done.stderr) == ("No match in 0 trajectories.\n", f"{none}.\n")
    assert search_text(database, "anything").without_text == 2


def test_a_tokenizer_that_does_not_fit_is_told_with_each_text(shards: Path, tmp_path: Path) -> None:
    database = tmp_path / "x.sqlite"
    warned = indexed(database, shards, "--tokenizer", wrong(tmp_path / "other")).stderr
    [reason] = [line.partition(f"{SHARD}: ")[2] for line in warned.splitlines()]
    for number in (1, 2):
        shown = rltracer("inspect", database, "--trajectory", number).stdout
        assert "".join(f"note: {reason}".split()) in "".join(shown.split())
        with open_run(database) as adapter:
            assert reason in adapter.load_trajectory(number).metadata["remarks"]
    indexed(database, shards, "--tokenizer", write_tokenizer(tmp_path / "own"))
    assert "note:" not in rltracer("inspect", database, "--trajectory", 1).stdout
