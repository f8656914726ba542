"""Which system puts a file where it lies, by its place and its name, for the systems that mappings read."""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from ..sources.table.built_in import PRESETS, preset
from ..sources.table.mapping import Template


class Convention(NamedTuple):
    """What a path is by its end: where that begins, with its `step` if any, if it is telling, and whose it is."""

    match: re.Match[str]
    is_telling: bool
    system: str


@cache
def conventions() -> tuple[tuple[Template, str], ...]:
    """Return the places of the built-in mappings, the most telling first, and the systems that they are of.

    The mapping of chat files, which takes any, is not among them.
    """
    found = [(place, name) for name in PRESETS if not preset(name).generic for place in preset(name).paths]
    return tuple(sorted(found, key=lambda one: _weight(one[0])))


def convention(path: str) -> Convention | None:
    """Return what a path is by its end; `{step}.jsonl` is no telling name."""
    found = ((place.ending(path), place, system) for place, system in conventions())
    return next((Convention(match, bool(_literal(place)), system) for match, place, system in found if match), None)


@cache
def named_by_step() -> frozenset[str]:
    """Return the names of the systems whose files are called by their step alone."""
    presets = (name for name in PRESETS if not preset(name).generic)
    return frozenset(name for name in presets if not all(map(_literal, preset(name).paths)))


def _literal(place: Template) -> str:
    """Return what of a place is written out, a split included, its ending not."""
    return re.sub(r"\*|\{step\}|/|\.\w+$", "", place.written)


def _weight(place: Template) -> tuple[int, int]:
    return -place.written.count("/"), -len(_literal(place))
