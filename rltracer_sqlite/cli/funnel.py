"""What an export has selected and written, for people: its funnel, and how far it is while it goes on."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from ..amounts import listed, plural, some_of
from .previews import names_apart
from .progress import now_and_then
from .visible import in_line

if TYPE_CHECKING:
    from ..export.runs import Progress

LONGEST_NAME = 30  # columns of the name of a run
MOST_COLUMNS = 400  # of runs with their numbers of rows
WIDEST_STAGE = 56  # columns of a funnel that fits a terminal of 80


def funnel_report(told: dict[str, Any]) -> str:
    """Return the funnel of a summary for people; of a dry run it says which lines only reading the records can tell."""
    unit = "pair" if told["unit"] == "pairs" else "trajectory"
    lines = [f"Available: {in_line(told['available_of'])}.", f"Success: {in_line(told['success_of'])}."]
    lines += funnel_lines(told["funnel"], is_unread="row_count" not in told)
    counted = ", counted once per run and window" if len(told["windows"]) > 1 else ""
    prompts = some_of(told["selected_prompt_groups"], told["eligible_prompt_groups"], "eligible prompt")
    lines.append(f"Selected {plural(told['selected_count'], unit)} of {prompts}{counted}.")
    if len(told["runs"]) > 1:
        lines.append(_by_run(told))
    elsewhere = (*told["row_notes"], *told["amiss"])  # on stderr
    lines += [note for note in told["notes"] if note not in elsewhere]
    lines += [f"Rejected {count:,}: {reason}." for reason, count in told.get("rejected", {}).items()]
    lines += [f"Redacted {count:,}: {kind}." for kind, count in told.get("redacted", {}).items()]
    if told.get("repeated_rows_left_out"):
        lines.append(f"Left out {plural(told['repeated_rows_left_out'], 'row')} of the same content as one before.")
    return "\n".join(lines)


def funnel_lines(funnel: Sequence[Mapping[str, Any]], is_unread: bool) -> list[str]:
    """Return the stages of a funnel as a table: how many are left after each, and how many it has dropped.

    Of one whose records are unread it says which stages only reading them can tell.
    """
    from ..export.conditions import TOLD_WHEN_READ

    width = min(max(len(step["stage"]) for step in funnel), WIDEST_STAGE)
    lines = [f"{'':<{width}}  {'left':>10}  {'dropped':>10}"]
    for step in funnel:
        none = "when read" if is_unread and step["left"] and step["stage"] in TOLD_WHEN_READ else "–"
        dropped = f"{step['dropped']:>10,}" if step["dropped"] else f"{none:>10}"
        name = step["stage"]
        if len(name) > width:  # stands whole, on a line of its own
            lines.append(name)
            name = ""
        lines.append(f"{name:<{width}}  {step['left']:>10,}  {dropped}")
    return lines


def _by_run(told: dict[str, Any]) -> str:
    """Return a line with each run and its number of rows, or of what a dry run selects of it."""
    counted = "row_count" if "row_count" in told else "selected_count"
    names = names_apart([in_line(run["name"]) for run in told["runs"]], LONGEST_NAME)
    names = [f"{name} {run[counted]:,}" for name, run in zip(names, told["runs"], strict=True)]
    return f"{'Rows' if 'row_count' in told else 'Selected'} by run: {listed(names, MOST_COLUMNS)}."


def progress_line(lines: bool) -> Progress | None:
    """Return what shows on a terminal how far an export is; elsewhere nothing, or lines where these are asked for."""
    if not sys.stderr.isatty():
        tell = now_and_then()
        return (lambda doing, done, total: tell(f"{doing}: {done:,} of {total:,}")) if lines else None

    def show(doing: str, done: int, total: int) -> None:
        if not total:
            click.echo(f"\r{doing}".ljust(79), err=True, nl=False)
        elif done % 100 == 0 or done == total:
            click.echo(f"\r{doing}: {done:,} of {total:,}"[:79].ljust(79), err=True, nl=False)

    return show


def clear_progress() -> None:
    if sys.stderr.isatty():
        click.echo("\r" + " " * 79 + "\r", err=True, nl=False)
