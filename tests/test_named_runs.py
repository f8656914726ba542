"""Which run of an index a name means: one rule in every command and in Python."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rltracer_sqlite import list_runs, open_run
from rltracer_sqlite.adapter import WhichRunError
from rltracer_sqlite.index.named import run_names, which_run
from rltracer_sqlite.index.queries import Run
from tests.commands import rltracer, sentence
from tests.index_factory import make_index
from tests.indexing import value

COMMANDS = [
    ["inspect", "{db}", "--hardest", "--run"],
    ["plot", "{db}", "histogram", "-o", "{folder}/x.html", "--run"],
    ["analyze", "{db}", "-o", "{folder}/analysis", "--run"],
    ["success", "{db}"],
    ["export", "{db}", "--dry-run", "--run"],
]


@pytest.fixture(scope="module")
def named(tmp_path_factory: pytest.TempPathFactory) -> Path:
    names = ("math-long", "math-short", "code", "code-2", "2026")
    folder = tmp_path_factory.mktemp("named")
    index = make_index(folder / "x.sqlite", [{"run": name, "reward": 1.0} for name in names])
    with closing(sqlite3.connect(index)) as connection:  # below the index, where it may be read
        connection.execute("update runs set root = ? || '/' || name", (str(folder),))
        connection.commit()
    return index


@pytest.mark.parametrize(
    ("asked", "run"),
    [("math-l", "math-long"), ("code", "code"), ("code-", "code-2"), ("2", "math-short"), ("20", "2026")],
)
def test_a_name_its_number_or_its_only_beginning_means_a_run(named: Path, asked: str, run: str) -> None:
    assert open_run(named, asked).run_id == open_run(named, run).run_id


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ("math", "The names of several begin with 'math': math-long, math-short."),
        ("nope", "has no run 'nope'. It holds: math-long, math-short, code, code-2, 2026."),
    ],
)
def test_every_command_says_which_runs_there_are(named: Path, tmp_path: Path, asked: str, said: str) -> None:
    with pytest.raises(WhichRunError) as error:
        open_run(named, asked)
    assert said in str(error.value)
    for command in COMMANDS:
        arguments = [part.format(db=named, folder=tmp_path) for part in command]
        assert said in sentence(rltracer(*arguments, asked)), command
        assert rltracer(*arguments, "math-s").returncode == 0, command
    assert "math-short: " in rltracer("success", named, "math-s").stdout


def test_of_many_runs_the_first_are_named() -> None:
    known = [Run(number, f"run-{number}", "/", "prime-rl", None, None, "reward", 1.0) for number in range(1, 1001)]
    assert run_names(known).startswith("run-1, run-2, run-3, ")
    assert run_names(known).endswith(f" and {1000 - run_names(known).count(',') - 1:,} more")


def test_names_that_are_too_long_for_a_sentence_have_a_line_each_with_their_numbers() -> None:
    names = [f"a-name-that-takes-some-room-{number}" for number in range(1, 23)] + ["a\nforged line"]
    known = [Run(number, name, "/", "prime-rl", None, None, "reward", 1.0) for number, name in enumerate(names, 1)]
    assert which_run(known[:3], None, Path("x.sqlite"), "Give one with --run.").splitlines() == [
        "Which run of x.sqlite? It holds:",
        "  1  a-name-that-takes-some-room-1",
        "  2  a-name-that-takes-some-room-2",
        "  3  a-name-that-takes-some-room-3",
        "Give one with --run.",
    ]
    begin, *lines, more = which_run(known, "a-name", Path("x.sqlite")).splitlines()
    assert (begin, len(lines)) == ("Which run of x.sqlite? The names of several begin with 'a-name':", 20)
    assert more == "  and 2 more: rltracer runs x.sqlite lists them"
    assert which_run(known[20:], "nope").endswith("\n  23  a␊forged line")


def test_python_lists_the_runs_as_the_terminal_does(demo: Path) -> None:
    [run] = list_runs(demo / "x.sqlite")
    facts = [
        json.loads(line)
        for line in rltracer("inspect", demo / "x.sqlite", "--split", "train", "--json").stdout.splitlines()
    ]
    assert (run.name, run.split, run.steps) == ("run", "train", [fact["step"] for fact in facts])
    assert run.pass_rate == pytest.approx(
        value(demo / "x.sqlite", "select sum(successes) * 1.0 / sum(scored) from prompt_groups where split = 'train'")
    )
    assert f"pass rate {run.pass_rate:.3f} of 'train'" in repr(run)
