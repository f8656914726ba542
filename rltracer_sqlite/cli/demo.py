"""`rltracer demo`: write the sample run, index it and serve it."""

from __future__ import annotations

import sys
from pathlib import Path
from shlex import quote

import click

from . import CONTEXT
from .places import OUTPUT_FOLDER
from .say import say
from .visible import printable


@click.command("demo", context_settings=CONTEXT)
@click.argument("folder", type=OUTPUT_FOLDER, default=Path("demo"))
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port to serve on. Default: a free one.")
@click.option("--no-serve", is_flag=True, help="Write and index the sample, but do not serve it.")
def command(folder: Path, port: int, no_serve: bool) -> None:
    """Write a small sample run to FOLDER (default: demo), index it, and serve it with Datasette on this machine.

    FOLDER is new, empty, or that of an earlier sample, which is written over.

    The run is made up: eight steps of a policy that gets better at word problems, at a small shell, at pictures
    and at explaining code. It shows what a run of your own will look like. The last step holds tokens, and all of it
    can be searched. Ctrl-C ends the serving, with exit code 0.
    """
    from ..amounts import plural
    from ..index.database import finish_writing, open_for_writing
    from ..index.refresh import refresh_run
    from ..index.runs import ensure_run
    from ..roots import Roots
    from ..search import refresh_text
    from ..sources import source_for
    from .indexing import remember
    from .report import counts

    run, database = folder / "run", folder / "demo.sqlite"
    _refuse_used(folder, database)
    folder.mkdir(parents=True, exist_ok=True)
    connection = open_for_writing(database)  # first: a folder that holds it is known to be that of a sample
    try:
        _write(run)
        source = source_for(run, str((run / "tokenizer").absolute()))
        run_id = ensure_run(connection, source, run, "demo")
        refresh_run(connection, source, run, run_id)
        refresh_text(connection, Roots([run]))
        found = counts(connection, run_id)
    finally:
        finish_writing(connection)
    remember(run, None)
    say(f"{database}: {plural(found['trajectories'], 'trajectory')} in {plural(found['steps'], 'step')}")
    if no_serve:
        say(f"Open it with:\n  datasette {quote(str(database))} --setting suggest_facets off")
    else:
        serve(database, port)


def _write(run: Path) -> None:
    from ..sample import write_sample

    try:
        write_sample(run)
    except OSError as error:
        raise click.ClickException(printable(f"The sample cannot be written: {error}.")) from None


def _refuse_used(folder: Path, database: Path) -> None:
    """Raise ClickException for a folder that holds something else than an earlier sample: it could be written over."""
    if folder.is_dir() and not database.exists() and next(folder.iterdir(), None) is not None:
        how = f"rltracer demo {quote(str(folder / 'demo'))}"
        raise click.ClickException(printable(f"{folder} holds something else. Give a folder that is new: {how}"))


def serve(database: Path, port: int) -> None:
    """Serve an index with Datasette on the loopback address, until it is stopped."""
    from ..browse.process import safe_environment
    from .serve import LOOPBACK, Address, chosen_port, run_until_stopped

    chosen = chosen_port(LOOPBACK, port)
    place = ["--host", LOOPBACK, "--port", str(chosen), "--setting", "suggest_facets", "off"]
    command_line = [sys.executable, "-m", "datasette", "serve", str(database), *place]
    address = Address(LOOPBACK, chosen, f"http://{LOOPBACK}:{chosen}/-/rltracer/{database.stem}/  (stop with Ctrl-C)")
    sys.exit(run_until_stopped(command_line, safe_environment(), address))
