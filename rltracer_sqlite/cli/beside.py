"""Two trajectories side by side in the terminal: the facts of both, and where what they say begins to differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from shlex import quote
from typing import TYPE_CHECKING, Any, NamedTuple

from ..amounts import plural
from ..outcomes import outcome
from ..truth import truth_text
from .columns import cell, cut, figure, screen_width, wrapped
from .expected import EXPECTED
from .previews import names_apart, paths_apart, told_apart
from .trajectory import MARGIN, beside_margin, notes, or_derived, ruled
from .visible import in_line, json_line, printable

if TYPE_CHECKING:
    from ..sources.places import Root
    from ..trajectory import Trajectory

Part = tuple[str, str]  # margin, text
NAMED = {"success": "outcome", "truth": EXPECTED}
NAMES, MOST_TEXT = 17, 300  # columns of the names of facts; characters that are shown of each of two texts


class Side(NamedTuple):
    """One of the two: its row in the index, with its prompt's number, and what was read of it."""

    row: dict[str, Any]
    trajectory: Trajectory


def beside(place: Root, left: Side, right: Side, is_full: bool, as_json: bool) -> Iterator[str]:
    """Yield whether two trajectories answer the same prompt, their facts, and where they part; or JSON, a line.

    `place` is what `inspect` takes to show one of them.
    """
    from ..comparison import prompts_in_words, same_messages

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
    yield from _table(sides)
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
    return {**{name: known.get(name) for name in names}, "file": " ".join(filter(None, _place(row)))}


def _place(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return the file of a trajectory, and where in it the record is."""
    from ..sources.numbering import numbered

    return row["shard_file"], numbered(row["shard_file"], row["line"], row["item"])


def _table(sides: Sequence[Side]) -> Iterator[str]:
    from ..comparison import DERIVED, FACTS

    width = screen_width()
    room = (width - NAMES - 6) // 2
    # The number of the record has a line of its own: both would be too long for a column.
    places = [dict(zip(("file", "record"), _place(side.row), strict=True)) for side in sides]
    facts = [{**_facts(side), **place} for side, place in zip(sides, places, strict=True)]
    for fact in facts:
        fact["truth"] = truth_text(fact["truth"])
    titles = (cell(f"trajectory {side.row['id']}", room) for side in sides)
    yield cut("  ".join(["  " + " " * NAMES, *titles]).rstrip(), width)
    derived = [fact.pop("advantage_derived") for fact in facts]
    for name in dict.fromkeys([*facts[0], *facts[1]]):
        values = [fact.get(name) for fact in facts]
        if name == "advantage":
            values = [or_derived(*pair) for pair in zip(values, derived, strict=True)]
        if values == [None, None]:
            continue
        mark = "≠" if values[0] != values[1] else " "
        cells = (cell(value, room) for value in _shown(name, values, room))
        words = NAMED.get(name) or FACTS.get(name, name.removeprefix("reward_"))
        yield cut("  ".join([f"{mark} {cell(words, NAMES)}", *cells]).rstrip(), width)
    if any(value is not None for value in derived):
        yield from wrapped(DERIVED, width)


def _shown(name: str, values: Sequence[Any], room: int) -> Sequence[str | None]:
    """Return the two values of a fact as texts, in which those that differ can be told apart."""
    if name == "truth":
        return told_apart([in_line(value or "–") for value in values], room)
    if name == "file":
        return paths_apart([str(value) for value in values], room)
    if name == "run":
        return names_apart([str(value) for value in values], room)
    return [_value(name, value) for value in values]


def _value(name: str, value: Any) -> str | None:
    if name == "success":
        return outcome(value)
    if name == "truncated" and value is not None:
        return "yes" if value else "no"
    return figure(value) if isinstance(value, float) else None if value is None else str(value)


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
    parts = [_parts(said[same]) if same < len(said) else None for said in messages]
    roles = {said[same].get("role") for said in messages if same < len(said)}
    shared = _shared([None if one is None else "\n".join(text for _, text in one) for one in parts])
    shared = shared if len(roles) == 1 and not is_full else 0
    for side, said, one in zip(sides, messages, parts, strict=True):
        role = f" {said[same].get('role') or ''}" if one is not None else ""
        yield ruled(f"trajectory {side.row['id']}, #{same + 1}{role}")
        yield from ["ends before"] if one is None else _rest(one, shared, is_full)


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


def _rest(parts: Sequence[Part], start: int, is_full: bool) -> Iterator[str]:
    """Yield the lines of what a message says from character `start` on: all, or so many that they fit a screen."""
    width, end = (None, None) if is_full else (screen_width(), start + MOST_TEXT)
    mark, reached = "…" if start else "", 0
    for margin, text in parts:
        shown = text[max(start - reached, 0) : None if end is None else max(end - reached, 0)]
        reached += len(text) + 1
        if shown:
            yield from beside_margin(mark + shown, margin, width)
            mark = ""
    if end is not None and end < reached - 1:
        yield f"… {plural(reached - 1 - end, 'character')} more; --full shows all"
    elif mark or not parts:
        yield "… and ends here" if parts else "says nothing"


def _shared(texts: Sequence[str | None]) -> int:
    from ..comparison import parting

    left, right = texts
    return 0 if left is None or right is None else parting(left, right)


def _parts(message: Mapping[str, Any]) -> list[Part]:
    """Return all that a message says, as the list of messages has it, each part with its margin."""
    from ..comparison import signature

    _, content, reasoning, *calls = signature(message)
    said = [(MARGIN, f"(reasoning) {reasoning}" if reasoning else ""), ("", content)]
    said += [("", f"→ {name}({given})") for name, given in calls]
    return [(margin, text) for margin, text in said if text]
