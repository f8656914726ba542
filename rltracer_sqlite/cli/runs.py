"""`rltracer runs`: the list of the runs of an index, one of which can be removed or moved, or of those in a folder."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from ..amounts import plural
from . import CONTEXT
from .columns import cut, decimal
from .places import FILE, RUN
from .run_facts import counted_of, facts_of_runs, for_programs, scored_of, state_of
from .say import say
from .score_columns import rewards_differ
from .visible import in_line, json_line

if TYPE_CHECKING:
    from ..sources.places import Root

LONGEST_SPLIT = 20


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
        states, listed = run_states(connection), facts_of_runs(connection, ALL)
    if as_json:
        for run in listed:
            click.echo(for_programs(run))
        return
    say(f"{database}: {plural(len(listed), 'run')}")
    for run in listed:
        text = text_words(states[run["run_id"]])
        state = ", ".join(words for words in state_of(states[run["run_id"]]) if words not in text)
        say(f"  {run['run_id']}  {in_line(run['run'])}: {counted_of(run)}, {state}")
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
    return in_line(f"{split}{scored_of(fact, ' of ')} scored{rate}{reward}")
