"""`rltracer search`: the trajectories whose messages say some words, in the terminal."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import replace
from itertools import chain
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from ..amounts import plural
from ..outcomes import outcome
from ..unrecorded import NOT_RECORDED
from . import CONTEXT, options
from .amiss import say_amiss
from .columns import cell, cut, decimal, ending, screen_width, width_of
from .numbers import From, WholeOrNone, parse_range
from .places import FILE, refuse_swapped
from .previews import names_apart
from .say import say
from .visible import json_line, printable

if TYPE_CHECKING:
    import sqlite3

    from ..search import Hit, SearchScope
    from ..search.document import Place

    Found = tuple[dict[str, Any], Hit]

LIMIT = 20
MORE = "--limit N lists more"
LONGEST_RUN = 16
WIDE = 120  # columns in which the facts of a match and what it says fit beside each other
BELOW = " " * 4


@click.command("search", context_settings=CONTEXT)
@click.argument("database", type=FILE)
@click.argument("words", nargs=-1, required=True)
@options.one_run("Only this run; default: all of them.")
@click.option("--step", type=WholeOrNone(), help=f"Only this step; '{NOT_RECORDED}': what has none.")
@click.option("--steps", metavar="N-M", help="An inclusive range of steps: 1-100, 21 or 40-.")
@options.split
@options.env
@options.outcome(
    "--outcome", "passed", "failed", "unscored", "any", default="any", help="Only this outcome, by the success rule."
)
@click.option("--limit", type=From(1), default=LIMIT, show_default=True, metavar="N", help="List at most N of them.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object a line.")
def command(
    database: Path, words: tuple[str, ...], limit: int, as_json: bool, step: int | str | None, **asked: str | None
) -> None:
    """List the trajectories that say WORDS in a prompt, a message, its reasoning or a tool call, the newest first.

    DATABASE is an index with its full text, which rltracer fts or rltracer-index --fts makes. WORDS are found in any
    form, and all of them must be there; of Chinese, Japanese, Korean and Thai any part is found. The definitions of the
    tools that were offered are not searched. What is shown is the place where most of the WORDS stand, closest to each
    other, read from the run's file, with its message and, where there are several, its branch. Write the WORDS in
    single quotes, so that the shell leaves these as they are:

    \b
      '"exit code 1"'           the phrase
      'time*'                   words that begin so
      'timeout OR "timed out"'  either; also AND, NOT and parentheses
      'NEAR(wrong answer, 5)'   at most five words apart

    \b
    Examples:
      rltracer search run.sqlite exit code
      rltracer search run.sqlite '"exit code 1" NOT make' --steps 10-20 \\
        --outcome failed
      rltracer search run.sqlite 'sandbox*' --limit 1000 --json > found.jsonl
    """
    from ..search import QueryError, full_text_query, open_searchable, searched
    from .report import writes_to_terminal

    try:
        query = full_text_query(" ".join(words))
    except QueryError as error:
        raise click.UsageError(printable(str(error))) from None
    steps = _steps(step, asked["steps"])
    refuse_swapped("rltracer search", database, words)
    with closing(open_searchable(database)) as connection:
        scope = replace(_scope(connection, database, steps, asked), is_without_step=step == NOT_RECORDED)
        is_shown = not as_json and writes_to_terminal()
        found = _found(connection, database, query, scope, limit, says_more=not is_shown)
        first = next(found, None)
        if first is None:
            say(f"No match in {searched(connection, scope).searched}.", err=as_json)
            return
        listed = chain([first], found)
        for line in map(_json, listed) if as_json else _table(connection, listed, query, scope):
            click.echo(line)
    if is_shown:
        click.echo(cut(f"rltracer inspect {quote(str(database))} --trajectory ID shows one", screen_width()))


def _steps(step: int | str | None, steps: str | None) -> tuple[int | None, int | None]:
    """Return the first and the last step that are asked for. Raises UsageError."""
    if step is not None and steps is not None:
        raise click.UsageError("--step and --steps ask for different things: give one of them.")
    return (step, step) if isinstance(step, int) else parse_range(steps)


def _scope(
    connection: sqlite3.Connection,
    database: Path,
    steps: tuple[int | None, int | None],
    asked: dict[str, str | None],
) -> SearchScope:
    """Return what is searched. Raises WhichRunError, and ClickException where no run has it."""
    from ..index.contents import lacking
    from ..search import SearchScope
    from .chosen_runs import chosen_runs

    first, last = steps
    run, split, env, outcome = (asked[name] for name in ("run", "split", "env", "outcome"))
    chosen = [run_id for run_id, _ in chosen_runs(connection, run, database)]
    missing, sentence = lacking(connection, chosen, split=split, env=env, first=first, last=last)
    if len(missing) == len(chosen):
        raise click.ClickException(printable(sentence))
    of_one = None if run is None else chosen[0]
    return SearchScope(of_one, first, last, split, env, None if outcome == "any" else outcome)


def _found(
    connection: sqlite3.Connection, database: Path, query: str, scope: SearchScope, limit: int, says_more: bool
) -> Iterator[Found]:
    """Yield what is found; then say that there is more, where it is to be said, and what could not be searched.

    Raises SourceError where no record can be read.
    """
    from ..roots import Roots
    from ..search import count_found, find, searched
    from ..sources.base import SourceError

    errors, listed = set(), 0
    for row, hit in find(connection, Roots.for_database(database), query, scope, limit):
        errors.add(hit.error)
        listed += 1
        yield row, hit
    if says_more and listed == limit and (found := count_found(connection, query, scope)) > listed:
        say(f"{listed:,} of {plural(found, 'trajectory')} that were found are listed; {MORE}.", err=True)
    coverage = searched(connection, scope)
    if coverage.hides and errors:  # where nothing is found that is said of what was searched
        say(f"{coverage.said}.", err=True)
    if coverage.later:
        later = f"{plural(coverage.later, 'trajectory')} came later, or could not be read, and cannot be found yet"
        say(f"{later}: rltracer fts {quote(str(database))} adds what is new.", err=True)
    say_amiss(connection, database, None if scope.run_id is None else {scope.run_id})
    if errors and None not in errors:
        raise SourceError(f"No record that was found can be read. {sorted(filter(None, errors))[0]}")


def _json(found: Found) -> str:
    row, hit = found
    facts = {name: row[name] for name in ("id", "uid", "run", "step", "split", "env", "success", "reward")}
    place = dict.fromkeys(("branch", "message", "role")) if hit.place is None else _counted_from_1(hit.place)
    said = {"snippet": None if hit.problem else hit.text, "problem": hit.error or hit.problem}
    return json_line({**facts, "matches": hit.matches, **place, **said})


def _counted_from_1(place: Place) -> dict[str, Any]:
    return vars(place) | {"message": place.message + 1}


def _table(connection: sqlite3.Connection, listed: Iterable[Found], query: str, scope: SearchScope) -> Iterator[str]:
    from ..index.queries import runs
    from ..search import count_found
    from .report import writes_to_terminal

    names, is_terminal = [run.name for run in runs(connection)], writes_to_terminal()
    apart = names_apart(names, LONGEST_RUN if is_terminal else sys.maxsize)  # whole for a program that reads them
    run_width = max(len("run"), *map(width_of, apart)) if len(names) > 1 else 0
    # In a pipe a line for each match, as long as its facts ask for.
    width = screen_width() if is_terminal else max(screen_width(), WIDE) + max(run_width - LONGEST_RUN, 0)
    shown = [f"  {cell(name, run_width)}" for name in apart] if run_width else [""] * len(names)
    called = dict(zip(names, shown, strict=True))
    run = f"  {'run':{run_width}}" if run_width else ""
    head = f"{'id':>7}{run}  {'step':>5}  {'split':5}  {'outcome':>8}  {'reward':>7}"
    yield cut(f"{head}  found" if width >= WIDE else head, width)
    count = 0
    for row, hit in listed:
        yield from _lines(row, hit, query, called.get(row["run"], ""), width)
        count += 1
    found = max(count_found(connection, query, scope), count)
    more = f"; {MORE}" if found > count and is_terminal else ""
    yield f"{count:,} of {plural(found, 'trajectory')}{more}"


def _lines(row: dict[str, Any], hit: Hit, query: str, run: str, width: int) -> Iterator[str]:
    """Yield the facts of a match with what it says behind them, or below them where that would be a few words only."""
    step = "–" if row["step"] is None else str(row["step"])
    numbers = f"{outcome(row['success']):>8}  {decimal(row['reward']):>7}"
    facts = f"{row['id']:7}{run}  {step:>5}  {cell(row['split'], 5)}  {numbers}"
    before = f"{facts}  " if width >= WIDE else BELOW
    problem = " ".join(filter(None, (hit.problem, hit.error)))
    before += _where(hit)
    said = f"({problem})" if problem else _around_best(hit, query, width - width_of(before))
    if width < WIDE:
        yield cut(facts, width)
    yield cut(before + said, width)


def _where(hit: Hit) -> str:
    """Return the message of a match, and its branch where there are several: as `inspect --trajectory` counts them."""
    branch = f"branch {hit.place.branch:,}, " if hit.place and hit.branches > 1 else ""
    return f"{branch}message {hit.place.message + 1:,}: " if hit.place else ""


def _around_best(hit: Hit, query: str, width: int) -> str:
    """Return the best of the matches of a stretch with what stands around, in one line of at most `width` columns."""
    from ..search import best_snippet

    first, last = best_snippet(hit.text, hit.marks, query, width).best or hit.best
    before, match, after = (_one_line(text) for text in (hit.text[:first], hit.text[first:last], hit.text[last:]))
    before = ("…" if hit.before else "") + before
    room = max(width - width_of(match), 0)
    # What follows the match gets the room that is left, two thirds of it at least where there is so much to say.
    before = ending(before, max(room // 3, room - width_of(after) - 1))
    return cut(before + match + after + ("…" if hit.after else ""), width)


def _one_line(text: str) -> str:
    return printable(re.sub(r"\s+", " ", text))
