"""Reading one step of a run into an index, in a process of its own: `python -m rltracer_sqlite.browse.read`.

It prints one JSON object a line: {"read", "total"} in bytes as it goes on, then {"done": true} or {"error"} in a
sentence, also where everything was read and no trajectory found. Whoever started it may stop it at any time: the index
stays consistent.
"""

from __future__ import annotations

import json
import sys
import time
from functools import partial
from pathlib import Path

import click

from ..index.database import IndexFileError
from ..index.refresh import Progress
from ..on_demand import brought_up_to_date
from ..roots import Roots
from ..sources import source_for
from ..sources.base import SourceError
from .outcome import why_nothing_is_read
from .steps import is_wanted, run_steps, set_aside

REPORT_SECONDS = 0.25


@click.command()
@click.argument("index", type=click.Path(path_type=Path))
@click.argument("root", type=click.Path(path_type=Path))
@click.argument("step")
@click.option("--name", help="The run's name, if it is new.")
@click.option("--tokenizer")
@click.option("--fts", is_flag=True)
@click.option("--below", type=click.Path(path_type=Path), help="The folder that all runs lie in.")
def command(
    index: Path, root: Path, step: str, name: str | None, tokenizer: str | None, fts: bool, below: Path | None
) -> None:
    """Read a step of the run at ROOT into INDEX, and say how far it is."""
    try:
        nothing = read_step(index, root, step, name, tokenizer, [below or root] if fts else None, Reporter())
    except (SourceError, IndexFileError) as error:
        _say({"error": str(error)})
    except OSError as error:
        _say({"error": f"{error.filename or root} cannot be used: {error.strerror or error}."})
    else:
        _say({"error": nothing} if nothing else {"done": True})


def read_step(
    index: Path,
    root: Path,
    step: str,
    name: str | None = None,
    tokenizer: str | None = None,
    text_roots: list[Path] | None = None,
    progress: Progress | None = None,
) -> str | None:
    """Read what is new in a step ("all": in every step) of the run at `root` into an index.

    Returns why the step has no trajectory, or None where it has some. With `text_roots` the full text is brought up to
    date too, of the runs in these folders. Raises SourceError and IndexFileError.
    """
    source = source_for(root, tokenizer)
    wanted = partial(is_wanted, step=step)
    reading = brought_up_to_date(index, source, root, "reading a step", wanted, progress, suggested_name=name)
    with reading as (connection, done):
        if text_roots is not None:
            from ..search import refresh_text

            refresh_text(connection, Roots(text_roots))
        return why_nothing_is_read(connection, done.run_id, step, set_aside(run_steps(source, root), step))


class Reporter:
    """Prints progress, but not more often than a person can see."""

    def __init__(self) -> None:
        self.said = 0.0

    def __call__(self, read: int, total: int) -> None:
        now = time.monotonic()
        if now - self.said >= REPORT_SECONDS or read == total:
            self.said = now
            _say({"read": read, "total": total})


def _say(value: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(value) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    command()
