"""What holds of a run's files is said by every indexing of it: what waits, and what is left aside and why."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rltracer_sqlite.index.states import amiss, run_states
from rltracer_sqlite.sources.prime_rl import scan
from tests.commands import indexed, rltracer
from tests.indexing import index, rows, value
from tests.layouts import append, message, trace
from tests.table_conversations import nemo_gym

TRACES = "rollouts/step_1/train/all/traces.jsonl"
INPUTS: dict[str, object] = {"responses_create_params": {"input": []}}


def told(database: Path, run: Path) -> list[str]:
    """Return what an indexing says of the files of a run, and of how many problems."""
    lines = indexed(database, run).stdout.splitlines()
    return [lines[0].rpartition(", ")[2], *(line for line in lines if line.startswith(("  waiting", "  left aside")))]


def test_a_line_that_is_not_finished_is_told_until_it_is(tmp_path: Path) -> None:
    run, database = tmp_path / "run", tmp_path / "x.sqlite"
    append(run / TRACES, trace([message("user", "Well?"), message("assistant", "Yes.")], id="t1", reward=1))
    with (run / TRACES).open("a") as file:
        file.write('{"id": "t2"')
    waits = f"  waiting: {TRACES} has an unfinished last line, which is read when it is complete"
    assert [told(database, run), told(database, run)] == [["0 problems", waits]] * 2
    with (run / TRACES).open("a") as file:
        file.write(', "broken\n')
    assert [told(database, run), told(database, run)] == [["1 problem"]] * 2


def rollouts(run: Path, *beside: dict[str, object]) -> None:
    """Write a run of NeMo-Gym, and one more file."""
    run.mkdir()
    nemo_gym(run)
    (run / "x_rollouts_materialized_inputs.jsonl").unlink()
    append(run / "more_rollouts_inputs.jsonl", *beside)


def test_a_file_of_a_known_other_kind_is_no_problem(tmp_path: Path) -> None:
    rollouts(tmp_path / "run", INPUTS)
    database = tmp_path / "x.sqlite"
    aside = "  left aside: more_rollouts_inputs.jsonl: NeMo-Gym's inputs, not rollouts"
    assert [told(database, tmp_path / "run"), told(database, tmp_path / "run")] == [["0 problems", aside]] * 2
    assert rltracer("runs", database).stdout.splitlines()[1].endswith(", read completely")


def test_a_file_that_nobody_understands_is_one(tmp_path: Path) -> None:
    rollouts(tmp_path / "run", {"x": 1})
    database = tmp_path / "x.sqlite"
    first, again = told(database, tmp_path / "run"), told(database, tmp_path / "run")
    assert first == again
    assert (first[0], len(first)) == ("1 problem", 2)
    assert first[1].startswith("  left aside: more_rollouts_inputs.jsonl: no rollouts here: ")
    assert rltracer("runs", database).stdout.splitlines()[1].endswith(", read to the end, 1 problem")


@pytest.mark.parametrize("beside", [(INPUTS, {"x": 1}), ({"x": 1}, INPUTS)], ids=["after", "before"])
def test_a_file_is_known_only_where_every_record_is(tmp_path: Path, beside: tuple[dict[str, object], ...]) -> None:
    rollouts(tmp_path / "run", *beside)
    first, line = told(tmp_path / "x.sqlite", tmp_path / "run")
    assert first == "1 problem"
    assert line.startswith("  left aside: more_rollouts_inputs.jsonl: no rollouts here: ")
    assert "NeMo-Gym's inputs" not in line


@pytest.mark.parametrize(
    ("lines", "count", "why"),
    [
        ([{"valid": True}] * 2, "0 problems", "results of validating an environment, not rollouts"),
        ([{"valid": True}, {"x": 1}], "1 problem", "no rollouts here: keys: x"),
    ],
    ids=["known", "mixed"],
)
def test_lines_beside_a_run_of_prime_rl_are_known_by_their_kind(
    tmp_path: Path, lines: list[dict[str, object]], count: str, why: str
) -> None:
    run, database = tmp_path / "run", tmp_path / "x.sqlite"
    append(run / TRACES, trace([message("user", "Well?"), message("assistant", "Yes.")], id="t1", reward=1))
    append(run / "validated.jsonl", *lines)
    assert told(database, run) == [count, f"  left aside: validated.jsonl: {why}"]
    [(problems, reason)] = rows(database, "select s.problems, reason from problems p join shards s on s.id = shard_id")
    assert (f"{problems} problem{'' if problems == 1 else 's'}", reason) == (count, why)


def test_a_reading_that_is_stopped_has_counted_what_it_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scan, "COMMIT_RECORDS", 1)
    run, database = tmp_path / "run", tmp_path / "x.sqlite"
    for number in range(3):
        append(run / TRACES, trace([message("user", "Well?")], id=f"t{number}"))
        with (run / TRACES).open("a") as file:
            file.write('{"broken": \n')

    def stop(read: int, total: int) -> None:
        if read > total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        index(database, run, progress=stop)
    [(state, count)] = rows(database, "select state, problems from shards")
    assert (state, count) == ("reading", value(database, "select count(*) from problems"))
    assert 0 < count < 3
    index(database, run)
    assert rows(database, "select state, problems from shards") == [("complete", 3)]
    (run / TRACES).write_text((run / TRACES).read_text().replace('"broken"', '"Broken"').replace("Well", "Why"))
    index(database, run)
    assert rows(database, "select state, problems from shards") == [("complete", 3)]


def test_a_rewritten_file_whose_reading_is_stopped_is_not_read_to_its_end_and_is_read_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scan, "COMMIT_RECORDS", 1)
    run, database = tmp_path / "run", tmp_path / "x.sqlite"
    said = [message("user", "Well?"), message("assistant", "Yes.")]
    append(run / TRACES, *(trace(said, id=f"old{number}") for number in range(3)))
    index(database, run)
    (run / TRACES).unlink()
    append(run / TRACES, *(trace(said, id=f"new{number}") for number in range(4)))

    def stop(read: int, total: int) -> None:
        raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            index(database, run, progress=stop)
        with closing(sqlite3.connect(database)) as connection:
            assert amiss(run_states(connection)[1], "how").startswith("1 of 1 file not read to its end yet")
    index(database, run)
    assert rows(database, "select uid from trajectories order by 1") == [(f"new{number}",) for number in range(4)]
    assert rows(database, "select state, records, head_hash is null from shards") == [("complete", 4, 0)]
