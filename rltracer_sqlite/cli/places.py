"""Arguments that say where a run is: a path, or the URL of a remote run; and what is said of a folder of many."""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ..sources.places import Root

MOST_NAMED = 5
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


def refuse_several(root: Root, otherwise: str = "", takes_several: bool = True) -> None:
    """Raise SourceError where a folder of this machine holds several runs and is none itself.

    `otherwise` is a further sentence, which says what else can be done.
    """
    if not isinstance(root, Path) or not root.is_dir():
        return
    from ..browse.find import several_runs
    from ..sources.base import SourceError

    found = several_runs(root)
    if not found:
        return
    folder = quote(str(root))
    depths = {path.count("/") + 1 for path in found}
    each = f"{folder}/{'/'.join('*' * depths.pop())}" if len(depths) == 1 else "their folders"
    each = each if takes_several else "one of them"
    names = ", ".join(found[:MOST_NAMED]) + (f" and {len(found) - MOST_NAMED} more" if len(found) > MOST_NAMED else "")
    raise SourceError(
        f"{root} is no run, and holds {len(found)} of them: {names}. Give {each} instead, or look at all of them with: "
        f"rltracer serve --browse-root {folder}{otherwise}"
    )
