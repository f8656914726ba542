"""`rltracer runs`: the runs of an index, one of which can be removed or be at another place; and their list."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from ..amounts import plural, ranges
from . import CONTEXT
from .amiss import say_amiss
from .columns import caption, cell, cut, decimal, screen_width, width_of, wrapped
from .places import FILE, RUN
from .previews import names_apart
from .say import say
from .score_columns import any_over, reward, reward_head, rewards_differ
from .visible import in_line, json_line, printable

if TYPE_CHECKING:
    import sqlite3

    from ..index.among import Among
    from ..index.queries import Run
    from ..sources.places import Root

SHORTEST_NAME, LONGEST_NAME = 10, 40
LONGEST_SPLIT = 20
LONGEST_STEPS = 12
MOST_TOLD = 4  # success rules or systems of the runs
FOR_PEOPLE = ("success_path", "rule", "unscored_envs")  # what JSON does not have of a run


@click.command("runs", context_settings=CONTEXT)
@click.argument("database", type=FILE)
@click.option("--remove", metavar="NAME", help="Take this run, by name or number, out of the index; its files stay.")
@click.option(
    "--move", nargs=2, type=(str, RUN), metavar="NAME FOLDER", help="Say that the files of this run are in FOLDER now."
)
@click.option("--yes", is_flag=True, help="Remove without asking.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one run a line.")
def command(database: Path, remove: str | None, move: tuple[str, Root] | None, yes: bool, as_json: bool) -> None:
    """List the runs of DATABASE: name, trajectories, how complete it is, pass rate and mean reward, and folder.

    DATABASE may be a folder: then every place below it that holds something is listed, with how many files it holds,
    their steps, and which system's they are by their names, as far as these tell it.

    Pass rate and mean reward are those of train, or where a run has none of it of its first split, over all its steps.

    --remove deletes every row of a run, and its full text; numbers of trajectories are never used again. --move is for
    a run whose folder was moved or renamed: where the same files are found in FOLDER every row keeps its id, and what
    has another size or time there is looked into by the next indexing. Neither touches a file of a run.

    \b
    Examples:
      rltracer runs run.sqlite
      rltracer runs /data/runs
      rltracer runs run.sqlite --move my-run /archive/my-run
      rltracer runs run.sqlite --remove my-run
    """
    from .run_changes import move_run, remove_run

    if remove is not None and move is not None:
        raise click.UsageError("--remove and --move ask for different things: give one of them.")
    if remove is not None:
        remove_run(database, remove, yes)
    elif move is not None:
        move_run(database, *move)
    elif database.is_dir():
        _list_folder(database, as_json)
    else:
        _list(database, as_json)


def _list(database: Path, as_json: bool) -> None:
    from ..index.among import ALL
    from ..index.database import open_index
    from ..index.states import file_words, problem_words, run_states, text_words

    with closing(open_index(database)) as connection:
        states, listed = run_states(connection), _facts(connection, ALL)
    if as_json:
        for run in listed:
            click.echo(_for_programs(run))
        return
    say(f"{database}: {plural(len(listed), 'run')}")
    for run in listed:
        text = text_words(states[run["run_id"]])
        state = ", ".join(words for words in _state(states[run["run_id"]]) if words not in text)
        say(f"  {run['run_id']}  {in_line(run['run'])}: {plural(run['trajectories'], 'trajectory')}, {state}")
        for words in text:
            say(f"     {words}")
        if run["trajectories"]:
            say(f"     {_rates(run)}")
            say(f"     {_success(run)}")
        click.echo(f"     {in_line(run['root'])}")  # whole, since it is copied
    if any(problem_words(row) or file_words(row) for row in states.values()):
        click.echo(f"  rltracer inspect {quote(str(database))} --problems")


def _list_folder(folder: Path, as_json: bool) -> None:
    """List what lies below a folder."""
    from ..browse.find import find_runs
    from ..browse.listing import place_facts, place_lines

    found = find_runs(folder)
    if as_json:
        for run in found.runs:
            click.echo(json_line(place_facts(run)))
        return
    say(f"{folder}: {plural(len(found.runs), 'place')} with files of runs, by their names")
    for line in place_lines(found.runs):
        say(line)
    if not found.is_all:
        say(f"Only the first {plural(found.files, 'file')} were looked at.", err=True)
    if any(not run.unread for run in found.runs):
        click.echo(f"  rltracer serve --browse-root {quote(str(folder))}")


def _facts(connection: sqlite3.Connection, among: Among) -> list[dict[str, Any]]:
    """Return what both lists of runs say of each: what it has, how it fares, where it is and how complete."""
    from ..index.lists import run_facts
    from ..index.queries import runs
    from ..index.states import run_states

    known, states = {run.id: run for run in runs(connection)}, run_states(connection)
    return [
        {**fact, **_rule_facts(connection, known[fact["run_id"]]), "root": known[fact["run_id"]].root,
         "problems": (state := states[fact["run_id"]])["problems"],
         "state": ", ".join(_state(state))}
        for fact in run_facts(connection, among)
    ]  # fmt: skip


def _state(row: dict[str, Any]) -> list[str]:
    from ..index.states import problem_words, state_words

    return [*state_words(row), *problem_words(row)]


def _rule_facts(connection: sqlite3.Connection, run: Run) -> dict[str, Any]:
    """Return the success rule of a run: as it is written, in words, and the rewards and environments it is about."""
    from ..reward_parts import reward_parts, rule_in_words
    from ..unscored import unscored_environments

    parts = reward_parts(connection, run.id, run.success_path)
    return {
        "success": run.success, "success_path": run.success_path, "reward_parts": parts and parts.paths,
        "rule": in_line(rule_in_words(run.success, parts)),
        "unscored_envs": unscored_environments(connection, run.id),
    }  # fmt: skip


def _for_programs(fact: dict[str, Any]) -> str:
    return json_line({name: value for name, value in fact.items() if name not in FOR_PEOPLE})


def _success(fact: dict[str, Any]) -> str:
    """Return by which rule a run fares as it does, and the environments that it says nothing of."""
    from ..unscored import of_environments

    where = of_environments(fact["unscored_envs"]) if fact["scored"] else ""
    left = f"; no trajectory{where} records {fact['success_path']}" if where else ""
    return f"success: {fact['rule']}{in_line(left)}"


def _rates(fact: dict[str, Any]) -> str:
    """Return how a run fares: how many of its split are scored, their pass rate, and the mean reward."""
    split = "" if fact["split"] is None else f"{cut(fact['split'], LONGEST_SPLIT)}: "
    rate = f", pass rate {decimal(fact['pass_rate'])}" if fact["scored"] else ""
    over = f" over {plural(fact['rewarded'], 'trajectory')}" if rewards_differ(fact) else ""
    reward = f", mean reward {decimal(fact['reward_mean'])}{over}" if fact["rewarded"] else ", no reward"
    return in_line(f"{split}{_scored(fact, ' of ')} scored{rate}{reward}")


def _scored(fact: dict[str, Any], of: str = "/") -> str:
    """Return how many trajectories of a run's split are scored, and of how many where not all are."""
    scored, of_split = fact["scored"], fact["split_trajectories"]
    return f"{scored:,}" if scored == of_split else f"{scored:,}{of}{of_split:,}"


def several_runs(place: Root, among: Among, as_json: bool) -> Iterator[str] | None:
    """Return a line per run of an index that holds several; None for any other place.

    Raises SourceError where none of them has what is asked for.
    """
    from ..index.contents import lacking
    from ..index.database import open_index
    from ..sources.base import SourceError
    from ..sources.places import is_database

    if not isinstance(place, Path) or not is_database(place):
        return None
    with closing(open_index(place)) as connection:
        facts = _facts(connection, among)
        if len(facts) > 1 and not any(fact["trajectories"] for fact in facts) and not among.is_all:
            ids = [fact["run_id"] for fact in facts]
            raise SourceError(lacking(connection, ids, split=among.split, env=among.env)[1])
    if len(facts) < 2:
        return None
    return _then_amiss(map(_for_programs, facts) if as_json else _lines(place, facts, among), place)


def _then_amiss(lines: Iterator[str], place: Path) -> Iterator[str]:
    """Yield the lines of a list; then say what of its runs was not read."""
    from ..index.database import open_index

    yield from lines
    with closing(open_index(place)) as connection:
        say_amiss(connection, place)


def _lines(place: Path, facts: list[dict[str, Any]], among: Among) -> Iterator[str]:
    screen, has_over = screen_width(), any_over(facts)
    steps_of = [ranges(fact["steps"]) or "–" for fact in facts]
    scored = [_scored(fact) for fact in facts]
    columns = max(map(len, ["scored", *scored]))
    head = f"{'trajectories':>12}  {'split':5}  {'scored':>{columns}}  "
    head += f"{'pass rate':>9}  {reward_head(has_over, 6)}  steps"
    # Names give way to the steps, which stand last, as far as they can.
    beyond = min(max(map(len, steps_of)), LONGEST_STEPS) - len("steps")
    room = screen - len(f"  run    {head}") - max(beyond, 0)
    longest = max(SHORTEST_NAME, min(room, LONGEST_NAME))
    width = min(max(len("name"), *(width_of(printable(fact["run"])) for fact in facts)), longest)
    yield from caption(str(place), f": {plural(len(facts), 'run')}; --run NAME or its number shows one", screen)
    env = "" if among.env is None else f" and of env {among.env}"
    said = f"Scored, pass rate and reward are of the split named, over all its steps{env}."
    yield from wrapped(printable(said), screen)
    if has_over:
        yield from wrapped("Mean reward: over the trajectories that have one, which are counted beside it.", screen)
    yield from wrapped(printable(f"System: {_by(facts, 'source')}. Success: {_by(facts, 'rule')}."), screen)
    yield cut(f"  {'run':>3}  {'name':{width}}  {head}", screen)
    names = names_apart([fact["run"] for fact in facts], width)
    for fact, name, steps, of_split in zip(facts, names, steps_of, scored, strict=True):
        counts = f"{fact['trajectories']:12,}  {cell(fact['split'], 5)}  {of_split:>{columns}}"
        rates = f"{decimal(fact['pass_rate']):>9}  {reward(fact, has_over, 6)}"
        yield cut(f"  {fact['run_id']:3}  {cell(name, width)}  {counts}  {rates}  {steps}", screen)


def _by(facts: list[dict[str, Any]], name: str) -> str:
    """Return the values of one kind that runs have, each with its runs where there are several."""
    runs_of: dict[str, list[int]] = {}
    for fact in facts:
        runs_of.setdefault(fact[name], []).append(fact["run_id"])
    if len(runs_of) == 1:
        return next(iter(runs_of))
    told = [f"{value} (run{'s' if len(runs) > 1 else ''} {ranges(runs)})" for value, runs in runs_of.items()]
    return ", ".join([*told[:MOST_TOLD], *(["…"] if len(told) > MOST_TOLD else [])])
