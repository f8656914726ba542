"""Why a chart has nothing to draw, told in place of it."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Any, NoReturn

import click

from .amiss import say_amiss
from .visible import printable

# What a trajectory has to record to be in a chart.
NEEDED = {
    "pass_rate": "success and a step",
    "reward": "a reward and a step",
    "histogram": "success",
    "difficulty": "success",
    "length": "its length and a step",
    "failures": "whether it was cut off or ended with an error",
    "zero_variance": "a reward in a group of several",
}


def refuse_nothing_there(connection: sqlite3.Connection, run_id: int, asked: dict[str, Any]) -> None:
    from ..index.contents import nothing_there

    missing = nothing_there(connection, run_id, **asked)
    if missing is not None:
        raise click.ClickException(printable(missing))


def refuse_nothing_drawn(
    connection: sqlite3.Connection, database: Path, run_id: int, chart: str, asked: dict[str, Any]
) -> NoReturn:
    """Raise ClickException with why a chart of what is there is empty, after what of the run was not read."""
    say_amiss(connection, database, {run_id})
    raise click.ClickException(printable(_why_nothing(connection, run_id, chart, asked)))


def _why_nothing(connection: sqlite3.Connection, run_id: int, chart: str, asked: dict[str, Any]) -> str:
    """Return why a chart has nothing to draw: most of them draw what is scored over the steps."""
    from ..index.elsewhere import SCORED, Groups, asked_for

    name, path, scored, steps = connection.execute(
        """
        select r.name, r.success_path, coalesce(sum(g.scored), 0), count(g.step)
        from runs r left join prompt_groups g on g.run_id = r.id where r.id = ?
        """,
        (run_id,),
    ).fetchone()
    if not scored:
        return f"Nothing to draw: no trajectory of {name} records {path}. rltracer success sets another rule."
    if not steps:
        return f"Nothing to draw: {name} records no steps."
    groups = Groups(connection, [run_id], asked, SCORED)
    if not groups.any() and (ways := groups.elsewhere()):
        only = f"only those of {', and of '.join(ways)} do"
        return f"Nothing to draw: no trajectory of {name}{asked_for(asked)} records {path}; {only}."
    return f"Nothing to draw: no trajectory of {name}{asked_for(asked)} records {NEEDED[chart]}."
