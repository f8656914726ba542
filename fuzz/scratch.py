"""A folder to write inputs to: in memory where the system has such a place, and gone at the end."""

from __future__ import annotations

import atexit
import os
import shutil
from functools import cache
from pathlib import Path
from tempfile import gettempdir, mkdtemp

MEMORY = Path("/dev/shm")


@cache
def scratch(name: str) -> Path:
    """Return the folder of a target; the same one each time in a process."""
    place = MEMORY if MEMORY.is_dir() else Path(gettempdir())
    _remove_left(place)
    folder = Path(mkdtemp(prefix=f"fuzz-{name}-{os.getpid()}-", dir=place))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def _remove_left(place: Path) -> None:
    """Remove the folders of processes that are no more: libFuzzer ends one without asking Python."""
    for folder in place.glob("fuzz-*"):
        *_, process, _ = ("", "", *folder.name.split("-"))
        if process.isdigit() and not _is_running(int(process)):
            shutil.rmtree(folder, ignore_errors=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OverflowError, PermissionError):
        return True
    return True
