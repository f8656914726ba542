"""The notes on an export as its page has them: in the words of the form, the trajectories that they name as links."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from .addresses import run_url, trajectory_url
from .export_options import in_form_words

if TYPE_CHECKING:
    from datasette.app import Datasette

NAMED = re.compile(r"\((?:trajectory|trajectories) ([0-9, ]{1,100})")
COMMAND = re.compile(r": rltracer inspect .+ --problems lists them(?=\.)", re.DOTALL)
NUMBER = re.compile(r"([0-9]{1,19})")

Part = tuple[str, str | None]  # some of a note, and where it leads to


def linked(
    datasette: Datasette, database: str, told: Mapping[str, Any], run_ids: Mapping[str, Any]
) -> list[list[Part]]:
    """Return the notes of a summary in parts; a number of a trajectory is one of its own.

    Of a run that was not read to the end, the problems on its page stand in place of the command that lists them.
    """
    where = (datasette, database)
    amiss = set(told["amiss"])
    return [
        list(_amiss(*where, note, *_run_of(note, run_ids)) if note in amiss else _parts(*where, note))
        for note in told["notes"]
    ]


def _run_of(note: str, run_ids: Mapping[str, Any]) -> tuple[str, Any]:
    """Return the name and the number of the run that a note begins with; a run may be called as another begins."""
    return max((run for run in run_ids.items() if note.startswith(f"{run[0]}: ")), key=lambda run: len(run[0]))


def _amiss(datasette: Datasette, database: str, note: str, name: str, number: Any) -> Iterator[Part]:
    said = note[len(name) :]
    if (command := COMMAND.search(said)) is None:
        yield note, None
        return
    yield f"{name}{said[: command.start()]}: ", None
    yield "problems of the run", f"{run_url(datasette, database, number)}#problems"
    yield said[command.end() :], None


def _parts(datasette: Datasette, database: str, sentence: str) -> Iterator[Part]:
    note, end = in_form_words(sentence), 0
    for found in NAMED.finditer(note):
        yield note[end : found.start(1)], None
        for part in NUMBER.split(found[1]):
            yield part, trajectory_url(datasette, database, int(part)) if part.isdigit() else None
        end = found.end(1)
    yield note[end:], None
