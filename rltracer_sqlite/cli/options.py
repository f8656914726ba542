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
