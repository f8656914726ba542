"""Folders of files that are called by their step alone: whether they are several runs, or the splits of one.

A system that writes `1.jsonl`, `2.jsonl`, … into folders that people choose tells by nothing else what they hold.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from ..sources.base import PACKED
from ..sources.places import FILE, SKIPPED_FOLDERS, walk
from .conventions import convention
from .find import HERE, without_inner

# What people call the folders of one run: by the split, or by what is in them.
SPLIT = re.compile(r"(?<![a-z])(?:train|val|eval|test|rollout|sampl|generat|dump)")
EVALUATED = {"val", "eval", "test"}


class Alike(NamedTuple):
    """Folders below a folder that hold files of the same steps; both are empty where one run is all that it can be."""

    runs: list[str]  # all of them, where two go by the same split or by none: several runs
    doubtful: list[str]  # two that go by different words, neither of which is one of an evaluation


def alike(root: Path) -> Alike:
    """Return which folders below a folder of this machine hold files of the same steps. Opens none of them."""
    base = root.absolute().as_posix()
    sharing: dict[str, list[str]] = {}
    for path, what in walk(root, SKIPPED_FOLDERS):
        found = convention(f"{base}/{path.removesuffix(PACKED)}") if what == FILE else None
        if found is None or found.is_telling:
            continue
        folder, _, name = path.removesuffix(PACKED).rpartition("/")
        if without_inner(folder) == HERE:
            return Alike([], [])  # it is a run itself
        sharing.setdefault(name, []).append(folder)
    return _judged(sharing)


def _judged(sharing: dict[str, list[str]]) -> Alike:
    doubtful: list[str] = []
    for folders in sharing.values():
        known: dict[frozenset[str], str] = {}
        for folder in dict.fromkeys(folders):  # a file may be there plain and packed
            words = frozenset(SPLIT.findall(folder.rpartition("/")[2].lower()))
            if words in known:
                return Alike(sorted({without_inner(one) for found in sharing.values() for one in found}), [])
            others = [other for split, other in known.items() if not (words | split) & EVALUATED]
            doubtful = doubtful or [*others[:1], folder] if others else doubtful
            known[words] = folder
    return Alike([], doubtful)
