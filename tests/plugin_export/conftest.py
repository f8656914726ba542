"""Datasette over small runs, on whichever line is installed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from datasette.app import Datasette

from rltracer_sqlite.cli.export import command
from tests.export_runs import rollout, write_steps
from tests.indexing import copied, index


@pytest.fixture(scope="session")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return what `folder` is a copy of."""
    made = tmp_path_factory.mktemp("two-runs")
    records = [
        rollout(f"{q}{n}", q, passed=n < limit, calls=n) for q, limit in (("easy", 4), ("mid", 2)) for n in range(4)
    ]
    write_steps(made / "one", {1: records[::2], 2: records[1::2]})
    write_steps(made / "one", {2: [rollout("evaluated", "exam")]}, split="eval")
    write_steps(made / "two", {1: [rollout(f"other{n}", "easy", calls=1) for n in range(3)]})
    for name in ("one", "two"):
        index(made / "run.sqlite", made / name)
    return made


@pytest.fixture
def folder(two_runs: Path, tmp_path: Path) -> Path:
    """Return a folder with two runs and their index: run.sqlite."""
    return copied(two_runs, tmp_path)


@pytest.fixture
def datasette(folder: Path) -> Datasette:
    return Datasette([str(folder / "run.sqlite")])


async def get(datasette: Datasette, path: str, status: int = 200, **options: Any) -> Any:
    response = await datasette.client.get(path, **options)
    assert response.status_code == status, response.text[:1000]
    return response


async def exported(datasette: Datasette, path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (await get(datasette, path)).content.splitlines()]


def from_cli(folder: Path, *options: str) -> bytes:
    """Return the file that the command line writes."""
    output = folder / "cli.jsonl"
    result = CliRunner().invoke(command, [str(folder / "run.sqlite"), "-o", str(output), "--split", "any", *options])
    assert result.exit_code == 0, result.output
    return output.read_bytes()
