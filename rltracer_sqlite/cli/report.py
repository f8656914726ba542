"""What indexing tells: the summary, and what was found where nothing was."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from ..amounts import LIST_COLUMNS, listed, plural, ranges, shortened_name, size
from .run_facts import without_step
from .say import say
from .visible import in_line

if TYPE_CHECKING:
    from ..index.refresh import Refreshed
    from .asked import Options

MAX_ASIDE = 10
LONGEST_MODELS = 200  # columns of the models that the files of a run name
OWN_TOKENIZERS = ("tokenizer/tokenizer.json", "tokenizer.json")  # where a run may keep its tokenizer


def summary(
    connection: sqlite3.Connection, results: list[Refreshed], seconds: float, database: Path, options: Options
) -> str:
    """Return the closing lines of an indexing: each run, what was left aside, and how to open the database."""
    from shlex import quote

    lines = []
    for result in results:
        lines += run_lines(connection, result, options.discover)
    if not options.fts and (behind := _behind(connection, database)):
        lines.append(behind)
    read = sum(result.read_bytes for result in results)
    faulty = [result.run_id for result in results if counts(connection, result.run_id)["problems"]]
    if faulty:
        is_one_of_several = len(faulty) == 1 and _run_count(connection) > 1
        which = f" --run {quote(name_of(connection, faulty[0]))}" if is_one_of_several else ""
        lines.append("Problems are in the table problems. List them with:")
        lines.append(f"  rltracer inspect {quote(str(database))}{which} --problems")
    lines.append(f"Read {size(read)} in {seconds:.2f} s. Open it with:")
    lines.append(f"  datasette {quote(str(database))} --setting suggest_facets off")
    return "\n".join(lines)


def _behind(connection: sqlite3.Connection, database: Path) -> str | None:
    """Return a sentence on what the full text does not know yet, where an index has one."""
    from shlex import quote

    from ..roots import Roots
    from ..search import has_old_text, has_text, text_coverage
    from ..search.jobs import count_rewritten
    from ..search.tables import OF_OLD

    if has_old_text(connection):
        return f"The full text {OF_OLD}: rltracer fts {quote(str(database))}"
    if not has_text(connection):
        return None
    later, rewritten = text_coverage(connection).later, count_rewritten(connection, Roots.for_database(database))
    told = [f"{plural(later, 'trajectory')} cannot be searched yet"] if later else []
    if rewritten:
        of_files = "is of a rewritten file" if rewritten == 1 else "are of rewritten files"
        told.append(f"{plural(rewritten, 'trajectory')} {of_files}, perhaps found by old words")
    return f"{'; '.join(told)}: rltracer fts {quote(str(database))}" if told else None


def warn_of_misfits(done: Refreshed) -> None:
    """Say which files the tokenizer does not fit: their rows are there, with texts that nobody wrote."""
    for path, reason in done.misfits.items():
        say(f"Warning: {path}: {reason}", err=True)


def writes_to_terminal() -> bool:
    """Say whether a person reads what is printed, and no other program."""
    return sys.stdout.isatty()


def _run_count(connection: sqlite3.Connection) -> int:
    return int(connection.execute("select count(*) from runs").fetchone()[0])


def name_of(connection: sqlite3.Connection, run_id: int) -> str:
    """Return the name of a run."""
    return str(connection.execute("select name from runs where id = ?", (run_id,)).fetchone()[0])


def run_lines(connection: sqlite3.Connection, result: Refreshed, discover: bool = False) -> list[str]:
    """Return what an indexing did with one run."""
    from ..index.moved_rows import moved_words
    from ..index.problems import REASONS, empty_files, gone_files
    from ..passrates import SuccessRule
    from .scored import scored_lines

    name, path, threshold, is_chosen = connection.execute(
        "select name, success_path, success_threshold, success_chosen from runs where id = ?", (result.run_id,)
    ).fetchone()
    count = counts(connection, result.run_id)
    named = [f"  name: {result.naming}"] if result.naming else []
    if discover:
        found = f"{plural(count['steps'], 'step')} discovered, {count['unread']:,} of them not read yet"
        return [f"{in_line(name)}: {found}", *named]
    facts = [
        plural(count["trajectories"], "trajectory"),
        *without_step(count["without_step"], count["steps"]),
        *([f"{unscored:,} unscored"] if (unscored := count["trajectories"] - count["scored"]) > 0 else []),
        plural(count["prompt_groups"], "prompt group"),
        plural(count["steps"], "step") if count["steps"] else "no steps",
        plural(count["problems"], "problem"),
    ]
    lines = [f"{in_line(name)}: {', '.join(facts)}", *named]
    lines += scored_lines(connection, result.run_id, SuccessRule(path, threshold), count, bool(is_chosen))
    lines += _token_lines(connection, result.run_id)
    lines += _told("waiting", result.waiting, REASONS["waiting"])
    lines += _at_most("gone", [f"{in_line(file)} {why}" for file, why in gone_files(connection, result.run_id)])
    lines += [f"  moved: {words}" for words in moved_words(result.moved)]
    lines += _told("empty", empty_files(connection, result.run_id), REASONS["empty"])
    aside = [f"{in_line(file)}: {reason}" for file, reason in result.aside.items() if file not in result.unread]
    lines += _at_most("left aside", aside) + _at_most("not read", list(result.unread.values()))
    lines += _others(result)
    lines += [f"  {note}" for note in result.notes]
    if result.removed:
        lines.append(f"  removed: {plural(result.removed, 'row')} whose record a rewritten file no longer holds")
    return lines


def _told(state: str, files: list[str], what: str) -> list[str]:
    return _at_most(state, [f"{in_line(file)} {what}" for file in files])


def _at_most(state: str, files: list[str]) -> list[str]:
    lines = [f"  {state}: {file}" for file in files[:MAX_ASIDE]]
    more = len(files) - len(lines)
    return [*lines, f"  {state}: {plural(more, 'file')} more, see the table shards"] if more else lines


def unread_sentence(connection: sqlite3.Connection, result: Refreshed) -> str:
    """Return which files of a run an indexing could not read, and why not the first of them; the rest is indexed."""
    count, reason = len(result.unread), next(iter(result.unread.values())).rstrip(".")
    more = "" if count == 1 else f" (the first of {count:,})"
    name = in_line(name_of(connection, result.run_id))
    return f"{name}: {plural(count, 'file')} could not be read, and the others are indexed: {in_line(reason)}{more}."


def _others(result: Refreshed) -> list[str]:
    """Return a line for each reason for which files are left aside: it names the first of them."""
    return [f"  left aside: {_named_files(*files)}: {why}" for why, files in result.others.items()]


def _named_files(count: int, first: list[str]) -> str:
    """Return the name of a file, or of several how many they are and the names of the first."""
    if count == 1:
        return in_line(first[0])
    names = listed((shortened_name(in_line(file), LIST_COLUMNS) for file in first), more=count - len(first))
    return f"{plural(count, 'file')} ({names})"


def _token_lines(connection: sqlite3.Connection, run_id: int) -> list[str]:
    """Return a line where token ids have no text for want of a tokenizer: the run's own, if one lies in it."""
    from ..index.without_text import count_without_text, needs_tokenizer

    root, tokenizer = connection.execute("select root, tokenizer from runs where id = ?", (run_id,)).fetchone()
    if tokenizer is not None:
        return []
    own = next((place for name in OWN_TOKENIZERS if (place := Path(root) / name).is_file()), None)
    if count := count_without_text(connection, run_id):
        some = f"PATH, a tokenizer.json or its folder{_whose(connection, run_id)}"
        needed = some if own is None else str(own.parent)
        return [f"  tokens: {needs_tokenizer(count)}: --tokenizer {needed}"]
    if own is not None:
        return [f"  tokens: shown by their ids; --tokenizer {own.parent} shows their text"]
    from ..sources.prime_rl.layout import TOKEN_LAYOUTS

    layouts = connection.execute("select distinct layout from shards where run_id = ?", (run_id,))
    # Tables of other systems are called parquet too, and hold text.
    if not {layout for (layout,) in layouts} & set(TOKEN_LAYOUTS) - {"parquet"}:
        return []
    return ["  tokens: this run holds token ids; --tokenizer PATH, a tokenizer.json or its folder, shows their text"]


def _whose(connection: sqlite3.Connection, run_id: int) -> str:
    """Return whose tokenizer the files of a run name, as the end of a line; an empty text where none does."""
    from ..index.without_text import models_named

    named = models_named(connection, run_id)
    return f" (its files name {in_line(listed(named, LONGEST_MODELS))})" if named else ""


def counts(connection: sqlite3.Connection, run_id: int) -> dict[str, int]:
    """Return how many of each a run has: trajectories, those without a step and those scored among them, and so on."""
    row = connection.execute(
        """
        select (select count(*) from trajectories where run_id = :run),
            (select ifnull(sum(trajectories), 0) from steps where run_id = :run and step is null),
            (select count(*) from prompt_groups where run_id = :run),
            (select count(distinct step) from steps where run_id = :run and step is not null),
            (select count(distinct step) from unread_steps where run_id = :run and step is not null),
            (select ifnull(sum(problems), 0) from shards where run_id = :run),
            (select coalesce(sum(size), 0) from shards where run_id = :run),
            (select coalesce(sum(scored), 0) from prompt_groups where run_id = :run)
        """,
        {"run": run_id},
    ).fetchone()
    names = ("trajectories", "without_step", "prompt_groups", "steps", "unread", "problems", "bytes", "scored")
    return dict(zip(names, row, strict=True))


def nothing_found(connection: sqlite3.Connection, result: Refreshed, options: Options) -> str | None:
    """Return what was found instead, where a run gave no trajectory, or has none of the steps that were asked for."""
    from ..index.states import NOT_OPENED

    count = counts(connection, result.run_id)
    root = connection.execute("select root from runs where id = ?", (result.run_id,)).fetchone()[0]
    rows = connection.execute("select distinct step from steps where run_id = ?", (result.run_id,))
    steps = [step for (step,) in rows if step is not None]
    if options.asked_steps and steps and not any(map(options.steps, steps)):
        asked = options.asked_steps.strip()
        several = "s" if "-" in asked else ""
        return f"The run {root} has no step{several} {asked}; it has {ranges(steps)}."
    if options.discover or count["trajectories"]:
        return None
    opened = f"s.run_id = ? and not {NOT_OPENED}"
    found = connection.execute(
        f"select s.file, p.reason from problems p join shards s on s.id = p.shard_id where {opened} limit 3",
        (result.run_id,),
    ).fetchall()
    if not found and not connection.execute(f"select 1 from shards s where {opened}", (result.run_id,)).fetchone():
        return f"No trajectories in {root}: no file of it is of the steps that were asked for."
    if not found:
        return f"No trajectories in {root}: its files hold no complete record yet."
    what = "; ".join(f"{path}: {reason}" for path, reason in found)
    return f"No trajectories in {root}. Found instead: {what}"
