"""`rltracer inspect`: a run, a step, a prompt or a trajectory in the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..scores import MOST_RANKED
from ..unrecorded import NOT_RECORDED
from . import CONTEXT, options
from .amiss import say_amiss_of
from .inspection import asked_to_show
from .numbers import UNNUMBERED, From, FromOrPlace, WholeOrNone
from .one_trajectory import explained, loaded, only_one, row_of
from .places import RUN, TOKENIZER, check_run
from .runs_table import several_runs
from .visible import json_line

if TYPE_CHECKING:
    from ..adapter import IndexedAdapter
    from ..sources.places import Root
    from .inspection import Inspection


def _ranked(name: str, which: str, but: str) -> Callable[[Any], Any]:
    return click.option(
        name,
        type=FromOrPlace(1),
        is_flag=False,
        flag_value=UNNUMBERED,
        metavar="[N]",
        help=f"List the N prompts with the {which} pass rates over all steps, each with its best and worst trajectory. "
        f"Without N: {MOST_RANKED}, and none that {but}.",
    )


@click.command(context_settings=CONTEXT)
@click.argument("place", required=False, type=RUN, metavar="DB|RUN")
@click.option(
    "--run",
    metavar="NAME|DB|RUN",
    help="With DB: which run, by name, its beginning or number. Without: an index, or a run's folder or URL.",
)
@click.option("--name", help="The same as --run NAME: which run, where an index holds several.")
@click.option(
    "--step",
    type=WholeOrNone(),
    help=f"List the prompts of this step, or with --hardest those of it; '{NOT_RECORDED}': of what has none.",
)
@click.option("--steps", metavar="N-M", help="Only this range of steps, in a list over steps: 1-100, 21 or 40-.")
@click.option(
    "--prompt",
    help="List the trajectories of this prompt of --step, by its number, the beginning of its key or of its text; "
    "without --step, its groups over the steps.",
)
@_ranked("--hardest", "lowest", "always passed")
@_ranked("--easiest", "highest", "never passed")
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
@click.option(
    "--full",
    "is_full",
    is_flag=True,
    help="Print texts as they are: do not cut them, nor break their lines. With --trajectory also the definitions of "
    "the tools that were offered.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object a line.")
def command(place: Root | None, **options: Any) -> None:
    """Look at a run in the terminal: its steps, the prompts of a step, a prompt's trajectories, or one of them.

    DB is an index made by rltracer-index, RUN a run's folder or URL. Lists have the pass rate by the run's success
    rule and the mean of the total reward, or – where there is none; of a RUN only those steps that have been read.
    They have all splits, each apart, and say which; --split, --env and --steps choose. An index of several runs lists
    them, with the pass rate of train, or of the split that is named; --run chooses one, and --trajectory and
    --problems need none.

    \b
    Examples:
      rltracer inspect run.sqlite
      rltracer inspect run.sqlite --step 21
      rltracer inspect run.sqlite --hardest 20 --split train --steps 40-
      rltracer inspect run.sqlite --prompt 14
      rltracer inspect run.sqlite --prompt 14 --step 21
      rltracer inspect run.sqlite --trajectory 17
      rltracer inspect run.sqlite --trajectory 17 --with 19
      rltracer inspect /data/my-run --problems
    """
    for line in _lines(asked_to_show(place, options)):
        click.echo(line)


def _lines(asked: Inspection) -> Iterator[str]:
    if asked.trajectory is not None and asked.other is not None:
        pair = (_adapter_of(asked, asked.trajectory), _adapter_of(asked, asked.other))
        return _beside(*pair, asked)
    if asked.trajectory is not None:
        return _trajectory(*_adapter_of(asked, asked.trajectory), asked)
    if asked.problems:
        return _problems(asked)
    return (asked.lists_runs and several_runs(asked.place, asked.among, asked.as_json)) or _lists(asked)


def _lists(asked: Inspection) -> Iterator[str]:
    """Yield a list of one run; then say what of the run was not read."""
    from .covered import refuse_no_step

    adapter = _adapter(asked, asked.run)
    refuse_no_step(adapter, asked.among)
    told = (asked.among, asked.as_json)
    if asked.most is not None:
        from .ranked import ranked

        yield from ranked(adapter, asked.most, asked.is_easiest, *told)
    elif asked.prompt is not None and not asked.is_of_step and adapter.list_steps() != [None]:
        from .over_steps import over_steps

        yield from over_steps(adapter, asked.prompt, *told)
    elif asked.prompt is not None:
        from .prompts import trajectories_of

        yield from trajectories_of(adapter, asked.step, asked.prompt, *told)
    elif asked.is_of_step:
        from .prompts import prompts_of_step

        yield from prompts_of_step(adapter, asked.step, *told)
    else:
        from .steps import step_lines

        yield from step_lines(adapter, *told)
    say_amiss_of(adapter, asked.step)


def _trajectory(adapter: IndexedAdapter, number: int, asked: Inspection) -> Iterator[str]:
    from ..index.episodes import episode_traces
    from ..index.queries import as_recorded
    from ..sources.base import LocatorError
    from .covered import rule_of
    from .trajectory import trajectory_json, trajectory_lines, unread_lines

    row = row_of(adapter, number)
    row["rule"] = rule_of(adapter, True, [row.get("env")])
    row["episode"] = episode_traces(adapter.connection, row)
    try:
        trajectory = adapter.load_trajectory(number)
    except LocatorError as error:
        if asked.as_json or row.get("run_id") != adapter.run_id:
            raise explained(adapter, row, error) from None
        return unread_lines(as_recorded(adapter.connection, row), explained(adapter, row, error))
    if asked.as_json:
        return iter([json_line(trajectory_json(trajectory, row))])
    return trajectory_lines(trajectory, row, asked.branch, asked.is_full)


def _beside(left: tuple[IndexedAdapter, int], right: tuple[IndexedAdapter, int], asked: Inspection) -> Iterator[str]:
    from .beside import Side, beside
    from .covered import rule_of

    rows = row_of(*left), row_of(*right)
    for (adapter, _), row in zip((left, right), rows, strict=True):
        row["rule"] = rule_of(adapter, envs=[row.get("env")])
    one, other = (Side(row, loaded(*side, row)) for side, row in zip((left, right), rows, strict=True))
    return beside(asked.place, one, other, asked.is_full, asked.as_json)


def _problems(asked: Inspection) -> Iterator[str]:
    from .problems import problem_lines, problems_of_all

    of_all = problems_of_all(asked.place, asked.as_json) if asked.run is None else None
    return of_all or problem_lines(_adapter(asked, asked.run), asked.as_json)


def _adapter(asked: Inspection, run: str | int | None) -> IndexedAdapter:
    """Return the adapter of a run, which is closed when the command is done. Raises WhichRunError."""
    from ..adapter import adapter_for
    from ..index.database import open_index
    from ..sources.places import is_database
    from .chosen_runs import only_run

    check_run(asked.place, takes_several=False)
    if run is None and isinstance(asked.place, Path) and is_database(asked.place):
        with closing(open_index(asked.place)) as connection:
            run = only_run(connection, None, asked.place)[0]
    return click.get_current_context().with_resource(adapter_for(asked.place, run, asked.tokenizer))


def _adapter_of(asked: Inspection, trajectory: str) -> tuple[IndexedAdapter, int]:
    """Return the adapter of a trajectory's run, and its number; an index of several runs says itself which one it is.

    Raises SourceError where there is no such trajectory, or more than one.
    """
    from ..index.database import open_index
    from ..index.queries import run_of_trajectory
    from ..sources.places import is_database

    if asked.run is None and isinstance(asked.place, Path) and is_database(asked.place):
        with closing(open_index(asked.place)) as connection:
            number = only_one(connection, trajectory)
            found = run_of_trajectory(connection, number)
        return _adapter(asked, found[0] if found else None), number
    adapter = _adapter(asked, asked.run)
    adapter.ensure_trajectory_indexed(trajectory)
    return adapter, only_one(adapter.connection, trajectory)
