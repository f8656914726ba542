"""The type of an argument that says where a run is: a path, or the URL of a remote run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ..sources.places import Root


class Place(click.Path):
    """A path as click takes it; or a URL, of which nothing is asked here."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str) or "://" not in value:
            return super().convert(value, param, ctx)
        from ..sources.base import SourceError
        from ..sources.places import place

        try:
            root = place(value)
        except SourceError as error:
            self.fail(str(error), param, ctx)
        return super().convert(value, param, ctx) if isinstance(root, Path) else root


RUN = Place(path_type=Path, readable=False)


def is_database(path: Root) -> bool:
    """Say whether a place is a SQLite file of this machine."""
    if not isinstance(path, Path) or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(16) == b"SQLite format 3\0"
