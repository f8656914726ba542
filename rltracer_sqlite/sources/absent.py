"""What is said of a file that is not there: it is gone, or a link leads to a place where there is nothing."""

from __future__ import annotations

import os
from pathlib import Path

from ..arguments import shown
from .base import PACKED, LocatorError
from .places import Root, base_folder


def absent(root: Root, path: str) -> LocatorError:
    """Return the error for a file of a run that is not there; `path` may come from a database."""
    for file in (path, path + PACKED):
        if (found := _dangling_inside(root, file)) is not None:
            link, target = found
            way = f"{file} is" if link == file else f"{path} cannot be reached: {link} is"
            return LocatorError(f"{way} a link to {target}, where there is nothing (looked under {root}).")
    return LocatorError(f"{path} is not there any more (looked under {root}).")


def dangling(place: Path) -> str | None:
    """Return where a link leads that leads to nothing, as a sentence has it; None for what is no such link."""
    try:
        if place.is_symlink() and not place.exists():
            return shown(os.readlink(place))
    except (OSError, ValueError, RuntimeError):  # a circle of links among them
        pass
    return None


def _dangling_inside(root: Root, path: str) -> tuple[str, str] | None:
    """Return the first link on the way to a file that leads to nothing, and where it leads; nothing outside is asked.

    A link is passed only where it leads to a place inside the run.
    """
    if not isinstance(root, Path):
        return None
    base, parts = base_folder(root), path.split("/")
    if base != root and path != root.name:
        return None
    try:
        folder = base.resolve(strict=True)
        for count in range(1, len(parts) + 1):
            if parts[count - 1] in ("", ".", ".."):
                return None
            link = "/".join(parts[:count])
            if (target := dangling(folder / link)) is not None:
                return link, target
            if not (folder / link).resolve().is_relative_to(folder):
                return None
    except (OSError, ValueError, RuntimeError):
        pass
    return None
