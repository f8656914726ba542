"""Keeping what has been opened up to date, in a process of its own: `python -m rltracer_sqlite.browse.follow`.

Of every run below a folder that the index knows, the steps that have been read are followed, and those after them.
The process ends on a signal, and when the one that started it is there no more.
"""

from __future__ import annotations

import os
import sqlite3
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import click

from ..index.database import IndexFileError
from ..index.followed import Followed
from ..index.watch import Watch
from ..roots import Roots
from ..sources import source_for
from ..sources.base import SourceError
from ..sources.places import place
from ..stopping import Stopped, Stopping


@click.command()
@click.argument("index", type=click.Path(path_type=Path))
@click.argument("below")
@click.option("--every", type=float, default=2.0)
@click.option("--tokenizer")
@click.option("--fts", is_flag=True)
def command(index: Path, below: str, every: float, tokenizer: str | None, fts: bool) -> None:
    """Follow in INDEX what has been read of the runs BELOW a folder."""
    from ..search.refresh import text_follower

    parent, said, roots = os.getppid(), "", Roots([place(below)])
    try:
        with Stopping() as stopping, Watch(index, [], text_follower(lambda: roots) if fts else None) as watch:
            while not stopping.is_asked and os.getppid() == parent:
                follow_opened(watch, roots, tokenizer)
                look = watch.look(lambda read, total: stopping.check())
                troubles = " ".join([*(run.trouble for run in watch.runs if run.trouble), look.trouble]).strip()
                if troubles not in ("", said):
                    click.echo(f"{troubles} Trying again.", err=True)
                said = troubles
                stopping.sleep(every)
    except Stopped:
        return
    except IndexFileError as error:
        click.echo(f"Nothing is followed: {error}", err=True)
        sys.exit(1)
    except sqlite3.Error as error:  # what somebody else has done to the index meanwhile
        click.echo(f"Nothing is followed: {index} cannot be read: {error}.", err=True)
        sys.exit(1)


def follow_opened(watch: Watch, roots: Roots, tokenizer: str | None = None) -> None:
    """Follow the runs that have been opened since, and of every run the steps that have been read by now."""
    followed = {str(run.root): run for run in watch.runs}
    for run_id, root in watch.connection.execute("select id, root from runs order by id").fetchall():
        if root not in followed:
            try:
                where = roots.check(root)
            except SourceError:
                continue  # the index has been used for another folder too
            followed[root] = Followed(where, partial(source_for, where, tokenizer))
            watch.runs.append(followed[root])
        followed[root].steps = opened_steps(watch.connection, run_id)


def opened_steps(connection: sqlite3.Connection, run_id: int) -> Callable[[int | None], bool]:
    """Return the test for a step that is followed: it has been read, or comes after all that have, or is unknown."""
    rows = connection.execute("select step from steps where run_id = ? and trajectories > 0", (run_id,))
    read = {step for (step,) in rows if step is not None}
    last = max(read, default=None)
    return lambda step: step is None or step in read or (last is not None and step > last)


if __name__ == "__main__":
    command()
