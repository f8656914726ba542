"""Trajectories that are exported by their ids, and what an export says of several runs."""

from __future__ import annotations

import json
import os
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rltracer_sqlite.cli.export import command
from rltracer_sqlite.export import ExportError, TraceRunSpec
from tests.export_runs import chosen, export, funnel, indexed, inspect, read_rows, rollout, spec, uids, write_steps
from tests.indexing import index, rows


def run(*arguments: object, code: int = 0, **options: Any) -> Result:
    """Run the command, which must end with this code."""
    result = CliRunner().invoke(command, [str(argument) for argument in arguments], **options)
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Return the index of a run whose second step has a rollout with a number for a recorded id."""
    records = [rollout("a"), rollout("b", passed=False), rollout("c"), rollout("d", "other")]
    return indexed(tmp_path, {1: records, 2: [rollout("77", "third")]})


@pytest.fixture
def several(tmp_path: Path) -> Path:
    """Return an index of three runs; every second rollout fails, and one recorded id is in two of them."""
    for name, count in (("one", 2), ("two", 5), ("none", 1)):
        records = [rollout(f"{name}{n}", f"q{n}", passed=n % 2 == 1) for n in range(count)]
        write_steps(tmp_path / name, {1: [*records, rollout("both", passed=name != "none")]})
        index(tmp_path / "x.sqlite", tmp_path / name)
    return tmp_path / "x.sqlite"


def number_of(database: Path, uid: str) -> int:
    """Return the id of the trajectory with this recorded id."""
    return int(rows(database, f"select id from trajectories where uid = '{uid}'")[0][0])


def test_ids_and_recorded_ids_are_taken_and_everything_else_holds(database: Path) -> None:
    asked = [number_of(database, "a"), "b", str(number_of(database, "d")), 77, "a"]
    only = spec(database, ids=asked)
    assert chosen(only) == ["77", "a", "d"]
    assert chosen(only, acceptance="any") == ["77", "a", "b", "d"]
    assert chosen(spec(database, ids=iter(asked))) == ["77", "a", "d"]
    told = inspect(spec(database, ids=asked, step_end=1))
    assert funnel(told)["ids"] == 2
    assert told["notes"] == [
        "Of 4 trajectories asked for by id: 1 not of the asked steps and split, "
        "1 that have not passed (acceptance='any' takes them)."
    ]


def test_ids_choose_prompts_and_pairs_too(tmp_path: Path, database: Path) -> None:
    [row] = export(spec(database, ids=["d"]), tmp_path / "o.jsonl", mode="rl", rl_from_trace=True)
    assert row["prompt"][-1]["content"] == "other"
    [pair] = export(spec(database, ids=["b", "c"]), tmp_path / "o.jsonl", mode="preference", include_provenance=True)
    assert pair["trace_provenance"]["chosen"]["uid"] == "c"
    with pytest.raises(ExportError, match="There is no pair"):
        export(spec(database, ids=["a", "c"]), tmp_path / "o.jsonl", mode="preference")


def test_ids_leave_the_pass_rate_as_it_is(tmp_path: Path, database: Path) -> None:
    [row] = export(spec(database, ids=["a"]), tmp_path / "o.jsonl", include_provenance=True)
    assert row["trace_provenance"]["prompt_pass_rate"] == pytest.approx(2 / 3)


def test_ids_of_an_index_are_each_of_one_of_its_runs(several: Path) -> None:
    asked = ["one1", str(number_of(several, "two3"))]
    assert chosen(TraceRunSpec(several, ids=asked)) == ["one1", "two3"]
    assert chosen(TraceRunSpec(several, ids=["both"])) == ["both", "both"]
    with pytest.raises(ExportError, match=r"has these ids \(1 of 2\): \d+\."):
        chosen(TraceRunSpec(several, run="one", ids=asked))
    other = [TraceRunSpec(several, run="two", ids=["two1"]), TraceRunSpec(several, run="one")]
    assert sorted(chosen(other)) == ["both", "one1", "two1"]


@pytest.mark.parametrize(
    ("ids", "sentence"),
    [
        ([], "No trajectory is asked for"),
        ("a", "ids is 'a': it is a list"),
        (5, "ids is 5: it is a list"),
        (["a", None], "An id is None"),
        ([True], "An id is True"),
        (["\ud800"], "An id is"),
        (["a", "nobody" * 20, 10**15], r"has these ids \(2 of 3\): (nobody)+nob…, 10+\."),
        (range(1000, 1010), "1000, 1001, 1002, 1003, 1004 and 5 more"),
    ],
)  # fmt: skip
def test_ids_that_mean_nothing_are_refused(database: Path, ids: Any, sentence: str) -> None:
    with pytest.raises(ExportError, match=sentence):
        chosen(spec(database, ids=ids))


def test_the_command_takes_ids_from_a_file_from_its_input_and_from_a_pipe(tmp_path: Path, database: Path) -> None:
    text, out, pipe = f"\ufeff{number_of(database, 'a')}\r\n\n  d\n", tmp_path / "out.jsonl", tmp_path / "pipe"
    (tmp_path / "ids.txt").write_bytes(text.encode())
    os.mkfifo(pipe)
    writer = Thread(target=pipe.write_text, args=(text,))
    writer.start()
    for given, stdin in ((tmp_path / "ids.txt", None), ("-", text), (pipe, None)):
        run(database, "--ids", given, "-o", out, input=stdin)
        assert uids(read_rows(out)) == ["a", "d"]
    writer.join()


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a\nnobody\n", "has these ids (1 of 2): nobody."),
        ("", "the ids are empty"),
        ("a" * 100_000, "A line of 65,536 bytes or more is no id"),
        ("\0\xff", "has these ids (1 of 1)"),
    ],
)
def test_the_command_refuses_lines_that_are_no_ids(database: Path, text: str, sentence: str) -> None:
    assert sentence in run(database, "--ids", "-", "--dry-run", input=text.encode("latin-1"), code=1).output


def test_the_command_takes_ids_of_one_database(database: Path, several: Path) -> None:
    assert "--ids are those of one database" in run(database, several, "--ids", "-", "--dry-run", code=2).output


def test_the_rows_of_each_run_are_told(tmp_path: Path, several: Path) -> None:
    assert "Selected by run: one 2, two 3, none 0." in run(several, "--dry-run").output
    output = run(several, "-o", tmp_path / "o.jsonl", "--distinct").output
    assert "Rows by run: one 2, two 2, none 0." in output  # "both" says the same in each
    told = json.loads((tmp_path / "o.jsonl.summary.json").read_text())
    counts = [(one["name"], one["selected_count"], one["row_count"]) for one in told["runs"]]
    assert counts == [("one", 2, 2), ("two", 2, 2), ("none", 0, 0)]
    assert "by run" not in run(several, "--run", "one", "--dry-run").output


def test_long_and_odd_names_of_runs_stay_in_their_line(tmp_path: Path) -> None:
    for name in ("a" * 80, "two\nlines"):
        index(tmp_path / "x.sqlite", write_steps(tmp_path / name, {1: [rollout(name)]}))
    output = run(tmp_path / "x.sqlite", "--dry-run").output
    assert f"Selected by run: {'a' * 10}…{'a' * 19} 1, two␊lines 1." in " ".join(output.split())
