"""The list of what this user has indexed on this machine, or said to be trusted: what an index may lead to besides."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from .replacing import replacing
from .sources.base import SourceError
from .sources.places import Root, place, real_place
from .user_folders import config_folder


def roots_file() -> Path:
    """Return the file with the user's list of roots; RLTRACER_HOME moves it."""
    return config_folder() / "roots.txt"


def list_problem() -> str | None:
    """Return why the list of roots is not believed, in a sentence: somebody else could have written it."""
    file = roots_file()
    for path in (file, file.parent):
        try:
            status = path.stat()
        except OSError:
            continue
        if hasattr(os, "geteuid") and os.geteuid() != 0 and status.st_uid not in (0, os.geteuid()):
            return f"The list of roots is not used: {path} belongs to another user."
        is_sticky = path != file and status.st_mode & stat.S_ISVTX  # there, only an owner can replace a file
        if os.name == "posix" and status.st_mode & stat.S_IWOTH and not is_sticky:
            return f"The list of roots is not used: everybody may write to {path}. Mend it with chmod o-w."
    return None


def remembered_roots() -> list[Root]:
    """Return the folders and URLs on the user's list in their order; none where there is a `list_problem`."""
    if list_problem() is not None:
        return []
    try:
        # Only "\n" ends a line: a folder's name may hold whatever else Python takes for the end of one.
        lines = roots_file().read_bytes().decode("utf-8", "surrogateescape").split("\n")
    except (OSError, ValueError):
        return []
    return [root for line in lines if line.strip() and (root := _remembered(line)) is not None]


def _remembered(line: str) -> Root | None:
    try:
        return place(line)
    except SourceError:
        return None  # written by hand, or by a version that reads more


def remember_root(root: Root) -> None:
    """Add a folder, a single file or a URL to the user's list. Raises OSError where it cannot be written or used."""
    if problem := list_problem():
        raise OSError(problem)
    resolved = real_place(root)
    known = remembered_roots()
    if resolved not in known and "\n" not in str(resolved):
        _write([*known, resolved])


def forget_root(root: Root) -> bool:
    """Take a folder or a URL off the user's list; say whether it was on it."""
    known, resolved = remembered_roots(), real_place(root)
    left = [path for path in known if path not in (root, resolved)]
    if len(left) < len(known):
        _write(left)
    return len(left) < len(known)


def _write(roots: list[Root]) -> None:
    with replacing(roots_file()) as file:
        file.write("".join(f"{path}\n" for path in roots).encode("utf-8", "surrogateescape"))
