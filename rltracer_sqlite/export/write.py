"""Rows to files: what may be written over, and that an old file stays until the new one is whole."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO

from ..replacing import replacing as beside
from ..sources.places import is_database
from ..sources.remote_requests import is_url
from .errors import ExportError
from .lines import Row, lines, packed

# Names that promise another format.
OTHERS = frozenset([".csv", ".tsv", ".txt", ".json", ".yaml", ".sqlite", ".sqlite3", ".db", ".xlsx", ".html"])


def refuse_name(path: Path) -> None:
    """Raise ExportError for the name of a file of rows that promises another format."""
    if path.suffix.lower() in OTHERS:
        raise ExportError(
            f"{path}: rows are written as .jsonl, .jsonl.gz, .jsonl.zst or .parquet, not as {path.suffix}."
        )


def refuse_target(path: Path, runs: Iterable[str], inputs: Iterable[Path] = ()) -> None:
    """Raise ExportError for what must not be written over: a file of a run, an input, a database, what is no file."""
    place = _real_place(path)
    if place.is_dir():
        raise ExportError(f"{path} cannot be written: it is a folder.")
    for run in runs:
        if not is_url(run) and _lies_in(place, Path(run)):
            raise ExportError(f"{path} lies in the run {run}, which is never written to.")
    if not place.exists():
        return
    if not place.is_file():
        # A device or a pipe would be replaced by a file.
        raise ExportError(f"{path} cannot be written: it is no ordinary file.")
    for other in inputs:
        if other.exists() and place.samefile(other):
            raise ExportError(f"{path} is what the export reads ({other}); choose another name.")
    if is_database(place):
        raise ExportError(f"{path} is a database, and is not written over; choose another name.")


def _real_place(path: Path) -> Path:
    """Return where a path leads, links followed. Raises ExportError for what is no path."""
    try:
        place = path.resolve()
        is_loop = place.is_symlink()
    except (OSError, RuntimeError, ValueError) as error:  # too long, a link to itself, a null character
        raise ExportError(f"{path} cannot be written: {getattr(error, 'strerror', None) or error}.") from None
    if is_loop:
        raise ExportError(f"{path} cannot be written: it is a link to itself.")
    return place


def _lies_in(place: Path, folder: Path) -> bool:
    if place.is_relative_to(folder):
        return True
    try:  # macOS and Windows know a folder by other spellings of its name too
        return any(parent.samefile(folder) for parent in place.parents if parent.exists())
    except (OSError, ValueError):  # a root that is no path at all
        return False


def write_rows(file: IO[bytes], rows: Iterable[Row], kind: str) -> None:
    """Write rows to an open file in a format."""
    if kind == "parquet":
        from .parquet import write_parquet

        write_parquet(file, rows)
        return
    for chunk in packed(lines(rows), kind):
        file.write(chunk)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Give a file to write to, and put it in the place of `path` when all went well.

    After an error nothing is left of it. Raises ExportError where the folder cannot be written to.
    """
    is_open = False
    try:
        with beside(path) as file:
            is_open = True
            yield file
    except OSError as error:
        # Once it is open, an error that names another file is about one that is read; a full disk names none.
        if is_open and error.filename is not None and not os.fsdecode(error.filename).endswith(".part"):
            raise
        raise _unwritable(path, error) from None


@contextmanager
def replacing_all(*paths: Path) -> Iterator[list[IO[bytes]]]:
    """Give a file to write to for each path; put all in their places, in this order, once each of them is whole."""
    with ExitStack() as stack:
        files = [stack.enter_context(replacing(path)) for path in reversed(paths)][::-1]
        yield files
        for path, file in zip(paths, files, strict=True):
            try:
                file.flush()  # the disk may be full only now
            except OSError as error:
                raise _unwritable(path, error) from None


def _unwritable(path: Path, error: OSError) -> ExportError:
    return ExportError(f"{path} cannot be written: {error.strerror or error}.")
