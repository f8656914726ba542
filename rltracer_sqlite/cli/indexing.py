"""What `rltracer-index` does with the runs that it was given: index each, say what is wrong with one, and go on."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from .say import say
from .several import alike_folders, beside_unread, doubt, refuse_clash, refuse_merging
from .stopped import telling
from .vanished import flag_or_explain

if TYPE_CHECKING:
    import sqlite3

    from ..index.refresh import Refreshed
    from ..sources.base import Source
    from ..sources.places import Root
    from .asked import Options

    Sources = list[tuple[Root, Source]]


class Indexed(NamedTuple):
    """Whether every run gave trajectories, and nothing was wrong in those that did: a file unread, a rule refused."""

    every_run: bool
    without_fault: bool


def index_runs(target: Path, roots: tuple[Root, ...], options: Options, shown: Path) -> Indexed:
    """Index each run into `target`, print the summary and return how that went.

    What is wrong with a run or a file is said, and the others are indexed all the same.
    """
    started = time.perf_counter()
    # Every run is looked at before the database is touched: wrong paths alone change nothing.
    with telling(lambda: "Nothing was written."):
        sources, unread = _found_sources(roots, options, target, shown)
    faults = flag_or_explain(target, unread)
    in_runs: list[str] = []
    if sources:
        of_runs, in_runs = _index_found(target, sources, options, shown, started)
        faults += of_runs
    for message in [*faults, *in_runs]:
        say(f"Error: {message}", err=True)
    return Indexed(not faults, not in_runs)


def _found_sources(
    roots: tuple[Root, ...], options: Options, target: Path, shown: Path
) -> tuple[Sources, list[tuple[Root, str]]]:
    """Return the runs with what reads them, and with a sentence each those that nothing reads."""
    from ..sources.base import SourceError

    found: Sources = []
    unread = []
    for root in roots:
        try:
            source = _source(root, options)
            folders = alike_folders(root) if options.name is None else None
            refuse_merging(root, options, shown, source, folders)
            refuse_clash(root, [other for other, _ in found], target, options.name)
            if folders and (said := doubt(root, folders)):
                say(said, err=True)
            found.append((root, source))
        except SourceError as error:
            unread.append((root, str(error)))
    return found, unread


def refuse_merging_unread(root: Root, options: Options, database: Path) -> None:
    """Do as `refuse_merging` where the run may not be there yet; what is wrong with one is told when it is read."""
    from ..sources.base import SourceError

    try:
        source = find_source(root, options)
    except SourceError:
        return
    refuse_merging(root, options, database, source)


def _index_found(
    target: Path, sources: Sources, options: Options, shown: Path, started: float
) -> tuple[list[str], list[str]]:
    """Index runs, and print the summary.

    Returns what is to be said of each run that gave no trajectory, and of the others: of files that could not be read,
    and of a success rule that was refused.
    """
    from ..index.database import finish_writing, open_for_writing, remove_database
    from .report import summary, unread_sentence, warn_of_misfits

    existed = target.exists()
    connection = open_for_writing(target)
    results: list[Refreshed] = []
    try:
        faults = _index_each(connection, sources, options, results, shown)
        if options.fts and results:
            _make_searchable(connection, shown, options)
        if not options.quiet and results:
            say(summary(connection, results, time.perf_counter() - started, shown, options))
        for done in results:
            warn_of_misfits(done)
        in_files = [unread_sentence(connection, done) for done in results if done.unread]
        return faults, [*in_files, *(done.refused_rule for done in results if done.refused_rule)]
    finally:
        useless = not results and not existed and _holds_nothing(connection)
        finish_writing(connection)
        if useless:
            remove_database(target)


def _index_each(
    connection: sqlite3.Connection, sources: Sources, options: Options, results: list[Refreshed], shown: Path
) -> list[str]:
    """Index runs one by one into `results`, and return what is to be said of each run that gave no trajectory."""
    from ..sources.base import SourceError
    from .report import nothing_found

    faults = []
    for root, source in sources:
        try:
            done = _index_run(connection, source, root, options, shown)
        except SourceError as error:
            faults.append(str(error))
            continue
        missing = nothing_found(connection, done, options)
        if missing is None:
            results.append(done)
        else:
            faults += [missing, *([done.refused_rule] if done.refused_rule else [])]
    return faults


def _holds_nothing(connection: sqlite3.Connection) -> bool:
    import sqlite3

    try:
        return not connection.execute("select 1 from trajectories limit 1").fetchone()
    except sqlite3.Error:
        return False  # it cannot be read now, and may hold something all the same


def _source(root: Root, options: Options) -> Source:
    """Return the source of a run, as `find_source` does; where there is none it is said what lies there."""
    from ..sources.base import SourceError

    try:
        return find_source(root, options)
    except SourceError as error:
        raise SourceError(f"{error}{beside_unread(root)}") from None


def find_source(root: Root, options: Options) -> Source:
    """Return the source that reads the run at `root`. Raises SourceError where none does."""
    from ..sources.base import SourceError
    from ..sources.places import is_database

    if is_database(root):
        raise SourceError(f"{root} is a database, and not a run. An index is shown by rltracer inspect, or datasette.")
    if options.mapping is None:
        from ..sources import source_for

        return source_for(root, options.tokenizer, options.layout)
    from ..sources import missing
    from ..sources.table import mapping_source

    source = mapping_source(options.mapping, options.tokenizer)
    if not root.exists():
        raise SourceError(missing(root))
    next(iter(source.shards(root)), None)  # raises where the mapping fits no file
    return source


def _index_run(connection: sqlite3.Connection, source: Source, root: Root, options: Options, shown: Path) -> Refreshed:
    from ..index.refresh import refresh_run
    from ..index.runs import ensure_run, naming, set_success
    from .asked_rule import AskedRule
    from .progress import ProgressBar

    told = naming(connection, root, options.name)
    run_id = ensure_run(connection, source, root, options.name)
    remember(root, options.tokenizer)  # first, since an indexing that is killed leaves rows too
    asked = None
    if options.rule and options.discover:
        set_success(connection, run_id, *options.rule)  # nothing is read that would say whether it scores anything
    elif options.rule:
        asked = AskedRule(connection, run_id, options.rule, shown)
    with ProgressBar(root.name or str(root), options.quiet, options.progress) as progress:
        done = refresh_run(
            connection, source, root, run_id, options.steps, options.discover, progress,
            processes=options.jobs, executor=options.executor,
        )  # fmt: skip
    done.naming = told
    done.refused_rule = asked.settle() if asked else None
    return done


def found_tokenizer(place: str) -> str:
    """Return the place of a tokenizer as the index keeps it. Raises SourceError where there is none."""
    from ..tokens.tokenizer import load_tokenizer

    load_tokenizer(place)
    return str(Path(place).expanduser().absolute())


def _make_searchable(connection: sqlite3.Connection, database: Path, options: Options) -> None:
    from ..roots import Roots
    from ..search import refresh_text
    from .fts import READING_TEXTS, say_unreadable, text_report
    from .progress import ProgressBar

    with ProgressBar(READING_TEXTS, options.quiet, options.progress) as progress:
        done = refresh_text(connection, Roots.for_database(database), progress)
    if not options.quiet:
        say(text_report(done, database))
    say_unreadable(done)


def remember(root: Root, tokenizer: str | None) -> None:
    """Put a run, and its tokenizer, on the user's list of what an index may lead to."""
    from ..remembered_roots import remember_root
    from ..roots import tokenizer_file

    try:
        remember_root(root)
        if tokenizer:
            # The file alone: what lies around it, perhaps in a home folder, was not vouched for.
            remember_root(tokenizer_file(Path(tokenizer)))
    except OSError as error:
        say(f"Note: the list of roots cannot be written ({error}); see rltracer roots --help.", err=True)
