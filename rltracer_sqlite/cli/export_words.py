"""What `rltracer export` says: refusals, what was selected and written, and notes, in the words of its options."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..amounts import plural
from .amiss import say_amiss
from .funnel import clear_progress, funnel_lines, funnel_report
from .say import say
from .vanished import if_any_moved
from .visible import in_line, printable

if TYPE_CHECKING:
    from ..export.exporter import ExportResult
    from ..export.runs import TraceRunSpec
    from ..sources.places import Root

FIELD_FILTER = re.compile(r"\bthe field filter ([^<>=]+[<>]?=\S+)")


@contextmanager
def told_as(kind: type[click.ClickException], specs: Sequence[TraceRunSpec] = ()) -> Iterator[None]:
    """Raise what the export refuses as an error of this kind, in the words of the command line.

    Of a file that is not there it is said what helps where one of the indexed runs has been moved.
    """
    from ..export.errors import ExportError
    from ..sources.base import LocatorError

    try:
        yield
    except LocatorError as error:
        # Of an index each run has a spec with its name, and of a run's folder one without.
        moved = (if_any_moved(Path(str(spec.path)), [spec.run]) for spec in specs if isinstance(spec.run, str))
        raise click.ClickException(printable(f"{error}{next(filter(None, moved), '')}")) from None
    except ExportError as error:
        raise kind(printable(with_options(str(error)))) from None
    finally:
        clear_progress()


@contextmanager
def funnel_of_too_few() -> Iterator[None]:
    """Say what each filter left of a selection that is refused for having too little, before it is refused."""
    from ..export.errors import ExportError

    try:
        yield
    except ExportError as error:
        clear_progress()
        if error.funnel:
            say("\n".join(funnel_lines(error.funnel, is_unread=True)))
        raise


def say_written(result: ExportResult, told: dict[str, Any], is_replaced: bool) -> None:
    """Say what each filter left, and what was written where."""
    say(funnel_report(told))
    distinct = result.distinct_row_count
    repeated = f", {distinct:,} distinct," if distinct < result.row_count else ""
    several = result.row_count > result.selected_count  # a row for each branch
    of_them = f" of {plural(result.selected_count, 'trajectory')}" if several else ""
    written = f"Wrote {plural(result.row_count, 'row')}{of_them}{repeated} to {result.output_path}"
    replaced = ", replaced" if is_replaced else ""
    say(f"{written}{replaced}; summary: {result.summary_path}")


def say_row_notes(told: dict[str, Any]) -> None:
    """Say on stderr what rows do not show at first sight, and a trainer takes in."""
    for note in told["row_notes"]:
        say(in_line(f"Note: {note}"), err=True)


def in_options(told: dict[str, Any]) -> dict[str, Any]:
    """Return a summary whose sentences name preferences as the options that set them here."""
    return told | {name: [with_options(note) for note in told[name]] for name in ("notes", "row_notes", "amiss")}


def with_options(sentence: str) -> str:
    """Return a sentence of the library with its names of preferences as the options that set them here."""
    from ..export.settings import renamed

    params = click.get_current_context().command.params
    options = {param.name: param.opts[-1 if param.name == "output" else 0] for param in params}
    sentence = FIELD_FILTER.sub(r"--field '\1'", sentence)
    return renamed(sentence, lambda name, value: f"{options[name]} {value}".strip() if name in options else None)


def say_amiss_of_runs(specs: list[TraceRunSpec]) -> None:
    """Say what of the runs was not read, as every command does that shows figures of a run."""
    from ..index.database import open_index
    from ..index.queries import runs
    from ..on_demand import cached_index
    from ..sources.places import place

    asked: dict[Root, set[str | int | None]] = {}
    for spec in specs:
        asked.setdefault(place(spec.path), set()).add(spec.run)
    for path, names in asked.items():
        index = cached_index(path) if names == {None} else path  # of an index each run has a spec with its name
        with closing(open_index(Path(str(index)))) as connection:
            say_amiss(connection, path, {run.id for run in runs(connection) if names == {None} or run.name in names})
