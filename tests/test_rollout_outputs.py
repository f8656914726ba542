"""Rollouts of several outputs, each a row: one trajectory with a branch for each, counted once."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable
from contextlib import closing
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.adapter import IndexedAdapter
from rltracer_sqlite.model import RLTracer
from rltracer_sqlite.search.document import document, messages_text
from rltracer_sqlite.sources import source_named
from rltracer_sqlite.sources.base import Entry, LocatorError, Position
from rltracer_sqlite.sources.files import open_shard
from rltracer_sqlite.sources.table import TableSource, mapping_source_from_text
from rltracer_sqlite.trajectory import Trajectory
from tests.commands import indexed, rltracer
from tests.indexing import dump, index, rows, value
from tests.layouts import corpora
from tests.table_rows import write_lines, write_parquet
from tests.test_table_presets import locator, read

GROUP = "0b0f2b1e-6a36-4f7e-9d56-0d7f0a4a0001"
CORPUS = (corpora() or Path("absent")) / "other/verl/v1_0.9"
APART = "read in part: outputs of its rollout that come before it are missing, or their lines do not stand beside its"
AGAIN = "read in part: the same output of its rollout stands before it: both are counted"
COUNTED = "select count(*), sum(success), sum(branches), sum(turns) from trajectories"
MINE = """
name = "mine"
[content]
kind = "text"
prompt = "input"
completion = "output"
[columns]
reward = "score"
rollout = "session"
output = "part"
"""


def asked(part: int) -> str:
    """Return the prompt of an output: the context of a later one is another."""
    return "How much is 6 times 7?" if part == 0 else f"Go on from note {part}."


def output(session: int, part: int, score: float = 0.0, text: str = "", step: int = 1, **more: Any) -> dict[str, Any]:
    """Return a row as verl 0.9 writes it."""
    said = {"input": f"user\n{asked(part)}\nassistant\n", "output": text or f"said {session}.{part}"}
    return {**said, "gts": "42", "score": score, "step": step, "uid": f"{GROUP}_{session}_{part}", **more}


ROLLOUTS = [
    output(0, 0, 1.0),
    *(output(1, part, 0.0) for part in range(3)),
    output(2, 0, 1.0),
    output(10, 0, 1.0),
    output(10, 1, 1.0),
]


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


def test_sums_that_no_index_holds_are_not_recorded(tmp_path: Path) -> None:
    made = [{"tokens": 2**62, "took": 1e308, "session": 1, "part": n, "score": 1} for n in range(2)]
    write_lines(tmp_path / "x.jsonl", *({"input": "Why?", "output": f"so {n}", **row} for n, row in enumerate(made)))
    index(tmp_path / "x.sqlite", tmp_path, source=mine('completion_tokens = "tokens"', 'seconds = "took"'))
    found = rows(tmp_path / "x.sqlite", "select branches, completion_tokens, seconds from trajectories")
    assert found == [(2, None, None)]


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


def mine(*columns: str) -> TableSource:
    return mapping_source_from_text(MINE + "\n".join(columns))


def test_a_mapping_of_ones_own_may_name_the_rollout_and_the_output(tmp_path: Path) -> None:
    made = [{"id": f"r{n}", "tokens": 5, "session": n // 2, "part": n % 2, "score": 1} for n in range(4)]
    texts = [{"input": "Why?", "output": f"so {n}", **row} for n, row in enumerate(made)]
    write_lines(tmp_path / "x.jsonl", *texts)
    reader = mine('id = "id"', 'completion_tokens = "tokens"')
    found = read(reader, tmp_path)[0]
    assert [(entry.uid, entry.branches, entry.completion_tokens) for _, entry in found] == [
        ("r0", 2, 10),
        ("r2", 2, 10),
    ]
    trajectory = reader.load(tmp_path, [locator(*found[1])])
    assert trajectory.messages[-1]["content"] == "so 3"
    # A text that cannot be split may hold calls.
    assert [trajectory.metadata["tool_calls"], *(entry.tool_calls for _, entry in found)] == [None] * 3


def test_numbers_that_pandas_writes_and_numbers_of_no_output(tmp_path: Path) -> None:
    made = [{"session": 1.0, "part": 0.0}, {"session": 1, "part": 1}, {"session": 1.0, "part": 2.5}]
    write_lines(tmp_path / "x.jsonl", *({"input": "Why?", "output": "so", "score": 1, **row} for row in made))
    found, problems, _ = read(mine(), tmp_path)
    assert [entry.branches for _, entry in found] == [2, 1]
    told = "read in part: the number of an output: expected a whole number, found 2.5; it is counted alone"
    assert [problem.reason for problem in problems] == [told]


@pytest.mark.parametrize(("part", "found"), [(-1, "-1"), (True, "boolean"), ([1], "list"), ("x", None), (None, None)])
def test_a_value_that_is_no_number_of_an_output_is_told(part: Any, found: str | None, tmp_path: Path) -> None:
    write_lines(tmp_path / "x.jsonl", {"input": "Why?", "output": "so", "score": 1, "session": 1, "part": part})
    entries, problems, _ = read(mine(), tmp_path)
    assert len(entries) == 1
    assert [f"found {found};" in problem.reason for problem in problems] == [True] * (found is not None)


def test_only_lines_are_put_together(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    made = [{"input": "Why?", "output": f"so {n}", "session": 1, "part": n, "score": 1.0} for n in range(2)]
    write_parquet(tmp_path / "x.parquet", made)
    found, problems, _ = read(mine(), tmp_path)
    assert [entry.branches for _, entry in found] == [1, 1]
    assert [problem.reason.startswith(APART) for problem in problems] == [True]


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
