"""Ids of trajectories in a file or a pipe, one a line."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, Any

import click

LONGEST_LINE = 65_536  # bytes


class IdFile(click.File):
    """A file that is read, or - for stdin. Raises ClickException for one that is not there or cannot be read."""

    def __init__(self) -> None:
        super().__init__("rb")

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter as error:
            raise click.ClickException(f"The ids cannot be read: {error.message}.") from None


class IdLines:
    """The ids in a file, read anew whenever they are asked for: there may be millions.

    A file that can be read only once, such as a pipe, is copied to a temporary one, which the command closes.
    """

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file if file.seekable() else _copied(file)

    def __iter__(self) -> Iterator[str]:
        self.file.seek(0)
        while line := self.file.readline(LONGEST_LINE):
            if len(line) == LONGEST_LINE:
                raise click.ClickException(f"A line of {LONGEST_LINE:,} bytes or more is no id.")
            if name := line.decode("utf-8-sig", "replace").strip():
                yield name


def _copied(file: IO[bytes]) -> IO[bytes]:
    from shutil import copyfileobj
    from tempfile import TemporaryFile

    copy: IO[bytes] = click.get_current_context().with_resource(TemporaryFile())  # noqa: SIM115
    copyfileobj(file, copy)
    return copy
