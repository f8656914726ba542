"""Indexing says how many trajectories have no text for want of a tokenizer, and whose the files of the run name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.commands import indexed
from tests.table_answers import open_instruct
from tests.token_layouts import micro_batch, question, write_bin, write_tokenizer


def bins(root: Path) -> None:
    write_bin(root / "rollouts/step_1/rank_0.bin", [micro_batch("g20", [question("4"), question("5")])])


@pytest.mark.parametrize(
    ("write", "named"),
    [(open_instruct, " (its files name m)"), (bins, "")],
    ids=["open-instruct", "bins"],
)
def test_indexing_says_how_many_need_a_tokenizer_and_whose(
    tmp_path: Path, write: Callable[[Path], Any], named: str
) -> None:
    run = tmp_path / "run"
    write(run)
    [line] = [one for one in indexed(run.with_name("x.sqlite"), run).stdout.splitlines() if "tokens:" in one]
    wanted = "  tokens: the text of 2 trajectories needs a tokenizer: --tokenizer "
    assert line == f"{wanted}PATH, a tokenizer.json or its folder{named}"
    own = write_tokenizer(run / "tokenizer")
    assert f"{wanted}{own}\n" in indexed(run.with_name("x.sqlite"), run).stdout
    assert "tokens:" not in indexed(run.with_name("x.sqlite"), run, "--tokenizer", own).stdout


@pytest.mark.parametrize(
    ("recorded", "told"),
    [
        ('"Qwen/\\u001b[31mx"', " (its files name Qwen/␛[31mx)"),
        ('"\\ud800x"', " (its files name \ufffdx)"),
        (f'"{"m" * 500}"', f" (its files name {'m' * 99}…)"),
        ("7", ""),
        ("null", ""),
        ('" "', ""),
    ],
    ids=["escape", "surrogate", "long", "number", "null", "blank"],
)
def test_a_model_is_named_as_it_is_recorded_visible_and_bounded(tmp_path: Path, recorded: str, told: str) -> None:
    open_instruct(tmp_path / "run")
    facts = f'{{"run_name": "run", "git_commit": "x", "model_name": {recorded}}}\n'
    (tmp_path / "run/run_metadata.jsonl").write_text(facts, encoding="ascii")
    done = indexed(tmp_path / "x.sqlite", tmp_path / "run")
    [line] = [one for one in done.stdout.splitlines() if "tokens:" in one]
    assert line.endswith(f"PATH, a tokenizer.json or its folder{told}")
    [aside] = [one for one in done.stdout.splitlines() if "left aside:" in one]
    assert ("the rollouts need the tokenizer of" in aside) == bool(told)
