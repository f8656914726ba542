"""`rltracer serve`, which is `rltracer-viz`: look at all runs below a folder, each step read when it is opened."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
from collections.abc import Sequence
from ipaddress import ip_address
from pathlib import Path
from shlex import quote
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from ..stopping import Stopping
from . import CONTEXT, run
from .options import every
from .places import FILE, OUTPUT, RUN
from .say import say
from .visible import printable

if TYPE_CHECKING:
    from ..sources.places import Root

PORT = 8001
LOOPBACK = "127.0.0.1"
# One person at one machine can wait longer for a query than a public site may; see Datasette's settings.
SETTINGS = {"suggest_facets": "off", "facet_time_limit_ms": "1000", "sql_time_limit_ms": "5000"}


@click.command("serve", context_settings=CONTEXT)
@click.argument("folder", required=False, type=RUN)
@click.option("--browse-root", metavar="DIR", type=RUN, help="The same as FOLDER: offer all runs below it.")
@click.option("--run", "one", metavar="RUN", type=RUN, help="Offer this run only.")
@click.option("--tokenizer", metavar="PATH", type=FILE, help="For files that hold token ids.")
@click.option("--port", type=click.IntRange(0, 65535), help=f"Default: {PORT}, or a free one where that is taken.")
@click.option("--host", default=LOOPBACK, show_default=True, help="The address to listen on.")
@click.option("--index", metavar="FILE", type=OUTPUT, help="Default: in your cache folder.")
@click.option("--fts", is_flag=True, help="Make the messages of each step searchable as it is read.")
@click.option("--watch", is_flag=True, help="Go on reading what is written to runs that have been opened.")
@every("them")
def command(
    folder: Root | None,
    browse_root: Root | None,
    one: Root | None,
    tokenizer: Path | None,
    port: int | None,
    host: str,
    index: Path | None,
    fts: bool,
    watch: bool,
    every: float,
) -> None:
    """Look at the runs below FOLDER in a browser, without indexing them first.

    Runs are found by the names of their files; a step is read when it is opened, and its index is kept in your cache
    folder. Files of a run are never written to. Only this machine can connect, unless --host says otherwise. With
    --watch the steps that have been opened are followed, and those that come after them. Ctrl-C, SIGTERM or the end of
    the terminal ends it, with exit code 0.

    \b
    Examples:
      rltracer serve /data/runs
      rltracer-viz --run /data/runs/my-run --tokenizer /models/qwen --port 8080
    """
    given = [root for root in (folder, browse_root, one) if root is not None]
    if len(given) != 1:
        raise click.UsageError("Give the folder of your runs, or a single run with --run.")
    from ..browse.process import safe_environment

    root = _existing(given[0], "The run" if one is not None else "The folder")
    file = prepare_index(root, index)
    config = browse_config(root, file, tokenizer, fts, is_loopback(host))
    chosen = chosen_port(host, port)
    if not is_loopback(host):
        say("Whoever can reach this address can read these runs: Datasette asks for no password.", err=True)
    with TemporaryDirectory(prefix="rltracer-") as temporary:
        metadata = Path(temporary) / "metadata.json"
        metadata.write_text(json.dumps(config), encoding="utf-8")
        command_line = [sys.executable, "-m", "datasette", *arguments(file, metadata, host, chosen)]
        beside = [_follower(file, str(root), every, config)] if watch else []
        address = Address(host, chosen, f"http://{shown_host(host)}:{chosen}/-/rltracer  (stop with Ctrl-C)")
        sys.exit(run_until_stopped(command_line, safe_environment(), address, beside))


def main() -> None:
    """Run `rltracer-viz`."""
    run(command)


class Address(NamedTuple):
    """Where a server listens, and what is printed when it does."""

    host: str
    port: int
    text: str


def run_until_stopped(
    command_line: list[str], environment: dict[str, str], address: Address, beside: Sequence[list[str]] = ()
) -> int:
    """Run a server and return its exit code, or 0 where this process was asked to stop; it ends with this process.

    Its address is printed when it can be opened. The commands `beside` it run as long as it does.
    """
    started: list[subprocess.Popen[bytes]] = []

    def terminate() -> None:
        for process in started:
            process.terminate()

    with Stopping(terminate) as stopping:
        try:
            for line in (command_line, *beside):
                # In a session of their own: what comes from the keyboard would reach them twice.
                process = subprocess.Popen(line, env=environment, start_new_session=True)
                started.append(process)
            if stopping.is_asked:  # while one was being started
                terminate()
            _announce(started[0], address)
            code = started[0].wait()
        except KeyboardInterrupt:  # asked once more, while requests are still being answered
            started[0].kill()
            code = 0
        finally:
            if not stopping.is_asked:
                terminate()
            for process in started:
                process.wait()
    return 0 if stopping.is_asked else code if code >= 0 else 128 - code


def _announce(process: subprocess.Popen[bytes], address: Address) -> None:
    """Print an address as soon as it answers; nothing where the server ends before."""
    host = {"0.0.0.0": LOOPBACK, "::": "::1"}.get(address.host, address.host)
    while process.poll() is None:
        try:
            socket.create_connection((host, address.port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
            continue
        click.echo(address.text)
        sys.stdout.flush()
        return


def _follower(index: Path, root: str, every: float, config: dict[str, Any]) -> list[str]:
    """Return the command that follows what has been opened, as the pages are configured."""
    browse = config["plugins"]["datasette-rltracer"]["browse"]
    line = [sys.executable, "-m", "rltracer_sqlite.browse.follow", str(index), root, f"--every={every}"]
    line += [f"--tokenizer={browse['tokenizer']}"] if browse["tokenizer"] else []
    return [*line, *(["--fts"] if browse["fts"] else [])]


def prepare_index(root: Path, index: Path | None) -> Path:
    """Return the index file for what is at `root`, made where there is none. Raises IndexFileError."""
    from ..index.database import begin_writing, open_for_writing
    from ..on_demand import cached_index

    file = (index if index is not None else cached_index(root)).absolute()
    file.parent.mkdir(parents=True, exist_ok=True)
    connection = open_for_writing(file)
    # With a write-ahead log pages are read while a step is written, and its mode cannot be changed later on.
    begin_writing(connection)
    connection.close()
    return file


def browse_config(
    root: Path, index: Path, tokenizer: Path | None = None, fts: bool = False, only_here: bool = True
) -> dict[str, Any]:
    """Return the content of a metadata.json with which Datasette offers the runs at `root` out of `index`.

    `only_here`: only this machine can connect, so that a request under another name is none of its user's.
    """
    place = str(_existing(tokenizer, "The tokenizer")) if tokenizer is not None else None
    browse = {"root": str(root), "database": index.stem, "tokenizer": place, "fts": fts, "only_here": only_here}
    roots = [str(root), *([place] if place else [])]
    return {"title": root.name or str(root), "plugins": {"datasette-rltracer": {"browse": browse, "roots": roots}}}


def arguments(index: Path, metadata: Path, host: str, port: int) -> list[str]:
    """Return the arguments of the datasette command; they are the same for 0.65 and 1.0."""
    settings = [part for name, value in SETTINGS.items() for part in ("--setting", name, value)]
    return ["serve", str(index), "--metadata", str(metadata), "--host", host, "--port", str(port), *settings]


def chosen_port(host: str, port: int | None) -> int:
    """Return the port to listen on: the one that is given, else the usual one, else a free one.

    Raises ClickException where it is taken.
    """
    for candidate in (PORT, 0) if port is None else (port,):
        with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, candidate))
            except OSError as error:
                if candidate == 0 or port is not None:
                    where = printable(shown_host(host)) + (f":{candidate}" if candidate else "")
                    raise click.ClickException(f"Cannot listen on {where}: {error.strerror}.") from None
                continue
            return int(probe.getsockname()[1])
    raise click.ClickException(f"There is no free port on {printable(host)}.")


def is_loopback(host: str) -> bool:
    """Say whether only this machine can reach an address."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def shown_host(host: str) -> str:
    """Return a host as it stands in an address."""
    return f"[{host}]" if ":" in host else host


def _existing(path: Root, what: str) -> Path:
    if not isinstance(path, Path):
        raise click.ClickException(
            printable(f"{path} is not on this machine: index it with rltracer-index, and serve the index by datasette.")
        )
    from ..sources.places import is_database

    if not path.exists():
        from ..sources import missing

        raise click.ClickException(printable(missing(path, what)))
    if is_database(path):
        how = f"  datasette {quote(str(path))} --setting suggest_facets off"
        raise click.ClickException(printable(f"{path} is a database. Datasette itself serves an index:\n{how}"))
    return path.resolve()
