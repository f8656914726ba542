"""What is not there with the filters that are asked for, and is without them: which leave it out, and where it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.commands import rltracer, sentence
from tests.index_factory import make_index

ROWS = [
    {"prompt": "p1", "step": 1, "split": "train", "env": "math", "reward": 1.0},
    {"prompt": "p1", "step": 3, "split": "train", "env": "math", "reward": 0.0},
    {"prompt": "p1", "step": 2, "split": "eval", "env": "math", "reward": None},
    {"prompt": "p2", "step": 2, "split": "eval", "env": "code", "reward": None},
    {"prompt": "p3", "step": 2, "split": "train", "env": "code", "reward": None},
]
NO_PROMPT = "The run has no prompt "
NO_TRAJECTORY = "The run demo has no trajectory with "


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_index(tmp_path_factory.mktemp("elsewhere") / "x.sqlite", ROWS)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--prompt 2 --split train", f"{NO_PROMPT}2 with split train; it is only in split eval."),
        ("--prompt 2 --env math", f"{NO_PROMPT}2 with env math; it is only in env code."),
        ("--prompt 1 --step 2 --split train", "Step 2 has no prompt 1 with split train; it is only in "
         "steps 1, 3 with split train, and in split eval with step 2."),
        ("--prompt 2 --split train --env math", f"{NO_PROMPT}2 with split train, env math; it is only in "
         "split eval; env code."),
        ("--prompt 1 --split train --env code", f"{NO_PROMPT}1 with split train, env code; it is only in "
         "env math with split train."),
        ("--prompt 9 --split eval", f"{NO_PROMPT}9; with split eval it has 2 prompts, 1–2."),
        ("--prompt 9 --step 2", "Step 2 has no prompt 9; it has 3 prompts, 1–3."),
        ("--prompt 3 --step 1", "Step 1 has no prompt 3; it is only in step 2."),
        ("--split eval --step 1", f"{NO_TRAJECTORY}split eval, step 1. It has step 2 with split eval, and split train "
         "with step 1."),
        ("--split evil --env coda", f"{NO_TRAJECTORY}split evil, env coda. It has split eval, train; env code, math. "
         "Did you mean eval? Did you mean code?"),
        ("--hardest --split eval", "No prompt with split eval is scored by the run's success rule, reward >= 1; only "
         "those of split train are."),
        ("--easiest --split train --env code", "No prompt with split train, env code is scored by the run's success "
         "rule, reward >= 1; only those of env math with split train are."),
    ],
)  # fmt: skip
def test_a_list_says_which_filter_leaves_it_out(database: Path, options: str, said: str) -> None:
    assert sentence(rltracer("inspect", database, *options.split())) == said
    assert sentence(rltracer("inspect", database, "--json", *options.split())) == said


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--split eval", "no trajectory of demo with split eval records reward; only those of split train do."),
        ("--env code --step-end 2", "no trajectory of demo with env code, steps up to 2 records reward; only those of "
         "env math with steps up to 2 do."),
    ],
)  # fmt: skip
def test_a_chart_says_which_filter_leaves_nothing_to_draw(database: Path, options: str, said: str) -> None:
    assert sentence(rltracer("plot", database, "pass-rate", *options.split())) == f"Nothing to draw: {said}"


def test_a_column_is_told_to_be_missing_of_what_was_read_only(demo: Path) -> None:
    asked = ("export", demo / "x.sqlite", "--dry-run", "--steps", "2", "--field", "info.no.such>=1")
    assert sentence(rltracer(*asked)).startswith(
        "No record that the other conditions leave has a value at info.no.such."
    )


@pytest.mark.parametrize(("asked", "is_there"), [("2", True), ("u2", True), ("3", False), ("u3", False)])
def test_an_export_says_of_which_run_an_id_is(tmp_path: Path, asked: str, is_there: bool) -> None:
    database = make_index(tmp_path / "x.sqlite", [{"run": "a", "uid": "u1"}, {"run": "b", "uid": "u2"}])
    (tmp_path / "ids").write_text(asked)
    said = sentence(rltracer("export", database, "--dry-run", "--run", "a", "--ids", tmp_path / "ids"))
    where = f" {asked} is of the run b, which is not asked for." if is_there else ""
    assert said == f"No trajectory in the asked runs has these ids (1 of 1): {asked}.{where}"
