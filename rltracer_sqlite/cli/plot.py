"""`rltracer plot`: a chart of a run in the terminal, or as SVG, PNG or HTML."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from . import CONTEXT, options
from .amiss import say_amiss
from .columns import screen_width, wrapped
from .numbers import Between, From, refuse_backwards
from .places import FILE, OUTPUT, refuse_swapped
from .report import writes_to_terminal
from .undrawn import refuse_nothing_drawn, refuse_nothing_there
from .visible import in_line, printable

if TYPE_CHECKING:
    from ..charts import Filters
    from ..charts.figure import Figure

CHARTS = ("pass_rate", "reward", "histogram", "difficulty", "length", "failures", "zero_variance")
FORMATS = (".svg", ".png", ".html")


class Chart(click.Choice[str]):
    """The name of a chart, as it is written here or in the addresses of pages: pass-rate or pass_rate."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        name, first = value.replace("_", "-"), ctx.params.get("database") if ctx else None
        if first is not None and name not in self.choices:
            refuse_swapped("rltracer plot", first, [value])
        return super().convert(name, param, ctx)


@click.command("plot", context_settings=CONTEXT)
@click.argument("database", type=FILE)
@click.argument("chart", type=Chart([name.replace("_", "-") for name in CHARTS]), metavar="CHART")
@click.option(
    "-o",
    "--output",
    type=OUTPUT,
    help="The file: .svg, .png or .html, in a folder that is there. Without it the chart is drawn in the terminal.",
)
@options.one_run("Which run, where the index holds several.")
@options.split
@options.env
@click.option("--step-start", type=From(0), help="From this step on.")
@click.option("--step-end", type=From(0), help="Up to this step.")
@click.option("--window", type=From(1), help="Steps per point, panel or cell. Default: as fits.")
@click.option("--theme", type=click.Choice(["light", "dark"]), help="For .svg and .png. Default: light.")
@click.option("--scale", type=Between(0.5, 10), help="Pixels per unit, for .png. Default: 2.")
def command(
    database: Path,
    chart: str,
    output: Path | None,
    run: str | None,
    split: str | None,
    env: str | None,
    step_start: int | None,
    step_end: int | None,
    window: int | None,
    theme: str | None,
    scale: float | None,
) -> None:
    """Draw a chart of a run in DATABASE, the same as on its page.

    CHART is pass-rate, reward, histogram, difficulty, length, zero-variance or failures. Without a file the chart is
    drawn in the terminal, in larger windows of steps where it has many, and then says so; in a pipe its rows are
    printed, with tabs between the values. No line goes across a step of which nothing was read, among bars it is
    shaded, and in the terminal it is said to be not read. Beneath a chart stands what it says in words, of pass rates
    with the success rule and how many trajectories that leaves unscored, and how many have no step and are not drawn.
    In a file the rule, these numbers and what was not read stand beneath the title, which names the run. A file of the
    same name is replaced; where there is nothing to draw, none is written.

    SVG and PNG need `pip install 'datasette-rltracer[plot]'`. HTML is one file that loads nothing, and follows the
    reader's light or dark theme.

    \b
    Examples:
      rltracer plot run.sqlite pass-rate
      rltracer plot run.sqlite pass-rate -o pass-rate.svg
      rltracer plot run.sqlite difficulty -o map.html --split train --window 20
    """
    from ..charts import ChartError, Filters
    from ..index.database import open_index
    from .chosen_runs import only_run

    _refuse_unfit(output, theme, scale)
    refuse_backwards(step_start, step_end)
    asked = {"split": split, "env": env, "first": step_start, "last": step_end}
    with closing(open_index(database)) as connection:
        run_id, run_name = only_run(connection, run, database)
        refuse_nothing_there(connection, run_id, asked)
        first, last = ("" if step is None else str(step) for step in (step_start, step_end))
        filters = Filters(run_id, split or "", env or "", first, last, window)
        try:
            drawn = _drawn(connection, chart.replace("-", "_"), filters, run_name, output is None)
            if not drawn.figure.rows:
                refuse_nothing_drawn(connection, database, run_id, drawn.figure.chart, asked)
            lines = _printed(drawn) if output is None else _written(drawn, output, theme or "light", scale or 2.0)
        except ChartError as error:
            raise click.ClickException(f"{error}.") from None
        for line in lines:
            click.echo(line)
        say_amiss(connection, database, {run_id})


def _refuse_unfit(output: Path | None, theme: str | None, scale: float | None) -> None:
    """Raise UsageError for a file of another kind, or for an option that has no meaning for what is drawn."""
    if output is not None and output.suffix.lower() not in FORMATS:
        raise click.BadParameter(f"{output.name} must end with {', '.join(FORMATS)}.", param_hint="--output")
    ending = "" if output is None else output.suffix.lower()
    for option, value, endings in (("--theme", theme, (".svg", ".png")), ("--scale", scale, (".png",))):
        if value is not None and ending not in endings:
            raise click.UsageError(f"{option} is for a file that ends with {' or '.join(endings)}: give one with -o.")


class Drawn(NamedTuple):
    """A chart, the number of steps that each of its windows is of, and the `usual` one, on its page and in files.

    `said` is its caption here.
    """

    figure: Figure
    window: int
    usual: int
    said: str


def _printed(drawn: Drawn) -> Iterator[str]:
    """Yield a chart for a person at the terminal, or its rows for a program."""
    from .bars import chart_lines, tab_separated

    if not writes_to_terminal():
        yield from tab_separated(drawn.figure.rows)
        return
    yield from chart_lines(drawn.figure, screen_width())
    if drawn.window != drawn.usual:
        usual = "single steps" if drawn.usual == 1 else f"windows of {drawn.usual:,}"
        said = f"In windows of {drawn.window:,} steps, to fit; its page has {usual} (--window {drawn.usual})."
        yield from (f"  {line}" for line in wrapped(said, screen_width() - 2))
    yield from _in_words(drawn)


def _written(drawn: Drawn, output: Path, theme: str, scale: float) -> Iterator[str]:
    """Write a chart to a file, and return what is said of it. Raises ChartError."""
    _write(output, _rendered(drawn, output.suffix.lower(), theme, scale))
    return iter([printable(f"{output}:"), *_in_words(drawn)])


def _in_words(drawn: Drawn) -> Iterator[str]:
    return (f"  {line}" for line in wrapped(in_line(drawn.said), screen_width() - 2))


def _drawn(connection: sqlite3.Connection, chart: str, filters: Filters, run: str, is_printed: bool) -> Drawn:
    """Return a chart of a run, of as many windows as its drawing has, or the terminal. Raises ChartError."""
    from ..charts import find_span, plan_query, provide_square_root, read_rows
    from ..charts.figure import figure_of
    from ..charts.scoring import scoring_query, scoring_words
    from ..charts.unread import read_unread
    from ..reward_parts import reward_parts
    from .bars import TABLES

    provide_square_root(connection)
    most = TABLES[chart].most_windows if is_printed and writes_to_terminal() else None
    span = find_span(connection, filters.run_id)
    query = plan_query(chart, filters, span, most)
    rows, usual = read_rows(connection, query), plan_query(chart, filters, span).window
    rule = ""
    if rows and (scoring := scoring_query(chart, query)):
        path, threshold, trajectories, scored, prompts, scored_prompts = connection.execute(*scoring).fetchone()
        split, parts = query.parameters["split"], reward_parts(connection, filters.run_id, path)
        rule = in_line(scoring_words(path, threshold, trajectories, scored, prompts, scored_prompts, split, parts))
    unread = read_unread(connection, query)
    figure = figure_of(chart, query, rows, rule, unread, run)
    # What is amiss with the reading of the run is not said here: that stands on stderr, with what lists it.
    return Drawn(figure, query.window, usual, " ".join(filter(None, (figure.words, rule, unread.said(figure.chart)))))


def _rendered(drawn: Drawn, ending: str, theme: str, scale: float) -> bytes:
    from ..charts.render import drawable_spec, render_html, render_png, render_svg

    if ending == ".html":
        return render_html(drawn.figure)
    spec = drawable_spec(drawn.figure, theme)
    return render_svg(spec) if ending == ".svg" else render_png(spec, scale)


def _write(output: Path, content: bytes) -> None:
    from ..replacing import replacing

    try:
        with replacing(output) as file:
            file.write(content)
    except OSError as error:
        raise click.ClickException(printable(f"{output} cannot be written: {error.strerror}.")) from None
