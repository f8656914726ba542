"""`rltracer inspect`: a run, a step, a prompt or a trajectory in the terminal."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

import click

from . import UNSEEN, escaped, printable
from .places import RUN

if TYPE_CHECKING:
    from ..adapter import IndexedAdapter
    from ..model import PromptGroup, Trajectory
    from ..sources.places import Root

MAX_TEXT = 4000
WIDTH = 79


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--run", "run", required=True, type=RUN, help="A run's folder or URL, or an index.")
@click.option("--name", help="Which run, where an index holds several.")
@click.option("--step", type=int, help="List the prompts of this step.")
@click.option("--prompt", help="List the trajectories of this prompt of --step: its key, or its beginning.")
@click.option("--trajectory", type=int, help="Show this trajectory, by the id that lists show.")
@click.option("--branch", type=int, help="Show this branch of the trajectory, counted from 1. Default: the last.")
@click.option("--tokenizer", metavar="PATH", help="A tokenizer.json, for files that hold token ids.")
@click.option("--full", is_flag=True, help="Do not cut long texts.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one object a line.")
def command(
    run: Root,
    name: str | None,
    step: int | None,
    prompt: str | None,
    trajectory: int | None,
    branch: int | None,
    tokenizer: str | None,
    full: bool,
    as_json: bool,
) -> None:
    """Look at a run in the terminal: its steps, the prompts of a step, a prompt's trajectories, or one of them.

    \b
    Examples:
      rltracer inspect --run /data/my-run
      rltracer inspect --run run.sqlite --step 21
      rltracer inspect --run run.sqlite --step 21 --prompt 4f2a
      rltracer inspect --run run.sqlite --trajectory 17
    """
    from ..adapter import adapter_for

    adapter = adapter_for(run, name, tokenizer)
    if prompt is not None and step is None and adapter.list_steps() != [None]:
        raise click.UsageError("--prompt needs --step: a prompt has a group in each step.")
    if trajectory is not None:
        loaded = adapter.load_trajectory(trajectory)
        lines = [dump(_as_json(loaded))] if as_json else _trajectory(loaded, branch, None if full else MAX_TEXT)
    elif prompt is not None:
        lines = _prompt(adapter, step, prompt, as_json)
    elif step is not None:
        lines = _step(adapter, step, as_json)
    else:
        lines = _run(adapter, as_json)
    for line in lines:
        click.echo(line)


def dump(value: Any) -> str:
    """Return a value as one line of JSON, in which no character can steer a terminal."""
    return UNSEEN.sub(lambda found: escaped(found[0]), json.dumps(value, ensure_ascii=False, default=str))


def _run(adapter: IndexedAdapter, as_json: bool) -> Iterator[str]:
    steps = adapter.list_steps()
    if as_json:
        yield from (dump({"step": step}) for step in steps)
        return
    yield printable(f"{adapter.rollout_dir}: {len(steps)} steps")
    yield from (
        f"  step {step}" if step is not None else "  trajectories without a step: --prompt KEY" for step in steps
    )
    if steps == [None]:
        yield from _groups(adapter, None)


def _step(adapter: IndexedAdapter, step: int, as_json: bool) -> Iterator[str]:
    if as_json:
        for group in _prompts(adapter, step):
            yield dump({"step": step, "prompt": group.key, "trajectories": group.count, "preview": group.preview})
        return
    yield from _groups(adapter, step)


def _prompts(adapter: IndexedAdapter, step: int | None) -> list[PromptGroup]:
    from ..model import RLTracer
    from ..sources.base import SourceError

    try:
        return RLTracer(adapter).step(step).prompts()
    except KeyError:
        known = ", ".join(str(number) for number in adapter.list_steps()[:20])
        raise SourceError(f"The run has no step {step}. It has: {known}.") from None


def _groups(adapter: IndexedAdapter, step: int | None) -> Iterator[str]:
    groups = _prompts(adapter, step)
    yield f"{len(groups)} prompts" + ("" if step is None else f" in step {step}")
    yield f"  {'prompt':12}  {'rollouts':>8}  preview"
    for group in groups:
        yield f"  {group.key[:12]:12}  {group.count:8}  {printable(group.preview)[: WIDTH - 26]}"


def _prompt(adapter: IndexedAdapter, step: int | None, prompt: str, as_json: bool) -> Iterator[str]:
    from ..index.queries import trajectory_row
    from ..sources.base import SourceError

    groups = [group for group in _prompts(adapter, step) if group.key.startswith(prompt)]
    if not groups:
        raise SourceError(f"No prompt of step {step} begins with {prompt!r}.")
    for group in groups:
        if not as_json:
            yield printable(f"{group.key[:12]}  {group.preview}"[:WIDTH])
            yield f"  {'id':>7}  {'success':>7}  {'reward':>8}  {'turns':>5}  {'tools':>5}  stopped"
        for reference in group.trajectories():
            row = trajectory_row(adapter._open(), reference.id) or {}
            if as_json:
                yield dump({key: row.get(key) for key in ("id", "uid", "success", "reward", "turns", "stop_condition")})
            else:
                yield _row(row)


def _row(row: dict[str, Any]) -> str:
    success = {1: "yes", 0: "no", None: "–"}[row["success"]]
    reward = "–" if row["reward"] is None else f"{row['reward']:.3f}"
    stopped = printable(row["error_type"] or row["stop_condition"] or "–")[:30]
    return f"  {row['id']:7}  {success:>7}  {reward:>8}  {row['turns']:5}  {row['tool_calls']:5}  {stopped}"


def _as_json(trajectory: Trajectory) -> dict[str, Any]:
    return {
        "messages": trajectory.messages,
        "metadata": trajectory.metadata,
        "branches": trajectory.branches,
        "tools": trajectory.tools,
    }


def _trajectory(trajectory: Trajectory, branch: int | None, limit: int | None) -> Iterator[str]:
    from ..sources.base import SourceError

    facts = trajectory.metadata
    place = facts["locator"]
    count = len(trajectory.branches)
    number = count if branch is None else branch
    if branch is not None and not 1 <= branch <= count:
        raise SourceError(f"The trajectory has {count} branches; there is no branch {branch}.")
    step, split = _value(facts.get("step")), _value(facts.get("split"))
    yield printable(f"trajectory {facts.get('id')} · {facts['uid']} · step {step} · {split}")
    yield printable(
        f"reward {_value(facts['reward'])} · advantage {_value(facts['advantage'])} · env {_value(facts['env'])}"
    )
    for name, reward in facts["rewards"].items():
        yield printable(f"  {name}: {_value(reward['score'])} × {_value(reward['weight'])}")
    if facts["metrics"]:
        yield printable("  " + ", ".join(f"{name} {_value(value)}" for name, value in facts["metrics"].items()))
    done = facts["completion"]
    yield printable(
        f"stopped: {done['stop_condition'] or 'not recorded'}" + (" (truncated)" if done["truncated"] else "")
    )
    for error in facts["errors"]:
        yield printable(f"error: {_error(error)}"[:500])
    line = f" line {place['line']}" if place.get("line") else ""
    end = place["byte_offset"] + place["byte_length"]
    yield printable(f"{place['path']}{line} · bytes {place['byte_offset']:,}–{end:,}")
    if count > 1:
        yield f"branch {number} of {count}; --branch N shows another"
    messages = trajectory.branches[number - 1] if trajectory.branches else trajectory.messages
    for position, message in enumerate(messages):
        yield from _message(position, message, limit)


def _error(error: Any) -> str:
    if isinstance(error, dict):
        return f"{error.get('type') or error.get('error') or 'error'}: {error.get('message') or ''}"
    return str(error)


def _message(position: int, message: dict[str, Any], limit: int | None) -> Iterator[str]:
    from ..messages import content_text

    yield ""
    head = f"── {position} {message['role']} "
    yield printable(head) + "─" * max(0, WIDTH - len(head))
    if message.get("reasoning_content"):
        yield from _text("(reasoning) " + content_text(message["reasoning_content"]), limit)
    if message.get("content"):
        yield from _text(content_text(message["content"]), limit)
    for call in message.get("tool_calls", ()):
        function = call["function"]
        yield from _text(f"→ {function['name']}({function['arguments']})", limit)


def _text(text: str, limit: int | None) -> Iterable[str]:
    shown = printable(text if limit is None else text[:limit])
    yield shown
    if limit is not None and len(text) > limit:
        yield f"… {len(text) - limit:,} of {len(text):,} characters more; --full shows them"


def _value(value: Any) -> str:
    if value is None:
        return "not recorded"
    return f"{value:.4g}" if isinstance(value, (int, float)) and not isinstance(value, bool) else str(value)


if __name__ == "__main__":
    sys.exit(command())
