"""`rltracer search` and `search_text`: what is found, on lines that fit, and what is said where nothing is."""

from __future__ import annotations

import json
import re
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite import QueryError, search_text
from rltracer_sqlite.adapter import WhichRunError
from rltracer_sqlite.cli.columns import ending, width_of
from rltracer_sqlite.index.database import IndexFileError
from rltracer_sqlite.sources.base import LocatorError
from tests.commands import indexed, rltracer, sentence
from tests.layouts.records import Record, message, nodes_of, trace

FAR = "word " * 200
FORKED = [message("user", "Pick."), message("assistant", "left gasket"), message("assistant", "right")]
WIDE = "漢字" * 60 + " gasket " + "漢字" * 60
TRACES = {
    1: [
        trace([message("user", "Why?"), message("assistant", f"{FAR}the gasket leaks {FAR}")], id="far", reward=1.0),
        trace([message("user", "Hm\x1b[31m"), message("assistant", "no\u202egasket")], id="steers", reward=0.0),
    ],
    2: [
        trace(nodes=nodes_of(FORKED, [None, 0, 0]), id="forked"),
        trace([message("user", WIDE), message("assistant", "ok")], id="wide", info={"env_name": "math"}),
    ],
}


def write_run(root: Path, traces: dict[int, list[Record]]) -> Path:
    for step, records in traces.items():
        file = root / f"rollouts/step_{step}/train/all/traces.jsonl"
        file.parent.mkdir(parents=True)
        file.write_text("".join(json.dumps(one) + "\n" for one in records), encoding="utf-8")
    return root


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the index of a run beside it, with its full text, for tests that only read it."""
    folder = tmp_path_factory.mktemp("search")
    assert indexed(folder / "x.sqlite", write_run(folder / "run", TRACES), "--fts").returncode == 0
    return folder / "x.sqlite"


@pytest.fixture
def own(tmp_path: Path) -> Path:
    """Return such an index that a test may change."""
    assert indexed(tmp_path / "x.sqlite", write_run(tmp_path / "run", TRACES), "--fts").returncode == 0
    return tmp_path / "x.sqlite"


def told(*arguments: object) -> list[dict[str, Any]]:
    """Return what the command says as JSON."""
    done = rltracer("search", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize(
    ("asked", "uids"),
    [
        (["gasket"], ["wide", "forked", "steers", "far"]),  # the newest first
        (["gaskets", "leaking"], ["far"]),
        (['"leaks gasket"'], []),
        (["gask*", "NOT", "leaks"], ["wide", "forked", "steers"]),
        (["leaks OR right"], ["forked", "far"]),
        (["NEAR(left gasket, 2)"], ["forked"]),
        (["gasket", "--step", 1], ["steers", "far"]),
        (["gasket", "--steps", "2-"], ["wide", "forked"]),
        (["gasket", "--outcome", "passed"], ["far"]),
        (["gasket", "--outcome", "failed", "--split", "train"], ["steers"]),
        (["gasket", "--outcome", "incorrect", "--split", "train"], ["steers"]),
        (["gasket", "--outcome", "unscored", "--step", 2], ["wide", "forked"]),
        (["gasket", "--run", "run", "--limit", 1], ["wide"]),
        (["gasket", "--env", "math"], ["wide"]),
    ],
)
def test_the_words_of_the_page_and_filters_find(database: Path, asked: Sequence[object], uids: list[str]) -> None:
    assert [one["uid"] for one in told(database, *asked)] == uids


def test_json_says_where_the_match_stands(database: Path) -> None:
    [found] = told(database, "left")
    assert list(found)[:7] == ["id", "uid", "run", "step", "split", "env", "success"]
    assert (found["branch"], found["message"], found["role"], found["matches"]) == (1, 2, "assistant", 1)
    assert (found["success"], found["reward"], found["snippet"], found["problem"]) == (None, None, "left gasket", None)


@pytest.mark.parametrize("columns", [60, 80, 200])
def test_lines_fit_the_terminal_and_show_the_match(
    database: Path, monkeypatch: pytest.MonkeyPatch, columns: int
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    head, *lines, last, _ = rltracer("search", database, "gasket", is_terminal=True).stdout.splitlines()
    assert max(map(width_of, [head, *lines, last])) <= columns
    assert last == "4 of 4 trajectories"
    facts, snippets = (lines[::2], lines[1::2]) if columns < 120 else (lines, lines)
    assert [line.split()[0] for line in facts] == ["4", "3", "2", "1"]
    assert facts[3].split()[:5] == ["1", "1", "train", "passed", "1.000"]
    assert all("gasket" in line for line in snippets)
    assert width_of(snippets[3]) >= columns - 1  # a long text fills its line
    assert head.endswith("found") == (columns >= 120)


@pytest.mark.parametrize("columns", [60, 200])
@pytest.mark.parametrize(
    ("asked", "where"),
    [("left", "branch 1, message 2: left gasket"), ("leaking", "message 2: …"), ("why", "message 1: ")],
)
def test_each_match_says_its_message_and_which_branch_of_several(
    database: Path, monkeypatch: pytest.MonkeyPatch, columns: int, asked: str, where: str
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    _, *lines, _, _ = rltracer("search", database, asked, is_terminal=True).stdout.splitlines()
    assert re.split(r"  +", lines[-1])[-1].startswith(where)


def test_a_pipe_gets_a_line_for_each_match(database: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    _, *lines, _ = rltracer("search", database, "gasket").stdout.splitlines()
    assert len(lines) == 4
    assert all("gasket" in line for line in lines)
    assert len(lines[3]) == 120


def test_what_steers_a_terminal_is_made_visible(database: Path) -> None:
    for how in ([], ["--json"]):
        out = rltracer("search", database, "hm", *how).stdout
        assert "Hm" in out
        assert "\x1b" not in out
    assert "\u202e" not in rltracer("search", database, "gasket", "--step", 1).stdout


def test_a_limit_says_how_many_there_are(database: Path) -> None:
    done = rltracer("search", database, "gasket", "--limit", 3)
    assert done.stdout.splitlines()[-1] == "3 of 4 trajectories"
    more = "3 of 4 trajectories that were found are listed; --limit N lists more.\n"
    assert done.stderr == more
    for_programs = rltracer("search", database, "gasket", "--limit", 3, "--json")
    assert (len(for_programs.stdout.splitlines()), for_programs.stderr) == (3, more)


@pytest.mark.parametrize("how", [[], ["--json"]])
def test_nothing_is_said_of_more_where_all_is_listed(database: Path, how: list[str]) -> None:
    assert rltracer("search", database, "gasket", "--limit", 4, *how).stderr == ""


def test_a_terminal_says_beneath_the_table_that_there_is_more(database: Path) -> None:
    done = rltracer("search", database, "gasket", "--limit", 3, is_terminal=True)
    assert done.stdout.splitlines()[-2] == "3 of 4 trajectories; --limit N lists more"
    assert done.stderr == ""


def test_no_match_says_how_many_were_searched(database: Path) -> None:
    assert rltracer("search", database, "unheard").stdout == "No match in 4 trajectories.\n"
    assert rltracer("search", database, "unheard", "--step", 1).stdout == "No match in 2 trajectories.\n"
    done = rltracer("search", database, "unheard", "--json")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "No match in 4 trajectories.\n")


def test_no_match_says_why_not_all_were_searched(tmp_path: Path) -> None:
    silent = trace(id="s", ok=False, error={"type": "SandboxError"})
    write_run(tmp_path / "run", {1: [{**silent, "nodes": []}, trace([message("user", "Hm?")], id="t")]})
    indexed(tmp_path / "x.sqlite", tmp_path / "run", "--fts")
    why = "No match in 1 of 2 trajectories; 1 has no text: no message was recorded.\n"
    assert rltracer("search", tmp_path / "x.sqlite", "unheard").stdout == why


@pytest.mark.parametrize(
    ("asked", "code", "said"),
    [
        (['"gasket'], 2, "A quotation mark is not closed."),
        (["gasket", "AND"], 2, "Something must follow AND."),
        ([" "], 2, "There is nothing to search for."),
        ([], 2, "Missing argument 'WORDS...'"),
        (["gasket", "--run", "other"], 1, "has no run 'other'. It holds: run."),
        (["gasket", "--step", 1, "--steps", "1-2"], 2, "give one of them"),
        (["gasket", "--steps", "2-1"], 2, "ends before it begins"),
        (["gasket", "--limit", 0], 2, "'--limit'"),
        (["gasket", "--step", 9], 1, "run has no trajectory with step 9. It has steps 1–2"),
        (["gasket", "--split", "eval"], 1, "run has no trajectory with split eval. It has split train"),
    ],
)
def test_what_cannot_be_meant_is_told(database: Path, asked: Sequence[object], code: int, said: str) -> None:
    assert said in sentence(rltracer("search", database, *asked), code)


def test_an_index_without_full_text_says_how_to_make_it(own: Path) -> None:
    assert rltracer("fts", own, "--remove").returncode == 0
    said = f"The index {own} has no full text yet. Make it with: rltracer fts {own}"
    assert sentence(rltracer("search", own, "gasket")) == said
    with pytest.raises(IndexFileError, match="no full text yet"):
        search_text(own, "gasket")


def test_trajectories_that_came_later_are_counted(own: Path) -> None:
    write_run(own.parent / "run", {3: [trace([message("user", "gasket"), message("assistant", "ok")])]})
    assert indexed(own, own.parent / "run").returncode == 0
    done = rltracer("search", own, "gasket")
    assert done.stdout.splitlines()[-1] == "4 of 4 trajectories"
    assert done.stderr.startswith("1 trajectory came later")


def test_a_record_that_cannot_be_read_says_so_in_its_line(own: Path) -> None:
    (own.parent / "run/rollouts/step_2/train/all/traces.jsonl").unlink()
    done = rltracer("search", own, "gasket")
    lost, gone, *lines, last = done.stdout.splitlines()[1:]
    assert all("(The record cannot be read now. " in line for line in (lost, gone))
    assert all("gasket" in line for line in lines)
    assert (done.returncode, last) == (0, "4 of 4 trajectories")
    assert [one["snippet"] is None and bool(one["problem"]) for one in told(own, "gasket")] == [
        True,
        True,
        False,
        False,
    ]


def test_where_no_record_can_be_read_the_reason_and_the_exit_code_say_so(own: Path) -> None:
    (own.parent / "run/rollouts/step_2/train/all/traces.jsonl").unlink()
    done = rltracer("search", own, "gasket", "--step", 2)
    assert len(done.stdout.splitlines()) == 3
    assert done.returncode == 1
    assert done.stderr.startswith("Error: No record that was found can be read. ")


@pytest.mark.parametrize("is_terminal", [False, True], ids=["in a pipe", "in the terminal"])
def test_names_of_runs_are_whole_in_a_pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_terminal: bool) -> None:
    names = ("streaming-run-of-pypi-0.4.0", "streaming-run-of-pypi-0.5.0")
    said = [trace([message("user", "gasket" + " of many words" * 40), message("assistant", "!")])]
    runs = [write_run(tmp_path / name, {1: said}) for name in names]
    assert indexed(tmp_path / "x.sqlite", *runs, "--fts").returncode == 0
    monkeypatch.setenv("COLUMNS", "120")
    done = rltracer("search", tmp_path / "x.sqlite", "gasket", is_terminal=is_terminal)
    head, *lines = done.stdout.splitlines()[:3]
    assert [name in " ".join(lines).split() for name in names] == [not is_terminal] * 2
    # A name takes no room from what is found.
    assert [width_of(line) - head.index("found") for line in lines] == [60, 60]


def test_several_runs_are_told_apart(tmp_path: Path) -> None:
    said = {name: [trace([message("user", "gasket"), message("assistant", name)])] for name in ("a", "b")}
    runs = [write_run(tmp_path / name, {1: traces}) for name, traces in said.items()]
    assert indexed(tmp_path / "x.sqlite", *runs, "--fts").returncode == 0
    head, *lines, _ = rltracer("search", tmp_path / "x.sqlite", "gasket").stdout.splitlines()
    assert head.split()[:2] == ["id", "run"]
    assert [line.split()[1] for line in lines] == ["b", "a"]
    assert [one["run"] for one in told(tmp_path / "x.sqlite", "gasket", "--run", "a")] == ["a"]
    assert [one.run for one in search_text(tmp_path / "x.sqlite", "gasket", run=2)] == ["b"]


# What writes an index and its full text.
WRITING = [f"rltracer_sqlite.{name}" for name in ("index.refresh", "search.refresh", "search.write")]


@pytest.mark.parametrize(
    ("arguments", "heavy"),
    [
        (["--help"], "sqlite3 msgspec orjson datasette"),
        (["gasket"], f"datasette sqlite_utils tokenizers zstandard {' '.join(WRITING)}"),
    ],
    ids=["help", "a search"],
)
def test_nothing_heavy_is_imported(database: Path, arguments: list[str], heavy: str) -> None:
    code = (
        f"import sys; sys.argv[1:] = {['search', str(database), *arguments]!r}\n"
        "from rltracer_sqlite.cli import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        f"print([name for name in {heavy.split()} if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "[]"


def test_python_gets_matches_that_load(database: Path) -> None:
    [found] = search_text(database, "leaking", step=1, outcome="passed")
    assert (found.uid, found.run, found.success, found.problem) == ("far", "run", True, None)
    assert found.snippet is not None
    assert [found.snippet[first:last] for first, last in found.marks] == ["leaks"]
    assert found.branch is not None
    assert found.message is not None
    said = found.load().branches[found.branch - 1][found.message - 1]
    assert (said["role"], found.snippet in said["content"]) == (found.role, True)
    assert len(search_text(str(database), "gasket", limit=None, step_start=2)) == 2


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"words": "NOT gasket"}, QueryError),
        ({"run": "other"}, WhichRunError),
        ({"outcome": "solved"}, ValueError),
        ({"split": "trian"}, ValueError),
        ({"env": "maths", "run": "run"}, ValueError),
        ({"step": 77}, ValueError),
    ],
    ids=["words", "run", "outcome", "split", "env", "step"],
)
def test_python_raises_for_what_cannot_be_meant(
    database: Path, options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error, match=r"\."):
        search_text(database, **{"words": "gasket", **options})


@pytest.mark.parametrize("asked", [{"split": "trian"}, {"env": "maths"}], ids=["split", "env"])
def test_python_refuses_what_no_run_has_in_the_words_of_the_terminal(database: Path, asked: dict[str, str]) -> None:
    [(name, value)] = asked.items()
    with pytest.raises(ValueError, match=f"has no trajectory with {name} {value}. It has ") as raised:
        search_text(database, "gasket", **asked)
    assert sentence(rltracer("search", database, "gasket", f"--{name}", value)) == str(raised.value)


def test_a_message_is_counted_as_in_inspect(database: Path) -> None:
    [found] = search_text(database, "leaking", step=1, outcome="correct")
    shown = rltracer("inspect", database, "--trajectory", found.id, "--branch", found.branch, "--full").stdout
    assert found.snippet is not None
    assert found.snippet in shown.split(f"── #{found.message} ")[1].split("── #")[0]


def test_a_folder_that_nobody_vouched_for_is_not_read(own: Path) -> None:
    with sqlite3.connect(own) as connection:
        connection.execute("update runs set root = '/etc'")
    connection.close()
    [first, *_] = search_text(own, "gasket")
    assert first.problem is not None
    assert "rltracer roots add" in first.problem
    with pytest.raises(LocatorError, match="roots add"):
        first.load()


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [("abc", 3, "abc"), ("abcd", 3, "…cd"), ("漢字漢", 4, "…漢"), ("abc", 1, ""), ("", 0, "")],
)
def test_the_end_of_a_line_is_kept(text: str, width: int, expected: str) -> None:
    assert ending(text, width) == expected
