"""The expected answer of a trajectory's task in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from ..amounts import plural
from ..truth import truth_text
from .columns import screen_width, wrapped
from .visible import in_line, printable

EXPECTED = "expected answer"
MOST_TEXT = 300  # characters that are shown unless all are asked for


def expected_lines(facts: Mapping[str, Any], is_full: bool, margin: str) -> Iterator[str]:
    """Yield the expected answer in one line, or as it is behind a margin; that none is recorded is said too."""
    text = truth_text(facts.get("truth"))
    if text is None:
        yield f"{EXPECTED}: not recorded"
    elif is_full and "\n" in text:
        yield f"{EXPECTED}:"
        yield from (margin + line for line in printable(text).split("\n"))
    else:
        shown = f"{EXPECTED}: {in_line(text if is_full else text[:MOST_TEXT])}"
        yield from [shown] if is_full else wrapped(shown, screen_width())
        if len(text) > MOST_TEXT and not is_full:
            yield from wrapped(
                f"… {len(text) - MOST_TEXT:,} of {plural(len(text), 'character')} more; --full shows them",
                screen_width(),
            )
