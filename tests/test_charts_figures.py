"""What a drawn chart says of itself without its page: whole steps, shares in per cent, its run, rule and gaps."""

from __future__ import annotations

import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from rltracer_sqlite.charts import CHARTS, load_spec
from rltracer_sqlite.charts.figure import Figure
from rltracer_sqlite.charts.gaps import Window
from rltracer_sqlite.charts.render import drawable_spec, render_svg
from rltracer_sqlite.charts.steps_axis import step_ticks
from rltracer_sqlite.unseen import INVISIBLE
from tests.commands import rltracer
from tests.index_factory import make_index

OVER_STEPS = ("pass_rate", "reward", "length", "failures", "zero_variance")
RATED = ("pass_rate", "histogram", "difficulty", "zero_variance")


def single(*steps: int) -> list[tuple[int, int]]:
    return [(step, step) for step in steps]


TICKS = {
    "one": (single(7), 10, [7]),
    "two": (single(1, 2), 4, [1, 2]),
    "three": (single(1, 2, 3), 10, [1, 2, 3]),
    "far apart": (single(0, 100, 200), 4, [0, 100, 200]),
    "more than fit": (single(*range(1, 9)), 4, [2, 4, 6, 8]),
    "many": (single(*range(400)), 10, [0, 50, 100, 150, 200, 250, 300, 350]),
    "big": (single(*range(1_000_000, 1_000_040)), 4, [1_000_000, 1_000_010, 1_000_020, 1_000_030]),
    "a window": ([(1, 2)], 10, [1, 2]),
    "windows": ([(1, 4), (5, 8), (9, 9)], 5, [2, 4, 6, 8]),
}


@pytest.mark.parametrize("case", TICKS)
def test_ticks_are_whole_steps(case: str) -> None:
    windows, most, ticks = TICKS[case]
    assert step_ticks(windows, most) == ticks


def row(step: int, last: int | None = None) -> dict[str, Any]:
    return {"split": "train", "step_first": step, "step_last": last or step}


@pytest.mark.parametrize("chart", OVER_STEPS)
@pytest.mark.parametrize("steps", [(5,), (1, 2), (1, 2, 3)], ids=str)
def test_a_chart_over_steps_has_ticks_at_its_steps(chart: str, steps: tuple[int, ...]) -> None:
    spec = drawable_spec(Figure(chart, [row(step) for step in steps], ""))
    x = spec.get("spec", spec)["encoding"]["x"]
    assert (x["axis"]["values"], x["axis"]["format"]) == (list(steps), ",d")
    if chart != "zero_variance":
        assert x["scale"]["domain"] == ([4.5, 5.5] if steps == (5,) else [1, steps[-1]])


def test_the_axis_of_a_step_that_was_not_read_has_its_tick() -> None:
    spec = drawable_spec(Figure("zero_variance", [row(1), row(3)], "", gaps={Window("train", 2, 2)}))
    assert spec["encoding"]["x"]["axis"]["values"] == [1, 2, 3]
    assert spec["datasets"]["gaps"] == [{"split": "train", "step_first": 2, "step_last": 2, "windows": 3}]


def test_panels_make_room_for_the_names_of_splits() -> None:
    def apart(split: str) -> int:
        return drawable_spec(Figure("reward", [{**row(1), "split": split}], ""))["spacing"]["column"]

    assert apart("train") < apart("validation_of_aime") < apart("x" * 24) == apart("x" * 1000)


@pytest.mark.parametrize("chart", CHARTS)
def test_shares_are_in_per_cent(chart: str) -> None:
    formats = set(re.findall(r'"format": "([^"]*)"', json.dumps(load_spec(chart))))
    assert formats <= {"~%", ".1%", ",d", ",", ".4~f", ",.4~r"}
    assert ("~%" in formats) == (chart not in ("reward", "length"))


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an index of three steps, of which the second was not read, with a third of its trajectories unscored."""
    made = make_index(
        tmp_path_factory.mktemp("figures") / "x.sqlite",
        [
            {"run": "a-run", "step": step, "reward": reward, "truncated": 0, "turns": 2, "prompt": f"p{number % 2}"}
            for step in (1, 3)
            for number, reward in enumerate((1.0, 0.0, 0.0, 1.0, None, None))
        ],
    )
    with closing(sqlite3.connect(made)) as connection, connection:
        connection.execute("insert into steps (run_id, step, split) values (1, 2, 'train')")
    return made


@pytest.mark.parametrize("chart", CHARTS)
@pytest.mark.parametrize("ending", ["svg", "html"])
def test_a_file_names_its_run_and_what_it_rests_on(index: Path, tmp_path: Path, chart: str, ending: str) -> None:
    if ending == "svg":
        pytest.importorskip("vl_convert")
    file = tmp_path / f"x.{ending}"
    assert rltracer("plot", index, chart, "--split", "train", "-o", file).returncode == 0
    drawn = file.read_text()
    said = re.sub(r"</tspan><tspan[^>]*>", " ", drawn) if ending == "svg" else drawn.split("<script")[0]
    title = load_spec(chart)["usermeta"]["rltracer"]["title"]
    assert f"{title}, train: a-run" in said
    assert ("Success: reward &gt;= 1; 4 of 12 trajectories of train unscored." in said) == (chart in RATED)
    assert "No trajectories of step 2 of train were read." in said
    assert ("Shaded: not read." in said) == (chart == "zero_variance")


@pytest.mark.parametrize("options", [[], ["--step-start", "2"], ["--env", "math"]], ids=["all", "steps", "environment"])
def test_the_end_of_a_line_and_the_words_count_what_is_drawn_over_all_of_it(tmp_path: Path, options: list[str]) -> None:
    rows = [{"step": step, "reward": reward} for step in (1, 2, 3, None) for reward in (0.0, 1.0, None)]
    made = make_index(tmp_path / "x.sqlite", [*rows, {"step": 3, "env": "code", "reward": 1.0}])
    scored = {"--step-start": 5, "--env": 6}.get(next(iter(options), ""), 7)
    done = rltracer("plot", made, "pass-rate", *options, "-o", tmp_path / "x.html")
    assert f"; {scored} scored in all. Success: " in " ".join(done.stdout.split())
    pytest.importorskip("vl_convert")
    assert rltracer("plot", made, "pass-rate", *options, "-o", tmp_path / "x.svg").returncode == 0
    assert f">train, {scored} scored in all</text>" in (tmp_path / "x.svg").read_text()


def test_no_text_ends_the_drawing_of_a_picture() -> None:
    pytest.importorskip("vl_convert")
    hostile = "a\x1b[31m\x00\ud800\uffff<b>&\u202e\n"
    rows = [{**row(1), "split": hostile, "name": "reward_x", "component": hostile, "mean": 0.5, "trajectories": 1}]
    drawn = render_svg(drawable_spec(Figure("reward", rows, hostile, hostile, hostile, (hostile,))))
    text = "".join(ElementTree.fromstring(drawn).itertext())
    assert text.count("a␛[31m␀⟨U+D800⟩\ufffd<b>&⟨U+202E⟩") >= 4


@pytest.mark.parametrize("chart", CHARTS)
def test_what_is_said_of_a_chart_hides_nothing(tmp_path: Path, chart: str) -> None:
    named = "a\u202e\u200bb\x1b"
    facts = {"run": named, "split": named, "env": named, "truncated": 0, "turns": 2, "step": 1, "prompt": named}
    rows = [{**facts, "reward": float(number % 2)} for number in range(4)]
    made = make_index(tmp_path / "x.sqlite", rows)
    assert rltracer("plot", made, chart, "-o", tmp_path / "x.html").returncode == 0
    page = (tmp_path / "x.html").read_text()
    assert "a⟨U+202E⟩⟨U+200B⟩b␛" in page.partition("<script")[0]
    content = json.loads(page.partition('<script type="application/json">')[2].partition("</script>")[0])
    for text in (page.partition("<script")[0], json.dumps(content, ensure_ascii=False)):
        assert not INVISIBLE.search(text)


def test_a_picture_has_a_tick_at_each_step_and_shades_what_was_not_read(index: Path, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    for chart in ("pass-rate", "length", "failures", "zero-variance"):
        assert rltracer("plot", index, chart, "-o", tmp_path / "x.svg").returncode == 0
        drawn = (tmp_path / "x.svg").read_text()
        labels = re.findall(r">(\d+)</text>", drawn.partition("X-axis")[2].partition("<text")[2].partition("title")[0])
        assert labels == ["1", "2", "3"]
    assert drawn.count(">not read</text>") == 1
