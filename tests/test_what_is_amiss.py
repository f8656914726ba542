"""What a list does not have is said beneath it: unreadable lines, texts that are missing, vanished files."""

from __future__ import annotations

import json
import shutil
from contextlib import closing
from pathlib import Path

import pytest

from rltracer_sqlite import TraceDataExporter, open_run, search_text
from rltracer_sqlite.analysis import Selection, analyse_run, write_analysis
from rltracer_sqlite.cli.columns import width_of
from rltracer_sqlite.index.database import open_index
from rltracer_sqlite.tokens.templates import NO_TEXT
from tests.commands import indexed, rltracer
from tests.layouts import append, message, trace
from tests.token_layouts import micro_batch, question, write_bin, write_tokenizer
from tests.wrong_tokenizers import LONG, SHARD, wrong

TRACES = "rollouts/step_{}/train/all/traces.jsonl"
RATES = ["     train: 6 scored, pass rate 0.500, mean reward 0.500", "     success: reward >= 1"]
LISTS = [(), ("--step", 1), ("--step", 1, "--prompt", 1), ("--prompt", 1), ("--hardest",), ("--easiest", 3)]


def one(place: Path) -> str:
    """Return what is said beside all figures of a run with one problem; `place` is an index or the run."""
    return f"run: 1 problem, in step 1: rltracer inspect {place} --problems lists them.\n"


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


@pytest.mark.parametrize("asked", LISTS)
def test_every_list_counts_the_problems_of_its_run(database: Path, run: Path, asked: tuple[object, ...]) -> None:
    told = one(database)
    told = told.replace("run: 1 problem, in step 1", "run, step 1: 1 problem") if "--step" in asked else told
    assert rltracer("inspect", database, *asked).stderr == told
    rltracer("inspect", run, "--problems")  # reads it
    assert rltracer("inspect", run, *asked).stderr == told.replace(str(database), str(run))
    done = rltracer("inspect", database, *asked, "--json")
    assert all(json.loads(line) for line in done.stdout.splitlines())
    assert done.stderr == told


@pytest.mark.parametrize("is_terminal", [False, True], ids=["pipe", "terminal"])
def test_every_other_command_that_shows_figures_counts_them(
    database: Path, run: Path, tmp_path: Path, is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    for asked in (
        ("plot", database, "reward"),
        ("plot", database, "pass-rate", "-o", tmp_path / "x.html"),
        ("success", database),
        ("success", database, "run", "--rule", "reward >= 0.5"),
        ("analyze", database, "-o", tmp_path / "analysis"),
        ("search", database, "word1"),
    ):
        done = rltracer(*asked, is_terminal=is_terminal)
        assert (done.returncode, done.stderr) == (0, one(database)), asked
    done = rltracer("analyze", run, "-o", tmp_path / "analysis", is_terminal=is_terminal)
    assert (done.returncode, done.stderr) == (0, one(run))


def test_an_analysis_keeps_it_in_python_and_in_its_report(database: Path, tmp_path: Path) -> None:
    note = "1 problem, in step 1: rltracer inspect x.sqlite --problems lists them."
    with closing(open_index(database)) as connection:
        found = analyse_run(connection, 1, Selection())
    assert found.amiss == note
    assert repr(found).endswith("0 unscored; '1 problem, in step 1: rltracer inspect x.sqlite -…'>")
    write_analysis(tmp_path / "analysis", Selection(), [1], [found])
    assert f"\n\nNote: {note}\n\n" in (tmp_path / "analysis/report.md").read_text()
    assert [run["amiss"] for run in json.loads((tmp_path / "analysis/analysis.json").read_text())["runs"]] == [note]


def test_steps_that_were_not_read_are_told_where_an_index_lacks_them(run: Path, tmp_path: Path) -> None:
    database = tmp_path / "x.sqlite"
    indexed(database, run, "--steps", 2)
    assert rltracer("success", database).stderr == "run: 1 of 2 steps not read yet.\n"
    assert rltracer("inspect", database, "--step", 2).stderr == ""
    assert rltracer("inspect", run, "--step", 2).stderr == ""  # reads what is asked for


def test_of_many_runs_the_first_are_told(run: Path, tmp_path: Path) -> None:
    for number in range(8):
        shutil.copytree(run, tmp_path / "runs" / f"r{number}")
        with (tmp_path / "runs" / f"r{number}" / TRACES.format(2)).open("a") as file:
            file.write("{" if number else '{"broken": \n')
    database = tmp_path / "x.sqlite"
    indexed(database, *sorted((tmp_path / "runs").iterdir()))
    first, *others, more = rltracer("success", database).stderr.splitlines()
    assert first == f"r0: 1 problem, in step 2: rltracer inspect {database} --run r0 --problems lists them."
    assert [line.partition(" last line")[0] for line in others] == [
        f"r{number}: 1 of 2 files has an unfinished" for number in range(1, 5)
    ]
    assert more == f"3 runs more, not read completely: rltracer runs {database} lists them."
    assert rltracer("success", database, "r0").stderr == f"{first}\n"
    assert rltracer("inspect", database).stderr.splitlines() == [first, *others, more]


def test_a_run_with_a_line_break_in_its_name_is_one_line(run: Path, tmp_path: Path) -> None:
    for number in range(2):
        shutil.copytree(run, tmp_path / "runs" / f"r\n{number}: all was read")
        with (tmp_path / "runs" / f"r\n{number}: all was read" / TRACES.format(2)).open("a") as file:
            file.write('{"broken": \n')
    indexed(tmp_path / "x.sqlite", *sorted((tmp_path / "runs").iterdir()))
    for asked in (["success"], ["inspect", "--run", 1, "--step", 2]):
        lines = rltracer(asked[0], tmp_path / "x.sqlite", *asked[1:]).stderr.splitlines()
        assert [line.startswith("r␊") and "--run 'r␊" in line for line in lines] == [True] * len(lines)
        assert lines


def test_runs_searches_and_exports_count_them_too(database: Path, run: Path) -> None:
    listed = rltracer("runs", database).stdout.splitlines()
    command = f"rltracer inspect {database} --problems"
    assert listed[1:] == [
        "  1  run: 6 trajectories, read to the end, 1 problem", *RATES, f"     {run}", f"  {command}"
    ]  # fmt: skip
    note = "run: 1 problem, in step 1: rltracer inspect x.sqlite --problems lists them."  # may be handed on
    for asked in (["--dry-run"], ["-o", run.parent / "x.jsonl"]):
        done = rltracer("export", database, *asked)
        notes = [line for line in done.stderr.splitlines(keepends=True) if not line.startswith("Note: ")]
        assert (done.returncode, notes) == (0, [one(database)])
        assert "problem" not in done.stdout
    assert rltracer("export", database, "-o", run.parent / "x.jsonl", "--quiet").stderr == ""
    told = TraceDataExporter(database).inspect()
    assert told["notes"] == told["amiss"] == [note]
    assert TraceDataExporter(run).inspect()["amiss"] == [
        "run: 1 problem, in step 1: rltracer inspect run --problems lists them."
    ]
    assert rltracer("export", run, "--dry-run").stderr == one(run)
    shutil.copytree(run, run.parent / "other")
    indexed(database, run.parent / "other")
    assert TraceDataExporter(database).inspect()["amiss"] == [
        f"{name}: 1 problem, in step 1: rltracer inspect x.sqlite --run {name} --problems lists them."
        for name in ("run", "other")
    ]
    assert rltracer("export", database, "--run", "other", "--dry-run").stderr == (
        f"other: 1 problem, in step 1: rltracer inspect {database} --run other --problems lists them.\n"
    )
    assert rltracer("inspect", database).stderr.splitlines() == [
        f"{name}: 1 problem, in step 1: rltracer inspect {database} --run {name} --problems lists them."
        for name in ("run", "other")
    ]


def test_nothing_is_said_where_nothing_is_amiss(run: Path, tmp_path: Path) -> None:
    indexed(tmp_path / "x.sqlite", run, "--fts")
    asked = [
        *(("inspect", *more) for more in LISTS),
        ("plot", "reward"),
        ("success",),
        ("analyze", "-o", tmp_path / "a"),
    ]
    listed = [rltracer(name, tmp_path / "x.sqlite", *more) for name, *more in asked]
    assert {done.stderr for done in listed} == {""}
    assert not any("problem" in done.stdout.lower() or "gone" in done.stdout for done in listed)
    assert "Note:" not in (tmp_path / "a/report.md").read_text()
    assert rltracer("runs", tmp_path / "x.sqlite").stdout.splitlines()[1:] == [
        "  1  run: 6 trajectories, read completely", *RATES, f"     {run}",
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
    assert "passed (reward >= 1)" in shown
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
        "6 of 6 trajectories can be searched; 4 have a file that cannot be read any more: found by their words"
        in rltracer("search", database, "word5").stderr
    )
    rltracer("fts", database, "--rebuild")
    lost = "2 of 6 trajectories can be searched; 4 have a file that cannot be read any more, and was never read"
    lost += " for its words"
    done = rltracer("search", database, "nowhere")
    assert done.stdout == f"No match in {lost.replace(' can be searched', '')}.\n"
    assert lost not in done.stderr
    found = search_text(database, "word5")
    assert (found.unsearched, found.without_text, found.gone) == (0, 0, 4)
    assert repr(found) == "<Matches: 1 of 1 trajectory; 4 whose file cannot be read any more>"


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
    assert (done.stdout, done.stderr) == (f"No match in {none.replace(' can be searched', '')}.\n", "")
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
