"""Datasette over small runs, on whichever line is installed, with the export hooks registered."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from datasette import hookimpl
from datasette.app import Datasette
from datasette.plugins import pm

from datasette_rltracer import export_download, export_formats, export_page
from rltracer_sqlite.cli.export import command
from tests.export_runs import rollout, write_steps
from tests.indexing import copied, index


class Hooks:
    """The hooks of the exporter, where the plugin's own module does not carry them yet."""

    __name__ = "rltracer_export_tests"

    @hookimpl
    def register_output_renderer(self) -> list[dict[str, Any]]:
        return export_formats.renderers()

    @hookimpl
    def register_routes(self) -> list[tuple[str, Any]]:
        return export_page.routes()

    @hookimpl
    def table_actions(self, datasette: Any, actor: Any, database: str, table: str, request: Any) -> Any:
        return lambda: export_download.table_entries(datasette, actor, database, table, request)

    @hookimpl
    def view_actions(self, datasette: Any, actor: Any, database: str, view: str, request: Any) -> Any:
        return lambda: export_download.table_entries(datasette, actor, database, view, request)


@pytest.fixture(scope="session", autouse=True)
def hooks() -> Iterator[None]:
    """Register the hooks, unless the plugin does."""
    known = {
        extra["extension"] for found in pm.hook.register_output_renderer(datasette=None) for extra in listed(found)
    }
    if "sft" in known:
        yield
        return
    registered = Hooks()
    pm.register(registered, name="rltracer_export_tests")
    yield
    pm.unregister(registered)


def listed(found: Any) -> list[Any]:
    return found if isinstance(found, list) else [found]


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
