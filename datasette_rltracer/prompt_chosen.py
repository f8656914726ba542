"""What the page of a prompt is narrowed to, and what it could be narrowed to instead."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rltracer_sqlite.index.among import Among
from rltracer_sqlite.unrecorded import NOT_RECORDED, named

from .addresses import prompt_url
from .selection import Pair, recorded

if TYPE_CHECKING:
    from datasette.app import Datasette

CHOSEN_BY = ("split", "env")


@dataclass(frozen=True)
class Chosen:
    """A prompt of a run, and the split and environment that its page is narrowed to."""

    datasette: Datasette
    database: str
    run: int
    prompt: int
    among: Among

    @property
    def where(self) -> tuple[Datasette, str]:
        """The server and the index."""
        return self.datasette, self.database

    @property
    def pairs(self) -> list[Pair]:
        """The filters of the prompt's groups, as tables and pages of groups take them."""
        own = [("run_id", str(self.run)), ("prompt_id", str(self.prompt))]
        return [*own, *map(recorded, self.among.given.items())]

    def here(self, among: Among, start: int | None = None) -> str:
        """Return the address of this page with another choice."""
        return prompt_url(*self.where, self.run, self.prompt, [*among.given.items(), ("start", start)])


def choices(chosen: Chosen, kinds: Sequence[Mapping[str, Any]]) -> list[tuple[str, str, bool]]:
    """Return (words, address, whether it is shown) of the splits and environments that a prompt is in.

    None where it is in one only. What none of them records is no choice.
    """
    if len(kinds) < 2:
        return []
    none = [None if all(kind[name] is None for kind in kinds) else NOT_RECORDED for name in CHOSEN_BY]
    asked = [[kind[name] or other for name, other in zip(CHOSEN_BY, none, strict=True)] for kind in kinds]
    found = [Among(), *(Among(*names) for names in asked), chosen.among]
    return [
        (" · ".join(named(*pair) for pair in among.given.items()) or "all", chosen.here(among), among == chosen.among)
        for among in dict.fromkeys(found)
    ]
