"""A message of one trajectory from where it differs from another's: its pieces, each with the kind of its part."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
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


def parts_of(message: Mapping[str, Any], is_full: bool) -> list[Part]:
    """Return all that a message says, as the list of messages has it: its reasoning first, also that in its text."""
    from ..comparison import signature
    from ..thoughts import split_thoughts

    _, content, reasoning, *calls = signature(message)
    answer = content if is_full else split_thoughts(content)[1]
    thoughts = content[: len(content) - len(answer)]
    said = [Part(MARGIN, REASONING if reasoning else "", reasoning), Part(MARGIN, "", thoughts), Part("", "", answer)]
    said += [Part("", f"→ {name}(", f"{given})") for name, given in calls]
    return [part for part in said if part.whole]


def shared_by(left: Sequence[Part] | None, right: Sequence[Part] | None) -> int:
    """Return how many characters two messages begin with alike; 0 where there is only one."""
    from ..comparison import parting

    if left is None or right is None:
        return 0
    return parting(*("\n".join(part.whole for part in parts) for parts in (left, right)))


def rest_lines(parts: Sequence[Part], start: int, is_full: bool) -> Iterator[str]:
    """Yield the lines of what a message says from character `start` on: all, or so many that they fit a screen.

    Reasoning is cut by itself, so that the answer is seen.
    """
    width, reached = None if is_full else screen_width(), 0
    mark = "…" if parts and start > len(parts[0].label) else ""  # a label is told in any case
    for _, alike in groupby(parts, lambda part: part.margin):
        room, more = MOST_TEXT, 0
        for part in alike:
            first = max(start - reached, 0)
            reached += len(part.whole) + 1
            rest = max(len(part.whole) - first, 0)
            shown = rest if is_full else min(rest, room)
            if shown:
                piece = _piece(part, first, first + shown, mark)
                yield from beside_margin(piece.rstrip("\n") if part.margin else piece, part.margin, width)
                mark = ""
            room, more = room - shown, more + rest - shown
        if more:
            yield f"… {plural(more, 'character')} more; --full shows all"
    if mark or not parts:
        yield f"{_ending(parts[-1])}… and ends here" if parts else "says nothing"


def _piece(part: Part, first: int, last: int, mark: str) -> str:
    """Return a part from character `first` on, with its label in any case; `mark` says that something was left out."""
    if first == 0:
        return mark + part.whole[:last]
    if first < len(part.label):  # within the name of a tool, which is told whole
        return part.whole[:last]
    return shortened(part.label, LONGEST_LABEL) + mark + part.whole[first:last]


def _ending(part: Part) -> str:
    return part.margin + REASONING if part.label == REASONING else ""
