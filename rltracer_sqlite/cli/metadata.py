"""`rltracer metadata`: Datasette metadata for an index, to be edited by hand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import click

from . import CONTEXT
from .places import FILE
from .visible import json_line

PLAIN = re.compile("[A-Za-z_][A-Za-z0-9_-]*")
WORDS = ("true", "false", "null", "yes", "no", "on", "off", "y", "n")  # of YAML 1.1


@click.command("metadata", context_settings=CONTEXT)
@click.argument("database", type=FILE, default=Path("run.sqlite"))
def command(database: Path) -> None:
    """Print metadata.yml for DATABASE: descriptions, facets, labels and orders of every table.

    The plugin sets all of this by itself; the file is for Datasette without the plugin, or as a start for your own.
    """
    from contextlib import closing

    from ..index.database import open_index
    from ..search.tables import has_text

    with closing(open_index(database)) as connection:
        searchable = has_text(connection)
    click.echo(as_yaml(database.stem, searchable), nl=False)


def as_yaml(name: str, searchable: bool = False) -> str:
    """Return the metadata of a database with this name as YAML; with `searchable`, of one with its full text."""
    from ..metadata import datasette_metadata

    return "".join(f"{line}\n" for line in _lines(datasette_metadata(name, searchable), 0))


def _lines(value: Any, depth: int) -> list[str]:
    indent, lines = "  " * depth, []
    for key, inner in value.items():
        if isinstance(inner, dict) and inner:
            lines += [f"{indent}{_key(key)}:", *_lines(inner, depth + 1)]
        else:
            # JSON is YAML: its quoting is safe for every text and list.
            lines.append(f"{indent}{_key(key)}: {json_line(inner)}")
    return lines


def _key(name: str) -> str:
    """Return a name as a key: one that YAML could take for something else, such as 2026, on or a: b, is quoted."""
    return name if PLAIN.fullmatch(name) and name.lower() not in WORDS else json_line(name)
