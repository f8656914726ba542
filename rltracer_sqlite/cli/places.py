"""The type of an argument that says where a run is: a path, or the URL of a remote run."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


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
