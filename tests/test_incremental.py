"""A run that grows, tears, heals, shrinks, is rewritten and loses files: reads, ids and rows after each."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.sources import readers
from rltracer_sqlite.sources.prime_rl import PrimeRLSource
from tests.indexing import index, later, rows, value
from tests.layouts import LAYOUTS, append, append_torn, line, message, seal, trace

ALL = "rollouts/step_1/train/all/traces.jsonl"
STREAM = "monitors/file/traces/stream"
EFFECTIVE = "rollouts/step_1/train/effective/traces.jsonl"


def record(uid: str, answer: str = "42", reward: float = 1.0, **extra: Any) -> dict[str, Any]:
    return trace(
        id=uid, messages=[message("user", "6 * 7?"), message("assistant", answer)], rewards={"r": reward}, **extra
    )


@pytest.fixture
def run(tmp_path: Path) -> Path:
    append(tmp_path / "run" / ALL, *[record(f"t{number}") for number in range(5)])
    return tmp_path / "run"


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of all reads from shards."""
    sizes: list[int] = []
    plain_pread, plain_read_into = readers.PlainFile.pread, readers.PlainFile.read_into

    def pread(self: readers.PlainFile, length: int, offset: int) -> bytes:
        data = plain_pread(self, length, offset)
        sizes.append(len(data))
        return data

    def read_into(self: readers.PlainFile, target: memoryview, offset: int) -> int:
        count = plain_read_into(self, target, offset)
        sizes.append(count)
        return count

    monkeypatch.setattr(readers.PlainFile, "pread", pread)
    monkeypatch.setattr(readers.PlainFile, "read_into", read_into)
    return sizes


def ids(database: Path) -> dict[str, int]:
    return dict(rows(database, "select uid, id from trajectories"))


def test_an_unchanged_run_reads_nothing(run: Path, database: Path, reads: list[int]) -> None:
    index(database, run)
    before = ids(database)
    reads.clear()
    done = index(database, run)
    assert (reads, done.read_shards, done.read_bytes) == ([], 0, 0)
    assert ids(database) == before


def test_an_append_reads_only_the_new_bytes(run: Path, database: Path, reads: list[int]) -> None:
    append(run / ALL, *[record(f"more{number}") for number in range(2000)])
    index(database, run)
    before, size = ids(database), (run / ALL).stat().st_size
    append(run / ALL, record("new"))
    reads.clear()
    done = index(database, run)
    new = (run / ALL).stat().st_size - size
    assert done.read_bytes == new
    # Beside the new bytes only the fingerprints of the old ones are read: 4 KiB at each end, before and after.
    assert sum(reads) <= new + 5 * 4096
    assert {uid: identity for uid, identity in ids(database).items() if uid != "new"} == before
    assert value(database, "select line from trajectories where uid = 'new'") == 2006


def test_a_torn_line_waits_and_is_read_when_complete(run: Path, database: Path) -> None:
    missing = append_torn(run / ALL, record("torn"))
    done = index(database, run)
    assert done.waiting == [ALL]
    assert value(database, "select state from shards") == "waiting"
    assert "torn" not in ids(database)
    assert value(database, "select count(*) from problems") == 0
    with (run / ALL).open("ab") as file:
        file.write(missing)
    done = index(database, run)
    assert done.waiting == []
    assert "torn" in ids(database)
    assert value(database, "select state from shards") == "complete"


def test_a_line_without_its_newline_waits_even_when_it_is_complete_json(run: Path, database: Path) -> None:
    with (run / ALL).open("ab") as file:
        file.write(line(record("open"))[:-1])
    assert index(database, run).waiting == [ALL]
    assert "open" not in ids(database)


def test_a_rewritten_file_is_read_again_and_ids_stay(run: Path, database: Path) -> None:
    index(database, run)
    before = ids(database)
    (run / ALL).write_bytes(b"".join(line(record(uid, reward=0.0)) for uid in ("t4", "t1", "fresh")))
    later(run / ALL)
    done = index(database, run)
    after = ids(database)
    assert done.removed == 3
    assert set(after) == {"t4", "t1", "fresh"}
    assert (after["t4"], after["t1"]) == (before["t4"], before["t1"])
    assert after["fresh"] > max(before.values())
    assert rows(database, "select trajectories, successes from prompt_groups") == [(3, 0)]
    assert value(database, "select sum(trajectories) from steps") == 3
    assert value(database, "select trajectories from fields where path = 'rewards.r.score'") == 3


def test_a_change_in_the_middle_of_the_same_length_is_seen(run: Path, database: Path) -> None:
    append(run / ALL, *[record(f"m{number}") for number in range(200)])
    index(database, run)
    data = (run / ALL).read_bytes()
    place = value(database, "select byte_offset from trajectories where uid = 'm100'")
    changed = data[place:].replace(b'"r":1.0', b'"r":0.0', 1).replace(b'"score":1.0', b'"score":0.0', 1)
    assert changed != data[place:]
    (run / ALL).write_bytes(data[:place] + changed)
    later(run / ALL)
    index(database, run)
    assert rows(database, "select reward from trajectories where uid = 'm100'") == [(0.0,)]


def test_a_shortened_file_loses_only_what_it_lost(run: Path, database: Path) -> None:
    index(database, run)
    before = ids(database)
    lines = (run / ALL).read_bytes().splitlines(keepends=True)
    (run / ALL).write_bytes(b"".join(lines[:2]))
    index(database, run)
    assert ids(database) == {"t0": before["t0"], "t1": before["t1"]}


def test_an_id_is_never_given_twice(run: Path, database: Path) -> None:
    index(database, run)
    last = max(ids(database).values())
    (run / ALL).write_bytes(line(record("t0")))
    index(database, run)
    append(run / ALL, record("other"))
    index(database, run)
    assert ids(database)["other"] > last


def test_a_vanished_file_keeps_its_rows_and_flags_them(run: Path, database: Path) -> None:
    append(run / ALL.replace("step_1", "step_2"), record("second"))
    index(database, run)
    before = ids(database)
    data = (run / ALL).read_bytes()
    (run / ALL).unlink()
    assert index(database, run).gone == [ALL]
    assert ids(database) == before
    assert value(database, "select sum(gone) from trajectories") == 5
    assert value(database, "select state from shards where path = ?", (ALL,)) == "gone"
    (run / ALL).write_bytes(data)
    index(database, run)
    assert ids(database) == before
    assert value(database, "select sum(gone) from trajectories") == 0


def test_sealing_a_chunk_changes_no_row(tmp_path: Path, database: Path) -> None:
    written = LAYOUTS["j3"](tmp_path / "run")
    index(database, written.root)
    everything = "select * from trajectories order by id"
    before = rows(database, everything)
    [live] = list(written.root.rglob("traces/stream/*.jsonl"))
    seal(live)
    assert not live.exists()
    index(database, written.root)
    assert rows(database, everything) == before
    assert value(database, "select count(*) from shards where state = 'gone'") == 0


@pytest.mark.parametrize("first", [ALL, EFFECTIVE])
def test_effective_and_all_give_one_row_in_either_order(tmp_path: Path, database: Path, first: str) -> None:
    run, records = (
        tmp_path / "run",
        {ALL: record("t0", "long"), EFFECTIVE: record("t0", "long", info={"advantage": 0.5})},
    )
    append(run / first, records[first])
    index(database, run)
    identity = ids(database)["t0"]
    second = ALL if first == EFFECTIVE else EFFECTIVE
    append(run / second, records[second])
    index(database, run)
    assert ids(database) == {"t0": identity}
    query = """
        select s.path, t.effective, t.advantage, t.ship_step, t.step from trajectories t
        join shards s on s.id = t.shard_id
    """
    assert rows(database, query) == [(ALL, 1, 0.5, 1, 1)]
    assert value(database, "select count(*) from annotations") == 1
    assert value(database, "select count(*) from problems") == 0


def test_a_record_that_lives_on_in_effective_moves_there(tmp_path: Path, database: Path) -> None:
    run = tmp_path / "run"
    append(run / ALL, record("t0"), record("t1"))
    append(run / EFFECTIVE, record("t1"))
    index(database, run)
    before = ids(database)
    (run / ALL).write_bytes(line(record("t0", "longer than it was")))
    index(database, run)
    assert ids(database) == before
    assert (
        value(database, "select s.path from trajectories t join shards s on s.id = shard_id where uid = 't1'")
        == EFFECTIVE
    )


def test_an_annotation_waits_for_its_trace(tmp_path: Path, database: Path) -> None:
    folder = tmp_path / "run" / "monitors/file/traces"
    append(folder / "annotations/orch/00000.jsonl", {"version": 1, "trace_id": "late", "info": {"advantage": 0.25}})
    append(folder / "stream/00000.jsonl", record("early"))
    index(database, tmp_path / "run")
    assert rows(database, "select uid, trajectory_id from annotations") == [("late", None)]
    append(folder / "stream/00000.jsonl", record("late"))
    index(database, tmp_path / "run")
    assert value(database, "select advantage from trajectories where uid = 'late'") == 0.25
    assert value(database, "select count(*) from annotations where trajectory_id is null") == 0


def test_steps_can_be_chosen_and_discovered(tmp_path: Path, database: Path) -> None:
    for step in range(4):
        append(tmp_path / "run" / ALL.replace("step_1", f"step_{step}"), record(f"s{step}"))
    index(database, tmp_path / "run", discover_only=True)
    assert value(database, "select count(*) from unread_steps") == 4
    assert value(database, "select count(*) from shards") == 0
    index(database, tmp_path / "run", steps=lambda step: step in (1, 2, None))
    assert sorted(ids(database)) == ["s1", "s2"]
    assert rows(database, "select step from unread_steps order by step") == [(0,), (3,)]


def test_the_index_does_not_depend_on_how_it_was_built(tmp_path: Path) -> None:
    written = LAYOUTS["j2"](tmp_path / "run")
    whole, pieces = tmp_path / "whole.sqlite", tmp_path / "pieces.sqlite"
    index(whole, written.root)
    for step in sorted(written.steps, reverse=True):
        index(pieces, written.root, steps=lambda chosen, step=step: chosen == step)
    query = """
        select t.uid, s.path, byte_offset, t.step, t.split, effective, advantage, ship_step, reward, success, preview
        from trajectories t join shards s on s.id = shard_id order by t.uid
    """
    assert rows(pieces, query) == rows(whole, query)
    groups = """
        select step, split, env, trajectories, scored, successes, reward_mean from prompt_groups order by 1, 2, 3, 4, 7
    """
    assert rows(pieces, groups) == rows(whole, groups)
    assert json.dumps(rows(pieces, "select path, trajectories from fields order by path")) == json.dumps(
        rows(whole, "select path, trajectories from fields order by path")
    )


def test_a_path_that_turns_out_to_be_text_keeps_its_column_and_its_values(run: Path, database: Path) -> None:
    append(run / ALL, record("number", info={"x": 1.5, "note": "short"}))
    index(database, run)
    append(run / ALL, record("text", info={"x": "word", "note": "long " * 100}))
    index(database, run)
    append(run / ALL, record("again", info={"x": 3}))
    index(database, run)
    query = "select uid, info_x from trajectories where info_x is not null order by id"
    assert rows(database, query) == [("number", "1.5"), ("text", "word"), ("again", "3.0")]
    assert rows(
        database, "select column_name, kind from fields where path in ('info.x', 'info.note') order by path"
    ) == [
        (None, "long text"),
        ("info_x", "text"),
    ]
    types = dict(rows(database, "select name, type from pragma_table_info('trajectories')"))
    assert (types["info_x"], types["reward_r"]) == ("TEXT", "REAL")


@pytest.mark.parametrize("in_place", [False, True])
def test_a_file_that_is_rewritten_while_it_is_read_is_read_again(
    run: Path, database: Path, monkeypatch: pytest.MonkeyPatch, in_place: bool
) -> None:
    plain = PrimeRLSource.scan

    def rewriting(self: PrimeRLSource, root: Path, *place: Any) -> Iterator[Any]:
        yield from plain(self, root, *place)
        other = run / "being-written"
        other.write_bytes(line(record("t3")) + (b"" if in_place else line(record("late", "x" * 20_000))))
        if in_place:
            (run / ALL).write_bytes(other.read_bytes())
            other.unlink()
        else:
            other.replace(run / ALL)

    with monkeypatch.context() as patch:
        patch.setattr(PrimeRLSource, "scan", rewriting)
        index(database, run)
    assert value(database, "select reason from problems") == "rewritten while it was read; it is read again"
    index(database, run)
    assert sorted(ids(database)) == (["t3"] if in_place else ["late", "t3"])
    assert value(database, "select count(*) from problems") == 0


def test_progress_never_goes_back_nor_beyond_what_there_is(run: Path, database: Path) -> None:
    """Not where a file grows while another one is read, nor where it is longer than its packed bytes."""
    append(run / STREAM / "00000.jsonl", *[record(f"s{number}") for number in range(50)])
    seal(run / STREAM / "00000.jsonl")
    last = run / ALL.replace("step_1", "step_2")
    append(last, record("u0"))
    told: list[tuple[int, int]] = []

    def progress(done: int, total: int) -> None:
        if not told:
            append(last, *[record(f"u{number}") for number in range(1, 90)])
        told.append((done, total))

    index(database, run, progress=progress)
    assert value(database, "select count(*) from trajectories") == 5 + 50 + 90
    assert len({total for _, total in told}) == 1
    assert [done for done, _ in told] == sorted(done for done, _ in told)
    assert told[-1][0] == told[-1][1]
