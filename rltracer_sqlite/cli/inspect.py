"""`rltracer inspect`: a run, a step, a prompt or a trajectory in the terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from . import UNSEEN, escaped, printable
from .columns import cut, screen_width, width_of, wrapped
from .places import RUN, check_run
from .report import plural, ranges
from .trajectory import trajectory_json, trajectory_lines

if TYPE_CHECKING:
    from ..adapter import IndexedAdapter
    from ..model import PromptGroup
    from ..sources.places import Root

STEP_FACTS = ("split", "trajectories", "prompt_groups", "pass_rate", "reward_mean")


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("place", required=False, type=RUN, metavar="DB|RUN")
@click.option("--run", "run", type=RUN, help="The same as DB|RUN: an index, or a run's folder or URL.")
@click.option("--name", help="Which run, by name or number, where an index holds several.")
@click.option("--step", type=int, help="List the prompts of this step.")
@click.option("--prompt", help="List the trajectories of this prompt of --step: its key, or its beginning.")
@click.option("--trajectory", type=int, help="Show this trajectory, by the id that lists show.")
@click.option("--branch", type=int, help="Show this branch of the trajectory, counted from 1. Default: the last.")
@click.option("--tokenizer", metavar="PATH", help="A tokenizer.json, for files that hold token ids.")
@click.option("--problems", is_flag=True, help="List what could not be read, and why.")
@click.option("--full", is_flag=True, help="Print texts as they are: do not cut them, nor break their lines.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object a line.")
def command(
    place: Root | None,
    run: Root | None,
    name: str | None,
    step: int | None,
    prompt: str | None,
    trajectory: int | None,
    branch: int | None,
    tokenizer: str | None,
    problems: bool,
    full: bool,
    as_json: bool,
) -> None:
    """Look at a run in the terminal: its steps, the prompts of a step, a prompt's trajectories, or one of them.

    DB is an index made by rltracer-index, RUN a run's folder or URL. Lists have the pass rate by the run's success
    rule and the mean of the total reward, or – where there is none; of a RUN only those steps that have been read.

    \b
    Examples:
      rltracer inspect run.sqlite
      rltracer inspect run.sqlite --step 21
      rltracer inspect run.sqlite --step 21 --prompt 4f2a
      rltracer inspect run.sqlite --trajectory 17
      rltracer inspect /data/my-run --problems
    """
    if (place is None) == (run is None):
        raise click.UsageError("Give one index or run: rltracer inspect run.sqlite")
    adapter = _adapter(place or run, name, tokenizer)  # type: ignore[arg-type]
    if prompt is not None and step is None and adapter.list_steps() != [None]:
        raise click.UsageError("--prompt needs --step: a prompt has a group in each step.")
    if problems:
        lines = _problems(adapter, as_json)
    elif trajectory is not None:
        loaded = adapter.load_trajectory(trajectory)
        lines = iter([dump(trajectory_json(loaded))]) if as_json else trajectory_lines(loaded, branch, full)
    elif prompt is not None:
        lines = _prompt(adapter, step, prompt, as_json)
    elif step is not None:
        lines = _step(adapter, step, as_json)
    else:
        lines = _run(adapter, as_json)
    for line in lines:
        click.echo(line)


def _adapter(place: Root, name: str | None, tokenizer: str | None) -> IndexedAdapter:
    from ..adapter import WhichRunError, adapter_for

    check_run(place, takes_several=False)
    try:
        return adapter_for(place, name, tokenizer)
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
        rates = f"{_rate(fact['pass_rate']):>9}  {_rate(fact['reward_mean']):>7}"
        yield cut(f"  {step:9}  {_cell(fact['split'], 5)}  {numbers}  {rates}", width)
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
        rates = f"{_rate(fact.get('pass_rate')):>9}  {_rate(fact.get('reward_mean')):>7}"
        key, split = _cell(group.key[:12], 12), _cell(fact.get("split"), 5)
        yield cut(f"  {key}  {split}  {group.count:8,}  {rates}  {group.preview}", width)


def _problems(adapter: IndexedAdapter, as_json: bool) -> Iterator[str]:
    from ..index.queries import problems

    for step in adapter.list_steps():
        adapter.ensure_step_indexed(step)
    count = 0
    for problem in problems(adapter._open(), adapter._run()):
        count += 1
        if as_json:
            yield dump(problem)
            continue
        line = f" line {problem['line']:,}" if problem["line"] else ""
        yield from wrapped(printable(f"{problem['path']}{line}: {problem['reason']}"), screen_width())
    if not as_json:
        yield plural(count, "problem")


def _cell(text: str | None, width: int) -> str:
    """Return a text that fills a column of a table."""
    shown = cut(text, width) if text else "–"
    return shown + " " * (width - width_of(shown))


def _count(number: int | None) -> str:
    return "–" if number is None else f"{number:,}"


def _rate(number: float | None) -> str:
    return "–" if number is None else f"{number:.3f}"


def _prompt(adapter: IndexedAdapter, step: int | None, prompt: str, as_json: bool) -> Iterator[str]:
    from ..index.queries import trajectory_row
    from ..sources.base import SourceError

    groups = [group for group in _prompts(adapter, step) if group.key.startswith(prompt)]
    if not groups:
        raise SourceError(f"No prompt of step {step} begins with {prompt!r}.")
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
    line = (
        f"  {row['id']:7}  {success:>7}  {_rate(row['reward']):>8}  {row['turns']:5}  {row['tool_calls']:5}  {stopped}"
    )
    return cut(line, screen_width())


if __name__ == "__main__":
    sys.exit(command())
