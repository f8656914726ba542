"""Which folders an index may lead to: those of this user and of the configuration, never those of the database."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.adapter import open_run
from rltracer_sqlite.remembered_roots import forget_root, remember_root, remembered_roots, roots_file
from rltracer_sqlite.roots import RootNotAllowed, Roots
from tests.indexing import index
from tests.layouts import append, message, trace


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("runs/a", "runs-b", "elsewhere"):
        (tmp_path / name).mkdir(parents=True)
    return tmp_path


def allowed(roots: Roots, path: Any) -> bool:
    try:
        return roots.check(path).is_absolute()
    except RootNotAllowed:
        return False


@pytest.mark.threat("T10")
@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("runs", True), ("runs/a", True), ("runs/a/missing", True), ("runs/a/../a", True), ("link-in", True),
        ("runs/../elsewhere", False), ("runs-b", False), ("", False), ("runs/out", False), ("loop", False),
    ],
)  # fmt: skip
def test_a_folder_is_allowed_inside_a_root_only(folder: Path, path: str, expected: bool) -> None:
    (folder / "link-in").symlink_to("runs/a")
    (folder / "runs" / "out").symlink_to("../elsewhere")
    (folder / "loop").symlink_to("loop")
    assert allowed(Roots([folder / "runs"]), folder / path) is expected


@pytest.mark.parametrize("path", ["a\0b", 5, None, b"/etc", "x" * 10_000, "~", "\ud800"])
def test_what_is_no_path_is_not_allowed(folder: Path, path: Any) -> None:
    assert not allowed(Roots([folder / "runs"]), path)


def test_the_sentence_says_how_to_allow_it(folder: Path) -> None:
    with pytest.raises(RootNotAllowed, match="rltracer roots add"):
        Roots([]).check(folder)


def test_roots_are_remembered_once_and_forgotten(folder: Path) -> None:
    (folder / "link").symlink_to("runs")
    for path in (folder / "runs", folder / "link", folder / "elsewhere"):
        remember_root(path)
    assert remembered_roots() == [folder / "runs", folder / "elsewhere"]
    assert forget_root(folder / "link")
    assert not forget_root(folder / "link")
    assert remembered_roots() == [folder / "elsewhere"]


@pytest.mark.threat("T10")
@pytest.mark.parametrize("separator", ["\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\n"])
def test_a_name_cannot_smuggle_in_another_root(folder: Path, separator: str) -> None:
    run = folder / f"run{separator}" / "elsewhere"
    run.mkdir(parents=True)
    remember_root(run)
    assert set(remembered_roots()) <= {run}
    assert not allowed(Roots.for_database(None), "/elsewhere")


def test_a_name_that_is_no_text_is_remembered(folder: Path) -> None:
    odd = folder / os.fsdecode(b"caf\xe9")
    odd.mkdir()
    remember_root(odd)
    assert allowed(Roots.for_database(None), odd)


def test_without_a_list_nothing_is_remembered(folder: Path) -> None:
    assert remembered_roots() == []
    roots_file().mkdir(parents=True)  # not readable as a file
    assert remembered_roots() == []


def test_configured_roots_replace_the_list(folder: Path) -> None:
    remember_root(folder / "elsewhere")
    database = folder / "runs-b" / "x.sqlite"
    listed, configured = Roots.for_database(database), Roots.for_database(database, [str(folder / "runs")])
    assert [allowed(listed, folder / name) for name in ("runs", "elsewhere", "runs-b")] == [False, True, True]
    assert [allowed(configured, folder / name) for name in ("runs", "elsewhere", "runs-b")] == [True, False, False]
    assert not allowed(Roots.for_database(database, []), folder / "runs-b")


@pytest.mark.threat("T10")
def test_an_index_from_somebody_else_leads_nowhere(folder: Path) -> None:
    append(folder / "runs" / "a" / "a.jsonl", trace([message("user", "q"), message("assistant", "a")]))
    database = folder / "elsewhere" / "x.sqlite"
    index(database, folder / "runs" / "a")  # the library alone remembers no root; the command does
    tracer = open_run(database)
    assert tracer.list_steps() == [None]
    with pytest.raises(RootNotAllowed, match="not among the folders"):
        tracer.load_trajectory(1)
    remember_root(folder / "runs")
    assert len(open_run(database).load_trajectory(1).messages) == 2
