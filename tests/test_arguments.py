"""Arguments of every command: wrong ones are exit code 2 before anything is read or written, and empty paths none."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from rltracer_sqlite.cli import COMMANDS, group
from tests.commands import indexed, rltracer, sentence

WRONG = {
    "analyze": [
        ([], "Missing argument"),
        (["{db}", "--k", "0"], "no list of whole numbers"),
        (["{db}", "--window", "-1"], "--window"),
        (["{db}", "--step-start", "x"], "--step-start"),
        (["{db}", "--step-end", "-1"], "--step-end"),
        (["{db}", "--step-start", "5", "--step-end", "3"], "--step-end 3 comes before --step-start 5."),
        (["{db}", "--success", "reward<1"], "Cannot read the rule"),
    ],
    "demo": [(["d", "--port", "99999"], "--port"), (["d", "e"], "unexpected extra argument")],
    "export": [
        (["{db}"], "Give a file with -o, or --dry-run"),
        (["{db}", "-o", "x.csv"], "rows are written as .jsonl"),
        (["{db}", "-o", "x.jsonl", "--mode", "rl"], "give its --rl-data"),
        (["{db}", "--dry-run", "--margin", "0.5"], "it goes with --mode preference"),
        (["{db}", "--dry-run", "--last-branch", "--mode", "rl"], "--last-branch is of SFT rows"),
        (["{db}", "--dry-run", "--steps", "5-1"], "ends before it begins"),
        (["{db}", "--dry-run", "--per-prompt", "some"], "is no number"),
        (["{db}", "--dry-run", "--per-prompt", "0"], "a whole number from 1 on"),
        (["{db}", "--dry-run", "--target", "0"], "a whole number from 1 on"),
        (["{db}", "--dry-run", "--max-pass-rate", "2"], "a pass rate lies between 0 and 1"),
        (["{db}", "--dry-run", "--field", "a~b"], "a~b"),
        (["{db}", "--dry-run", "--split", "some"], "--split"),
        (["{db}", "--dry-run", "--order", "shortest", "--tool-call-power", "1"], "choose one"),
    ],
    "fts": [([], "Missing argument"), (["{db}", "--rebuild", "--remove"], "ask for different things")],
    "index": [
        (["x.sqlite"], "Give a run too"),
        (["x.sqlite", "{run}", "--steps", "x"], "is not a range of steps"),
        (["x.sqlite", "{run}", "--success", "reward>1"], "Cannot read the rule"),
        (["x.sqlite", "{run}", "--jobs", "0"], "--jobs"),
        (["x.sqlite", "{run}", "--jobs", "2", "--executor", "dask://h:1"], "a cluster has its own workers"),
        (["x.sqlite", "{run}", "--executor", "h:1"], "write dask://HOST:PORT"),
        (["x.sqlite", "{run}", "{run}", "--name", "one"], "--name names one run"),
        (["x.sqlite", "{run}", "--watch", "--rebuild"], "--watch goes with neither"),
        (["x.sqlite", "{run}", "--layout", "some"], "--layout"),
        (["{run}", "{db}"], "DATABASE comes first: rltracer-index {db} {run}"),
    ],
    "inspect": [
        ([], "Give one index or run"),
        (["{db}", "--step", "x"], "--step"),
        (["{db}", "--hardest", "0"], "--hardest"),
        (["{db}", "--trajectory", "1", "--branch", "0"], "--branch"),
        (["{db}", "--branch", "1"], "it goes with --trajectory"),
        (["{db}", "--step", "9" * 20], "no number as large as that"),
        (["{db}", "--run", "run", "--name", "run"], "say the same"),
        (["{db}", "--hardest", "--prompt", "1"], "ask for different things"),
    ],
    "metadata": [(["{db}", "{db}"], "unexpected extra argument")],
    "plot": [
        ([], "Missing argument"),
        (["{db}", "pie", "-o", "x.html"], "is not one of 'pass-rate'"),
        (["{db}", "pass-rate", "-o", "x.jpg"], "must end with .svg, .png, .html"),
        (["{db}", "pass-rate", "-o", "x.html", "--window", "0"], "--window"),
        (["{db}", "pass-rate", "-o", "x.png", "--scale", "99"], "--scale"),
        (["{db}", "pass-rate", "--step-start", "5", "--step-end", "3"], "--step-end 3 comes before --step-start 5."),
        (["pass-rate", "{db}", "-o", "x.html"], "DATABASE comes first: rltracer plot {db} pass-rate"),
    ],
    "retemplate": [
        (["a.jsonl", "-o", "b.jsonl"], "Missing option"),
        (["a.jsonl", "-o", "b.csv", "--template", "t", "--source", "p", "t"], "rows are written as .jsonl"),
        (["a.jsonl", "-o", "b.parquet", "--template", "t", "--source", "p", "t"], "retemplate writes JSONL"),
        (["a", "b", "-o", "c", "-o", "d", "-o", "e", "--template", "t", "--source", "p", "t"], "give one output for"),
        (["a", "b", "-o", "c", "-o", "c", "--template", "t", "--source", "p", "t"], "Two outputs are the same file"),
    ],
    "roots": [(["ad", "x"], "No such command 'ad'. Did you mean add?"), (["add"], "Missing argument")],
    "runs": [
        ([], "Missing argument"),
        (["{db}", "--remove", "run", "--move", "run", "x"], "ask for different things"),
    ],
    "search": [
        (["{db}"], "Missing argument"),
        (["{db}", '"exit'], "quot"),
        (["{db}", "exit", "--step", "1", "--steps", "1-2"], "ask for different things"),
        (["{db}", "exit", "--limit", "0"], "--limit"),
        (["{db}", "exit", "--outcome", "some"], "--outcome"),
        (["exit", "code", "{db}"], "DATABASE comes first: rltracer search {db} exit code"),
    ],
    "serve": [
        ([], "Give the folder"),
        (["{run}", "--run", "{run}"], "Give the folder"),
        (["{run}", "--port", "x"], "port"),
    ],
    "sources": [(["shw", "verl"], "Did you mean show?")],
    "success": [
        (["{db}", "--rule", "a>b"], "Cannot read the rule"),
        (["run", "{db}"], "DATABASE comes first: rltracer success {db} run"),
    ],
}
EMPTY = [
    ("rltracer", "", "The first argument"),
    ("rltracer", "analyze|", "after analyze"),
    ("rltracer", "analyze|{db}|-o|", "after -o"),
    ("rltracer", "analyze|{db}|--success=", "after --success="),
    ("rltracer", "demo|", "after demo"),
    ("rltracer", "export|{db}|-o|", "after -o"),
    ("rltracer", "fts|", "after fts"),
    ("rltracer", "inspect|", "after inspect"),
    ("rltracer", "inspect|{db}|--prompt|", "after --prompt"),
    ("rltracer", "metadata|", "after metadata"),
    ("rltracer", "plot|{db}|pass-rate|--env|", "after --env"),
    ("rltracer", "retemplate|a|-o|b|--template|", "after --template"),
    ("rltracer", "roots|add|", "after add"),
    ("rltracer", "runs|{db}|--remove|", "after --remove"),
    ("rltracer", "search|{db}|", "after {db}"),
    ("rltracer", "serve|{run}|--host|", "after --host"),
    ("rltracer", "sources|guess|", "after guess"),
    ("rltracer", "success|{db}|--rule|", "after --rule"),
    ("rltracer-index", "|{run}", "The first argument"),
    ("rltracer-index", "x.sqlite||{run}", "after x.sqlite"),
    ("rltracer-index", "x.sqlite|{run}|--name|", "after --name"),
]
PATHS = [
    ("analyze", "|-o|x"),
    ("analyze", "{run}|--tokenizer|"),
    ("export", "|--dry-run"),
    ("export", "{db}|--dry-run|--rl-data|"),
    ("index", "|{run}"),
    ("index", "x.sqlite|"),
    ("index", "x.sqlite|{run}|--mapping|"),
    ("inspect", "--run|"),
    ("plot", "|pass-rate"),
    ("roots", "add|"),
    ("runs", ""),
    ("search", "|exit"),
    ("serve", "{run}|--index|"),
    ("sources", "guess|"),
    ("success", ""),
]


@pytest.fixture
def names(demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """The demo's index and run, from an empty folder."""
    monkeypatch.chdir(tmp_path)
    return {"db": demo / "x.sqlite", "run": demo / "run"}


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_wrong_arguments_are_exit_code_2_and_nothing_is_written(command: str, names: dict[str, Path]) -> None:
    for arguments, said in WRONG[command]:
        done = rltracer(command, *(text.format(**names) for text in arguments))
        assert said.format(**names) in sentence(done, 2)
    assert not list(Path().iterdir())


@pytest.mark.parametrize(("command", "line", "said"), EMPTY, ids=[line or "rltracer" for _, line, _ in EMPTY])
def test_an_empty_argument_is_refused(command: str, line: str, said: str, names: dict[str, Path]) -> None:
    arguments = line.format(**names).split("|")
    done = rltracer(*arguments) if command == "rltracer" else indexed(*arguments)
    assert f"{said.format(**names)} is empty. Give it a value; " in sentence(done, 2)
    assert not list(Path().iterdir())


@pytest.mark.parametrize(("command", "line"), PATHS, ids=["|".join(one) for one in PATHS])
def test_an_empty_path_is_not_the_current_folder(command: str, line: str, names: dict[str, Path]) -> None:
    result = CliRunner().invoke(group, [command, *line.format(**names).split("|")])
    assert (result.exit_code, "it is empty; the current folder is written as a dot." in result.stderr) == (2, True)
    assert not list(Path().iterdir())


WRITING = [
    ("rltracer-index", "no/x.sqlite", "{run}"),
    ("analyze", "{db}", "-o", "no/folder"),
    ("demo", "no/folder", "--no-serve"),
    ("export", "{db}", "-o", "no/x.jsonl"),
    ("plot", "{db}", "reward", "-o", "no/x.html"),
    ("retemplate", "a.jsonl", "-o", "no/b.jsonl", "--template", "t", "--source", "p", "t"),
    ("serve", "{run}", "--index", "no/x.sqlite"),
]


@pytest.mark.parametrize("line", WRITING, ids=lambda line: line[0])
def test_what_is_written_lies_in_a_folder_that_is_there(line: tuple[str, ...], names: dict[str, Path]) -> None:
    command, *arguments = (text.format(**names) for text in line)
    done = indexed(*arguments) if command == "rltracer-index" else rltracer(command, *arguments)
    assert sentence(done).endswith(" cannot be written: the folder no does not exist.")
    assert not list(Path().iterdir())


def test_a_folder_is_not_written_in_the_place_of_a_file_nor_a_file_in_that_of_a_folder(names: dict[str, Path]) -> None:
    Path("sft.jsonl").write_text("{}\n")
    Path("x.html").mkdir()
    done = rltracer("analyze", names["db"], "-o", "sft.jsonl")
    assert sentence(done) == "sft.jsonl cannot be written: it is a file, and what is written is a folder."
    assert sentence(rltracer("demo", "sft.jsonl")) == sentence(done)
    assert (
        sentence(rltracer("plot", names["db"], "reward", "-o", "x.html")) == "x.html cannot be written: it is a folder."
    )
    assert sentence(rltracer("export", names["db"], "-o", ".")) == ". cannot be written: it is a folder."
    assert Path("sft.jsonl").read_text() == "{}\n"


@pytest.mark.parametrize(("typed", "meant"), [("inspekt", "inspect"), ("plots", "plot"), ("indx", "index")])
def test_a_command_that_is_none_is_answered_with_the_one_most_like_it(typed: str, meant: str) -> None:
    assert sentence(rltracer(typed), 2) == f"No such command {typed!r}. Did you mean {meant}?"


def test_a_command_that_is_like_none_is_only_refused() -> None:
    assert sentence(rltracer("\x1bxyz", "-o"), 2) == "No such command '\\x1bxyz'."
