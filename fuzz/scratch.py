"""A folder to write inputs to: in memory where the system has such a place, and gone at the end."""

from __future__ import annotations

import atexit
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp


@cache
def scratch(name: str) -> Path:
    """Return the folder of a target; the same one each time in a process."""
    memory = Path("/dev/shm")
    folder = Path(mkdtemp(prefix=f"fuzz-{name}-", dir=memory if memory.is_dir() else None))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
