"""Stopping an indexing at the moments when it is not reading: it says how far it got at each of them."""

from __future__ import annotations

import os
import signal
import sqlite3
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.commands import indexed
from tests.faults.runs import content, file_of, names, write_run

DONE = "Stopped. 120 trajectories of 3 files are in {}; run the same command again to go on.\n"
NOTHING = "Stopped. Nothing was written.\n"
BEFORE = ["cli.indexing.find_source", "cli.indexing.flag_or_explain", "index.migrations.create"]
SUMMARY = "cli.report.summary"
ENDING = "index.database._leave_a_plain_file"
UNLOCKING = "index.lock.WriterLock.__exit__"
Interrupt = Callable[..., None]


@pytest.fixture
def interrupt(monkeypatch: pytest.MonkeyPatch) -> Interrupt:
    """Return what lets a function of the library be stopped when it is called, or, `after`, when it has ended."""

    def interrupt(name: str, error: BaseException | None = None, after: bool = False) -> None:
        place, function = _place(name)
        called = getattr(place, function)

        def stopped(*args: Any, **options: Any) -> Any:
            if after or function == "__exit__":
                called(*args, **options)
            raise error or KeyboardInterrupt

        monkeypatch.setattr(place, function, stopped)

    return interrupt


def _place(name: str) -> tuple[Any, str]:
    """Return the module or class of a function, and what it is called there."""
    place, _, function = f"rltracer_sqlite.{name}".rpartition(".")
    module, _, last = place.rpartition(".")
    return (getattr(import_module(module), last) if last[0].isupper() else import_module(place)), function


def stopped(database: Path, *arguments: object) -> str:
    done = indexed(database, *arguments)
    assert done.returncode == 130, done
    return done.stderr


@pytest.mark.parametrize("moment", BEFORE)
def test_before_anything_is_read(interrupt: Interrupt, run: Path, tmp_path: Path, moment: str) -> None:
    interrupt(moment)
    assert stopped(tmp_path / "x.sqlite", run) == NOTHING
    assert names(tmp_path) == []


@pytest.mark.parametrize("moment", [SUMMARY, ENDING, UNLOCKING])
def test_after_everything_was_read(interrupt: Interrupt, run: Path, whole: Path, tmp_path: Path, moment: str) -> None:
    interrupt(moment)
    assert stopped(tmp_path / "x.sqlite", run) == DONE.format(tmp_path / "x.sqlite")
    assert content(tmp_path / "x.sqlite") == content(whole)


def test_while_sqlite_answers(interrupt: Interrupt, run: Path, tmp_path: Path) -> None:
    interrupt(SUMMARY, sqlite3.OperationalError("interrupted"))
    assert stopped(tmp_path / "x.sqlite", run) == DONE.format(tmp_path / "x.sqlite")


def test_while_the_files_that_were_not_read_are_named(interrupt: Interrupt, tmp_path: Path) -> None:
    run = write_run(tmp_path / "run")
    file_of(run, 9).parent.mkdir(parents=True)
    file_of(run, 9).with_suffix(".jsonl.zst").write_bytes(b"none")
    interrupt("cli.report.unread_sentence")
    assert stopped(tmp_path / "x.sqlite", run) == DONE.format(tmp_path / "x.sqlite")


@pytest.mark.parametrize("first", ["index.refresh.note_read_steps", "index.refresh._note_read", SUMMARY])
def test_a_second_signal_while_the_index_is_closed(interrupt: Interrupt, run: Path, tmp_path: Path, first: str) -> None:
    interrupt(first)
    interrupt(ENDING)
    interrupt(UNLOCKING)
    said = stopped(tmp_path / "x.sqlite", run)
    assert said == (NOTHING if first.endswith("steps") else DONE.format(tmp_path / "x.sqlite"))


@pytest.mark.parametrize("moment", ["cli.unfinished.Unfinished._counts", "cli.say.say"])
def test_a_second_signal_while_it_is_said(
    interrupt: Interrupt, monkeypatch: pytest.MonkeyPatch, run: Path, tmp_path: Path, moment: str
) -> None:
    place, function = _place(moment)
    called = getattr(place, function)

    def signalled(*args: Any, **options: Any) -> Any:
        os.kill(os.getpid(), signal.SIGINT)
        return called(*args, **options)

    interrupt(SUMMARY)
    monkeypatch.setattr(place, function, signalled)
    assert stopped(tmp_path / "x.sqlite", run) == DONE.format(tmp_path / "x.sqlite")


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_rebuilding_when_it_is_put_in_place(interrupt: Interrupt, run: Path, tmp_path: Path, after: bool) -> None:
    database = tmp_path / "x.sqlite"
    assert indexed(database, run, "--steps", "1").returncode == 0
    interrupt("index.database.replace_database", after=after)
    said = stopped(database, run, "--rebuild")
    assert said == (DONE.format(database) if after else f"Stopped. {database} is as it was.\n")
    assert names(tmp_path) == ["x.sqlite"]


def test_a_watch_that_is_stopped_at_once(interrupt: Interrupt, run: Path, tmp_path: Path) -> None:
    assert indexed(tmp_path / "x.sqlite", run).returncode == 0
    interrupt("cli.watch.watch_runs")
    assert stopped(tmp_path / "x.sqlite", run, "--watch") == DONE.format(tmp_path / "x.sqlite")
