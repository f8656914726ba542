"""`rltracer metadata`: Datasette metadata for an index, to be edited by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


@click.command("metadata", context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("database", type=click.Path(path_type=Path), default=Path("run.sqlite"))
def command(database: Path) -> None:
    """Print metadata.yml for DATABASE: descriptions, facets, labels and orders of every table.

    The plugin sets all of this by itself; the file is for Datasette without the plugin, or as a start for your own.
    """
    if database.exists():
        from ..index.database import open_index

        open_index(database).close()  # a file that is no index says so
    click.echo(as_yaml(database.stem), nl=False)


def as_yaml(name: str) -> str:
    """Return the metadata of a database with this name as YAML."""
    from ..describe import datasette_metadata

    return "".join(f"{line}\n" for line in _lines(datasette_metadata(name), 0))


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
