"""The notes on an export as its page has them: in the words of the form, the trajectories that they name as links."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from .addresses import trajectory_url
from .export_options import in_form_words

if TYPE_CHECKING:
    from datasette.app import Datasette

NAMED = re.compile(r"\((?:trajectory|trajectories) ([0-9, ]{1,100})")
NUMBER = re.compile(r"([0-9]{1,19})")

Part = tuple[str, str | None]  # some of a note, and where it leads to


def linked(datasette: Datasette, database: str, notes: Iterable[str]) -> list[list[Part]]:
    """Return each note in parts; a number of a trajectory is one of its own."""
    return [list(_parts(datasette, database, in_form_words(note))) for note in notes]


def _parts(datasette: Datasette, database: str, note: str) -> Iterator[Part]:
    end = 0
    for found in NAMED.finditer(note):
        yield note[end : found.start(1)], None
        for part in NUMBER.split(found[1]):
            yield part, trajectory_url(datasette, database, int(part)) if part.isdigit() else None
        end = found.end(1)
    yield note[end:], None
