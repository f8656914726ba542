"""A chart with its data and all that is said of it: what a page, a file and the terminal each show in their way."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ..amounts import LONGEST_NAME, shortened, shortened_name
from ..unrecorded import named
from ..unseen import plain
from .data import Query, load_spec
from .gaps import Window, unread_windows
from .unread import Unread, drawn_words
from .words import describe_rows


@dataclass(frozen=True)
class Figure:
    """The rows of a chart, and what is said of them.

    `words` say what the rows show, and `basis` what they rest on: the success rule, how many trajectories it leaves
    unscored, and what was not read. `run` is the name of the run, `parts` are the split and environment that all rows
    are of, as far as they are chosen, and `gaps` the windows between the rows of which nothing was read.

    In `words`, `basis` and `title`, which hold names that others chose, invisible characters are symbols.
    """

    chart: str
    rows: Sequence[dict[str, Any]]
    words: str
    basis: str = ""
    run: str = ""
    parts: tuple[str, ...] = ()
    gaps: Collection[Window] = ()

    def __post_init__(self) -> None:
        for name in ("words", "basis"):
            object.__setattr__(self, name, plain(getattr(self, name)))

    @cached_property
    def title(self) -> str:
        """What the chart is called where no page around it names its run and what is chosen of it."""
        title = load_spec(self.chart)["usermeta"]["rltracer"]["title"]
        words = ", ".join([title, *(shortened(part, LONGEST_NAME) for part in self.parts if part)])
        return plain(f"{words}: {shortened_name(self.run, LONGEST_NAME)}" if self.run else words)

    @property
    def description(self) -> str:
        """The words and what they rest on, as the text alternative and the caption."""
        return " ".join(filter(None, (self.words, self.basis)))


def figure_of(chart: str, query: Query, rows: Sequence[dict[str, Any]], rule: str, unread: Unread, run: str) -> Figure:
    """Return the rows that a query has given with all that is said of them; `rule` is as in `scoring_words`, or ""."""
    split, env = query.parameters["split"], query.parameters["env"]
    gaps = unread_windows(rows, unread.steps, query.window)
    basis = " ".join(filter(None, (rule, drawn_words(chart, unread, gaps))))
    return Figure(
        chart, rows, describe_rows(chart, rows, split), basis, run, (named("split", split), named("env", env)), gaps
    )
