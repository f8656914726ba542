"""`rltracer inspect`: a run, a step, a prompt or a trajectory in the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from . import CONTEXT, options
from .amiss import say_amiss_of
from .numbers import From, FromOrPlace
from .places import RUN, TOKENIZER, check_run
from .runs import several_runs
from .trajectory import trajectory_json, trajectory_lines, unread_lines
from .visible import json_line, printable

if TYPE_CHECKING:
    import sqlite3

    from ..adapter import IndexedAdapter
    from ..index.lists import Among
    from ..sources.base import LocatorError
    from ..sources.places import Root
    from ..trajectory import Trajectory

MOST = 10


def _ranked(name: str, which: str) -> Callable[[Any], Any]:
    return click.option(
        name,
        type=FromOrPlace(1),
        is_flag=False,
        flag_value=MOST,
        metavar="[N]",
        help=f"List the N prompts with the {which} pass rates over all steps. Without N: {MOST}.",
    )


@click.command(context_settings=CONTEXT)
@click.argument("place", required=False, type=RUN, metavar="DB|RUN")
@click.option(
    "--run",
    metavar="NAME|DB|RUN",
    help="With DB: which run, by name, its beginning or number. Without: an index, or a run's folder or URL.",
)
@click.option("--name", help="The same as --run NAME: which run, where an index holds several.")
@click.option("--step", type=int, help="List the prompts of this step.")
@click.option(
    "--prompt",
    help="List the trajectories of this prompt of --step, by its number, the beginning of its key or of its text; "
    "without --step, its groups over the steps.",
)
@_ranked("--hardest", "lowest")
@_ranked("--easiest", "highest")
@options.split
@options.env
@click.option("--trajectory", metavar="ID", help="Show this trajectory, by the id that lists show, or by its own.")
@click.option(
    "--with", "other", metavar="ID", help="With --trajectory: set this one beside it, and say where they part."
)
@click.option("--branch", type=From(1), help="Show this branch of the trajectory, counted from 1. Default: the last.")
@click.option("--tokenizer", metavar="PATH", type=TOKENIZER, help="A tokenizer.json, for files that hold token ids.")
@click.option(
    "--problems",
    is_flag=True,
    help="List what was not read, and why: lines, those that are alike together, and files that wait, are gone or "
    "were left aside. With --json each on its own, with the `state` of a file.",
)
@click.option("--full", is_flag=True, help="Print texts as they are: do not cut them, nor break their lines.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object a line.")
def command(
    place: Root | None,
    run: str | None,
    name: str | None,
    step: int | None,
    prompt: str | None,
    hardest: int | str | None,
    easiest: int | str | None,
    split: str | None,
    env: str | None,
    trajectory: str | None,
    other: str | None,
    branch: int | None,
    tokenizer: str | None,
    problems: bool,
    full: bool,
    as_json: bool,
) -> None:
    """Look at a run in the terminal: its steps, the prompts of a step, a prompt's trajectories, or one of them.

    DB is an index made by rltracer-index, RUN a run's folder or URL. Lists have the pass rate by the run's success
    rule and the mean of the total reward, or – where there is none; of a RUN only those steps that have been read.
    They have all splits, each apart, and say which; --split and --env choose. An index of several runs lists them,
    with the pass rate of train, or of the split that is named; --run chooses one, and --trajectory and --problems
    need none.

    \b
    Examples:
      rltracer inspect run.sqlite
      rltracer inspect run.sqlite --step 21
      rltracer inspect run.sqlite --hardest 20 --split train
      rltracer inspect run.sqlite --prompt 14
      rltracer inspect run.sqlite --prompt 14 --step 21
      rltracer inspect run.sqlite --trajectory 17
      rltracer inspect run.sqlite --trajectory 17 --with 19
      rltracer inspect /data/my-run --problems
    """
    from ..index.lists import Among
    from .over_steps import ranked

    place, most = _place_and_most(place, hardest, easiest)
    place, name = _place_and_name(place, run, name)
    others = {"hardest": hardest, "easiest": easiest, "trajectory": trajectory, "problems": problems or None}
    for name_of_one, asked in (("prompt", prompt), ("step", step)):
        _refuse_both(**{name_of_one: asked}, **others)
    for name_of_one, asked in (("split", split), ("env", env)):
        _refuse_both(**{name_of_one: asked}, trajectory=trajectory, problems=problems or None)
    if other is not None and (trajectory is None or branch is not None):
        raise click.UsageError("--with takes --trajectory, and no --branch: the last branches are compared.")
    among, adapter = Among(split, env), None
    if trajectory is not None and other is not None:
        pair = (_adapter_of(place, name, tokenizer, trajectory), _adapter_of(place, name, tokenizer, other))
        lines = _beside(*pair, full, as_json)
    elif trajectory is not None:
        lines = _trajectory(*_adapter_of(place, name, tokenizer, trajectory), branch, full, as_json)
    elif problems:
        lines = _problems(place, name, tokenizer, as_json)
    elif (step, prompt, hardest, easiest, name) == (None,) * 5 and (listed := several_runs(place, among, as_json)):
        lines = listed
    elif hardest is not None or easiest is not None:
        adapter = _adapter(place, name, tokenizer)
        lines = ranked(adapter, most, easiest is not None, among, as_json)
    else:
        adapter = _adapter(place, name, tokenizer)
        lines = _lists(adapter, step, prompt, among, as_json)
    for line in lines:
        click.echo(line)
    if adapter is not None:
        say_amiss_of(adapter, step)


def _refuse_both(**asked: object) -> None:
    """Raise UsageError where two options ask for different lists."""
    given = [f"--{name}" for name, value in asked.items() if value is not None]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)} ask for different things: give one of them.")


def _place_and_most(place: Root | None, *counts: int | str | None) -> tuple[Root | None, int]:
    """Return where to look and how many prompts to list: what stands after --hardest may be the index, not a number."""
    after = next((count for count in counts if count is not None), MOST)
    if isinstance(after, int):
        return place, after
    if place is not None:
        how = f"rltracer inspect run.sqlite --hardest {MOST}"
        raise click.UsageError(printable(f"--hardest and --easiest take a whole number, not {after!r}: {how}"))
    return RUN.convert(after, None, click.get_current_context()), MOST


def _place_and_name(place: Root | None, run: str | None, name: str | None) -> tuple[Root, str | None]:
    """Return where to look and which run: --run is a name beside an index, and a place of its own without one."""
    from ..sources.places import is_database

    if place is None and run is not None:
        return RUN.convert(run, None, click.get_current_context()), name
    if place is None or (run is not None and (name is not None or not is_database(place))):
        raise click.UsageError("Give one index or run: rltracer inspect run.sqlite")
    return place, name if run is None else run


def _lists(adapter: IndexedAdapter, step: int | None, prompt: str | None, among: Among, as_json: bool) -> Iterator[str]:
    from .over_steps import over_steps
    from .prompts import prompts_of_step, trajectories_of
    from .steps import step_lines

    if prompt is not None and step is None and adapter.list_steps() != [None]:
        return over_steps(adapter, prompt, among, as_json)
    if prompt is not None:
        return trajectories_of(adapter, step, prompt, among, as_json)
    return step_lines(adapter, among, as_json) if step is None else prompts_of_step(adapter, step, among, as_json)


def _trajectory(
    adapter: IndexedAdapter, number: int, branch: int | None, is_full: bool, as_json: bool
) -> Iterator[str]:
    from ..sources.base import LocatorError
    from .covered import rule_of

    row = {**_row(adapter, number), "rule": rule_of(adapter)}
    try:
        loaded = adapter.load_trajectory(number)
    except LocatorError as error:
        if as_json or row.get("run_id") != adapter.run_id:
            raise _explained(adapter, row, error) from None
        return unread_lines(row, _explained(adapter, row, error))
    return (
        iter([json_line(trajectory_json(loaded, row))]) if as_json else trajectory_lines(loaded, row, branch, is_full)
    )


def _loaded(adapter: IndexedAdapter, number: int, row: dict[str, Any]) -> Trajectory:
    """Return a trajectory. Raises LocatorError, which says how a run is found that has been moved."""
    from ..sources.base import LocatorError

    try:
        return adapter.load_trajectory(number)
    except LocatorError as error:
        raise _explained(adapter, row, error) from None


def _explained(adapter: IndexedAdapter, row: dict[str, Any], error: LocatorError) -> LocatorError:
    """Return the error with what to type where the files of an index's run are in another folder now."""
    from ..index.vanished import is_missing

    if adapter.refreshes or not row or not is_missing(adapter.rollout_dir, row["shard_path"]):
        return error
    command = f"  rltracer runs {quote(str(adapter.index))} --move {quote(row['run'])} FOLDER"
    return type(error)(f"{error} If the run is in another folder now:\n{command}")


def _row(adapter: IndexedAdapter, number: int) -> dict[str, Any]:
    """Return what the index has of a trajectory, with the number of its prompt."""
    from ..index.queries import prompt_of_trajectory, trajectory_row

    row = trajectory_row(adapter.connection, number) or {}
    return {**row, "prompt_id": prompt_of_trajectory(adapter.connection, number)}


def _beside(
    left: tuple[IndexedAdapter, int], right: tuple[IndexedAdapter, int], is_full: bool, as_json: bool
) -> Iterator[str]:
    from .beside import Side, beside

    rows = _row(*left), _row(*right)
    one, other = (Side(row, _loaded(*side, row)) for side, row in zip((left, right), rows, strict=True))
    return beside(one, other, is_full, as_json)


def _problems(place: Root, name: str | None, tokenizer: str | None, as_json: bool) -> Iterator[str]:
    from .problems import problem_lines, problems_of_all

    of_all = problems_of_all(place, as_json) if name is None else None
    return of_all or problem_lines(_adapter(place, name, tokenizer), as_json)


def _adapter(place: Root, run: str | int | None, tokenizer: str | None) -> IndexedAdapter:
    """Return the adapter of a run, which is closed when the command is done."""
    from ..adapter import WhichRunError, adapter_for

    check_run(place, takes_several=False)
    try:
        return click.get_current_context().with_resource(adapter_for(place, run, tokenizer))
    except WhichRunError as error:
        how = " Give one with --run." if run is None else ""
        raise click.UsageError(printable(f"{error}{how}")) from None


def _adapter_of(place: Root, name: str | None, tokenizer: str | None, asked: str) -> tuple[IndexedAdapter, int]:
    """Return the adapter of a trajectory's run, and its number; an index of several runs says itself which one it is.

    Raises SourceError where there is no such trajectory, or more than one.
    """
    from ..index.database import open_index
    from ..index.queries import run_of_trajectory
    from ..sources.places import is_database

    if name is None and isinstance(place, Path) and is_database(place):
        with closing(open_index(place)) as connection:
            number = _only_one(connection, asked)
            found = run_of_trajectory(connection, number)
        return _adapter(place, found[0] if found else None, tokenizer), number
    adapter = _adapter(place, name, tokenizer)
    return adapter, _only_one(adapter.connection, asked)


def _only_one(connection: sqlite3.Connection, asked: str) -> int:
    from ..index.queries import no_trajectory, trajectories_named
    from ..sources.base import SourceError

    found = trajectories_named(connection, asked)
    if not found:
        raise SourceError(no_trajectory(connection, asked))
    if len(found) > 1:
        raise SourceError(
            f"Several trajectories have the id {asked}: give one by number, {', '.join(map(str, found))}."
        )
    return found[0]
