"""A trajectory in the terminal: what is recorded of it, and its messages."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from ..amounts import listed, plural, shortened
from ..outcomes import outcome
from ..recorded_values import flat, value_text
from .columns import cut, figure, screen_width, width_of, wrapped
from .expected import expected_lines
from .named_values import value_lines
from .offered import offered_lines
from .visible import in_line, printable

if TYPE_CHECKING:
    from ..index.episodes import Episode
    from ..sources.base import LocatorError
    from ..trajectory import Trajectory

PLACE = ("line", "item", "byte_offset", "byte_length")
MARGIN = "│ "  # of each line of reasoning, which ends where the margin does
REASONING = "(reasoning) "  # before its first line
LONGEST_METRIC = 300  # characters of a metric that is no number
MAX_TEXT = 4000  # characters of one text


def trajectory_json(trajectory: Trajectory, row: dict[str, Any]) -> dict[str, Any]:
    """Return what programs get of a trajectory: its record, and of its `row` in the index what no record has."""
    shown = {name: getattr(trajectory, name) for name in ("messages", "metadata", "branches", "tools")}
    known = {name: row.get(name) for name in ("success", "advantage_derived", "prompt_id", "prompt_group_id")}
    return {**shown, "metadata": {**trajectory.metadata, **known}}


def trajectory_lines(trajectory: Trajectory, row: dict[str, Any], branch: int | None, is_full: bool) -> Iterator[str]:
    """Yield the lines of a trajectory: what is recorded of it, then the messages of a branch, counted from 1.

    Without a `branch` it is the last one. Raises SourceError for a branch that there is not.
    """
    from ..sources.base import SourceError

    count = len(trajectory.branches)
    number = count if branch is None else branch
    if branch is not None and not 1 <= branch <= count:
        raise SourceError(f"The trajectory has {plural(count, 'branch')}; there is no branch {branch}.")
    yield from _wrapped(_identity(trajectory.metadata, row))
    yield from expected_lines(trajectory.metadata, is_full, MARGIN)
    yield from _wrapped(_facts(trajectory.metadata, row, is_full))
    for note in notes(trajectory.metadata):
        yield from wrapped(printable(note), screen_width())
    yield from offered_lines(trajectory.tools, is_full)
    if count > 1:
        yield f"branch {number} of {count}; --branch N shows another"
    messages = trajectory.branches[number - 1] if trajectory.branches else trajectory.messages
    for position, message in enumerate(messages, start=1):
        yield from _message(position, message, is_full)
    if not messages and not trajectory.metadata.get("remarks"):
        yield "No message was recorded."


def notes(facts: dict[str, Any]) -> list[str]:
    """Return what is remarked on how a trajectory was read, such as why it has no text."""
    return [f"note: {remark}" for remark in facts.get("remarks") or ()]


def unread_lines(row: dict[str, Any], error: LocatorError) -> Iterator[str]:
    """Yield what the index knows of a trajectory whose record cannot be read; then raise the error that says why."""
    facts = _facts_of_index(row)
    yield from _wrapped([*_identity(facts, row), *_facts(facts, row)])
    if row["preview"]:
        yield cut(f"prompt: {row['preview']}", screen_width())
    raise error


def _facts_of_index(row: dict[str, Any]) -> dict[str, Any]:
    """Return the row of a trajectory in the form of `Trajectory.metadata`, as far as the index knows it."""
    numbers = {name: value for name, value in row.items() if name.startswith(("reward_", "metric_"))}
    return {
        **{name: row[name] for name in ("id", "uid", "step", "split", "reward", "advantage", "env")},
        "rewards": {},
        "metrics": {name.removeprefix("metric_"): value for name, value in numbers.items() if value is not None},
        "info": {n.removeprefix("info_"): v for n, v in row.items() if n.startswith("info_") and v is not None},
        "completion": {name: row[name] for name in ("stop_condition", "truncated")},
        "errors": [{"type": row["error_type"]}] if row["error_type"] else [],
        "locator": {"path": row["shard_file"], **{name: row[name] for name in PLACE}},
    }


def _wrapped(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        yield from wrapped(printable(line), screen_width())


def _identity(facts: dict[str, Any], row: dict[str, Any]) -> Iterator[str]:
    """Yield which trajectory it is, of which prompt, and its outcome."""
    step, split = _value(facts.get("step")), facts.get("split") or "split not recorded"
    yield f"trajectory {facts.get('id')} · {facts['uid']} · step {step} · {split}"
    if row["is_one_of_several"]:
        yield f"run {row['run_id']}: {in_line(row['run'])}"
    if row["prompt_id"] is not None:
        of_run = f" --run {row['run_id']}" if row["is_one_of_several"] else ""
        at_step = "" if row["step"] is None else f" --step {row['step']}"
        group = f"prompt {row['prompt_id']} · prompt group {row['prompt_group_id']}"
        yield f"{group} · its trajectories: --prompt {row['prompt_id']}{at_step}{of_run}"
    yield f"{outcome(row['success'])} ({row['rule']})"
    yield from _agents(row)


def _agents(row: dict[str, Any]) -> Iterator[str]:
    """Yield of which agent it is, and the other trajectories of its episode, where it has any."""
    episode: Episode | None = row.get("episode")
    if episode is None:
        return
    others = [f"{in_line(one.agent or 'no name')} {one.id}" for one in episode.traces if one.id != row["id"]]
    count = plural(episode.trajectories, "trajectory")
    yield f"agent {in_line(row['agent'] or 'not recorded')} · its episode has {count}: beside it {listed(others)}"


def _facts(facts: dict[str, Any], row: dict[str, Any], is_full: bool = False) -> Iterator[str]:
    """Yield what is recorded of a trajectory beside its messages, and where its record is."""
    from ..comparison import DERIVED, advantage_in_words
    from ..sources.numbering import numbered

    derived = row.get("advantage_derived")
    advantage = advantage_in_words(figure, facts["advantage"], derived)
    yield f"reward {_value(facts['reward'])} · advantage {_value(advantage)} · env {_value(facts['env'])}"
    if facts["advantage"] is None and derived is not None:
        yield DERIVED
    for name, reward in facts["rewards"].items():
        weight = "" if reward["weight"] is None else f" × {_value(reward['weight'])}"
        yield f"  {in_line(name)}: {_value(reward['score'])}{weight if reward['score'] is not None else ''}"
    metrics = ((name, _value(value)) for name, value in flat(facts["metrics"]))
    yield from value_lines((name, value if is_full else shortened(value, LONGEST_METRIC)) for name, value in metrics)
    yield from _info(facts)
    if facts.get("tools"):
        yield f"tools called: {in_line(', '.join(facts['tools']))}"
    if measured := _measured(row):
        yield " · ".join(measured)
    done = facts["completion"]
    yield f"stopped: {done['stop_condition'] or 'not recorded'}" + (" (truncated)" if done["truncated"] else "")
    for error in facts["errors"]:
        yield f"error: {_error(error)}"[:500]
    place = facts["locator"]
    number = numbered(place["path"], place.get("line"), place.get("item"))
    # The first and the last byte, as on the trajectory's page.
    last = place["byte_offset"] + place["byte_length"] - 1
    yield f"{place['path']}{' ' if number else ''}{number} · bytes {place['byte_offset']:,} – {last:,}"


def _measured(row: dict[str, Any]) -> list[str]:
    """Return which version of the policy sampled a trajectory, its tokens, and how long it took, as far as recorded."""
    from ..comparison import policy_versions

    known = {
        "policy version {}": policy_versions(row),
        "prompt tokens {}": row.get("prompt_tokens"),
        "completion tokens {}": row.get("completion_tokens"),
        "took {} s": row.get("seconds"),
    }
    return [said.format(_value(value)) for said, value in known.items() if value is not None]


def _info(facts: dict[str, Any]) -> Iterator[str]:
    """Yield what a record says of itself, apart from the advantage, which has been told."""
    recorded = flat(facts.get("info") or {})
    told = (one for one in recorded if one != ("advantage", facts["advantage"]))
    yield from value_lines(((name, shortened(_value(value), LONGEST_METRIC)) for name, value in told), "info:")


def _error(error: Any) -> str:
    if isinstance(error, dict):
        return f"{error.get('type') or error.get('error') or 'error'}: {error.get('message') or ''}"
    return str(error)


def _message(position: int, message: dict[str, Any], is_full: bool) -> Iterator[str]:
    from ..messages import content_text

    yield ""
    yield ruled(f"#{position} {message['role']}")
    if message.get("reasoning_content"):
        yield from _text(REASONING + content_text(message["reasoning_content"]), is_full, MARGIN)
    if message.get("content"):
        yield from _content(content_text(message["content"], " "), is_full)
    for call in message.get("tool_calls", ()):
        function = call["function"]
        yield from _text(f"→ {function['name']}({function['arguments']})", is_full)


def _content(text: str, is_full: bool) -> Iterator[str]:
    """Yield what a message says; cut by itself is the reasoning that it begins with, so that the answer is seen."""
    from ..thoughts import split_thoughts

    thoughts, rest = ([], text) if is_full else split_thoughts(text)
    for thought in thoughts:
        yield from _text(thought, is_full, MARGIN)
    if rest:
        yield from _text(rest, is_full)


def ruled(title: str) -> str:
    """Return the line above a message."""
    head = cut(f"── {title} ", screen_width() - 2)
    return head + "─" * (screen_width() - 1 - width_of(head))


def beside_margin(text: str, margin: str, width: int | None) -> Iterator[str]:
    """Yield the lines of a text behind a margin, broken at `width` columns where there is one."""
    lines = printable(text).split("\n") if width is None else wrapped(printable(text), width - width_of(margin))
    yield from (f"{margin}{line}" for line in lines)


def _text(text: str, is_full: bool, margin: str = "") -> Iterable[str]:
    if is_full:
        yield from beside_margin(text, margin, None)
        return
    yield from beside_margin(text[:MAX_TEXT], margin, screen_width())
    if len(text) > MAX_TEXT:
        yield f"… {len(text) - MAX_TEXT:,} of {len(text):,} characters more; --full shows them"


def _value(value: Any) -> str:
    if value is None:
        return "not recorded"
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return figure(value)
    return value_text(value)
