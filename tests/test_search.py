"""The full text: what is found, how it keeps up with files that grow and change, and that no text is copied."""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import zstandard
from click.testing import CliRunner

from rltracer_sqlite.cli import group
from rltracer_sqlite.cli.fts import command
from rltracer_sqlite.index.database import finish_writing, open_for_writing, open_index
from rltracer_sqlite.loading import load_trajectory
from rltracer_sqlite.roots import Roots
from rltracer_sqlite.search import (
    TextRefreshed,
    document,
    full_text_query,
    has_text,
    refresh_text,
    remove_text,
    text_coverage,
)
from rltracer_sqlite.search.record_texts import decode_record, record_text
from tests.commands import indexed, rltracer
from tests.indexing import index, rows, value
from tests.layouts import corpora, expected_sets
from tests.layouts.records import Record, episode, message, nodes_of, tool_call, trace

TRACES = Path("rollouts/step_1/train/all/traces.jsonl")
SAID = "The gasket count disagrees with the ledger of last Thursday"


def write(root: Path, traces: Sequence[Record], step: int = 1, mode: str = "w") -> Path:
    """Write one step of a run, or add to it, and return the file."""
    file = root / str(TRACES).replace("step_1", f"step_{step}")
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open(mode, encoding="utf-8") as out:
        out.writelines(json.dumps(one) + "\n" for one in traces)
    return file


def said(text: str, **extra: Any) -> Record:
    """Return a trace in which the model says one thing."""
    return trace([message("user", "Well?"), message("assistant", text)], **extra)


def text(database: Path, *roots: Path, **options: Any) -> TextRefreshed:
    """Bring the full text of an index up to date."""
    connection = open_for_writing(database)
    try:
        return refresh_text(connection, Roots(roots), **options)
    finally:
        finish_writing(connection)


def found(database: Path, question: str) -> list[str]:
    """Return the uids of the trajectories that a person's question finds."""
    sql = """
        select uid from trajectories
        where id in (select rowid from trajectories_text where trajectories_text match ?) order by uid
    """
    return [uid for (uid,) in rows(database, sql, (full_text_query(question),))]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return the folder of a run with three trajectories, indexed in x.sqlite beside it, with its full text."""
    whole = trace(
        [
            message("system", "Be brief."),
            message("user", "Why does the build fail?"),
            message("assistant", "Let me look.", reasoning_content="Perhaps a missing header.",
                    tool_calls=[tool_call("c1", "terminal", {"command": "make\ninstall", "note": "caffè"})]),
            message("tool", "linker error: undefined symbol", tool_call_id="c1"),
        ],
        id="whole",
    )  # fmt: skip
    forked = [message("user", "Pick one."), message("assistant", "leftmost"), message("assistant", "rightmost")]
    write(tmp_path / "run", [whole, trace(nodes=nodes_of(forked, [None, 0, 0]), id="forked"), said(SAID, id="said")])
    index(tmp_path / "x.sqlite", tmp_path / "run")
    text(tmp_path / "x.sqlite", tmp_path / "run")
    return tmp_path / "run"


@pytest.mark.parametrize(
    ("question", "uids"),
    [
        ("brief", ["whole"]),
        ("missing header", ["whole"]),  # reasoning
        ("terminal", ["whole"]),  # the name of a tool
        ("install", ["whole"]),  # behind an escaped line break in the arguments
        ("caffe", ["whole"]),
        ('"undefined symbol"', ["whole"]),
        ('"symbol undefined"', []),
        ("failing", ["whole"]),  # another form of a word
        ("left*", ["forked"]),
        ("leftmost rightmost", ["forked"]),  # on two branches
        ("gasket OR leftmost", ["forked", "said"]),
        ("(gasket OR leftmost) NOT ledger", ["forked"]),
        ("NEAR(gasket ledger, 5)", ["said"]),
        ("NEAR(gasket thursday, 2)", []),
        ("ledger-of", ["said"]),
        ("nowhere", []),
    ],
)
def test_what_is_found(run: Path, question: str, uids: list[str]) -> None:
    assert found(run.parent / "x.sqlite", question) == uids


def test_a_shared_message_counts_once(run: Path) -> None:
    connection = sqlite3.connect(run.parent / "x.sqlite")
    connection.execute("create virtual table temp.words using fts5vocab('main', 'trajectories_text', 'instance')")
    places = connection.execute("select count(*) from words where term = 'pick'").fetchone()[0]
    connection.close()
    assert places == 1


def test_the_index_holds_no_sentence_of_a_message(tmp_path: Path) -> None:
    prompt = "word " * 80 + "and only then the question about brass fittings"
    traces = [trace([message("user", prompt), message("assistant", SAID)])]
    write(tmp_path / "run", traces)
    index(tmp_path / "x.sqlite", tmp_path / "run")
    for needle in (SAID, "brass fittings", "Thursday"):
        assert needle.encode() not in (tmp_path / "x.sqlite").read_bytes()
    text(tmp_path / "x.sqlite", tmp_path / "run")
    for needle in (SAID, "brass fittings", "gasket count"):
        assert needle.lower().encode() not in (tmp_path / "x.sqlite").read_bytes().lower()
    assert found(tmp_path / "x.sqlite", '"gasket count"')


def test_nothing_is_read_again_when_nothing_is_new(run: Path) -> None:
    seen: list[tuple[int, int]] = []
    done = text(run.parent / "x.sqlite", run, progress=lambda read, total: seen.append((read, total)))
    assert (done.trajectories, done.bytes, seen) == (0, 0, [])
    assert (done.searchable, done.total) == (3, 3)


@pytest.mark.parametrize("step", [1, 2], ids=["the same file", "a new file"])
def test_only_what_is_new_is_read(run: Path, step: int) -> None:
    write(run, [said("freshly appended", id="new")], step, mode="a")
    index(run.parent / "x.sqlite", run)
    seen: list[tuple[int, int]] = []
    done = text(run.parent / "x.sqlite", run, progress=lambda read, total: seen.append((read, total)))
    length = value(run.parent / "x.sqlite", "select byte_length from trajectories where uid = 'new'")
    assert (done.trajectories, done.rebuilt, seen) == (1, False, [(length, length)])
    assert found(run.parent / "x.sqlite", "appended") == ["new"]
    assert found(run.parent / "x.sqlite", "gasket") == ["said"]


def test_a_rewritten_trajectory_is_found_by_its_new_words_only(run: Path) -> None:
    write(run, [said("quite another thing", id="said")])
    index(run.parent / "x.sqlite", run)
    done = text(run.parent / "x.sqlite", run)
    assert (done.rebuilt, done.searchable, done.total) == (True, 1, 1)
    assert found(run.parent / "x.sqlite", "another") == ["said"]
    assert found(run.parent / "x.sqlite", "gasket OR leftmost") == []


def test_a_file_that_says_the_same_is_not_built_anew(run: Path) -> None:
    file = run / TRACES
    os.utime(file, ns=(1, 1))
    index(run.parent / "x.sqlite", run)
    done = text(run.parent / "x.sqlite", run)
    assert (done.trajectories, done.rebuilt, done.changed) == (0, False, 0)


def test_sealing_a_file_changes_nothing(run: Path) -> None:
    file = run / TRACES
    Path(f"{file}.zst").write_bytes(zstandard.compress(file.read_bytes()))
    file.unlink()
    index(run.parent / "x.sqlite", run)
    assert text(run.parent / "x.sqlite", run).rebuilt is False
    assert found(run.parent / "x.sqlite", "gasket") == ["said"]


def test_words_of_removed_trajectories_go_when_they_are_many(run: Path) -> None:
    write(run, [said(SAID, id="said")])
    index(run.parent / "x.sqlite", run)
    done = text(run.parent / "x.sqlite", run)
    assert (done.changed, done.rebuilt) == (0, True)
    assert value(run.parent / "x.sqlite", "select count(*) from trajectories_text_docsize") == 1


def test_a_change_waits_while_another_run_cannot_be_read(run: Path) -> None:
    database, other = run.parent / "x.sqlite", run.parent / "other"
    write(other, [said("in the other run", id="other")])
    index(database, other)
    text(database, run, other)
    write(run, [said("quite another thing", id="said")])
    index(database, run)
    done = text(database, run)  # `other` may not be read now
    assert (done.rebuilt, done.changed) == (False, 1)
    assert found(database, '"in the other run"') == ["other"]
    assert text(database, run, other, rebuild=True).skipped == {}
    assert found(database, "gasket") == []
    assert found(database, '"in the other run"') == ["other"]


def test_a_folder_that_nobody_vouches_for_is_not_read(run: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    done = text(run.parent / "x.sqlite", tmp_path_factory.mktemp("elsewhere"), rebuild=True)
    assert (done.trajectories, done.searchable, done.total) == (0, 0, 3)
    assert "not among the folders" in done.skipped["run"]


def test_an_unreadable_record_is_counted_and_the_others_are_found(run: Path) -> None:
    file = run / TRACES
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([lines[0], b"x" * (len(lines[1]) - 1) + b"\n", lines[2]]))
    done = text(run.parent / "x.sqlite", run, rebuild=True)
    assert (done.unreadable, done.trajectories, done.searchable) == (1, 2, 2)
    assert found(run.parent / "x.sqlite", "gasket") == ["said"]


def test_a_file_that_is_gone_is_counted(run: Path) -> None:
    (run / TRACES).unlink()
    done = text(run.parent / "x.sqlite", run, rebuild=True)
    assert (done.unreadable, done.searchable) == (3, 0)


def test_the_full_text_can_be_taken_out_again(run: Path) -> None:
    connection = open_for_writing(run.parent / "x.sqlite")
    remove_text(connection)
    assert not has_text(connection)
    finish_writing(connection)
    assert [
        name for (name,) in rows(run.parent / "x.sqlite", "select name from sqlite_master") if "_text" in name
    ] == []


def test_traces_of_one_episode_are_told_apart(tmp_path: Path) -> None:
    pair = [said("spoken by the first", id="a"), said("spoken by the second", id="b")]
    write(tmp_path / "run", [episode(pair, step=1)])
    index(tmp_path / "x.sqlite", tmp_path / "run")
    text(tmp_path / "x.sqlite", tmp_path / "run")
    assert found(tmp_path / "x.sqlite", "first") == ["a"]
    assert found(tmp_path / "x.sqlite", "second") == ["b"]


def test_a_record_of_another_id_in_its_place_is_not_taken(tmp_path: Path) -> None:
    file = write(tmp_path / "run", [said("mine", id="aaaa")])
    index(tmp_path / "x.sqlite", tmp_path / "run")
    file.write_bytes(file.read_bytes().replace(b'"aaaa"', b'"bbbb"'))
    assert text(tmp_path / "x.sqlite", tmp_path / "run").unreadable == 1


@pytest.mark.parametrize("awkward", ["half \ud800 pair", "nul \0 inside", "\x02marks\x03", "x" * 100_000], ids=ascii)
def test_awkward_text_does_not_stop_the_others(tmp_path: Path, awkward: str) -> None:
    write(tmp_path / "run", [said(awkward, id="odd"), said("plainly", id="plain")])
    index(tmp_path / "x.sqlite", tmp_path / "run")
    done = text(tmp_path / "x.sqlite", tmp_path / "run")
    assert (done.searchable, done.unreadable) == (2, 0)
    assert found(tmp_path / "x.sqlite", "plainly") == ["plain"]


@pytest.mark.skipif(not expected_sets(), reason="the recorded corpora are not beside the repository")
@pytest.mark.parametrize("name", sorted(expected_sets()))
def test_the_fast_way_gives_the_same_text(name: str, tmp_path: Path) -> None:
    root = (corpora() or Path()) / "prime-rl" / name
    index(tmp_path / "x.sqlite", root)
    connection = open_index(tmp_path / "x.sqlite")
    sql = "select t.id, t.uid, t.item, s.path from trajectories t join shards s on s.id = t.shard_id"
    for identity, uid, item, path in connection.execute(sql).fetchall():
        trajectory = load_trajectory(connection, identity, Roots([root]))
        fast = record_text(decode_record(trajectory.raw), item, uid, path)
        if fast is not None:
            assert fast == document(trajectory).text
    connection.close()


@pytest.fixture
def cli(run: Path) -> Callable[..., Any]:
    """Return a function that runs `rltracer fts` on the index of the run, which lies in the index's own folder."""
    return lambda *options: CliRunner().invoke(command, [str(run.parent / "x.sqlite"), *options])


def test_the_command_says_what_it_did(cli: Callable[..., Any]) -> None:
    result = cli("--rebuild")
    assert result.exit_code == 0
    assert "3 trajectories added" in result.output
    assert "of text a second" in result.output
    assert "3 of 3 trajectories can be searched" in result.output
    assert cli("--quiet").output == ""


def test_the_command_removes(cli: Callable[..., Any], run: Path) -> None:
    assert cli("--remove").exit_code == 0
    assert "trajectories_text" not in {
        name for (name,) in rows(run.parent / "x.sqlite", "select name from sqlite_master")
    }


def test_the_command_refuses_what_is_no_index(tmp_path: Path) -> None:
    result = CliRunner().invoke(command, [str(tmp_path / "nothing.sqlite")])
    assert "does not exist" in str(result.exception)
    assert not (tmp_path / "nothing.sqlite").exists()


def test_coverage_counts_what_can_be_searched(run: Path) -> None:
    write(run, [said("later", id="late")], mode="a")
    index(run.parent / "x.sqlite", run)
    connection = open_index(run.parent / "x.sqlite")
    assert text_coverage(connection)[:2] == (3, 4)
    connection.close()


def test_what_is_removed_counts_no_longer(run: Path) -> None:
    database = run.parent / "x.sqlite"
    file = run / TRACES
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join([b"{broken\n", lines[1], b"{broken\n"]))
    index(database, run)
    for _ in range(2):  # before and after the full text is brought up to date
        connection = open_index(database)
        assert (text_coverage(connection)[:2], text_coverage(connection).later) == ((1, 1), 0)
        connection.close()
        text(database, run)


def test_there_are_never_more_that_can_be_searched_than_there_are(run: Path) -> None:
    connection = sqlite3.connect(run.parent / "x.sqlite")
    connection.execute("insert into trajectories_text_digests values (99, 1)")  # as earlier versions left them
    assert text_coverage(connection)[:2] == (3, 3)
    connection.close()


def test_an_indexing_says_what_the_full_text_does_not_know(run: Path) -> None:
    database = run.parent / "x.sqlite"
    fts = f": rltracer fts {database}\n"
    assert "rltracer fts" not in indexed(database, run).stdout
    write(run, [said("later", id="late")], mode="a")
    assert f"\n1 trajectory cannot be searched yet{fts}" in indexed(database, run).stdout
    file = run / TRACES
    file.write_text(file.read_text().replace("gasket", "washer"), encoding="utf-8")
    told = "1 trajectory cannot be searched yet; 3 trajectories are of rewritten files, perhaps found by old words"
    assert f"\n{told}{fts}" in indexed(database, run).stdout
    assert rltracer("fts", database).returncode == 0
    assert "rltracer fts" not in indexed(database, run).stdout


def test_the_demo_can_be_searched(tmp_path: Path) -> None:
    done = CliRunner().invoke(group, ["demo", str(tmp_path), "--no-serve"], catch_exceptions=False)
    assert done.exit_code == 0
    connection = open_index(tmp_path / "demo.sqlite")
    found = text_coverage(connection)
    connection.close()
    assert found.total > 300
    assert found == (found.total - 1, found.total, 0, 1, 0, 0)  # one episode failed before anybody said anything
