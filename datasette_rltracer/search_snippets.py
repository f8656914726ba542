"""What a search has found within each record, marked, with the address at which it stands."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from rltracer_sqlite.search import Hit, Place, read_hits

from .addresses import trajectory_url
from .bounds import ask
from .records import roots_of
from .text import visible

if TYPE_CHECKING:
    from datasette.app import Datasette

LONGEST_FIND = 80  # characters of a match that the trajectory's own search is given


@dataclass(frozen=True)
class Snippet:
    """One result: its address, and where it matches. Without a snippet, `problem` says why there is none."""

    url: str
    snippet: Markup | None = None
    before: bool = False  # there is text before the snippet
    after: bool = False
    place: Place | None = None
    branches: int = 0  # of the record
    matches: int = 0
    problem: str | None = None


async def read_snippets(
    datasette: Datasette, database: str, rows: Sequence[Mapping[str, Any]], match: str
) -> list[Snippet]:
    """Return for each row of `trajectories` what a FTS5 query matches in its record."""

    def read(connection: sqlite3.Connection) -> list[Hit]:
        return read_hits(connection, roots_of(datasette, database), rows, match)

    hits = await ask(datasette, database, read)
    return [_snippet(datasette, database, row["id"], hit) for row, hit in zip(rows, hits, strict=True)]


def _snippet(datasette: Datasette, database: str, number: int, hit: Hit) -> Snippet:
    if hit.problem is not None:
        return Snippet(trajectory_url(datasette, database, number), problem=hit.problem)
    address = trajectory_url(
        datasette,
        database,
        number,
        find=_as_it_stands(hit),
        branch=hit.place.branch if hit.place and hit.branches > 1 else None,
        message=hit.place.message if hit.place else None,
    )
    return Snippet(
        f"{address}#found-{hit.place.message}" if hit.place else address,
        marked(hit.text, hit.marks),
        hit.before,
        hit.after,
        hit.place,
        hit.branches,
        hit.matches,
    )


def _as_it_stands(hit: Hit) -> str:
    """Return what the trajectory's page is to find, which is text as it stands: the best of the matches, or its first.

    What is on both sides of an empty line may be in two parts of a message.
    """
    first, last = hit.best
    if last - first > LONGEST_FIND or "\n\n" in hit.text[first:last]:
        first, last = next(mark for mark in hit.marks if mark[0] >= first)
    return " ".join(hit.text[first:last].split())[:LONGEST_FIND]


def marked(text: str, matches: Sequence[tuple[int, int]]) -> Markup:
    """Return a text as HTML with its matches marked, each given as (start, end)."""
    pieces, position = [], 0
    for first, last in matches:
        first = max(first, position)
        if last > first:
            pieces += [visible(text[position:first]), Markup("<mark>{}</mark>").format(visible(text[first:last]))]
            position = last
    return Markup("").join([*pieces, visible(text[position:])])
