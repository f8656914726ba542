"""Where the files of other systems than prime-rl lie, by their names: those that are read, and those known and not."""

from __future__ import annotations

import re
from functools import cache

from ..sources.table.built_in import PRESETS, preset
from ..sources.table.mapping import Template

# Known and not read yet, as sources.table.refused tells them by their content: what they are, and what is their run's.
UNREAD: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("Inspect AI logs", re.compile(r"(?:^|/)[^/]+\.eval$")),
    ("rollouts of slime or miles", re.compile(r"(?:^|/)rollout_data/(?:eval_)?\d+\.pt$")),
    ("trials of Harbor", re.compile(r"(?:^|/)[^/]+/agent/trajectory\.json$")),
    ("tables of W&B", re.compile(r"(?:^|/)files/media/table/(?:[^/]+/)*[^/]+\.table\.json$")),
    ("rollout summaries of the Tinker cookbook", re.compile(r"(?:^|/)[^/]+_rollout_summaries\.jsonl$")),
    ("trajectories of SWE-agent", re.compile(r"(?:^|/)[^/]+\.traj(?:\.json)?$")),
)


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


def unread_kind(path: str) -> tuple[str, re.Match[str]] | None:
    """Return what a file of a known system that is not read yet is, and where its place begins; None for others."""
    return next(((what, match) for what, pattern in UNREAD if (match := pattern.search(path))), None)


def _literal(place: Template) -> str:
    """Return what of a place is written out, a split included, its ending not."""
    return re.sub(r"\*|\{step\}|/|\.\w+$", "", place.written)


def _weight(place: Template) -> tuple[int, int]:
    return -place.written.count("/"), -len(_literal(place))
