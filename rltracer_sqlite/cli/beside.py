"""Two trajectories side by side in the terminal: the facts of both, and where what they say begins to differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

from ..amounts import plural
from ..outcomes import outcome
from ..recorded_values import flat
from ..truth import truth_text
from .beside_parts import parts_of, rest_lines, shared_by
from .beside_values import NAMES, measure_lines, room_of_a_side, row_line, shown_apart
from .columns import cell, cut, figure, screen_width, wrapped
from .expected import EXPECTED
from .previews import names_apart, paths_apart
from .trajectory import notes, ruled
from .visible import json_line, printable

if TYPE_CHECKING:
    from ..sources.places import Root
    from ..trajectory import Trajectory

NAMED = {"success": "outcome", "truth": EXPECTED}
UNTOLD = ("metrics", "advantage_derived")  # facts without a line of their own


class Side(NamedTuple):
    """One of the two: its row in the index, with its prompt's number, and what was read of it."""

    row: dict[str, Any]
    trajectory: Trajectory


def beside(place: Root, left: Side, right: Side, is_full: bool, as_json: bool) -> Iterator[str]:
    """Yield whether two trajectories answer the same prompt, their facts, and where they part; or JSON, a line.

    `place` is what `inspect` takes to show one of them.
    """
    from ..comparison import prompts_in_words, rules_in_words, same_messages

    sides = (left, right)
    same = same_messages(left.trajectory.messages, right.trajectory.messages)
    if as_json:
        facts = [{"id": side.row["id"], **_facts(side), "messages": len(side.trajectory.messages)} for side in sides]
        numbers = [side.row["prompt_id"] for side in sides]
        same_prompt = None if None in numbers else numbers[0] == numbers[1]
        yield json_line({"trajectories": facts, "same_prompt": same_prompt, "same_messages": same})
        return
    if said := prompts_in_words(*([side.row[name] for side in sides] for name in ("prompt_id", "prompt_key"))):
        yield from wrapped(f"{said.capitalize()}.", screen_width())
    for sentence in rules_in_words(*([side.row[name] for side in sides] for name in ("id", "rule"))):
        yield from wrapped(printable(sentence), screen_width())
    yield from _table(sides, is_full)
    yield ""
    yield from _parting(sides, same, is_full)
    yield from _following(place, sides, same)


def _facts(side: Side) -> dict[str, Any]:
    """Return what is compared of a trajectory: what its page of comparison has, with its prompt, success and file."""
    from ..comparison import FACTS

    row = side.row
    rewards = [name for name in row if name.startswith("reward_")]
    names = dict.fromkeys(["run", "step", "split", "prompt", "success", "truth", *FACTS, "advantage_derived", *rewards])
    known = {**row, "prompt": row["prompt_id"], "truth": side.trajectory.metadata.get("truth")}
    return {
        **{name: known.get(name) for name in names},
        "metrics": dict(flat(side.trajectory.metadata.get("metrics"))),
        "file": " ".join(filter(None, _place(row))),
    }


def _place(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return the file of a trajectory, and where in it the record is."""
    from ..sources.numbering import numbered

    return row["shard_file"], numbered(row["shard_file"], row["line"], row["item"])


def _table(sides: Sequence[Side], is_full: bool) -> Iterator[str]:
    from ..comparison import DERIVED, FACTS, advantages_apart, is_same, measures

    # The number of the record has a line of its own: both would be too long for a column.
    places = [dict(zip(("file", "record"), _place(side.row), strict=True)) for side in sides]
    facts = [{**_facts(side), **place} for side, place in zip(sides, places, strict=True)]
    titles = (cell(f"trajectory {side.row['id']}", room_of_a_side()) for side in sides)
    yield cut("  ".join(["  " + " " * NAMES, *titles]).rstrip(), screen_width())
    for name in _told(facts[0]):
        values = [_value(name, fact, side.row) for fact, side in zip(facts, sides, strict=True)]
        differs = not is_same(values[0], values[1])
        if name == "advantage":
            one, other, differs = advantages_apart(figure, facts)
            values = [one, other]
        if values != [None, None]:
            yield row_line(NAMED.get(name) or FACTS.get(name, name), _shown(name, values), differs)
    if any(fact["advantage_derived"] is not None for fact in facts):
        yield from wrapped(DERIVED, screen_width())
    for found in measures([side.row for side in sides], [side.trajectory.metadata for side in sides]):
        yield from measure_lines(found, is_full)


def _told(facts: Mapping[str, Any]) -> list[str]:
    """Return the names of the facts in the table; named rewards and metrics follow it."""
    return [name for name in facts if not name.startswith("reward_") and name not in UNTOLD]


def _value(name: str, facts: Mapping[str, Any], row: Mapping[str, Any]) -> Any:
    from ..comparison import policy_versions

    value = facts[name]
    if name == "success":
        return outcome(value)
    if name == "truth":
        return truth_text(value)
    if name == "truncated":
        return None if value is None else bool(value)
    return policy_versions(row) if name == "policy_version" else value


def _shown(name: str, values: Sequence[Any]) -> Sequence[str | None]:
    """Return the two values of a fact as texts, in which those that differ can be told apart."""
    if name == "file":
        return paths_apart([str(value) for value in values], room_of_a_side())
    if name == "run":
        return names_apart([str(value) for value in values], room_of_a_side())
    return shown_apart(values)


def _parting(sides: Sequence[Side], same: int, is_full: bool) -> Iterator[str]:
    """Yield how many messages are the same, and what each says of the first that differs: from there on, or all."""
    width = screen_width()
    messages = [side.trajectory.messages for side in sides]
    for side in sides:
        for note in notes(side.trajectory.metadata):
            yield from wrapped(printable(f"trajectory {side.row['id']}: {note}"), width)
    if not any(messages):
        yield "There is nothing to compare: neither has a message."
        return
    if len(messages[0]) == len(messages[1]) == same:
        yield from wrapped(f"They say the same, in {plural(same, 'message')}.", width)
        return
    begins = f"The first {plural(same, 'message')} are the same" if same > 1 else "The first message is the same"
    yield from wrapped(f"{begins if same else 'No message is the same'}; from #{same + 1} on they differ:", width)
    parts = [parts_of(said[same], is_full) if same < len(said) else None for said in messages]
    roles = {said[same].get("role") for said in messages if same < len(said)}
    shared = shared_by(*parts) if len(roles) == 1 and not is_full else 0
    for side, said, one in zip(sides, messages, parts, strict=True):
        role = f" {said[same].get('role') or ''}" if one is not None else ""
        yield ruled(f"trajectory {side.row['id']}, #{same + 1}{role}")
        yield from ["ends before"] if one is None else rest_lines(one, shared, is_full)


def _following(place: Root, sides: Sequence[Side], same: int) -> Iterator[str]:
    """Yield how many messages of each side follow those that differ first, and how they are read."""
    more = {side.row["id"]: len(side.trajectory.messages) - same - 1 for side in sides}
    if max(more.values()) < 1:
        return
    longer = {number: count for number, count in more.items() if count > 0}
    told = " and ".join(f"trajectory {number} has {plural(count, 'more message')}" for number, count in longer.items())
    yield ""
    yield from wrapped(f"After #{same + 1}, {told}. Read all of it with:", screen_width())
    yield from (f"  rltracer inspect {quote(str(place))} --trajectory {number}" for number in longer)
