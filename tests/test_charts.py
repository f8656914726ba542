"""The charts of the library: their specs, queries, words and files."""

from __future__ import annotations

import json
import re
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner

import datasette_rltracer
from rltracer_sqlite.charts import (
    CHARTS,
    ChartError,
    Filters,
    describe_rows,
    find_span,
    load_spec,
    plan_query,
    provide_square_root,
    read_rows,
    render,
)
from rltracer_sqlite.charts.data import Span
from rltracer_sqlite.charts.figure import Figure
from rltracer_sqlite.cli import plot
from rltracer_sqlite.index.ranked import ranked_prompts

from .index_factory import make_index

STATIC = Path(datasette_rltracer.__file__).parent / "static"
REPOSITORY = Path(__file__).parent.parent
STEPLESS = ("histogram", "difficulty")  # charts that need no steps


def rows_of_a_run(steps=range(1, 25)):
    for step in steps:
        for prompt in range(5):
            for number in range(4):
                passed = float(number < (prompt + (step or 0)) % 5)
                yield {
                    "step": step, "env": ("math", "code")[prompt % 2], "prompt": f"prompt {prompt}", "reward": passed,
                    "rewards.answer.score": passed, "rewards.format.score": 0.5, "completion_tokens": 100 + (step or 0),
                    "turns": 2, "tool_calls": number, "truncated": int(number == 3), "ok": int(number != 2),
                }  # fmt: skip


@pytest.fixture(scope="module")
def index_path(tmp_path_factory):
    rows = [*rows_of_a_run(), *({"step": step, "split": "eval", "prompt": "held out", "reward": 1} for step in (8, 16))]
    return make_index(tmp_path_factory.mktemp("charts") / "run.sqlite", rows)


@pytest.fixture
def connection(index_path):
    connection = sqlite3.connect(index_path)
    yield connection
    connection.close()


def draw(connection, chart, **filters):
    return read_rows(connection, plan_query(chart, Filters(1, **filters), find_span(connection, 1)))


@pytest.mark.parametrize("chart", CHARTS)
def test_every_chart_has_a_spec_that_names_its_rows(chart):
    spec = load_spec(chart)
    assert spec["data"] == {"name": "rows"}
    assert "6" in spec["$schema"]
    assert set(spec["usermeta"]["rltracer"]) >= {"title", "about", "one_split", "most_windows", "rows"}


@pytest.mark.parametrize("chart", CHARTS)
def test_spec_uses_only_columns_of_its_query(connection, chart):
    columns = set(draw(connection, chart)[0])
    spec = load_spec(chart)
    text = json.dumps(spec)
    made = {name for given in re.findall(r'"as": (?:"|\[)([^]:{}]*)', text) for name in re.findall(r"\w+", given)}
    used = set(re.findall(r'"field": "(\w+)"', text)) | set(re.findall(r"datum\.(\w+)", text))
    assert used - made - {"value", "label", "stretch", "windows"} <= columns
    links = spec["usermeta"]["rltracer"]["rows"]
    assert set(links["filters"].values()) - made <= columns


@pytest.mark.parametrize("chart", CHARTS)
def test_rows_fit_what_datasette_returns(chart):
    query = plan_query(chart, Filters(1), Span(first=1, last=10**6, splits=3, main_split="train"))
    steps_in_a_window = -(-(10**6) // query.window)
    per_window = {"reward": 8 * 3, "difficulty": 40, "histogram": 6, "zero_variance": 1}.get(chart, 3)
    assert steps_in_a_window * per_window <= 1000


def test_windows_are_as_small_as_fits(connection):
    span = find_span(connection, 1)
    assert plan_query("pass_rate", Filters(1), span).window == 1
    assert plan_query("histogram", Filters(1), span).window == 5
    assert plan_query("histogram", Filters(1, step_gte="1", step_lte="6"), span).window == 1
    with pytest.raises(ChartError, match="at least 4"):
        plan_query("histogram", Filters(1, window=3), span)


def test_one_split_charts_take_train_even_where_another_is_larger(connection):
    larger = sqlite3.connect(":memory:")
    connection.backup(larger)
    larger.execute("update steps set trajectories = trajectories * 1000 where split = 'eval'")
    assert find_span(larger, 1).main_split == "train"
    larger.execute("update steps set trajectories = 0 where split = 'train'")
    assert find_span(larger, 1).main_split == "eval"
    larger.close()
    assert plan_query("difficulty", Filters(1), find_span(connection, 1)).parameters["split"] == "train"
    assert {row["split"] for row in draw(connection, "pass_rate")} == {"train", "eval"}


def test_filters(connection):
    whole, math = draw(connection, "pass_rate", split="train"), draw(connection, "pass_rate", split="train", env="math")
    assert [row["scored"] for row in whole[:2]] == [20, 20]
    assert [row["scored"] for row in math[:2]] == [12, 12]
    limited = draw(connection, "pass_rate", split="train", step_gte="3", step_lte="8", window=5)
    assert [(row["step_first"], row["step_last"], row["scored"]) for row in limited] == [(3, 7, 100), (8, 8, 20)]


def test_means_over_steps(connection):
    rewards = {(row["name"], row["step_first"]): row["mean"] for row in draw(connection, "reward", split="train")}
    assert {name for name, _ in rewards} == {"reward", "reward_answer", "reward_format"}
    assert rewards["reward", 1] == rewards["reward_answer", 1] == 10 / 20
    length = draw(connection, "length", split="train")[2]
    assert (length["completion_tokens"], length["turns"], length["tool_calls"]) == (103, 2, 1.5)
    failures = draw(connection, "failures", split="train")[0]
    assert (failures["truncated"], failures["error"], failures["error_known"]) == (0.25, 0.25, 20)


def test_groups_without_signal(connection):
    row = draw(connection, "zero_variance")[0]
    assert (row["prompt_groups"], row["all_failed"], row["all_passed"], row["other_equal"]) == (5, 0.2, 0.2, 0)
    assert row["zero_variance"] == 0.4


def test_difficulty_takes_forty_prompts_from_the_hardest_to_the_easiest(tmp_path):
    rows = [{"prompt": f"p{n:03}", "reward": float(t < n // 13)} for n in range(101) for t in range(8)]
    path = make_index(tmp_path / "run.sqlite", rows)
    connection = sqlite3.connect(path)
    drawn = draw(connection, "difficulty")
    connection.close()
    rates = [row["overall_pass_rate"] for row in drawn]
    assert len(drawn) == 40
    assert rates == sorted(rates)
    assert {row["all_prompts"] for row in drawn} == {101}
    assert drawn[-1]["rank"] == 101


@pytest.mark.parametrize("chart", CHARTS)
@pytest.mark.parametrize(
    ("unscored", "more"),
    [(0, ""), (1, "; 1 of 4 prompts has no score"), (6, "; 6 of 9 prompts have no score")],
    ids=["none", "one", "six"],
)
def test_prompts_without_a_score_are_told(tmp_path, chart, unscored, more):
    rewards = [1.0, 1.0, 1.0, *[None] * unscored]
    rows = [
        {"step": 1, "prompt": f"p{number}", "reward": reward, "turns": 1, "truncated": 0}
        for number, reward in enumerate(rewards)
        for _ in range(2)
    ]
    index = make_index(tmp_path / "run.sqlite", rows)
    done = CliRunner().invoke(plot.command, [str(index), chart.replace("_", "-"), "-o", str(tmp_path / "x.html")])
    said = " ".join(done.output.split())
    page = (tmp_path / "x.html").read_text("utf-8").partition("<script")[0]
    assert ("of 3 scored prompts of train" in said) == (chart in STEPLESS)
    for text in (said, page):
        assert re.findall(r"; \d of \d prompts? \w+ no score(?=\.)", text) == [more] * (
            chart in STEPLESS and more != ""
        )


def test_prompts_of_the_same_difficulty_are_in_the_order_of_the_lists(tmp_path):
    rows = [{"step": 1, "prompt": f"p{n}", "reward": float(n == 4)} for n in range(5) for _ in range(1 + n % 3)]
    connection = sqlite3.connect(make_index(tmp_path / "run.sqlite", rows))
    listed, _ = ranked_prompts(connection, 1, 10)
    drawn = [row["prompt_id"] for row in draw(connection, "difficulty")]
    connection.close()
    assert drawn == [row["prompt_id"] for row in listed] == [3, 2, 1, 4, 5]


@pytest.mark.parametrize("chart", CHARTS)
def test_a_run_without_steps(tmp_path, chart):
    path = make_index(tmp_path / "run.sqlite", rows_of_a_run([None]))
    connection = sqlite3.connect(path)
    rows = draw(connection, chart)
    connection.close()
    assert bool(rows) is (chart in STEPLESS)
    assert describe_rows(chart, rows)


@pytest.mark.parametrize("chart", CHARTS)
@pytest.mark.parametrize(
    ("others", "said"),
    [
        ([{}], "1 trajectory has no step and is not drawn."),
        ([{}, {"env": None}], "2 trajectories have no step and are not drawn."),
    ],
    ids=["one", "two"],
)
def test_what_has_no_step_is_drawn_or_said_not_to_be(tmp_path, chart, others, said):
    rows = [{"step": 1, "reward": reward, "turns": 1, "truncated": 0} for reward in (0.0, 1.0)]
    without = [{"step": None, "reward": 1.0, "turns": 1, "truncated": 0, **other} for other in others]
    index = make_index(tmp_path / "run.sqlite", [*rows, *without])

    def told(*options):
        arguments = [str(index), chart.replace("_", "-"), "-o", str(tmp_path / "x.html"), *options]
        printed = " ".join(CliRunner().invoke(plot.command, arguments).output.split())
        return [text.count("no step and") for text in (printed, _beside_the_scripts(tmp_path / "x.html"))], printed

    counts, printed = told()
    assert (counts, said in printed) == (([0, 0], False) if chart in STEPLESS else ([1, 1], True))
    assert ("No step: of" in printed) == (chart == "histogram")
    assert told("--step-start", "1")[0] == [0, 0]
    assert told("--env", "math")[0] == ([0, 0] if chart in STEPLESS else [1, 1])


def _beside_the_scripts(page):
    return re.sub("<script.*?</script>", "", page.read_text("utf-8"), flags=re.DOTALL)


def test_infinite_rewards_do_not_reach_json(tmp_path):
    path = make_index(tmp_path / "run.sqlite", [{"reward": float("inf")}, {"reward": 1.0}])
    connection = sqlite3.connect(path)
    rows = draw(connection, "reward")
    connection.close()
    assert [row["mean"] for row in rows] == [None]
    assert json.dumps(rows, allow_nan=False)
    assert describe_rows("reward", rows) == "Mean reward. total, train: not recorded."


def test_square_root_is_provided_where_sqlite_lacks_it():
    class Lacking(sqlite3.Connection):
        def execute(self, sql, *parameters):
            if sql == "select sqrt(4)":
                raise sqlite3.OperationalError("no such function: sqrt")
            return super().execute(sql, *parameters)

    connection = sqlite3.connect(":memory:", factory=Lacking)
    provide_square_root(connection)
    assert connection.execute("select sqrt(9), sqrt(null), sqrt(-1)").fetchone() == (3.0, None, None)
    connection.close()


def test_words_say_what_a_reader_would_see(connection):
    words = describe_rows("pass_rate", draw(connection, "pass_rate", split="train"))
    assert words.startswith("Pass rate, train: 50.0% at step 1,")
    assert words.endswith("; 480 scored in all.")
    assert "of 5 scored prompts 0" in describe_rows("histogram", draw(connection, "histogram"))
    assert describe_rows("length", []) == "Nothing to draw: no row matches."


def test_themes_have_the_same_names():
    light, dark = render.theme_config("light"), render.theme_config("dark")
    assert light.keys() == dark.keys()
    assert light["range"].keys() == dark["range"].keys()


def test_bundle_is_built_from_the_pinned_versions():
    first_line = (STATIC / "vega.mjs").read_text("utf-8").split("\n", 1)[0]
    pinned = json.loads((REPOSITORY / "scripts" / "vendored" / "package.json").read_text("utf-8"))["dependencies"]
    assert first_line.startswith("/* " + ", ".join(f"{name} {version}" for name, version in pinned.items()) + ";")
    assert pinned["vega-lite"].startswith(f"{render.VEGA_LITE}.")
    licences = (STATIC / "vega.LICENSES.txt").read_text("utf-8")
    assert all(f"{name} {version} (" in licences for name, version in pinned.items())


@pytest.mark.parametrize("chart", CHARTS)
@pytest.mark.parametrize("theme", render.THEMES)
def test_drawing(connection, chart, theme):
    pytest.importorskip("vl_convert", reason="vl-convert-python is not installed")
    rows = draw(connection, chart)
    spec = render.drawable_spec(Figure(chart, rows, "In words: <5 & >3"), theme)
    svg = render.render_svg(spec).decode()
    assert svg.startswith("<svg")
    assert load_spec(chart)["title"]["text"] in svg
    assert render.render_png(spec, 1).startswith(b"\x89PNG")


def test_prompts_that_begin_alike_have_labels_that_differ(tmp_path):
    pytest.importorskip("vl_convert", reason="vl-convert-python is not installed")
    shared = "You are a careful assistant that answers in one word. " * 3
    rows = [
        {"prompt": f"{shared}{number}", "env": env, "reward": float(number and env == "math")}
        for number, env in ((0, "math"), (1, "math"), (1, "code"))
    ]
    connection = sqlite3.connect(make_index(tmp_path / "run.sqlite", rows))
    drawn = draw(connection, "difficulty")
    connection.close()
    svg = render.render_svg(render.drawable_spec(Figure("difficulty", drawn, ""))).decode()
    labels = re.findall(r">([^<]*)</text>", svg.partition('aria-label="Y-axis')[2].partition("role-legend")[0])
    beginnings = [label.partition(" · ") for label in labels if " · " in label]
    assert [number for number, _, _ in beginnings] == ["1", "2 (code)", "2 (math)"]
    assert all(text.startswith("You are a careful") for _, _, text in beginnings)
    assert "Prompts by number, hardest at the top; a cross" in svg


def test_html_loads_nothing_and_hostile_text_stays_text(tmp_path):
    hostile = "</script><script>alert(1)</script><!--"
    path = make_index(tmp_path / "run.sqlite", [{"prompt": hostile, "env": hostile}])
    connection = sqlite3.connect(path)
    figure = Figure("difficulty", draw(connection, "difficulty"), hostile, hostile, hostile, (hostile,))
    html = render.render_html(figure).decode()
    connection.close()
    assert "alert(1)</script>" not in html
    assert html.count("</script>") == 5  # what it draws, Vega, how, where and when
    assert not re.search(r'(?:src|href)=["\']?(?:https?:)?//', html)


def run_plot(*arguments):
    return CliRunner().invoke(plot.command, [str(argument) for argument in arguments])


@pytest.mark.parametrize("ending", ["svg", "png", "html"])
def test_plot(index_path, tmp_path, ending):
    if ending != "html":
        pytest.importorskip("vl_convert", reason="vl-convert-python is not installed")
    output = tmp_path / f"chart.{ending}"
    result = run_plot(index_path, "zero-variance", "-o", output, "--split", "train")
    assert result.exit_code == 0, result.output
    assert output.stat().st_size > 1000
    assert "Groups without signal" in result.output
    assert max(map(len, result.output.splitlines()[1:])) <= 80
    assert list(tmp_path.iterdir()) == [output]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pass-rate", "-o", "x.pdf"], "must end with .svg, .png, .html"),
        (["pass-rates", "-o", "x.svg"], "is not one of"),
        (["pass-rate", "-o", "x.html", "--run", "other"], "no run 'other'. It holds: demo"),
        (["histogram", "-o", "x.html", "--window", "1"], "needs windows of at least 4 for 24 steps"),
        (["pass-rate", "-o", "/dev/null/x.html"], "cannot be written"),
    ],
)
def test_plot_says_what_is_wrong(index_path, arguments, message):
    result = run_plot(index_path, *arguments)
    assert result.exit_code != 0
    assert message in f"{result.output}{result.exception}"


def test_plot_says_how_to_get_the_converter(index_path, tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "vl_convert", None)
    result = run_plot(index_path, "pass-rate", "-o", tmp_path / "x.svg")
    assert result.exit_code == 1
    assert "pip install 'datasette-rltracer[plot]'" in result.output


def test_plot_knows_every_chart():
    assert plot.CHARTS == CHARTS
