"""`rltracer fts`: build the full text of an index, or bring it up to date."""

from __future__ import annotations

import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from . import options, run
from .places import FILE
from .progress import ProgressBar, refuse_both
from .say import say

if TYPE_CHECKING:
    from ..search import TextRefreshed

WAIT_SECONDS = 30.0
READING_TEXTS = "texts"


@click.command("fts", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("database", type=FILE)
@click.option("--rebuild", is_flag=True, help="Build it anew, for example after files were rewritten.")
@click.option("--remove", is_flag=True, help="Take it out of the index again.")
@options.progress
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def command(database: Path, rebuild: bool, remove: bool, progress: bool, quiet: bool) -> None:
    """Make the prompts and messages of an index searchable, or bring its full text up to date.

    Reads the records of all trajectories once; run it again after indexing, and only what is new is read. DATABASE
    keeps which word stands where, and no copy of the text: what is found is read from the run's files.

    \b
    Examples:
      rltracer fts run.sqlite
      rltracer-index run.sqlite /data/my-run --fts
    """
    from ..index.database import finish_writing, open_for_writing, open_index
    from ..index.lock import WriterLock
    from ..roots import Roots
    from ..search import refresh_text, remove_text
    from .vanished import if_any_moved

    if rebuild and remove:
        raise click.UsageError("--rebuild and --remove ask for different things: give one of them.")
    refuse_both(quiet, progress)
    open_index(database).close()  # refuse what is no index before it is opened for writing
    with WriterLock(database, "building the full text", wait=WAIT_SECONDS):
        connection = open_for_writing(database)
        try:
            if remove:
                remove_text(connection)
                connection.execute("vacuum")
                return
            with ProgressBar(READING_TEXTS, quiet, progress) as told:
                done = refresh_text(connection, Roots.for_database(database), told, rebuild)
        finally:
            finish_writing(connection)
    if not quiet:
        say(text_report(done, database))
    for name, reason in done.skipped.items():
        say(f"Error: the run {name} could not be read: {reason}{if_any_moved(database, [name])}", err=True)
    say_unreadable(done)
    sys.exit(1 if done.skipped or done.unreadable else 0)


def main() -> None:
    """Run `rltracer fts`."""
    run(command)


def say_unreadable(done: TextRefreshed) -> None:
    """Say on stderr how many records a pass over the texts could not read."""
    from ..amounts import plural

    if done.unreadable:
        say(f"Error: the texts of {plural(done.unreadable, 'record')} could not be read.", err=True)


def text_report(done: TextRefreshed, database: Path) -> str:
    """Return what a pass over the texts did, with the bytes of text that it read a second."""
    from ..amounts import plural, size

    rate = f", {size(done.bytes / done.seconds)} of text a second" if done.bytes and done.seconds else ""
    lines = [
        f"{plural(done.trajectories, 'trajectory')} added, {size(done.bytes)} of text in {done.seconds:.2f} s{rate}",
        done.coverage.said,
    ]
    if done.rebuilt:
        lines.insert(0, "Built anew.")
    if done.changed:
        lines.append(
            f"{plural(done.changed, 'trajectory')} rewritten since, still found by the old words. "
            "Build the full text anew when every run can be read:"
        )
        lines.append(f"  rltracer fts {quote(str(database))} --rebuild")
    return "\n".join(lines)
