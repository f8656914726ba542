"""The index of the usual run, served."""

from __future__ import annotations

from pathlib import Path

import pytest
from datasette.app import Datasette

from tests.indexing import copied
from tests.plugin.conftest import usual

__all__ = ["usual"]


@pytest.fixture
def datasette(usual: Path, tmp_path: Path) -> Datasette:
    return Datasette([str(copied(usual, tmp_path) / "run.sqlite")])
