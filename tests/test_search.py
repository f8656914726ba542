"""The full text: what is found, that no text is copied, and that one record stops no other."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rltracer_sqlite.cli import group
from rltracer_sqlite.cli.fts import command
from rltracer_sqlite.index.database import finish_writing, open_for_writing, open_index
from rltracer_sqlite.loading import load_trajectory
from rltracer_sqlite.roots import Roots
from rltracer_sqlite.search import document, has_text, remove_text, text_coverage
from rltracer_sqlite.search.record_texts import decode_record, record_text
from tests.indexing import index, rows
from tests.layouts import corpora, expected_sets
from tests.layouts.records import episode, message, trace
from tests.searching import SAID, TRACES, found, said, searchable, text, write_step


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return the folder of a run with three trajectories, indexed in x.sqlite beside it, with its full text."""
    return searchable(tmp_path)


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
    write_step(tmp_path / "run", traces)
    index(tmp_path / "x.sqlite", tmp_path / "run")
    for needle in (SAID, "brass fittings", "Thursday"):
        assert needle.encode() not in (tmp_path / "x.sqlite").read_bytes()
    text(tmp_path / "x.sqlite", tmp_path / "run")
    for needle in (SAID, "brass fittings", "gasket count"):
        assert needle.lower().encode() not in (tmp_path / "x.sqlite").read_bytes().lower()
    assert found(tmp_path / "x.sqlite", '"gasket count"')


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
    write_step(tmp_path / "run", [episode(pair, step=1)])
    index(tmp_path / "x.sqlite", tmp_path / "run")
    text(tmp_path / "x.sqlite", tmp_path / "run")
    assert found(tmp_path / "x.sqlite", "first") == ["a"]
    assert found(tmp_path / "x.sqlite", "second") == ["b"]


def test_a_record_of_another_id_in_its_place_is_not_taken(tmp_path: Path) -> None:
    file = write_step(tmp_path / "run", [said("mine", id="aaaa")])
    index(tmp_path / "x.sqlite", tmp_path / "run")
    file.write_bytes(file.read_bytes().replace(b'"aaaa"', b'"bbbb"'))
    assert text(tmp_path / "x.sqlite", tmp_path / "run").unreadable == 1


@pytest.mark.parametrize("awkward", ["half \ud800 pair", "nul \0 inside", "\x02marks\x03", "x" * 100_000], ids=ascii)
def test_awkward_text_does_not_stop_the_others(tmp_path: Path, awkward: str) -> None:
    write_step(tmp_path / "run", [said(awkward, id="odd"), said("plainly", id="plain")])
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


def test_the_demo_can_be_searched(tmp_path: Path) -> None:
    done = CliRunner().invoke(group, ["demo", str(tmp_path), "--no-serve"], catch_exceptions=False)
    assert done.exit_code == 0
    connection = open_index(tmp_path / "demo.sqlite")
    found = text_coverage(connection)
    connection.close()
    assert found.total > 300
    assert found == (found.total - 1, found.total, 0, 1, 0, 0)  # one episode failed before anybody said anything
