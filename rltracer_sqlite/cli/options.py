"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from ..outcomes import NAMED_BEFORE
from ..unrecorded import NOT_RECORDED
from .numbers import Between


def every(looks: str) -> Callable[[Any], Any]:
    """Return the option `--every` of a command with `--watch`; `looks` says what it looks at."""
    return click.option(
        "--every",
        type=Between(0.1, 3600),
        default=2.0,
        show_default=True,
        metavar="SECONDS",
        help=f"With --watch: the time between two looks at {looks}.",
    )


class Outcome(click.types.StringParamType):
    """One of some outcomes; "correct" and "incorrect", as rltracer 0.1.0 has it, are passed and failed."""

    name = "outcome"

    def __init__(self, *known: str) -> None:
        self.known = known

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if (found := NAMED_BEFORE.get(value, value)) not in self.known:
            self.fail(f"{value!r} is not one of {', '.join(map(repr, self.known))}.", param, ctx)
        return found


def outcome(option: str, *known: str, name: str = "", **others: Any) -> Callable[[Any], Any]:
    """Return an option that takes one of some outcomes; its value goes by `name`, if it is given."""
    names = [option, *([name] if name else [])]
    return click.option(*names, type=Outcome(*known), metavar=f"[{'|'.join(known)}]", show_default=True, **others)


def one_run(which: str) -> Callable[[Any], Any]:
    """Return the option `--run` of a command on an index; `which` says what is done without it, or why to give it."""
    return click.option("--run", metavar="NAME", help=f"{which} By name, its beginning or number.")


split = click.option("--split", help=f"Only this split, for example train or eval; '{NOT_RECORDED}': what has none.")
env = click.option("--env", help=f"Only this environment; '{NOT_RECORDED}': what has none.")
progress = click.option(
    "--progress", is_flag=True, help="Say on stderr every half minute how much is read, also in a pipe or a log."
)
