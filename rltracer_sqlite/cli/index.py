"""`rltracer-index`: index runs into a SQLite database."""

from __future__ import annotations

import gc
import re
import sys
from collections.abc import Callable
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from . import CONTEXT, run
from .numbers import parse_range
from .options import every, progress
from .places import DATABASES, FILE, RUN, TOKENIZER, refuse_output
from .progress import refuse_both
from .visible import printable

if TYPE_CHECKING:
    from ..sources.places import Root
    from .asked import Options
    from .indexing import Indexed


@click.command(context_settings=CONTEXT)
@click.argument("database", type=FILE)
@click.argument("runs", nargs=-1, type=RUN, metavar="RUN...")
@click.option("--steps", metavar="N-M", help="Read these steps only, for example 1-100, 21 or 40- (to the end).")
@click.option("--discover", is_flag=True, help="List the steps of a run without reading any of its files.")
@click.option("--name", help="A name for the run. Default: the name of its folder.")
@click.option("--success", metavar="PATH>=VALUE", help="What counts as a success, for example 'reward>=0.5'.")
@click.option(
    "--tokenizer",
    metavar="PATH",
    type=TOKENIZER,
    help="A tokenizer.json, or its folder, for files that hold token ids.",
)
@click.option(
    "--layout",
    type=click.Choice(["traces", "tokens"]),
    help="Which files to read where a run holds both. Default: traces where they hold the training rollouts.",
)
@click.option(
    "--mapping",
    metavar="FILE",
    type=FILE,
    help="A TOML file that says how to read tables of your own; see rltracer sources --help.",
)
@click.option("--fts", is_flag=True, help="Make prompts and messages searchable too; takes a second pass.")
@click.option(
    "--rebuild", is_flag=True, help="Make the database anew; the old one stays until the new one is complete."
)
@click.option("--watch", is_flag=True, help="Go on reading what is written, until it is stopped (Ctrl-C).")
@every("the runs")
@progress
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
@click.option(
    "--jobs",
    type=click.IntRange(1, 512),
    metavar="N",
    help="Scan with N processes. Default: as many as there are cores, and 1 where less than 256 MB are new.",
)
@click.option(
    "--executor",
    metavar="URL",
    help="Scan on a Dask cluster, dask://HOST:PORT, whose workers see the same files.",
)
def command(
    database: Path,
    runs: tuple[Root, ...],
    steps: str | None,
    success: str | None,
    tokenizer: str | None,
    watch: bool,
    every: float,
    **others: Any,
) -> None:
    """Index one or more training runs into DATABASE, a SQLite file that Datasette can serve.

    RUN is an experiment folder, its run_default or rollouts folder, a folder of evaluations, or a single file; or the
    URL of one, such as s3://bucket/my-run. The index keeps where each trajectory is and what it can be selected by;
    the text stays in the run's files, which are never written to. Run it again to add what is new: unchanged files
    are not read. Of several runs those that can be read are indexed, and the others named. A file
    that cannot be read is named too, with exit code 1; a line that cannot be is a problem, with 0. A run of which
    --success would score nothing is indexed and keeps the rule that it had, with exit code 1.

    \b
    Examples:
      rltracer-index run.sqlite /data/my-run
      rltracer-index both.sqlite /data/run-a /data/run-b --steps 1-100
      rltracer-index run.sqlite /data/my-run --success 'rewards.correct.score>=1'
      rltracer-index run.sqlite /data/my-run --watch
    """
    from .asked import Options
    from .indexing import found_tokenizer

    if others["name"] and len(runs) > 1:
        raise click.UsageError("--name names one run; index several runs one after the other.")
    refuse_both(others["quiet"], others["progress"])
    _refuse_swapped(database, runs)
    refuse_output(database)
    options = Options(
        steps=parse_steps(steps),
        asked_steps=steps,
        rule=parse_success(success) if success else None,
        tokenizer=tokenizer and found_tokenizer(tokenizer),
        **others,
    )
    if options.jobs and options.executor:
        raise click.UsageError("--jobs counts processes of this machine; a cluster has its own workers.")
    if options.executor is not None and not re.match("dask://.", options.executor):
        raise click.BadParameter(f"{options.executor!r} is none; write dask://HOST:PORT.", param_hint="--executor")
    if watch:
        _watch(database, runs, options, every)
    else:
        sys.exit(0 if all(_index(database, runs, options)) else 1)


def _watch(database: Path, runs: tuple[Root, ...], options: Options, every: float) -> None:
    from .indexing import refuse_merging_unread
    from .several import refuse_clash
    from .stopped import telling
    from .unfinished import Unfinished
    from .watch import watch_runs

    if options.rebuild or options.discover:
        raise click.UsageError("--watch goes with neither --rebuild nor --discover: use these first, then --watch.")
    with telling(Unfinished(database, runs)):
        for number, root in enumerate(runs):
            refuse_merging_unread(root, options, database)
            refuse_clash(root, runs[:number], database, options.name)
        watch_runs(database, runs, options, every)


def _index(database: Path, runs: tuple[Root, ...], options: Options) -> Indexed:
    from ..index.database import remove_database
    from ..index.lock import WriterLock
    from .indexing import index_runs
    from .rebuilding import beside_of, rebuild_index
    from .stopped import telling
    from .unfinished import Unfinished

    # Around all of it: a signal may come, or come again, while what was written is being closed.
    with telling(Unfinished(database, runs, options.rebuild)), WriterLock(database, "indexing"):
        remove_database(beside_of(database))  # of a rebuilding that was killed
        if options.rebuild:
            return rebuild_index(database, runs, options)
        return index_runs(database, runs, options, database)


def main() -> None:
    """Run `rltracer-index`."""
    # Indexing makes very many objects and hardly a cycle: looking for some seldom saves a twentieth of the time.
    gc.set_threshold(50_000, 50, 50)
    run(command)


def parse_steps(text: str | None) -> Callable[[int | None], bool]:
    """Return the test for a step that `--steps` means; a file that does not tell its step is always read."""
    first, last = parse_range(text)
    return lambda step: step is None or ((first or 0) <= step and (last is None or step <= last))


def parse_success(text: str) -> tuple[str, float]:
    """Return (path, threshold) of a success rule such as 'rewards.reward.score >= 0.5'."""
    from .success import parse_option

    rule = parse_option(text, "--success")
    return rule.path, rule.threshold


def _refuse_swapped(database: Path, roots: tuple[Root, ...]) -> None:
    """Raise UsageError where there is no run, or one stands before the database, or an index in its place."""
    from ..sources.places import is_database

    if not roots:
        if database.is_dir():
            raise click.UsageError(printable(f"DATABASE comes first: rltracer-index run.sqlite {quote(str(database))}"))
        raise click.UsageError(printable(f"Give a run too: rltracer-index {quote(str(database))} RUN"))
    is_run = database.is_dir() or re.match(r"[a-z][a-z0-9+]+:/", str(database)) is not None
    if not is_run and (not database.is_file() or is_database(database) or database.stat().st_size == 0):
        return
    for root in roots:
        if is_database(root) or (isinstance(root, Path) and not root.exists() and (is_run or root.suffix in DATABASES)):
            order = " ".join(quote(str(path)) for path in (root, database))
            raise click.UsageError(printable(f"DATABASE comes first: rltracer-index {order}"))


if __name__ == "__main__":
    main()
