"""One rule for the exit code of every command: 2 for a wrong command line, 1 for what it names and is not there."""

from __future__ import annotations

from pathlib import Path
from shutil import copy

import pytest

from rltracer_sqlite.cli import COMMANDS
from tests.commands import Done, indexed, rltracer
from tests.index_factory import make_index

# What is not there, in every command that can name it.
NOT_THERE = {
    "a database": [
        "analyze no.sqlite",
        "export no.sqlite --dry-run",
        "fts no.sqlite",
        "inspect no.sqlite",
        "inspect no.sqlite --run a",
        "metadata no.sqlite",
        "plot no.sqlite reward",
        "runs no.sqlite",
        "search no.sqlite word",
        "success no.sqlite",
    ],
    "a file or a folder": [
        "demo no/demo --no-serve",
        "export {db} --dry-run --ids no",
        "export {db} -o no/x.jsonl",
        "export {db} --mode rl --rl-data no.jsonl -o x.jsonl",
        "index x.sqlite no",
        "index x.sqlite {run} --mapping no.toml",
        "index x.sqlite {run} --tokenizer no",
        "index no/x.sqlite {run}",
        "inspect no",
        "plot {db} reward -o no/x.html",
        "retemplate no.jsonl -o x.jsonl --template no --source no no",
        "roots add no",
        "roots remove no",
        "runs {db} --move a no",
        "serve no",
        "serve {run} --tokenizer no",
        "sources guess no.jsonl",
    ],
    "a run": [
        "analyze {two} --run no",
        "export {two} --dry-run --run no",
        "inspect {two} --run no",
        "inspect {run} --run no",
        "plot {two} reward --run no",
        "runs {two} --remove no --yes",
        "runs {two} --move no {run}",
        "search {db} 42 --run no",
        "success {two} no",
    ],
    "one run only": ["inspect {two} --step 1", "plot {two} reward", "plot {two} reward --run run-"],
    "a step": [
        "analyze {db} --step-start 99",
        "export {db} --dry-run --steps 99",
        "export {db} -o x.jsonl --steps 99",
        "index x.sqlite {run} --steps 99",
        "inspect {db} --step 99",
        "plot {db} reward --step-end 0",
        "search {db} 42 --step 99",
        "search {db} 42 --steps 99-",
    ],
    "a split": [
        "analyze {db} --split no",
        "export {two} --dry-run --split eval",
        "inspect {db} --split no",
        "inspect {two} --split no",
        "plot {db} reward --split no",
        "search {db} 42 --split no",
    ],
    "an environment": [
        "analyze {db} --env no",
        "export {db} --dry-run --env no",
        "inspect {db} --env no",
        "plot {db} reward --env no",
        "search {db} 42 --env no",
    ],
    "a prompt or a trajectory": [
        "inspect {db} --prompt 999",
        "inspect {db} --prompt 14 --split eval",
        "inspect {db} --prompt 13 --step 8",
        "inspect {db} --trajectory 999",
        "inspect {db} --trajectory 1 --with 999",
        "inspect {db} --trajectory 1 --branch 9",
    ],
    "a column or a source": [
        "analyze {db} --success no>=1",
        "export {db} --dry-run --field no>=1",
        "success {db} --rule no>=1",
        "sources show no",
    ],
}
# Wrong whatever there is to read, so that it does not matter that none of what they name is there.
WRONG_BY_ITSELF = {
    "an option that there is not": ["index no.sqlite no --no", *(f"{name} --no" for name in COMMANDS)],
    "an argument is missing": ["index x.sqlite", "inspect", "export", "export no.sqlite", "plot no.sqlite", "serve"],
    "a value that can never be": [
        "analyze no.sqlite --k 0",
        "analyze no.sqlite --k 99999999999999999999",
        "analyze no.sqlite --success a>b",
        "export no.sqlite --dry-run --steps 9-3",
        "index no.sqlite no --every nan --watch",
        "index no.sqlite no --executor no",
        "index no.sqlite no --steps x",
        "inspect no.sqlite --step x",
        "inspect ftp://host/run",
        "plot no.sqlite no",
        "plot no.sqlite reward -o x.gif",
        "plot no.sqlite reward -o x.png --scale nan",
        "search no.sqlite word --limit 0",
        "serve no --port -1",
        "success no.sqlite --rule a>b",
    ],
    "options that exclude each other": [
        "analyze no.sqlite --step-start 5 --step-end 3",
        "export no.sqlite --dry-run --margin 1",
        "fts no.sqlite --rebuild --remove",
        "index no.sqlite no --watch --rebuild",
        "inspect no.sqlite --hardest --problems",
        "plot no.sqlite reward --theme dark",
        "runs no.sqlite --remove a --move a no",
        "search no.sqlite word --step 1 --steps 1-2",
        "serve no --run no",
    ],
}
DONE = ["search {db} nosuchword", "inspect {db} --problems", "export {db} --dry-run --min-pass-rate 1", "roots"]


@pytest.fixture(scope="module")
def two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    rows = [{"run": name, "split": "train", "reward": 1.0} for name in ("run-a", "run-b")]
    return make_index(tmp_path_factory.mktemp("two") / "two.sqlite", rows)


@pytest.fixture(scope="module")
def searchable(tmp_path_factory: pytest.TempPathFactory, demo: Path) -> Path:
    database = Path(copy(demo / "x.sqlite", tmp_path_factory.mktemp("searchable")))
    assert rltracer("fts", database).returncode == 0
    return database


def _left(line: str, code: int, places: dict[str, Path]) -> Done:
    words = [word.format(**places) for word in line.split()]
    done = indexed(*words[1:]) if words[0] == "index" else rltracer(*words)
    assert done.returncode == code, (line, done.stderr)
    return done


def _lines(kinds: dict[str, list[str]]) -> list[str]:
    return [line for lines in kinds.values() for line in lines]


@pytest.fixture
def places(demo: Path, two: Path, searchable: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """What there is, from an empty folder: the demo's run and its index, and an index of two runs."""
    monkeypatch.chdir(tmp_path)
    return {"db": searchable, "run": demo / "run", "two": two}


@pytest.mark.parametrize("line", _lines(NOT_THERE))
def test_what_is_named_and_not_there_is_1(line: str, places: dict[str, Path]) -> None:
    said = _left(line, 1, places).stderr
    assert said.count("Error: ") == (0 if line.endswith(("--steps 99", "--split eval")) and "--dry-run" in line else 1)
    assert "Usage: " not in said


@pytest.mark.parametrize("line", _lines(WRONG_BY_ITSELF))
def test_what_is_wrong_by_itself_is_2(line: str, places: dict[str, Path]) -> None:
    assert _left(line, 2, places).stderr.count("Error: ") == 1
    assert not list(Path().iterdir())


@pytest.mark.parametrize("line", DONE)
def test_what_is_done_and_finds_nothing_is_0(line: str, places: dict[str, Path]) -> None:
    assert "Error" not in _left(line, 0, places).stderr
