"""A new file in the place of an old one, or the old one as it was: written beside it, and renamed when it is whole."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from glob import escape
from pathlib import Path
from typing import IO


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """Give a file beside `path` to write to, and put it in the place of `path` when all went well.

    After an error nothing is left of it, and what a killed writer left is removed by the next one. Raises OSError.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_left_over(path)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with beside.open("w+b") as file:
            _hold(file)
            yield file
        os.replace(beside, path)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise


def remove_left_over(path: Path) -> None:
    """Remove what writers of `path` that were killed have left beside it; one that still writes holds its file."""
    for part in path.parent.glob(f".{escape(path.name)}.*.part"):
        try:
            with part.open("rb+") as file:
                if _hold(file):
                    part.unlink(missing_ok=True)
        except OSError:
            continue  # another user's


def _hold(file: IO[bytes]) -> bool:
    """Lock an open file for as long as it is open; say whether that was possible."""
    try:
        import fcntl
    except ImportError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
