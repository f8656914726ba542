"""Where the files of other systems than prime-rl lie, by their names: those that are read."""

from __future__ import annotations

import re
from functools import cache

from ..sources.table.built_in import PRESETS, preset
from ..sources.table.mapping import Template


@cache
def conventions() -> tuple[tuple[Template, bool], ...]:
    """Return the places of the built-in mappings, the most telling first, and whether a name of that kind is enough.

    `{step}.jsonl` is none that is enough; the mapping of chat files, which takes any, is not among them.
    """
    found = [place for name in PRESETS if not preset(name).generic for place in preset(name).paths]
    return tuple((place, bool(_literal(place))) for place in sorted(found, key=_weight))


def convention(path: str) -> tuple[re.Match[str], bool] | None:
    """Return where the place of a mapping begins in a path, with its `step` if any, and whether it is telling."""
    return next(((match, told) for place, told in conventions() if (match := place.ending(path))), None)


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
