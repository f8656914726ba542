"""Rollouts of several outputs, each a row: one trajectory with a branch for each, counted once."""

from __future__ import annotations

import json
from collections.abc import Iterable
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.adapter import IndexedAdapter
from rltracer_sqlite.search.document import document, messages_text
from rltracer_sqlite.sources import source_named
from rltracer_sqlite.sources.base import Entry, LocatorError, Position
from rltracer_sqlite.sources.files import open_shard
from rltracer_sqlite.trajectory import Trajectory
from tests.commands import indexed
from tests.indexing import dump, index, rows, value
from tests.layouts import corpora
from tests.rollout_rows import GROUP, ROLLOUTS, asked, output
from tests.table_rows import write_lines
from tests.test_table_presets import locator, read

CORPUS = (corpora() or Path("absent")) / "other/verl/v1_0.9"
APART = "read in part: outputs of its rollout that come before it are missing, or their lines do not stand beside its"
AGAIN = "read in part: the same output of its rollout stands before it: both are counted"
COUNTED = "select count(*), sum(success), sum(branches), sum(turns) from trajectories"


def loaded(root: Path, database: Path, number: int) -> Trajectory:
    with IndexedAdapter(source_named("verl"), root, database) as adapter:
        return adapter.load_trajectory(number)


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpora are not beside this repository")
def test_twelve_rollouts_of_the_corpus_pass_in_half_of_the_cases(tmp_path: Path) -> None:
    done = indexed(tmp_path / "x.sqlite", CORPUS)
    assert "2 rollouts of several outputs are counted once, with a branch for each output" in done.stdout
    steps = rows(tmp_path / "x.sqlite", "select step, split, trajectories, pass_rate from steps order by 1, 2")
    assert steps == [(1, "train", 6, 0.5), (2, "eval", 4, 0.5), (2, "train", 6, 0.5)]
    groups = "select count(*), count(distinct group_id), min(pass_rate), max(pass_rate) from prompt_groups"
    assert rows(tmp_path / "x.sqlite", f"{groups} where step = 1") == [(3, 3, 0.5, 0.5)]
    assert not value(tmp_path / "x.sqlite", "select count(*) from prompts where preview like '%(continued)%'")


@pytest.mark.parametrize("order", list(permutations(range(3))), ids=str)
def test_the_outputs_of_a_rollout_may_stand_in_any_order(order: tuple[int, ...], tmp_path: Path) -> None:
    parts = [output(1, part, float(part == 2), acc=part) for part in order]
    write_lines(tmp_path / "run/1.jsonl", output(0, 0), *parts, output(2, 0, 1.0))
    index(tmp_path / "x.sqlite", tmp_path / "run")
    found = rows(tmp_path / "x.sqlite", "select reward, branches, turns, line, preview, group_id from trajectories")
    assert found == [
        (0.0, 1, 1, 1, asked(0), GROUP),
        (1.0, 3, 3, 2, asked(0), GROUP),
        (1.0, 1, 1, 5, asked(0), GROUP),
    ]
    assert rows(tmp_path / "x.sqlite", "select trajectories, pass_rate from prompt_groups") == [(3, 2 / 3)]
    trajectory = loaded(tmp_path / "run", tmp_path / "x.sqlite", 2)
    assert [branch[-1]["content"] for branch in trajectory.branches] == ["said 1.0", "said 1.1", "said 1.2"]
    assert (trajectory.messages, trajectory.trained) == (trajectory.branches[-1], [True] * 3)
    assert (trajectory.metadata["reward"], trajectory.metadata["outputs"]) == (1.0, 3)
    assert (trajectory.metadata["completion"]["turns"], trajectory.record["acc"]) == (3, 2)
    assert [one["acc"] for one in trajectory.record["outputs"]] == [0, 1, 2]
    assert [json.loads(line)["acc"] for line in trajectory.raw.splitlines()] == list(order)


def test_all_outputs_are_searched(tmp_path: Path) -> None:
    write_lines(tmp_path / "1.jsonl", *ROLLOUTS)
    reader = source_named("verl")
    for shard, entry in read(reader, tmp_path)[0]:
        with open_shard(tmp_path, shard.path) as opened:
            text = messages_text(reader.messages(tmp_path, opened)(locator(shard, entry)))
        assert text == document(reader.load(tmp_path, [locator(shard, entry)])).text
        assert text.count("said") == entry.branches


@pytest.mark.parametrize("newline", [True, False], ids=["whole lines", "no last newline"])
def test_outputs_that_come_later_belong_to_the_rollout_before_them(newline: bool, tmp_path: Path) -> None:
    file, database = tmp_path / "run/1.jsonl", tmp_path / "x.sqlite"
    lines = [json.dumps(row) for row in ROLLOUTS]
    lines.insert(2, "")
    file.parent.mkdir()
    for count in range(1, len(lines) + 1):
        file.write_text("\n".join(lines[:count]) + "\n" * newline, encoding="utf-8")
        index(database, tmp_path / "run")
        index(tmp_path / f"{count}.sqlite", tmp_path / "run")
        for sql in (COUNTED, "select uid, byte_length, reward from trajectories", "select records, lines from shards"):
            assert rows(database, sql) == rows(tmp_path / f"{count}.sqlite", sql)
    assert rows(database, COUNTED) == [(4, 3, 7, 7)]
    assert not value(database, "select count(*) from problems")
    if newline:
        assert dump(database) == dump(tmp_path / f"{len(lines)}.sqlite")


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ((0, 5), "outputs 1–4 of its rollout are missing between the others"),
        ((0, 1, 3), "output 2 of its rollout is missing between the others"),
        ((4, 0, 2), "outputs 1, 3 of its rollout are missing between the others"),
        ((0, 999_999_999), "outputs 1–999999998 of its rollout are missing between the others"),
        ((2, 0, 1), None),
    ],
    ids=str,
)
@pytest.mark.parametrize("at_once", [True, False], ids=["at once", "one by one"])
def test_outputs_that_are_missing_between_others_are_told(
    parts: tuple[int, ...], said: str | None, at_once: bool, tmp_path: Path
) -> None:
    file, database = tmp_path / "run/1.jsonl", tmp_path / "x.sqlite"
    lines = [output(7, 0), *(output(1, part, 1.0) for part in parts), output(8, 0)]
    if not at_once and parts == tuple(sorted(parts)):
        for count in range(1, len(lines)):
            write_lines(file, *lines[:count])
            index(database, tmp_path / "run")
    write_lines(file, *lines)
    index(database, tmp_path / "run")
    assert rows(database, "select branches, reward from trajectories order by line") == [
        (1, 0),
        (len(parts), 1),
        (1, 0),
    ]
    assert rows(database, "select line, reason from problems") == ([(2, f"read in part: {said}")] if said else [])
    remarks = loaded(tmp_path / "run", database, 2).metadata["remarks"]
    assert [one for one in remarks if "missing" in one] == ([said] if said else [])


def test_a_position_is_never_between_two_outputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rltracer_sqlite.sources.table.joined.COMMIT_RECORDS", 1)
    write_lines(tmp_path / "1.jsonl", *ROLLOUTS)
    reader = source_named("verl")
    (shard,) = reader.shards(tmp_path)
    positions = [one for one in reader.scan(tmp_path, shard) if isinstance(one, Position)]
    assert [position.line for position in positions] == [1, 4, 5, 7, 7]
    for start in positions:
        entries = [one for one in reader.scan(tmp_path, shard, start) if isinstance(one, Entry)]
        assert sum(entry.branches for entry in entries) == 7 - start.line


def test_the_same_id_in_another_step_is_another_rollout(tmp_path: Path) -> None:
    for step in (1, 2):
        write_lines(tmp_path / f"run/{step}.jsonl", *(output(0, part, 1.0, step=step) for part in range(2)))
    index(tmp_path / "x.sqlite", tmp_path / "run")
    assert rows(tmp_path / "x.sqlite", COUNTED) == [(2, 2, 4, 4)]
    both = tmp_path / "both/1.jsonl"
    write_lines(both, *(output(0, part, 1.0, step=step) for step in (1, 2) for part in range(2)))
    assert [entry.branches for _, entry in read(source_named("verl"), both)[0]] == [2, 2]


def files(root: Path, *parts: Iterable[dict[str, Any]]) -> None:
    for number, part in enumerate(parts):
        write_lines(root / ("a" * number) / "1.jsonl", *part)


@pytest.mark.parametrize(
    ("parts", "counted", "told"),
    [
        ([[output(0, 1), output(0, 2)]], (1, 2), APART),
        ([[output(0, 0)], [output(0, 1)]], (2, 2), APART),
        ([[output(0, 0), output(1, 0), output(0, 1)]], (3, 3), APART),
        ([[output(0, 0), output(0, 1), output(0, 1)]], (2, 3), AGAIN),
        ([[output(0, 0), output(0, 1), output(0, 0), output(0, 1)]], (2, 4), AGAIN),
    ],
    ids=["the first is missing", "two files", "another between", "twice the same", "a rollout twice"],
)
def test_outputs_that_stand_apart_are_counted_by_themselves_and_told(
    parts: list[list[dict[str, Any]]], counted: tuple[int, int], told: str, tmp_path: Path
) -> None:
    files(tmp_path / "run", *parts)
    index(tmp_path / "x.sqlite", tmp_path / "run")
    assert rows(tmp_path / "x.sqlite", "select count(*), sum(branches) from trajectories") == [counted]
    ((reason,),) = rows(tmp_path / "x.sqlite", "select reason from problems")
    assert reason.startswith(told)


def test_a_rollout_of_too_many_outputs_is_cut_at_the_same_places_when_it_grows(tmp_path: Path) -> None:
    for count in (1200, 2100):
        write_lines(tmp_path / "run/1.jsonl", *(output(0, part) for part in range(count)))
        index(tmp_path / "x.sqlite", tmp_path / "run")
    found = rows(tmp_path / "x.sqlite", "select line, branches from trajectories")
    assert found == [(1, 1000), (1001, 1000), (2001, 100)]


def test_lines_that_say_nothing_or_need_leniency_part_no_rollout(tmp_path: Path) -> None:
    first, second = json.dumps(output(0, 0)), json.dumps(output(0, 1, float("nan")))
    (tmp_path / "1.jsonl").write_bytes(f"\ufeff{first}\r\n\r\n\n{second}\r\nnot JSON\n{first}\n".encode())
    reader = source_named("verl")
    found, problems, _ = read(reader, tmp_path)
    assert [(entry.branches, entry.line, entry.reward) for _, entry in found] == [(2, 1, None), (1, 6, 0.0)]
    assert [(problem.line, problem.reason[:12]) for problem in problems] == [(5, "not readable"), (4, "read in part")]
    assert len(reader.load(tmp_path, [locator(*found[0])]).branches) == 2


@pytest.mark.parametrize(
    "other", [output(1, 1), {"other": 1}, {**output(0, 1), "uid": "x"}], ids=["session", "shape", "id"]
)
def test_a_rollout_that_has_changed_is_refused(other: dict[str, Any], tmp_path: Path) -> None:
    write_lines(tmp_path / "1.jsonl", output(0, 0), output(0, 1))
    reader = source_named("verl")
    ((shard, entry),) = read(reader, tmp_path)[0]
    write_lines(tmp_path / "1.jsonl", output(0, 0), {**other, "padding": " " * 500})
    with pytest.raises(LocatorError, match="has changed since it was indexed"):
        reader.load(tmp_path, [locator(shard, entry)])
