"""A message of one trajectory from where it differs from another's: its pieces, each with the kind of its part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ..amounts import plural, shortened
from .columns import screen_width
from .trajectory import MARGIN, REASONING, beside_margin

MOST_TEXT = 300  # characters that are shown of each of two texts
LONGEST_LABEL = 60  # characters of the label of a part of which the beginning is not shown


class Part(NamedTuple):
    """A part of a message: `label` names its kind, and the tool of a call; it stands before the text."""

    margin: str
    label: str
    text: str

    @property
    def whole(self) -> str:
        """Return the part as the list of messages has it."""
        return self.label + self.text


def parts_of(message: Mapping[str, Any]) -> list[Part]:
    """Return all that a message says, as the list of messages has it."""
    from ..comparison import signature

    _, content, reasoning, *calls = signature(message)
    said = [Part(MARGIN, REASONING if reasoning else "", reasoning), Part("", "", content)]
    said += [Part("", f"→ {name}(", f"{given})") for name, given in calls]
    return [part for part in said if part.whole]


def shared_by(left: Sequence[Part] | None, right: Sequence[Part] | None) -> int:
    """Return how many characters two messages begin with alike; 0 where there is only one."""
    from ..comparison import parting

    if left is None or right is None:
        return 0
    return parting(*("\n".join(part.whole for part in parts) for parts in (left, right)))


def rest_lines(parts: Sequence[Part], start: int, is_full: bool) -> Iterator[str]:
    """Yield the lines of what a message says from character `start` on: all, or so many that they fit a screen."""
    width, end = (None, None) if is_full else (screen_width(), start + MOST_TEXT)
    mark, reached = "…" if start else "", 0
    for part in parts:
        first, last = max(start - reached, 0), None if end is None else max(end - reached, 0)
        reached += len(part.whole) + 1
        if part.whole[first:last]:
            yield from beside_margin(_piece(part, first, last, mark), part.margin, width)
            mark = ""
    if end is not None and end < reached - 1:
        yield f"… {plural(reached - 1 - end, 'character')} more; --full shows all"
    elif mark or not parts:
        yield f"{_ending(parts[-1])}… and ends here" if parts else "says nothing"


def _piece(part: Part, first: int, last: int | None, mark: str) -> str:
    """Return a part from character `first` on, with its label in any case; `mark` says that something was left out."""
    if first == 0:
        return mark + part.whole[:last]
    if first < len(part.label):  # within the name of a tool, which is told whole
        return part.whole[:last]
    return shortened(part.label, LONGEST_LABEL) + mark + part.whole[first:last]


def _ending(part: Part) -> str:
    return part.margin + REASONING if part.label == REASONING else ""
