"""What an impatient person types wrongly is answered by one sentence that says what is to be typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands import Done, indexed, rltracer, sentence
from tests.small_runs import make_run


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an index of two runs, the runs, and a file."""
    folder = tmp_path_factory.mktemp("slips")
    assert indexed(folder / "x.sqlite", make_run(folder / "a"), make_run(folder / "b")).returncode == 0
    (folder / "used").mkdir()
    (folder / "used" / "mine.txt").write_text("mine")
    return folder


def typed(line: str) -> Done:
    command, *arguments = (word.replace("~", " ") for word in line.split())
    return indexed(*arguments) if command == "rltracer-index" else rltracer(command, *arguments)


LONG = "x" * 300  # no file is called so
# What is typed, with ~ for a space, the exit code, and the sentence.
SLIPS = [
    ("show", 2, "No such command 'show'. Did you mean inspect?"),
    ("prompts x.sqlite", 2, "No such command 'prompts'. Did you mean inspect?"),
    ("chart x.sqlite", 2, "No such command 'chart'. Did you mean plot?"),
    ("x.sqlite", 2, "No such command 'x.sqlite'. A command comes first: rltracer inspect x.sqlite"),
    ("a", 2, "No such command 'a'. A command comes first: rltracer inspect a"),
    (LONG, 2, f"No such command '{LONG}'."),
    ("inspect x.sqlite 17", 2, "unexpected extra argument (17). --trajectory 17 shows one, --prompt 17 a prompt."),
    ("inspect x.sqlite b", 2, "unexpected extra argument (b). --run b chooses a run."),
    ("inspect x.sqlite --step 1-3", 2, "Invalid value for '--step': '1-3' is a range: --steps 1-3 takes it."),
    ("search x.sqlite w --step 3-", 2, "Invalid value for '--step': '3-' is a range: --steps 3- takes it."),
    ("inspect x.sqlite --run a --step -3", 1, "The run has no step -3; it has 1."),
    ("search x.sqlite w --failed", 2, "No such option '--failed'. Did you mean --outcome failed?"),
    (
        "export x.sqlite --passed",
        2,
        "No such option '--passed'. Did you mean --acceptance passed or --rejected passed?",
    ),
    ("export x.sqlite --rl", 2, "No such option '--rl'. Did you mean --mode rl?"),
    ("export x.sqlite y.jsonl", 2, "Give a file with -o y.jsonl, or --dry-run to see what would be selected."),
    ("rltracer-index a", 2, "DATABASE comes first: rltracer-index run.sqlite a"),
    ("rltracer-index y.sqlite", 2, "Give a run too: rltracer-index y.sqlite RUN"),
    (
        "rltracer-index y.sqlite x.sqlite",
        1,
        "x.sqlite is a database, and not a run. An index is shown by rltracer inspect, or datasette.",
    ),
    ("success x.sqlite r~>=~1", 2, "A rule is given by --rule 'r >= 1'; RUN is the name of a run."),
    ("success x.sqlite a r~>=~1", 2, "Got unexpected extra argument (r >= 1). --rule 'r >= 1' sets a rule."),
    ("runs x.sqlite a", 2, "Got unexpected extra argument (a). rltracer inspect DB --run a shows a run."),
    ("analyze nothere", 1, "The file or folder nothere does not exist."),
    ("demo used --no-serve", 1, "used holds something else. Give a folder that is new: rltracer demo used/demo"),
    ("sources guess a", 1, "a is no file: give one of its tables."),
]


@pytest.mark.parametrize(("line", "code", "said"), SLIPS, ids=[line for line, _, _ in SLIPS])
def test_a_slip_is_answered_with_the_way_on(
    place: Path, monkeypatch: pytest.MonkeyPatch, line: str, code: int, said: str
) -> None:
    monkeypatch.chdir(place)
    before = sorted(place.rglob("*"))
    assert sentence(typed(line), code).endswith(said)
    assert sorted(place.rglob("*")) == before


def test_a_prompt_of_another_run_is_said_to_be_of_that(tmp_path: Path) -> None:
    runs = make_run(tmp_path / "a"), tmp_path / "b"
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "chat.jsonl").write_text('{"messages": [{"role": "user", "content": "Hi"}]}\n')
    assert indexed(tmp_path / "x.sqlite", *runs).returncode == 0
    for run, prompt, other in (("a", 2, "b"), ("b", 1, "a")):
        said = sentence(rltracer("inspect", tmp_path / "x.sqlite", "--run", run, "--prompt", prompt))
        assert said == f"The run has no prompt {prompt}; it is in the run {other}: --run {other}."


@pytest.mark.parametrize("command", ["export", "fts", "inspect"])
def test_whoever_reads_a_run_that_was_moved_is_told_how_the_index_finds_it(tmp_path: Path, command: str) -> None:
    database = tmp_path / "x.sqlite"
    assert indexed(database, make_run(tmp_path / "a")).returncode == 0
    (tmp_path / "a").rename(tmp_path / "b")
    options = {"export": ["-o", tmp_path / "y.jsonl"], "fts": [], "inspect": ["--trajectory", 1]}[command]
    done = rltracer(command, database, *options)
    assert done.returncode == 1
    assert done.stderr.endswith(f"another folder now:\n  rltracer runs {database} --move a FOLDER\n")


@pytest.mark.parametrize("option", ["", "--browse-root", "--run"])
def test_an_index_is_served_by_datasette_itself(place: Path, option: str) -> None:
    said = rltracer("serve", *filter(None, [option]), place / "x.sqlite").stderr
    assert said == (
        f"Error: {place / 'x.sqlite'} is a database. Datasette itself serves an index:\n"
        f"  datasette {place / 'x.sqlite'} --setting suggest_facets off\n"
    )
