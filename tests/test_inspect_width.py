"""Every line of every list of `rltracer inspect` fits the terminal, whatever runs, splits and prompts are called."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rltracer_sqlite.cli import COMMANDS
from rltracer_sqlite.cli.columns import caption, width_of
from tests.commands import indexed, rltracer
from tests.index_factory import make_index
from tests.layouts import append, message, trace

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
        ("/data/a-long-place/run", ": 3 steps; split train", ["…place/run: 3 steps; split train"]),
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
