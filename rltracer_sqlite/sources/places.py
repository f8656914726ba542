"""Where a run is: a folder or a file of this machine, or a URL; and the one place where folders are walked."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple, TypeAlias, overload

from ..arguments import can_be_path, shown
from ..errors import SourceError
from .remote import RemoteRoot
from .remote_listing import Status
from .remote_requests import is_url

Root: TypeAlias = Path | RemoteRoot
"""The folder or the file that a run is. A remote one has of a Path what tells where and what it is."""

FileStatus: TypeAlias = Callable[[str], Status]

SQLITE_HEADER = b"SQLite format 3\0"
FILE, LINK, CLOSED, FOLDER = "file", "link", "closed", "folder"
# Folders that hold weights or a tracker's own files, and often very many of them.
SKIPPED_FOLDERS = frozenset({"checkpoints", "weights", "wandb", "node_modules", "__pycache__"})


class Listed(NamedTuple):
    """What a walk came upon: a file, or what it did not enter, a link to a folder or a folder that is closed to us.

    A folder that has the name of a file of lines is told too, and entered as every one.
    """

    path: str  # relative to where the walk began, "/" separated
    what: str = FILE


def place(where: str | os.PathLike[str] | RemoteRoot) -> Root:
    """Return the place that a text means.

    Raises SourceError for a URL that is not read and for an empty text, and TypeError for what is no place.
    """
    if isinstance(where, RemoteRoot):
        return where
    text = os.fspath(where) if isinstance(where, (str, os.PathLike)) else None
    if not isinstance(text, str):
        raise TypeError(f"A path or a URL is text or a Path, and {shown(where)} is neither.")
    if not can_be_path(text):
        raise SourceError(f"{shown(text)} is no path and no URL.")
    return RemoteRoot(text) if is_url(text) else Path(text)


def walk(root: Root, skipped: frozenset[str] = frozenset()) -> Iterator[Listed]:
    """Yield every file below a folder, folder by folder in the order of their names.

    Links to folders are not followed; folders with these names, or with a dot in front, are passed over.
    Raises SourceError where the folder itself cannot be read.
    """
    if isinstance(root, RemoteRoot):
        yield from map(Listed, root.walk(skipped))
        return
    pending = [""]
    while pending:
        folder = pending.pop()
        try:
            with os.scandir(root / folder) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError as error:
            if not folder:
                raise SourceError(f"{root} cannot be read: {error.strerror}.") from None
            yield Listed(folder, CLOSED)
            continue
        folders = []
        for entry in listed:
            path = f"{folder}/{entry.name}" if folder else entry.name
            if not _is_folder(entry):
                yield Listed(path)
            elif entry.name in skipped or entry.name.startswith("."):
                continue
            elif entry.is_symlink():
                yield Listed(path, LINK)
            else:
                folders.append(path)
                if entry.name.endswith(".jsonl"):
                    yield Listed(path, FOLDER)
        pending += reversed(folders)


def files_below(root: Root) -> Iterator[str]:
    """Yield the path of every file below a folder, apart from those in folders that hold no rollouts."""
    yield from (path for path, what in walk(root, SKIPPED_FOLDERS) if what not in (CLOSED, FOLDER))


def kept_name(path: str) -> str:
    """Return a path as an index can keep it: where a name is no text, the file is listed, and opening it fails."""
    return path.encode("utf-8", "backslashreplace").decode()


def file_status(root: Root) -> FileStatus:
    """Return what gives (bytes, time of the last change in nanoseconds) of a file of a run.

    It raises OSError or LocatorError. Of a remote file the part below a second tells its content apart, and what
    was listed is not asked for again.
    """
    if isinstance(root, RemoteRoot):
        return root.status
    base = base_folder(root)

    def local(file: str) -> Status:
        status = os.stat(base / file)
        return status.st_size, status.st_mtime_ns

    return local


@overload
def base_folder(root: Path) -> Path: ...
@overload
def base_folder(root: Root) -> Root: ...
def base_folder(root: Root) -> Root:
    """Return the folder that shard paths are relative to: the root, or its parent where the root is one file."""
    return root.parent if root.is_file() else root


@overload
def real_place(root: Path) -> Path: ...
@overload
def real_place(root: Root) -> Root: ...
def real_place(root: Root) -> Root:
    """Return a place with every link followed as far as it leads; before Python 3.13 `resolve` fails in a circle."""
    return Path(os.path.realpath(root)) if isinstance(root, Path) else root.resolve()


def is_database(where: Root) -> bool:
    """Say whether a place is a SQLite file of this machine."""
    try:
        if not isinstance(where, Path) or not where.is_file():
            return False
        with where.open("rb") as file:
            return file.read(len(SQLITE_HEADER)) == SQLITE_HEADER
    except OSError:
        return False


def relist(root: Root) -> None:
    """See that a remote run is listed anew when it is asked for the next time. A local one always is."""
    if isinstance(root, RemoteRoot):
        root.forget()


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:
        return False  # a circle of links
