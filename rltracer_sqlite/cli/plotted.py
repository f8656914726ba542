"""A chart for whoever asked for it: bars in the terminal, rows for a program, or a file."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from .columns import screen_width, wrapped
from .report import writes_to_terminal
from .say import say
from .visible import in_line, printable

if TYPE_CHECKING:
    from .drawn import Drawn


def printed(drawn: Drawn) -> Iterator[str]:
    """Yield a chart for a person at the terminal, or its rows for a program; stderr says what is not among these."""
    from .bars import chart_lines, tab_separated

    if not writes_to_terminal():
        yield from tab_separated(drawn.figure.rows)
        if drawn.left:
            say(in_line(drawn.left), err=True)
        return
    yield from chart_lines(drawn.figure, screen_width())
    if drawn.window != drawn.usual:
        usual = "single steps" if drawn.usual == 1 else f"windows of {drawn.usual:,}"
        said = f"In windows of {drawn.window:,} steps, to fit; its page has {usual} (--window {drawn.usual})."
        yield from _beneath(said)
    yield from _beneath(drawn.said)


def written(drawn: Drawn, output: Path, theme: str, scale: float) -> Iterator[str]:
    """Write a chart to a file, and return what is said of it. Raises ChartError, and ClickException."""
    _write(output, _rendered(drawn, output.suffix.lower(), theme, scale))
    return iter([printable(f"{output}:"), *_beneath(drawn.said)])


def _beneath(said: str) -> Iterator[str]:
    return (f"  {line}" for line in wrapped(in_line(said), screen_width() - 2))


def _rendered(drawn: Drawn, ending: str, theme: str, scale: float) -> bytes:
    from ..charts.render import drawable_spec, render_html, render_png, render_svg

    if ending == ".html":
        return render_html(drawn.figure)
    spec = drawable_spec(drawn.figure, theme)
    return render_svg(spec) if ending == ".svg" else render_png(spec, scale)


def _write(output: Path, content: bytes) -> None:
    from ..replacing import replacing

    try:
        with replacing(output) as file:
            file.write(content)
    except OSError as error:
        raise click.ClickException(printable(f"{output} cannot be written: {error.strerror}.")) from None
