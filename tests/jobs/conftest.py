"""Small parts, so that a small run has many, and processes that start quickly."""

from __future__ import annotations

import os
from multiprocessing import get_context

import pytest

from rltracer_sqlite.index import parallel, parts
from rltracer_sqlite.sources.prime_rl import scan


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "PART_BYTES", 2000)
    monkeypatch.setattr(parts, "BATCH", 3)
    monkeypatch.setattr(parallel, "AHEAD_BYTES", 4000)
    monkeypatch.setattr(scan, "COMMIT_RECORDS", 16)


@pytest.fixture
def forked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fork the processes from one that has imported what they need: each would import it anew.

    This one may not be forked where it has threads, as a worker of pytest-xdist has.
    """
    if os.name == "posix":
        get_context("forkserver").set_forkserver_preload([__name__])
        monkeypatch.setattr(parallel, "_start_method", lambda: "forkserver")
