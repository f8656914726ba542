"""Arguments that say where something is: a file that is read or written, or a run by its path or its URL.

What a command is told to write is made; the folder that it is to lie in has to be there.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from .several import refuse_several
from .visible import printable

if TYPE_CHECKING:
    from ..sources.places import Root

DATABASES = (".sqlite", ".sqlite3", ".db")  # how a database is often called


class FilePath(click.Path):
    """A path as click takes it; an empty one, which would mean the current folder, is refused."""

    def __init__(self, path_type: type[Any] = Path) -> None:
        super().__init__(path_type=path_type, readable=False)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "":
            self.fail("it is empty; the current folder is written as a dot.", param, ctx)
        return super().convert(value, param, ctx)


class Output(FilePath):
    """Where something is written: a new place in a folder that is there, or one that is written over."""

    def __init__(self, is_folder: bool | None = False) -> None:
        """`is_folder`: what is written is a folder; None for either."""
        super().__init__()
        self.is_folder = is_folder

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        path: Path = super().convert(value, param, ctx)
        refuse_output(path, self.is_folder)
        return path


class Place(FilePath):
    """A path; or a URL, of which nothing is asked here."""

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


FILE, RUN, TOKENIZER = FilePath(), Place(), FilePath(str)
OUTPUT, OUTPUT_FOLDER, OUTPUTS = Output(), Output(is_folder=True), Output(is_folder=None)


def refuse_output(path: Path, is_folder: bool | None = False) -> None:
    """Raise ClickException where nothing can be written to a place; `is_folder` is that of Output."""
    if reason := _refusal(path, is_folder):
        raise click.ClickException(printable(f"{path} cannot be written: {reason}"))


def _refusal(path: Path, is_folder: bool | None) -> str | None:
    try:
        if is_folder is False and path.is_dir():
            return "it is a folder."
        if is_folder and path.exists() and not path.is_dir():
            return "it is a file, and what is written is a folder."
        if not path.parent.exists():
            return f"the folder {path.parent} does not exist."
    except (OSError, ValueError):  # too long a name, or none at all: who writes says so
        pass
    return None


def check_run(root: Root, takes_several: bool = True) -> None:
    """Raise IndexFileError for an index that is not there, and SourceError for a folder of several runs.

    `takes_several`: the command takes the places of several runs.
    """
    if isinstance(root, Path) and root.suffix in DATABASES and not root.exists():
        from ..index.database import open_index

        open_index(root)  # says how to make it
    refuse_several(root, takes_several=takes_several)


def refuse_swapped(command: str, database: Path, others: Sequence[str]) -> None:
    """Raise UsageError where the database stands among the arguments after it, with the right order."""
    from ..sources.places import is_database

    if is_database(database):
        return
    found = next((other for other in others if other and is_database(Path(other))), None)
    if found is not None:
        rest = [str(database), *(other for other in others if other is not found)]
        right = " ".join(map(quote, [found, *rest]))
        raise click.UsageError(printable(f"DATABASE comes first: {command} {right}"))
