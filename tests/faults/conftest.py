"""One small run and the index of it that nothing disturbed, for tests that only read them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rltracer_sqlite.remembered_roots import remember_root
from tests.faults.runs import write_run
from tests.indexing import index


@pytest.fixture(scope="session")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("faults") / "run")


@pytest.fixture(scope="session")
def whole(run: Path) -> Path:
    index(run.parent / "whole.sqlite", run)
    return run.parent / "whole.sqlite"


@pytest.fixture
def trusted(run: Path) -> None:
    """Let an index that is copied elsewhere still lead to the run."""
    remember_root(run)
