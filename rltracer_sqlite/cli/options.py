"""Options that several commands have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


def every(looks: str) -> Callable[[Any], Any]:
    """Return the option `--every` of a command with `--watch`; `looks` says what it looks at."""
    return click.option(
        "--every",
        type=click.FloatRange(0.1, 3600),
        default=2.0,
        show_default=True,
        metavar="SECONDS",
        help=f"With --watch: the time between two looks at {looks}.",
    )


def one_run(which: str) -> Callable[[Any], Any]:
    """Return the option `--run` of a command on an index; `which` says what is done without it, or why to give it."""
    return click.option("--run", metavar="NAME", help=f"{which} By name, its beginning or number.")


split = click.option("--split", help="Only this split, for example train or eval.")
env = click.option("--env", help="Only this environment.")
