"""The index of the usual run, served."""

from __future__ import annotations

from pathlib import Path

import pytest
from datasette.app import Datasette

from tests.indexing import index
from tests.plugin.conftest import traces, write_run


@pytest.fixture
def datasette(tmp_path: Path) -> Datasette:
    write_run(tmp_path / "run", traces())
    index(tmp_path / "run.sqlite", tmp_path / "run")
    return Datasette([str(tmp_path / "run.sqlite")])
