"""What every list of the terminal says at its end: how many problems a run has, and what its files lack."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from ..amounts import plural
from .columns import wrapped

if TYPE_CHECKING:
    from ..adapter import IndexedAdapter
    from ..index.lists import Among


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


def gone_lines(
    adapter: IndexedAdapter, width: int, among: Among, *step: int | None, prompts: Sequence[int] | None = None
) -> Iterator[str]:
    """Yield how many of the trajectories that a list counts cannot be opened any more, and what else is amiss.

    The list is of a `step`, or of all of them where none is given.
    """
    from ..index.lists import count_gone

    gone, count = count_gone(adapter.connection, adapter.run_id, among, step, prompts)
    if gone:
        why = "its file is gone" if gone == 1 else "their files are gone"
        yield from wrapped(f"{gone:,} of {plural(count, 'trajectory')} counted here cannot be opened: {why}.", width)
    yield from amiss_lines(adapter, width)
