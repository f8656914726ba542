"""Values of two trajectories beside one another in the terminal, in which those that differ can be told apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..amounts import listed, plural, several, shortened
from .columns import cell, cut, figure, screen_width, wrapped
from .previews import names_apart, told_apart
from .visible import in_line

if TYPE_CHECKING:
    from ..comparison import Measures

NAMES = 17  # columns of the names of facts
MOST_DIFFERING = 20  # rewards or metrics that have a line each
LONGEST_SAME = 40  # characters of one of those that are the same


def room_of_a_side() -> int:
    """Return the columns of one of two values in a table."""
    return (screen_width() - NAMES - 6) // 2


def row_line(name: str, values: Sequence[str | None], differs: bool) -> str:
    """Return a line of the table; a value that there is not is a dash."""
    cells = (cell(value, room_of_a_side()) for value in values)
    return cut("  ".join([f"{'≠' if differs else ' '} {cell(name, NAMES)}", *cells]).rstrip(), screen_width())


def shown_apart(values: Sequence[Any]) -> list[str]:
    """Return two values as texts that fit the table."""
    from ..comparison import values_apart

    return told_apart(
        [in_line("–" if text is None else text) for text in values_apart(figure, *values)], room_of_a_side()
    )


def measure_lines(found: Measures, is_full: bool) -> Iterator[str]:
    """Yield how many rewards or metrics differ, a line for each of them, and briefly which are the same."""
    count, same = len(found.differing), [_same(name, value) for name, value in found.same.items()]
    if not count and not same:
        return
    said = [f"{count:,} {'differs' if count == 1 else 'differ'}"] if count else []
    if same:
        names = ", ".join(same) if is_full else listed(same, screen_width())
        said.append(f"{len(same):,} {'is' if len(same) == 1 else 'are'} the same: {names}")
    title = several(found.title)
    for line in wrapped(f"{title}: {', '.join(said)}", screen_width() - 2):
        yield f"  {line}"
    shown = list(found.differing)[: None if is_full else MOST_DIFFERING]
    for name, words in zip(shown, names_apart([in_line(name) for name in shown], NAMES), strict=True):
        yield row_line(words, shown_apart(found.differing[name]), differs=True)
    if len(shown) < count:
        yield f"  … {plural(count - len(shown), found.title)} more that differ; --full shows all"


def _same(name: str, value: Any) -> str:
    from ..comparison import values_apart

    said = values_apart(figure, value, value)[0]
    return f"{in_line(shortened(name, LONGEST_SAME))} {in_line(shortened(said or '–', LONGEST_SAME))}"
