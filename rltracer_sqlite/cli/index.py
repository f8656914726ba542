"""`rltracer-index`: index runs into a SQLite database."""

from __future__ import annotations

import gc
import math
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import click

from . import printable, run
from .places import DATABASES, RUN, refuse_several

if TYPE_CHECKING:
    import sqlite3

    from ..index.refresh import Refreshed
    from ..sources.base import Source
    from ..sources.places import Root

    Sources = list[tuple[Root, Source]]

CONTEXT = {"help_option_names": ["-h", "--help"]}


@dataclass(frozen=True)
class Options:
    """What the command line asked for, beside the database and the runs."""

    steps: Callable[[int | None], bool]
    asked_steps: str | None  # as they were written
    rule: tuple[str, float] | None
    discover: bool
    name: str | None
    tokenizer: str | None
    layout: str | None
    mapping: Path | None
    fts: bool
    rebuild: bool
    quiet: bool
    jobs: int | None
    executor: str | None


@click.command(context_settings=CONTEXT)
@click.argument("database", type=click.Path(path_type=Path))
@click.argument("runs", nargs=-1, required=True, type=RUN, metavar="RUN...")
@click.option("--steps", metavar="N-M", help="Read these steps only, for example 1-100, 21 or 40- (to the end).")
@click.option("--discover", is_flag=True, help="List the steps of a run without reading any of its files.")
@click.option("--name", help="A name for the run. Default: the name of its folder.")
@click.option("--success", metavar="PATH>=VALUE", help="What counts as a success, for example 'reward>=0.5'.")
@click.option("--tokenizer", metavar="PATH", help="A tokenizer.json, or its folder, for files that hold token ids.")
@click.option(
    "--layout",
    type=click.Choice(["traces", "tokens"]),
    help="Which files to read where a run holds both. Default: traces where they hold the training rollouts.",
)
@click.option(
    "--mapping",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="A TOML file that says how to read tables of your own; see rltracer sources --help.",
)
@click.option("--fts", is_flag=True, help="Make prompts and messages searchable too; takes a second pass.")
@click.option(
    "--rebuild", is_flag=True, help="Make the database anew; the old one stays until the new one is complete."
)
@click.option("--watch", is_flag=True, help="Go on reading what is written, until it is stopped (Ctrl-C).")
@click.option(
    "--every",
    type=click.FloatRange(0.1, 3600),
    default=2.0,
    show_default=True,
    metavar="SECONDS",
    help="With --watch: the time between two looks at the runs.",
)
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
    discover: bool,
    name: str | None,
    success: str | None,
    tokenizer: str | None,
    layout: str | None,
    mapping: Path | None,
    fts: bool,
    rebuild: bool,
    watch: bool,
    every: float,
    quiet: bool,
    jobs: int | None,
    executor: str | None,
) -> None:
    """Index one or more training runs into DATABASE, a SQLite file that Datasette can serve.

    RUN is an experiment folder, its run_default or rollouts folder, a folder of evaluations, or a single file; or the
    URL of one, such as s3://bucket/my-run. The index keeps where each trajectory is and what it can be selected by;
    the text stays in the run's files, which are never written to. Run it again to add what is new: unchanged files
    are not read. Of several runs those that can be read are indexed, and the others named.

    \b
    Examples:
      rltracer-index run.sqlite /data/my-run
      rltracer-index both.sqlite /data/run-a /data/run-b --steps 1-100
      rltracer-index run.sqlite /data/my-run --success 'rewards.correct.score>=1'
      rltracer-index run.sqlite /data/my-run --watch
    """
    if name and len(runs) > 1:
        raise click.UsageError("--name names one run; index several runs one after the other.")
    _refuse_swapped(database, runs)
    rule = parse_success(success) if success else None
    tokenizer = tokenizer and _found_tokenizer(tokenizer)
    if jobs and executor:
        raise click.UsageError("--jobs counts processes of this machine; a cluster has its own workers.")
    options = Options(
        parse_steps(steps), steps, rule, discover, name, tokenizer, layout, mapping, fts, rebuild, quiet, jobs, executor
    )
    if watch:
        from .watch import watch_runs

        if rebuild or discover:
            raise click.UsageError("--watch goes with neither --rebuild nor --discover: use these first, then --watch.")
        for root in runs:
            _refuse_merging(root, options, database)
        watch_runs(database, runs, options, every)
        return
    from ..index.database import remove_database
    from ..index.lock import WriterLock

    with WriterLock(database, "indexing"):
        remove_database(_beside(database))  # of a rebuilding that was killed
        found = _rebuild(database, runs, options) if rebuild else _index(database, runs, options, database)
    sys.exit(0 if found else 1)


def main() -> None:
    """Run `rltracer-index`."""
    # Indexing makes very many objects and hardly a cycle: looking for some seldom saves a twentieth of the time.
    gc.set_threshold(50_000, 50, 50)
    run(command)


def parse_steps(text: str | None) -> Callable[[int | None], bool]:
    """Return the test for a step that `--steps` means; a file that does not tell its step is always read."""
    if text is None:
        return lambda step: True
    match = re.fullmatch(r"(\d*)(-?)(\d*)", text.strip())
    if not match or text.strip() in ("", "-"):
        raise click.BadParameter(f"{text!r} is not a range of steps; write 1-100, 21 or 40-.", param_hint="--steps")
    first = int(match[1] or 0)
    last = int(match[3]) if match[3] else (first if not match[2] else sys.maxsize)
    if last < first:
        raise click.BadParameter(f"{text!r} ends before it begins.", param_hint="--steps")
    return lambda step: step is None or first <= step <= last


def parse_success(text: str) -> tuple[str, float]:
    """Return (path, threshold) of a success rule such as 'rewards.reward.score >= 0.5'."""
    match = re.fullmatch(r"\s*([^<>=\s]+)\s*>=\s*([-+.\deE]+)\s*", text)
    try:
        if match and math.isfinite(threshold := float(match[2])):
            return match[1], threshold
    except ValueError:
        pass
    raise click.BadParameter(
        f"{text!r} is no rule; write PATH>=VALUE, for example reward>=0.5.", param_hint="--success"
    )


def _refuse_swapped(database: Path, roots: tuple[Root, ...]) -> None:
    """Raise UsageError where the run stands before the database."""
    from ..sources.places import is_database

    is_run = database.is_dir() or re.match(r"[a-z][a-z0-9+]+:/", str(database)) is not None
    if not is_run and (not database.is_file() or is_database(database) or database.stat().st_size == 0):
        return
    for root in roots:
        if is_database(root) or (isinstance(root, Path) and not root.exists() and (is_run or root.suffix in DATABASES)):
            order = " ".join(quote(str(path)) for path in (root, database))
            raise click.UsageError(printable(f"DATABASE comes first: rltracer-index {order}"))


def _rebuild(database: Path, roots: tuple[Root, ...], options: Options) -> bool:
    """Index into a file beside the database, and put it in its place when all went well."""
    from ..index.database import remove_database, replace_database

    searchable = _check_all_named(database, roots)
    options = replace(options, fts=options.fts or searchable)
    beside = _beside(database)
    try:
        found = _index(beside, roots, options, database)
        if found:
            replace_database(beside, database)
        return found
    finally:
        remove_database(beside)


def _beside(database: Path) -> Path:
    """Return the file that a database is rebuilt in."""
    return Path(f"{database}.rebuilding")


def _check_all_named(database: Path, roots: tuple[Root, ...]) -> bool:
    """Refuse to rebuild a database that holds further runs: they would be gone. Say whether it holds full text."""
    from ..index.database import IndexFileError, open_index
    from ..index.queries import runs
    from ..search import has_text

    if not database.exists():
        return False
    connection = open_index(database)
    try:
        named = {str(root.resolve()) for root in roots}
        others = [known.root for known in runs(connection) if known.root not in named]
        searchable = has_text(connection)
    finally:
        connection.close()
    if others:
        raise IndexFileError(f"{database} also holds {', '.join(others)}: name these runs too to rebuild it.")
    return searchable


def _index(target: Path, roots: tuple[Root, ...], options: Options, shown: Path) -> bool:
    """Index each run into `target` and print the summary; say whether every run gave trajectories.

    What is wrong with a run is said, and the others are indexed all the same.
    """
    started = time.perf_counter()
    # Every run is looked at before the database is touched: wrong paths alone change nothing.
    sources, faults = _found_sources(roots, options, shown)
    if sources:
        faults += _index_found(target, sources, options, shown, started)
    for message in faults:
        click.echo(f"Error: {printable(message)}", err=True)
    return not faults


def _found_sources(roots: tuple[Root, ...], options: Options, shown: Path) -> tuple[Sources, list[str]]:
    """Return the runs with what reads them, and a sentence for each one that nothing reads."""
    from ..sources.base import SourceError

    found: Sources = []
    faults = []
    for root in roots:
        try:
            source = find_source(root, options)
            _refuse_merging(root, options, shown)
            found.append((root, source))
        except SourceError as error:
            faults.append(str(error))
    return found, faults


def _refuse_merging(root: Root, options: Options, database: Path) -> None:
    """Raise SourceError for a folder of several runs, unless it is named as one or is one in the database already."""
    if options.name is None and not _is_known(root, database):
        refuse_several(root, ". With --name they are read as one run.")


def _is_known(root: Root, database: Path) -> bool:
    """Say whether a run has been indexed before."""
    from ..index.database import IndexFileError, open_index
    from ..index.queries import runs

    try:
        connection = open_index(database)
    except IndexFileError:
        return False
    try:
        return str(root.resolve()) in {known.root for known in runs(connection)}
    finally:
        connection.close()


def _index_found(target: Path, sources: Sources, options: Options, shown: Path, started: float) -> list[str]:
    """Index runs, print the summary, and return a sentence for each run that gave no trajectory."""
    from ..index.database import finish_writing, open_for_writing, remove_database
    from ..sources.base import SourceError
    from .report import nothing_found, summary

    existed = target.exists()
    connection = open_for_writing(target)
    results: list[Refreshed] = []
    faults: list[str] = []
    try:
        for root, source in sources:
            try:
                done = _index_run(connection, source, root, options)
            except SourceError as error:
                faults.append(str(error))
                continue
            missing = nothing_found(connection, done, options)
            if missing is None:
                results.append(done)
            else:
                faults.append(missing)
        if options.fts and results:
            _make_searchable(connection, shown, options.quiet)
        if not options.quiet and results:
            click.echo(summary(connection, results, time.perf_counter() - started, shown, options))
        if options.rule and not options.discover and results:
            _check_rule(connection, results, options.rule[0])
        return faults
    finally:
        useless = not results and not existed and _holds_nothing(connection)
        finish_writing(connection)
        if useless:
            remove_database(target)


def _holds_nothing(connection: sqlite3.Connection) -> bool:
    import sqlite3

    try:
        return not connection.execute("select 1 from trajectories limit 1").fetchone()
    except sqlite3.Error:
        return False  # it cannot be read now, and may hold something all the same


def _check_rule(connection: sqlite3.Connection, results: list[Refreshed], path: str) -> None:
    """Warn where a rule that was asked for scores nothing, and name what is recorded under similar paths."""
    from ..passrates import SuccessRuleError, success_column
    from .report import counts

    unscored = [result.run_id for result in results if not counts(connection, result.run_id)["scored"]]
    if not unscored:
        return
    try:
        success_column(connection, path)
        names = ", ".join(
            connection.execute("select name from runs where id = ?", (run_id,)).fetchone()[0] for run_id in unscored
        )
        why = f"No trajectory of {names} records {path}"
    except SuccessRuleError as error:
        why = str(error)
    click.echo(printable(f"Warning: {why}. Nothing is scored by it; rltracer success sets another rule."), err=True)


def find_source(root: Root, options: Options) -> Source:
    """Return the source that reads the run at `root`. Raises SourceError where none does."""
    if options.mapping is None:
        from ..sources import source_for

        return source_for(root, options.tokenizer, options.layout)
    from ..sources import missing
    from ..sources.base import SourceError
    from ..sources.table import mapping_source

    source = mapping_source(options.mapping, options.tokenizer)
    if not root.exists():
        raise SourceError(missing(root))
    next(iter(source.shards(root)), None)  # raises where the mapping fits no file
    return source


def _index_run(connection: sqlite3.Connection, source: Source, root: Root, options: Options) -> Refreshed:
    from ..index.refresh import refresh_run
    from ..index.runs import ensure_run, set_success
    from .report import ProgressBar

    run_id = ensure_run(connection, source, root, options.name)
    if options.rule:
        set_success(connection, run_id, *options.rule)
    with ProgressBar(root, options.quiet) as progress:
        done = refresh_run(
            connection, source, root, run_id, options.steps, options.discover, progress,
            processes=options.jobs, executor=options.executor,
        )  # fmt: skip
    remember(root, options.tokenizer)
    return done


def _found_tokenizer(place: str) -> str:
    """Return the place of a tokenizer as the index keeps it. Raises SourceError where there is none."""
    from ..tokens.tokenizer import load_tokenizer

    load_tokenizer(place)
    return str(Path(place).expanduser().absolute())


def _make_searchable(connection: sqlite3.Connection, database: Path, quiet: bool) -> None:
    from ..roots import Roots
    from ..search import refresh_text
    from .fts import text_report

    done = refresh_text(connection, Roots.for_database(database))
    if not quiet:
        click.echo(text_report(done, database))


def remember(root: Root, tokenizer: str | None) -> None:
    """Put a run, and its tokenizer, on the user's list of what an index may lead to."""
    from ..roots import remember_root, tokenizer_file

    try:
        remember_root(root)
        if tokenizer:
            # The file alone: what lies around it, perhaps in a home folder, was not vouched for.
            remember_root(tokenizer_file(Path(tokenizer)))
    except OSError as error:
        click.echo(f"Note: the list of roots cannot be written ({error}); see rltracer roots --help.", err=True)


if __name__ == "__main__":
    main()
