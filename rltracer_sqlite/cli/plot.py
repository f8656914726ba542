"""`rltracer plot`: a chart of a run in the terminal, or as SVG, PNG or HTML."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import CONTEXT, options
from .amiss import say_amiss
from .numbers import Between, From, refuse_backwards
from .places import FILE, OUTPUT, refuse_swapped
from .undrawn import refuse_nothing_drawn, refuse_nothing_there

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

    from ..charts import Filters

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
@click.option("--step-start", "first", type=From(0), help="From this step on.")
@click.option("--step-end", "last", type=From(0), help="Up to this step.")
@click.option("--window", type=From(1), help="Steps per point, panel or cell. Default: as fits.")
@click.option("--theme", type=click.Choice(["light", "dark"]), help="For .svg and .png. Default: light.")
@click.option("--scale", type=Between(0.5, 10), help="Pixels per unit, for .png. Default: 2.")
def command(database: Path, run: str | None, **options: Any) -> None:
    """Draw a chart of a run in DATABASE, the same as on its page.

    CHART is pass-rate, reward, histogram, difficulty, length, zero-variance or failures. Without a file the chart is
    drawn in the terminal, in larger windows of steps where it has many, and then says so; in a pipe its rows are
    printed, with tabs between the values. No line goes across a step of which nothing was read, among bars it is
    shaded, and in the terminal it is said to be not read. Beneath a chart stands what it says in words, of pass rates
    with the success rule and how many trajectories that leaves unscored, and how many have no step and are not drawn;
    in a pipe stderr says what is not among the rows. In a file the rule, these numbers and what was not read stand
    beneath the title, which names the run. A file of the same name is replaced; where there is nothing to draw, none
    is written.

    SVG and PNG need `pip install 'datasette-rltracer[plot]'`. HTML is one file that loads nothing, and follows the
    reader's light or dark theme.

    \b
    Examples:
      rltracer plot run.sqlite pass-rate
      rltracer plot run.sqlite pass-rate -o pass-rate.svg
      rltracer plot run.sqlite difficulty -o map.html --split train --window 20
    """
    from ..index.database import open_index
    from .chosen_runs import only_run

    _refuse_unfit(options)
    with closing(open_index(database)) as connection:
        run_id, run_name = only_run(connection, run, database)
        for line in _plotted(connection, database, run_id, run_name, options):
            click.echo(line)
        say_amiss(connection, database, {run_id})


def _refuse_unfit(options: dict[str, Any]) -> None:
    """Raise UsageError for a file of another kind, or for options that have no meaning for what is drawn."""
    output = options["output"]
    ending = "" if output is None else output.suffix.lower()
    if output is not None and ending not in FORMATS:
        raise click.BadParameter(f"{output.name} must end with {', '.join(FORMATS)}.", param_hint="--output")
    for name, endings in (("theme", (".svg", ".png")), ("scale", (".png",))):
        if options[name] is not None and ending not in endings:
            raise click.UsageError(f"--{name} is for a file that ends with {' or '.join(endings)}: give one with -o.")
    refuse_backwards(options["first"], options["last"])


def _plotted(
    connection: sqlite3.Connection, database: Path, run_id: int, run: str, options: dict[str, Any]
) -> Iterator[str]:
    """Return the lines that a chart of a run is, or that are said of its file. Raises ClickException."""
    from ..charts import ChartError
    from .drawn import drawn_chart
    from .plotted import printed, written

    asked = {name: options[name] for name in ("split", "env", "first", "last")}
    refuse_nothing_there(connection, run_id, asked)
    output, chart = options["output"], options["chart"].replace("-", "_")
    try:
        drawn = drawn_chart(connection, chart, _filters(run_id, options), run, output is None)
        if not drawn.figure.rows:
            refuse_nothing_drawn(connection, database, run_id, chart, asked)
        if output is None:
            return printed(drawn)
        return written(drawn, output, options["theme"] or "light", options["scale"] or 2.0)
    except ChartError as error:
        raise click.ClickException(f"{error}.") from None


def _filters(run_id: int, options: dict[str, Any]) -> Filters:
    from ..charts import Filters

    first, last = ("" if options[name] is None else str(options[name]) for name in ("first", "last"))
    return Filters(run_id, options["split"] or "", options["env"] or "", first, last, options["window"])
