"""What is answered in place of a chart that has nothing to draw."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, NoReturn

import click

from .amiss import say_amiss
from .visible import printable


def refuse_nothing_there(connection: sqlite3.Connection, run_id: int, asked: dict[str, Any]) -> None:
    from ..index.contents import nothing_there

    missing = nothing_there(connection, run_id, **asked)
    if missing is not None:
        raise click.ClickException(printable(missing))


def refuse_nothing_drawn(
    connection: sqlite3.Connection, database: Path, run_id: int, chart: str, asked: dict[str, Any]
) -> NoReturn:
    """Raise ClickException with why a chart of what is there is empty, after what of the run was not read."""
    from ..charts.nothing import why_nothing

    say_amiss(connection, database, {run_id})
    raise click.ClickException(printable(why_nothing(connection, run_id, chart, asked, database)))
