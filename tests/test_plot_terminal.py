"""`rltracer plot` without a file: the same rows as the drawn chart, as bars that fit the terminal, or with tabs."""

from __future__ import annotations

import csv
import io
import re
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.charts import CHARTS, Filters, find_span, plan_query, provide_square_root, read_rows
from rltracer_sqlite.charts.figure import Figure
from rltracer_sqlite.charts.words import describe_rows
from rltracer_sqlite.cli.bars import TABLES, chart_lines
from rltracer_sqlite.cli.columns import width_of
from rltracer_sqlite.index.database import open_index
from tests.commands import indexed, rltracer, sentence
from tests.index_factory import make_index
from tests.indexing import rows as rows_by_sql
from tests.indexing import value
from tests.layouts import append, message, trace

WIDE = "日本語の環境" * 8


@pytest.fixture(scope="module")
def long_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an index of 60 steps whose names are long and wide, with a reward below 0."""
    rows = [
        {"step": step, "split": split, "env": WIDE, "prompt": f"{WIDE} {number}", "reward": (step + number) / 40 - 0.5,
         "rewards.a_component_with_a_rather_long_name.score": step * 1e7, "turns": step, "completion_tokens": step,
         "truncated": step % 2}
        for step in range(60) for split in ("train", "eval" * 10) for number in range(4)
    ]  # fmt: skip
    return make_index(tmp_path_factory.mktemp("long") / "x.sqlite", rows)


def rows_of(index: Path, chart: str, most: int | None = None) -> tuple[list[dict[str, Any]], str]:
    with closing(open_index(index)) as connection:
        provide_square_root(connection)
        query = plan_query(chart, Filters(1), find_span(connection, 1), most)
        return read_rows(connection, query), query.parameters["split"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--theme", "dark"], "--theme is for a file that ends with .svg or .png"),
        (["--scale", "3"], "--scale is for a file that ends with .png"),
        (["-o", "x.svg", "--scale", "3"], "--scale is for a file that ends with .png"),
        (["-o", "x.html", "--theme", "dark"], "--theme is for a file that ends with .svg or .png"),
    ],
)
def test_an_option_that_would_do_nothing_is_refused(demo: Path, options: list[str], said: str) -> None:
    assert said in sentence(rltracer("plot", demo / "x.sqlite", "difficulty", *options), 2)


@pytest.mark.parametrize("chart", CHARTS)
def test_in_a_pipe_the_rows_of_the_chart_are_printed(demo: Path, chart: str) -> None:
    done = rltracer("plot", demo / "x.sqlite", chart)
    told = list(csv.DictReader(io.StringIO(done.stdout), delimiter="\t", quoting=csv.QUOTE_NONE))
    drawn, _ = rows_of(demo / "x.sqlite", chart)
    texts = [{name: "" if one is None else " ".join(str(one).split()) for name, one in row.items()} for row in drawn]
    assert told == texts


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["pass-rate"], "2 trajectories have no step and are not drawn."),
        (["reward", "--env", "math"], "1 trajectory has no step and is not drawn."),
        (["reward", "--step-start", "1"], ""),
        (["difficulty"], ""),
    ],
    ids=["all", "of one environment", "of steps", "of prompts"],
)
def test_in_a_pipe_stderr_says_what_is_not_among_the_rows(tmp_path: Path, options: list[str], said: str) -> None:
    without = [{"step": None, "reward": 1.0, "env": env} for env in ("math", None)]
    index = make_index(tmp_path / "x.sqlite", [{"reward": 0.0}, {"reward": 1.0}, *without])
    done = rltracer("plot", index, *options)
    assert done.stderr.rstrip("\n") == said
    assert "no step and" not in done.stdout


@pytest.mark.parametrize("chart", CHARTS)
@pytest.mark.parametrize("width", [40, 80])
def test_every_line_of_a_chart_fits_the_terminal(demo: Path, long_run: Path, chart: str, width: int) -> None:
    for index in (demo / "x.sqlite", long_run):
        rows, split = rows_of(index, chart, TABLES[chart].most_windows)
        lines = list(chart_lines(Figure(chart, rows, "", parts=(split,)), width))
        assert max(map(width_of, lines)) <= width
        assert index == long_run or any("█" in line for line in lines)


def test_a_bar_is_as_long_as_its_value(demo: Path) -> None:
    rows, split = rows_of(demo / "x.sqlite", "pass_rate")
    first, head, *lines = chart_lines(Figure("pass_rate", rows, "", run="demo", parts=(split,)), 80)
    assert first == "Pass rate over steps: demo; bars from 0 to 100%"
    assert head.split() == ["eval", "train"]
    train = {row["step_first"]: row["pass_rate"] for row in rows if row["split"] == "train"}
    assert [line.split()[1] for line in lines] == [str(step) for step in train]
    for line, rate in zip(lines, train.values(), strict=True):
        number, bar = line[head.index("train") :].split()
        assert number == f"{rate:.1%}"
        assert len(bar) == pytest.approx(rate * 26, abs=1)


def test_many_steps_are_drawn_in_windows_and_a_reward_below_zero_has_no_bar(long_run: Path) -> None:
    rows, split = rows_of(long_run, "reward", TABLES["reward"].most_windows)
    lines = list(chart_lines(Figure("reward", rows, "", parts=(split,)), 80))
    assert sum(line.startswith("  steps 0–4 ") for line in lines) == 2  # of the total, and of the component
    assert next(line for line in lines if line.startswith("  steps 0–4 ")).split()[3] == "-0.412"


def test_in_a_terminal_it_is_drawn_and_said_in_words(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    done = rltracer("plot", demo / "x.sqlite", "pass-rate", "--split", "train", is_terminal=True)
    shown = done.stdout.splitlines()
    assert re.fullmatch(r"Pass rate over steps, train: \S+; bars from 0 to 100%", shown[0])
    assert shown[2].split()[:3] == ["step", "1", "21.1%"]
    assert shown[10].startswith("  Pass rate, train: 21.1% at step 1, 84.2% at")


RATED = ("pass_rate", "histogram", "difficulty", "zero_variance")
CHOICES: list[tuple[dict[str, str], str]] = [
    ({}, "1"),
    ({"--split": "train"}, "split = 'train'"),
    ({"--split": "eval", "--env": "word-problems"}, "split = 'eval' and env = 'word-problems'"),
    ({"--split": "train", "--step-start": "2", "--step-end": "3"}, "split = 'train' and step between 2 and 3"),
]


@pytest.mark.parametrize("chart", CHARTS)
@pytest.mark.parametrize(("chosen", "where"), CHOICES, ids=["all", "split", "env", "steps"])
def test_a_chart_of_pass_rates_names_the_rule_and_counts_the_unscored(
    demo: Path, chart: str, chosen: dict[str, str], where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    done = rltracer("plot", demo / "x.sqlite", chart, *sum(chosen.items(), ()), is_terminal=True)
    if chart in ("histogram", "difficulty", "zero_variance") and not chosen:
        where = "split = 'train'"  # they are of one split
    sql = f"select sum(success is null), count(*) from trajectories where {where}"
    [(unscored, count)] = rows_by_sql(demo / "x.sqlite", sql)
    of = " of train" if "split = 'train'" in where else " of eval" if "split = 'eval'" in where else ""
    scored = f"{unscored} of {count} trajectories{of} unscored" if unscored else f"all{of} scored"
    said = f"Success: metrics.correct_final_label >= 1; {scored}."
    if chart in ("histogram", "difficulty"):
        prompt = "(select prompt_id from prompt_groups where id = prompt_group_id)"
        sql = f"select max(success) is null from trajectories where {where} group by {prompt}"
        without = [one for (one,) in rows_by_sql(demo / "x.sqlite", sql)]
        of_prompts = f"; {sum(without)} of {len(without)} prompts have no score." if any(without) else "."
        said = said.removesuffix(".") + of_prompts
    assert done.stdout.splitlines()[-1].endswith(said) == (chart in RATED)
    assert ("Success:" in done.stdout) == (chart in RATED)


def test_a_file_says_it_too_and_where_steps_are_missing_counts_what_is_drawn(tmp_path: Path) -> None:
    steps: list[int | None] = [1, 2, None]
    index = make_index(
        tmp_path / "x.sqlite",
        [{"step": step, "prompt": f"p{step}", "reward": reward} for step in steps for reward in (1.0, 0.0, None)],
    )
    said = "Success: reward >= 1; {} of {} trajectories{} unscored."
    for chart, counts in (("pass-rate", (2, 6, "")), ("histogram", (3, 9, " of train"))):
        done = rltracer("plot", index, chart, "-o", tmp_path / "x.html")
        assert said.format(*counts) in " ".join(done.stdout.split())
        assert said.format(*counts) in (tmp_path / "x.html").read_text()


@pytest.mark.parametrize("otherwise", [0.0, 0.25])
def test_groups_without_signal_are_told_by_every_reason(otherwise: float) -> None:
    shares = {"zero_variance": 0.5 + otherwise, "all_failed": 0.5, "all_passed": 0.0, "other_equal": otherwise}
    rows = [{"split": "train", "step_first": step, "step_last": step, "prompt_groups": 4, **shares} for step in (1, 2)]
    said = describe_rows("zero_variance", rows)
    told = (
        "50.0% all failed, 0.0% all passed and 25.0% equal otherwise"
        if otherwise
        else "50.0% all failed and 0.0% all passed"
    )
    assert f"over all steps {told}, of 8 groups." in said
    drawn = "\n".join(chart_lines(Figure("zero_variance", rows, said), 80))
    assert ("equal otherwise, train" in drawn) == bool(otherwise)
    assert "all passed, train" in drawn


@pytest.fixture
def alike(tmp_path: Path) -> Path:
    """Return an index of two runs with names of rewards that SQL takes for one: the second column has a number."""
    for run, names in (("first", ["format"]), ("second", ["Format", "Math-Accuracy"])):
        for step in (1, 2):
            rewards = {name: {"score": 0.5, "weight": 1.0} for name in names}
            said = [message("user", "Well?"), message("assistant", "Yes.")]
            append(tmp_path / run / f"rollouts/step_{step}/train/all/traces.jsonl", trace(said, rewards=rewards))
    indexed(tmp_path / "x.sqlite", tmp_path / "first", tmp_path / "second")
    return tmp_path / "x.sqlite"


def test_the_components_of_a_reward_have_the_names_that_their_run_records(alike: Path, tmp_path: Path) -> None:
    for run, names in ((1, {"total", "format"}), (2, {"total", "Format", "Math-Accuracy"})):
        in_pipe = rltracer("plot", alike, "reward", "--run", run).stdout.splitlines()
        assert {row["component"] for row in csv.DictReader(in_pipe, delimiter="\t")} == names
        shown = rltracer("plot", alike, "reward", "--run", run, is_terminal=True).stdout
        assert all(name in shown for name in names)
        assert rltracer("plot", alike, "reward", "--run", run, "-o", tmp_path / "x.html").returncode == 0
        assert all(f"{name}, train: " in (tmp_path / "x.html").read_text() for name in names)


def test_so_have_the_rewards_of_a_record_that_cannot_be_read(alike: Path, tmp_path: Path) -> None:
    for file in (tmp_path / "second").rglob("traces.jsonl"):
        file.unlink()
    number = value(alike, "select min(id) from trajectories where run_id = 2")
    done = rltracer("inspect", alike, "--run", 2, "--trajectory", number)
    assert "reward_Format 0.5" in done.stdout
    assert "format_2" not in done.stdout
