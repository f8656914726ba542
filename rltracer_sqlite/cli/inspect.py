"""`rltracer inspect`: a run, a step, a prompt or a trajectory in the terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import CONTEXT, json_line, printable
from .numbers import Whole
from .places import RUN, check_run
from .trajectory import trajectory_json, trajectory_lines

if TYPE_CHECKING:
    from ..adapter import IndexedAdapter
    from ..sources.places import Root

HARDEST = 10


@click.command(context_settings=CONTEXT)
@click.argument("place", required=False, type=RUN, metavar="DB|RUN")
@click.option(
    "--run",
    metavar="NAME|DB|RUN",
    help="With DB: which run, by name or number. Without: an index, or a run's folder or URL.",
)
@click.option("--name", help="The same as --run NAME: which run, where an index holds several.")
@click.option("--step", type=int, help="List the prompts of this step.")
@click.option(
    "--prompt",
    help="List the trajectories of this prompt of --step, by its number, its key or its beginning; without --step, its "
    "groups over the steps.",
)
@click.option(
    "--hardest",
    type=Whole(1),
    is_flag=False,
    flag_value=HARDEST,
    metavar="[N]",
    help=f"List the N prompts with the lowest pass rates over all steps. N is {HARDEST} where it is left out.",
)
@click.option("--trajectory", type=int, help="Show this trajectory, by the id that lists show.")
@click.option("--branch", type=int, help="Show this branch of the trajectory, counted from 1. Default: the last.")
@click.option("--tokenizer", metavar="PATH", help="A tokenizer.json, for files that hold token ids.")
@click.option("--problems", is_flag=True, help="List what could not be read, and why.")
@click.option("--full", is_flag=True, help="Print texts as they are: do not cut them, nor break their lines.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object a line.")
def command(
    place: Root | None,
    run: str | None,
    name: str | None,
    step: int | None,
    prompt: str | None,
    hardest: int | None,
    trajectory: int | None,
    branch: int | None,
    tokenizer: str | None,
    problems: bool,
    full: bool,
    as_json: bool,
) -> None:
    """Look at a run in the terminal: its steps, the prompts of a step, a prompt's trajectories, or one of them.

    DB is an index made by rltracer-index, RUN a run's folder or URL. Lists have the pass rate by the run's success
    rule and the mean of the total reward, or – where there is none; of a RUN only those steps that have been read. In
    an index of several runs --trajectory and --problems need no --run.

    \b
    Examples:
      rltracer inspect run.sqlite
      rltracer inspect run.sqlite --step 21
      rltracer inspect run.sqlite --step 21 --prompt 4f2a
      rltracer inspect run.sqlite --prompt 14
      rltracer inspect run.sqlite --hardest 20
      rltracer inspect run.sqlite --trajectory 17
      rltracer inspect /data/my-run --problems
    """
    from .problems import problem_lines, problems_of_all

    place, name = _place_and_name(place, run, name)
    if problems and name is None and (of_all := problems_of_all(place, as_json)):
        lines: Iterator[str] = of_all
    else:
        adapter = _adapter(place, name, tokenizer, trajectory)
        if problems:
            lines = problem_lines(adapter, as_json)
        elif trajectory is not None:
            loaded = adapter.load_trajectory(trajectory)
            lines = iter([json_line(trajectory_json(loaded))]) if as_json else trajectory_lines(loaded, branch, full)
        else:
            lines = _lists(adapter, step, prompt, hardest, as_json)
    for line in lines:
        click.echo(line)


def _place_and_name(place: Root | None, run: str | None, name: str | None) -> tuple[Root, str | None]:
    """Return where to look and which run: --run is a name beside an index, and a place of its own without one."""
    from ..sources.places import is_database

    if place is None and run is not None:
        return RUN.convert(run, None, click.get_current_context()), name
    if place is None or (run is not None and (name is not None or not is_database(place))):
        raise click.UsageError("Give one index or run: rltracer inspect run.sqlite")
    return place, name if run is None else run


def _lists(
    adapter: IndexedAdapter, step: int | None, prompt: str | None, hardest: int | None, as_json: bool
) -> Iterator[str]:
    from . import prompts
    from .steps import step_lines

    if hardest is not None:
        return prompts.hardest(adapter, hardest, as_json)
    if prompt is not None and step is None and adapter.list_steps() != [None]:
        return prompts.over_steps(adapter, prompt, as_json)
    if prompt is not None:
        return prompts.trajectories_of(adapter, step, prompt, as_json)
    return step_lines(adapter, as_json) if step is None else prompts.prompts_of_step(adapter, step, as_json)


def _adapter(place: Root, name: str | None, tokenizer: str | None, trajectory: int | None) -> IndexedAdapter:
    """Return the adapter of a run; a trajectory says by itself which of an index's runs is meant."""
    from ..adapter import WhichRunError, adapter_for
    from ..index.database import open_index
    from ..index.queries import run_of_trajectory
    from ..sources.base import SourceError
    from ..sources.places import is_database

    check_run(place, takes_several=False)
    run: str | int | None = name
    try:
        if trajectory is not None and name is None and isinstance(place, Path) and is_database(place):
            with closing(open_index(place)) as connection:
                found = run_of_trajectory(connection, trajectory)
            if found is None:
                raise SourceError(f"The index has no trajectory {trajectory}.")
            run = found[0]
        return adapter_for(place, run, tokenizer)
    except WhichRunError as error:
        how = " Give one with --name." if name is None else ""
        raise click.UsageError(printable(f"{error}{how}")) from None
