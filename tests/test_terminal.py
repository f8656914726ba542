"""What commands print fits a terminal of 80 columns, whole words at a time; in a pipe each fact is one line."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from rltracer_sqlite.cli.columns import width_of
from rltracer_sqlite.cli.say import COMMANDS
from tests.commands import Done, indexed, rltracer
from tests.index_factory import make_index
from tests.layouts import append, message, trace

NAME = "a-run-whose-name-says-what-was-changed-in-it-and-when"
ENV = "environment-of-word-problems-with-a-long-name"
PATH = "metrics.share_of_final_answers_that_agree_with_the_reference"
TRACES = "rollouts/step_1/train/all/traces.jsonl"
COLUMNS = 80


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("terminal")
    for name in (NAME, f"{NAME}-again"):
        records = [
            trace(
                [message("user", f"{n} + {n}?"), message("assistant", "42")],
                id=f"{name} {n}",
                info={"env_name": f"{ENV}-{n}"},
                metrics={PATH.removeprefix("metrics."): float(n % 2)} if n else {},
            )
            for n in range(5)
        ]
        append(folder / name / TRACES, *records)
        append(folder / name / TRACES, None, dump=lambda _: b"{no json\n")
    runs = [folder / NAME, folder / f"{NAME}-again"]
    assert indexed(folder / "x.sqlite", *runs, "--success", f"{PATH} >= 0.5", "--fts").returncode == 0
    return folder / "x.sqlite"


COMMAND_LINES = [
    ["index", "{db}", "{run}", "--fts"],
    ["index", "{new}", "{run}", "--success", f"{PATH}_of_nothing>=1"],
    ["index", "{db}", "{folder}"],
    ["success", "{db}"],
    ["success", "{db}", "--rule", f"{PATH}_of_nothing >= 1"],
    ["success", "{db}", f"{NAME}-which-is-not-there"],
    ["analyze", "{db}", "-o", "{out}"],
    ["analyze", "{db}", "--env", "nosuch"],
    ["export", "{db}", "--dry-run"],
    ["export", "{db}", "--dry-run", "--field", f"env={ENV}-and-what-is-not-there", "--acceptance", "any"],
    ["export", "{db}", "-o", "{out}.jsonl"],
    ["export", "{db}", "--run", "none", "-o", "{out}.jsonl"],
    ["export", "{db}"],
    ["search", "{db}", "42", "--env", "nosuch"],
    ["search", "{db}", "nosuchword"],
    ["sources"],
    ["sources", "show", "nosuch"],
    ["fts", "{db}"],
    ["fts", "{db}", "--rebuild"],
    ["roots"],
    ["roots", "remove", "{folder}/never/added"],
    ["metadata", "{run}"],
    ["plot", "{db}", "pass-rate", "-o", "{out}.html"],
    ["demo", "{out}", "--no-serve"],
]


def printed(line: list[str], database: Path, tmp_path: Path, is_terminal: bool) -> Done:
    folder = database.parent
    places = {"db": database, "run": folder / NAME, "folder": folder, "out": tmp_path / "out", "new": tmp_path / "new"}
    words = [word.format(**places) for word in line]
    if words[0] == "index":
        return indexed(*words[1:], is_terminal=is_terminal)
    return rltracer(*words, is_terminal=is_terminal)


@pytest.mark.parametrize("line", COMMAND_LINES, ids=lambda line: " ".join(line)[:40])
def test_every_line_fits_and_no_word_is_cut(
    line: list[str], database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(COLUMNS))
    done = printed(line, database, tmp_path, is_terminal=True)
    lines = [part.rpartition("\r")[2] for part in (done.stdout + done.stderr).splitlines()]
    assert lines
    wide = [one for one in lines if width_of(one) > COLUMNS and not one.startswith(COMMANDS)]
    # A path or a rule that is wider stands on a line of its own.
    assert [one for one in wide if len(one.replace(" >= ", ">=").split()) > 1] == []


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_rule_is_never_cut_and_a_pipe_gets_whole_lines(
    database: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    told = printed(["success", "{db}"], database, tmp_path, is_terminal).stdout
    assert told.count(f"{PATH} >= 0.5") == 2
    assert (len(told.splitlines()) == 2) != is_terminal


def test_a_real_terminal_is_seen(database: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "rltracer_sqlite.cli", "success", str(database), NAME]
    code = f"import sys; sys.argv = {['rltracer', *command[3:]]!r}; from rltracer_sqlite.cli import main; main()"
    environment = {**os.environ, "COLUMNS": "70"}
    subprocess.run([sys.executable, "-c", code], stdout=theirs, env=environment, check=True)
    os.close(theirs)
    lines = os.read(ours, 4096).decode().splitlines()
    os.close(ours)
    assert lines[0] == f"{NAME}:"
    assert len(lines) > 2
    assert max(map(len, lines)) <= 70


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "cp437"])
def test_what_an_encoding_lacks_is_escaped(tmp_path: Path, encoding: str) -> None:
    said = "\N{EM DASH} \N{LATIN SMALL LETTER E WITH ACUTE} \N{GRINNING FACE}"
    append(tmp_path / "run" / TRACES, trace([message("user", said), message("assistant", "42")], id="t"))
    indexed(tmp_path / "x.sqlite", tmp_path / "run")
    command = ["rltracer", "inspect", str(tmp_path / "x.sqlite"), "--step", "1"]
    environment = {**os.environ, "PYTHONIOENCODING": encoding}

    def printed_by(*options: str) -> str:
        code = f"import sys; sys.argv = {[*command, *options]!r}; from rltracer_sqlite.cli import main; main()"
        done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, env=environment, check=True)
        return done.stdout.decode(encoding)

    assert "\\ud83d\\ude00" in printed_by()
    assert json.loads(printed_by("--json"))["preview"] == said


@pytest.mark.parametrize("content", [None, b"", b"hello\n", b'{"schema_version": "ATIF-v1.0"}'])
def test_a_long_path_is_whole_and_leaves_no_label_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    file = tmp_path / ("name" * 20) / "trajectory.json"
    if content is not None:
        file.parent.mkdir()
        file.write_bytes(content)
    lines = indexed(tmp_path / "x.sqlite", file, is_terminal=True).stderr.splitlines()
    assert lines[0].startswith("Error: The file")
    assert lines[1].strip() == str(file)
    assert max(map(width_of, [lines[0], *lines[2:]])) <= 80


def test_huge_and_infinite_rewards_take_few_columns_and_leave_json_valid(tmp_path: Path) -> None:
    rows = [{"prompt": "p", "reward": reward} for reward in (1e308, 1e308, -1e308)]
    made = make_index(tmp_path / "x.sqlite", [*rows, {"prompt": "q", "reward": float("inf")}])
    said = rltracer("inspect", made, "--prompt", 1).stdout
    assert "best of all: trajectory 1, reward 1e+308 (as 1 other), step 1, train" in said
    assert all(len(line) <= COLUMNS for line in said.splitlines())
    [row] = rltracer("inspect", made, "--prompt", 2, "--json").stdout.splitlines()
    assert json.loads(row, parse_constant=pytest.fail)["reward_mean"] is None
