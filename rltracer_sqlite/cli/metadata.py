"""`rltracer metadata`: Datasette metadata for an index, to be edited by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from . import CONTEXT
from .places import FILE


@click.command("metadata", context_settings=CONTEXT)
@click.argument("database", type=FILE, default=Path("run.sqlite"))
def command(database: Path) -> None:
    """Print metadata.yml for DATABASE: descriptions, facets, labels and orders of every table.

    The plugin sets all of this by itself; the file is for Datasette without the plugin, or as a start for your own.
    """
    searchable = False
    if database.exists():
        from ..index.database import open_index
        from ..search.tables import has_text

        connection = open_index(database)  # a file that is no index says so
        searchable = has_text(connection)
        connection.close()
    click.echo(as_yaml(database.stem, searchable), nl=False)


def as_yaml(name: str, searchable: bool = False) -> str:
    """Return the metadata of a database with this name as YAML; with `searchable`, of one with its full text."""
    from ..describe import datasette_metadata

    return "".join(f"{line}\n" for line in _lines(datasette_metadata(name, searchable), 0))


def _lines(value: Any, depth: int) -> list[str]:
    import json

    indent, lines = "  " * depth, []
    for key, inner in value.items():
        if isinstance(inner, dict) and inner:
            lines += [f"{indent}{key}:", *_lines(inner, depth + 1)]
        else:
            # JSON is YAML: its quoting is safe for every text and list.
            lines.append(f"{indent}{key}: {json.dumps(inner, ensure_ascii=False)}")
    return lines
