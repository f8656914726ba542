"""Arguments that say where a run is: a path, or the URL of a remote run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .several import refuse_several

if TYPE_CHECKING:
    from ..sources.places import Root

DATABASES = (".sqlite", ".sqlite3", ".db")  # how a database is often called


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


def check_run(root: Root, takes_several: bool = True) -> None:
    """Raise IndexFileError for an index that is not there, and SourceError for a folder of several runs.

    `takes_several`: the command takes the places of several runs.
    """
    if isinstance(root, Path) and root.suffix in DATABASES and not root.exists():
        from ..index.database import open_index

        open_index(root)  # says how to make it
    refuse_several(root, takes_several=takes_several)
