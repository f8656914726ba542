"""What every list of the terminal says at its end: how many problems a run has, and what its files lack."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .columns import wrapped

if TYPE_CHECKING:
    from ..adapter import IndexedAdapter


def amiss_lines(adapter: IndexedAdapter, width: int) -> Iterator[str]:
    """Yield what is amiss with a run: "189 problems: --problems lists them.", and files that are gone or wait."""
    from ..index.database import IndexFileError
    from ..index.states import amiss_of_runs
    from ..sources.base import SourceError

    try:
        said = amiss_of_runs(adapter.connection, {adapter.run_id})
    except (IndexFileError, SourceError):
        return  # a run's folder of which nothing was read yet
    if said:
        yield from wrapped(said, width)
