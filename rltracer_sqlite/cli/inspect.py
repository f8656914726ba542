"""`rltracer inspect`: a run, a step, a prompt or a trajectory in the terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from . import UNSEEN, escaped, printable
from .columns import cell, cut, decimal, screen_width, wrapped
from .places import RUN, check_run
from .report import plural, ranges
from .trajectory import trajectory_json, trajectory_lines

if TYPE_CHECKING:
    from ..adapter import IndexedAdapter
    from ..model import PromptGroup
    from ..sources.places import Root

HARDEST = 10
STEP_FACTS = ("split", "trajectories", "prompt_groups", "pass_rate", "reward_mean")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
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
    type=click.IntRange(min=1),
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
    place, name = _place_and_name(place, run, name)
    if problems and name is None and (of_all := _problems_of_all(place, as_json)):
        lines: Iterator[str] = of_all
    else:
        adapter = _adapter(place, name, tokenizer, trajectory)
        if problems:
            lines = _problems(adapter, as_json)
        elif trajectory is not None:
            loaded = adapter.load_trajectory(trajectory)
            lines = iter([dump(trajectory_json(loaded))]) if as_json else trajectory_lines(loaded, branch, full)
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

    if hardest is not None:
        return prompts.hardest(adapter, hardest, as_json)
    if prompt is not None and step is None and adapter.list_steps() != [None]:
        return prompts.over_steps(adapter, prompt, as_json)
    if prompt is not None:
        return _prompt(adapter, step, prompt, as_json)
    return _run(adapter, as_json) if step is None else _step(adapter, step, as_json)


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


def dump(value: Any) -> str:
    """Return a value as one line of JSON, in which no character can steer a terminal."""
    return UNSEEN.sub(lambda found: escaped(found[0]), json.dumps(value, ensure_ascii=False, default=str))


def _run(adapter: IndexedAdapter, as_json: bool) -> Iterator[str]:
    steps = adapter.list_steps()
    known = _known_steps(adapter)
    # Of a run whose step has not been read, only its number is known.
    places = [fact for step in steps for fact in known.get(step, [{"step": step, **dict.fromkeys(STEP_FACTS)}])]
    if as_json:
        yield from map(dump, places)
        return
    width = screen_width()
    yield cut(f"{adapter.rollout_dir}: {plural(len([step for step in steps if step is not None]), 'step')}", width)
    if not places:
        return
    yield cut(f"  {'':9}  {'split':5}  {'trajectories':>12}  {'groups':>6}  {'pass rate':>9}  {'reward':>7}", width)
    for fact in places:
        step = "no step" if fact["step"] is None else f"step {fact['step']}"
        numbers = f"{_count(fact['trajectories']):>12}  {_count(fact['prompt_groups']):>6}"
        rates = f"{decimal(fact['pass_rate']):>9}  {decimal(fact['reward_mean']):>7}"
        yield cut(f"  {step:9}  {cell(fact['split'], 5)}  {numbers}  {rates}", width)
    if any(fact["trajectories"] is None for fact in places):
        how = "--step N reads one, " if adapter.refreshes else ""
        yield from wrapped(f"Steps with – have not been read yet: {how}rltracer-index reads all of them.", width)
    if steps == [None]:
        yield from _groups(adapter, None)


def _known_steps(adapter: IndexedAdapter) -> dict[int | None, list[dict[str, Any]]]:
    """Return what the index knows of each step, one row per split; nothing where the run has not been read yet."""
    from ..index.database import IndexFileError
    from ..index.queries import step_facts
    from ..sources.base import SourceError

    found: dict[int | None, list[dict[str, Any]]] = {}
    try:
        for fact in step_facts(adapter._open(), adapter._run()):
            found.setdefault(fact["step"], []).append(fact)
    except (IndexFileError, SourceError):
        pass  # a run's folder of which nothing was read yet
    return found


def _step(adapter: IndexedAdapter, step: int, as_json: bool) -> Iterator[str]:
    if not as_json:
        yield from _groups(adapter, step)
        return
    groups = _prompts(adapter, step)
    facts = _group_facts(adapter, step)
    for group in groups:
        counted = {"trajectories": group.count, "preview": group.preview}
        yield dump({"step": step, "prompt": group.key, **facts.get(group.key, {}), **counted})


def _prompts(adapter: IndexedAdapter, step: int | None) -> list[PromptGroup]:
    from ..model import RLTracer
    from ..sources.base import SourceError

    try:
        return RLTracer(adapter).step(step).prompts()
    except KeyError:
        known = [number for number in adapter.list_steps() if number is not None]
        raise SourceError(f"The run has no step {step}; it has {ranges(known) or 'none'}.") from None


def _group_facts(adapter: IndexedAdapter, step: int | None) -> dict[str, dict[str, Any]]:
    from ..index.queries import group_facts

    return group_facts(adapter._open(), adapter._run(), step)


def _groups(adapter: IndexedAdapter, step: int | None) -> Iterator[str]:
    groups, width = _prompts(adapter, step), screen_width()
    facts = _group_facts(adapter, step)
    yield plural(len(groups), "prompt") + ("" if step is None else f" in step {step}")
    yield cut(f"  {'prompt':12}  {'split':5}  {'rollouts':>8}  {'pass rate':>9}  {'reward':>7}  preview", width)
    for group in groups:
        fact = facts.get(group.key, {})
        rates = f"{decimal(fact.get('pass_rate')):>9}  {decimal(fact.get('reward_mean')):>7}"
        key, split = cell(group.key[:12], 12), cell(fact.get("split"), 5)
        yield cut(f"  {key}  {split}  {group.count:8,}  {rates}  {group.preview}", width)


def _problems(adapter: IndexedAdapter, as_json: bool) -> Iterator[str]:
    from ..index.queries import problems

    for step in adapter.list_steps():
        adapter.ensure_step_indexed(step)
    return _problem_lines(problems(adapter._open(), adapter._run()), as_json)


def _problems_of_all(place: Root, as_json: bool) -> Iterator[str] | None:
    """Return the problems of every run of an index, or None for an index of one run or for a run."""
    from ..index.database import open_index
    from ..index.queries import problems, runs
    from ..sources.places import is_database

    if not isinstance(place, Path) or not is_database(place):
        return None
    with closing(open_index(place)) as connection:
        known = runs(connection)
        found = [{"run": run.name, **problem} for run in known for problem in problems(connection, run.id)]
    return _problem_lines(iter(found), as_json) if len(known) > 1 else None


def _problem_lines(problems: Iterator[dict[str, Any]], as_json: bool) -> Iterator[str]:
    count = 0
    for problem in problems:
        count += 1
        if as_json:
            yield dump(problem)
            continue
        run = f"{problem['run']}: " if "run" in problem else ""
        line = f" line {problem['line']:,}" if problem["line"] else ""
        yield from wrapped(printable(f"{run}{problem['path']}{line}: {problem['reason']}"), screen_width())
    if not as_json:
        yield plural(count, "problem")


def _count(number: int | None) -> str:
    return "–" if number is None else f"{number:,}"


def _prompt(adapter: IndexedAdapter, step: int | None, prompt: str, as_json: bool) -> Iterator[str]:
    from ..index.queries import trajectory_row
    from ..sources.base import SourceError
    from .prompts import chosen

    listed, facts = _prompts(adapter, step), _group_facts(adapter, step)
    numbers = [{"prompt": group.key, "prompt_id": facts.get(group.key, {}).get("prompt_id")} for group in listed]
    keys = {group["prompt"] for group in chosen(prompt, numbers)}
    groups = [group for group in listed if group.key in keys]
    if not groups:
        where = "The run" if step is None else f"Step {step}"
        raise SourceError(f"{where} has no prompt {prompt!r}, by its number or the beginning of its key.")
    for group in groups:
        if not as_json:
            yield cut(f"{group.key[:12]}  {group.preview}", screen_width())
            head = f"  {'id':>7}  {'success':>7}  {'reward':>8}  {'turns':>5}  {'tools':>5}  stopped"
            yield cut(head, screen_width())
        for reference in group.trajectories():
            row = trajectory_row(adapter._open(), reference.id) or {}
            if as_json:
                yield dump({key: row.get(key) for key in ("id", "uid", "success", "reward", "turns", "stop_condition")})
            else:
                yield _row(row)


def _row(row: dict[str, Any]) -> str:
    success = {1: "yes", 0: "no", None: "–"}[row["success"]]
    stopped = row["error_type"] or row["stop_condition"] or "–"
    numbers = f"{decimal(row['reward']):>8}  {row['turns']:5}  {row['tool_calls']:5}"
    return cut(f"  {row['id']:7}  {success:>7}  {numbers}  {stopped}", screen_width())


if __name__ == "__main__":
    sys.exit(command())
