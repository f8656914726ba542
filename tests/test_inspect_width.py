"""Every line of every list of `rltracer inspect` fits the terminal, whatever runs, splits and prompts are called."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rltracer_sqlite.cli import COMMANDS
from rltracer_sqlite.cli.columns import _columns, caption, width_of, wrapped
from tests.commands import indexed, rltracer
from tests.index_factory import make_index
from tests.indexing import rows
from tests.layouts import append, message, trace
from tests.small_runs import make_run

NAMES = {
    "long": "a-name-of-very-many-characters-" * 4,
    "wide": "とても長い環境の名前" * 6,
    "marks": "e\u0301\u200d🧪🇩🇪" * 12,
    "hostile": "\x1b[2J\t\u202e\x07<b>" * 9,
}
LISTS = [
    [], ["--step", 1], ["--hardest"], ["--easiest", 2], ["--prompt", 1], ["--step", 1, "--prompt", 1], ["--problems"],
    ["--trajectory", 1], ["--split", "{split}"], ["--step", 1, "--env", "{env}"], ["--hardest", "--env", "{env}"],
]  # fmt: skip


@pytest.fixture(scope="module", params=sorted(NAMES))
def named(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Return an index of two runs whose names, splits, environments and texts are all of one kind, and that text."""
    text, folder = NAMES[request.param], tmp_path_factory.mktemp("named")
    for name in ("a", "b"):
        file = folder / f"{name}-{text[:30].strip('/<')}" / "rollouts/step_1/train/all/traces.jsonl"
        for number in range(3):
            says = [message("user", f"{number} {text}"), message("assistant", text)]
            record = trace(says, id=f"{name}{number} {text}", reward=number / 2, stop_condition=text)
            append(file, {**record, "env": text, "env_name": text})
        with file.open("ab") as lines:
            lines.write(b"{no record\n")
    indexed(folder / "x.sqlite", *sorted(one for one in folder.iterdir() if one.is_dir()))
    with closing(sqlite3.connect(folder / "x.sqlite")) as connection:
        for table in ("trajectories", "prompt_groups", "steps"):
            connection.execute(f"update {table} set split = ?", (text,))
        for table in ("trajectories", "prompt_groups"):
            connection.execute(f"update {table} set env = ?", (text,))
        connection.execute("update runs set name = id || ?", (text,))
        connection.commit()
    return folder / "x.sqlite", text


def test_every_line_fits(named: tuple[Path, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    index, text = named
    for asked in ([], *([*one, "--run", "1"] for one in LISTS)):
        options = [str(part).format(split=text, env=text) for part in asked]
        done = rltracer("inspect", index, *options, is_terminal=True)
        assert done.returncode == 0, (asked, done.stderr)
        lines = done.stdout.splitlines()
        assert max(map(width_of, lines)) <= 80, (asked, max(lines, key=width_of))
        assert not any(character in done.stdout for character in "\x1b\x07\u202e"), asked


@pytest.mark.parametrize(
    ("rewards", "end"),
    [((0.5, 0.5), "all rewards equal"), ((0.5, None), "only one"), ((0.5, 0.5, None), "all equal")],
)
def test_why_a_step_has_no_best_is_never_cut(
    tmp_path: Path, rewards: tuple[float | None, ...], end: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    rows = [{"reward": reward, "metrics.ok": float(number)} for number, reward in enumerate(rewards)]
    index = make_index(tmp_path / "x.sqlite", [*rows, {"metrics.ok": None, "step": 2}], ("metrics.ok", 1.0))
    lines = rltracer("inspect", index, "--prompt", 1, is_terminal=True).stdout.splitlines()
    assert next(line for line in lines if line.startswith("  step 1")).endswith(f"  {end}")
    assert max(map(width_of, lines)) <= 80


@pytest.mark.parametrize(
    ("place", "said", "lines"),
    [
        ("/data/run", ": 3 steps", ["/data/run: 3 steps"]),
        ("/data/a-long-place/run", ": 3 steps; split train", ["…/run: 3 steps; split train"]),
        ("/data/run", ": 3 steps; splits evaluation, train", ["/data/run: 3 steps; splits", "evaluation, train"]),
    ],
)
def test_a_caption_loses_of_its_place_only(place: str, said: str, lines: list[str]) -> None:
    assert list(caption(place, said, 32)) == lines


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_every_help_fits(command: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = rltracer(command, "--help").stdout.splitlines()
    assert [line for line in lines if len(line) > 80] == []


def test_a_run_is_headed_by_its_name_and_by_its_folder_as_far_as_that_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, run = tmp_path / "x.sqlite", make_run(tmp_path / ("folder" * 9), 3)
    indexed(database, run, "--name", "of its own")
    for columns, said in (
        ("300", f"of its own, {run}: 1 step; split train"),
        ("60", "of its own, …erfolderfolderfolderfolder: 1 step; split train"),
        ("40", "of its own: 1 step; split train"),
    ):
        monkeypatch.setenv("COLUMNS", columns)
        assert rltracer("inspect", database).stdout.splitlines()[0] == said


@pytest.mark.parametrize("steps", [[3], [3, 5, 8]])
def test_the_headings_of_a_list_of_runs_are_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: list[int]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    database, long = tmp_path / "x.sqlite", "a-name-that-takes-more-than-there-is-room-for"
    for number, name in enumerate(("a", "b", long)):
        indexed(database, *[make_run(tmp_path / name, step) for step in steps])
        if number:
            listed = rltracer("inspect", database).stdout.splitlines()
            [head] = [line for line in listed if line.startswith("  run  ")]
            assert head.split()[:2] == ["run", "name"]
            assert head.endswith("  steps")
            row = listed[listed.index(head) + 1]
            assert head.index("steps") == row.rindex("  ") + 2


def test_lines_fit_the_terminal(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    identities = [identity for (identity,) in rows(demo / "x.sqlite", "select min(id) from trajectories group by env")]
    for columns in (60, 80):
        monkeypatch.setenv("COLUMNS", str(columns))
        for options in ([], ["--step", 8], *(["--trajectory", identity] for identity in identities)):
            lines = rltracer("inspect", demo / "x.sqlite", *options).stdout.splitlines()
            assert max(map(width_of, lines)) <= columns


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("one two three", ["one two", "three"]),
        ("  indented", ["  indent", "ed"]),
        ("日本語日本語", ["日本語日", "本語"]),
        ("a\n\nb", ["a", "", "b"]),
        ("0123456701234567", ["01234567", "01234567"]),
    ],
)
def test_lines_are_broken_by_their_columns(text: str, lines: list[str]) -> None:
    assert list(wrapped(text, 8)) == lines


def test_breaking_a_long_line_looks_at_each_character_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    text, looked = "métric 0.5, " * 2_000, [0]

    def counted(character: str) -> int:
        looked[0] += 1
        return _columns(character)

    monkeypatch.setattr("rltracer_sqlite.cli.columns._columns", counted)
    lines = list(wrapped(text, 80))
    assert max(map(len, lines)) <= 80
    assert " ".join(lines).split() == text.split()
    assert looked[0] < 2 * len(text)
