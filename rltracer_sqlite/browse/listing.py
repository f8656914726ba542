"""What lies below a folder in words: the folders that hold something, with how many files and of which system."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import Any, NamedTuple

from ..amounts import LIST_COLUMNS, ONE_LINE, plural, ranges, shortened_name
from .find import RunFolder

MOST_NAMED = 6  # folders, or groups of them, in a sentence


class Group(NamedTuple):
    """One folder, or several of one kind beside each other, as `name` says: a path, or that of their folder and /*."""

    name: str
    runs: list[RunFolder]

    def __str__(self) -> str:
        kind = self.runs[0].unread or self.runs[0].kind
        folders = [plural(len(self.runs), "folder")] if len(self.runs) > 1 else []
        name = shortened_name(self.name.translate(ONE_LINE), LIST_COLUMNS)
        return f"{name} ({', '.join([*folders, plural(sum(run.files for run in self.runs), 'file'), kind])})"


def places_in_words(root: Path, runs: Sequence[RunFolder]) -> str:
    """Return what lies below a folder for a sentence; where it is cut off, with the command that lists the rest."""
    groups = grouped(runs)
    named = ", ".join(map(str, groups[:MOST_NAMED]))
    if not (more := groups[MOST_NAMED:]):
        return named
    count = sum(len(group.runs) for group in more)
    return f"{named} and {plural(count, 'more folder')}, listed by: rltracer runs {quote(str(root))}"


def grouped(runs: Sequence[RunFolder]) -> list[Group]:
    """Return folders in the order of their paths; of many those of one kind that lie beside each other together."""
    ordered = sorted(runs, key=lambda run: run.path)
    if len(ordered) <= MOST_NAMED:
        return [Group(run.path, [run]) for run in ordered]
    beside: dict[tuple[str, str], list[RunFolder]] = {}
    for run in ordered:
        folder, slash, _ = run.path.rpartition("/")
        # Those that lie in the folder itself are named one by one: together they would be a star that says nothing.
        beside.setdefault((folder if slash else run.path, run.kind), []).append(run)
    return [Group(found[0].path if len(found) == 1 else f"{folder}/*", found) for (folder, _), found in beside.items()]


def place_lines(runs: Sequence[RunFolder]) -> list[str]:
    """Return a line for each folder: its path, how many files it holds, their steps, and which system wrote them."""
    ordered = sorted(runs, key=lambda run: run.path)
    return [f"  {run.path.translate(ONE_LINE)}: {', '.join(filter(None, _facts(run)))}" for run in ordered]


def place_facts(run: RunFolder) -> dict[str, Any]:
    """Return what is known of a folder for programs."""
    return {
        "path": run.path, "files": run.files, "bytes": run.bytes, "steps": sorted(run.steps), "modified": run.modified,
        "system": run.system or None, "is_known": run.is_known, "unread": run.unread or None,
    }  # fmt: skip


def _facts(run: RunFolder) -> list[str]:
    steps = f"{'step' if len(run.steps) == 1 else 'steps'} {ranges(run.steps)}" if run.steps else ""
    return [plural(run.files, "file"), steps, run.kind]
