"""`rltracer demo`: write the sample run, index it and serve it."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path

import click


@click.command("demo", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("folder", type=click.Path(path_type=Path), default=Path("demo"))
@click.option("--port", type=int, default=0, help="The port to serve on. Default: a free one.")
@click.option("--no-serve", is_flag=True, help="Write and index the sample, but do not serve it.")
def command(folder: Path, port: int, no_serve: bool) -> None:
    """Write a small sample run to FOLDER (default: demo), index it, and serve it with Datasette on this machine.

    The run is made up: eight steps of a policy that gets better at word problems, at a small shell, at pictures
    and at explaining code. It shows what a run of your own will look like. The last step holds tokens, and all of it
    can be searched.
    """
    from ..index.database import finish_writing, open_for_writing
    from ..index.refresh import refresh_run
    from ..index.runs import ensure_run
    from ..roots import Roots, remember_root
    from ..sample import write_sample
    from ..search import refresh_text
    from ..sources import source_for
    from .report import counts

    run, database = folder / "run", folder / "demo.sqlite"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_sample(run)
    except OSError as error:
        raise click.ClickException(f"The sample cannot be written: {error}.") from None
    tokenizer = str((run / "tokenizer").absolute())
    source = source_for(run, tokenizer)
    connection = open_for_writing(database)
    try:
        run_id = ensure_run(connection, source, run, "demo")
        refresh_run(connection, source, run, run_id)
        refresh_text(connection, Roots([run]))
        found = counts(connection, run_id)
    finally:
        finish_writing(connection)
    remember_root(run)
    click.echo(f"{database}: {found['trajectories']:,} trajectories in {found['steps']} steps")
    if no_serve:
        click.echo(f"Open it with: datasette {database} --setting suggest_facets off")
    else:
        serve(database, port or free_port())


def serve(database: Path, port: int) -> None:
    """Serve an index with Datasette on the loopback address, until it is stopped."""
    from ..browse.process import safe_environment

    click.echo(f"http://127.0.0.1:{port}/{database.stem}  (stop with Ctrl-C)")
    sys.stdout.flush()
    arguments = [
        "serve",
        str(database),
        "--host",
        "127.0.0.1",
        "--port",
        str(port),
        "--setting",
        "suggest_facets",
        "off",
    ]
    try:
        sys.exit(subprocess.call([sys.executable, "-m", "datasette", *arguments], env=safe_environment()))
    except KeyboardInterrupt:
        sys.exit(0)


def free_port() -> int:
    """Return a port that is free on the loopback address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
