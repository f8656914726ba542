"""What was meant by a command, an option or an argument that there is not: the way on, in the error that says so."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from os.path import exists
from shlex import quote

import click

from ..similar import did_you_mean
from .visible import printable

# What other tools, or people, call what a command does.
ALSO_CALLED = {
    "inspect": "show view print cat head steps step prompts prompt trajectories trajectory hardest easiest problems",
    "serve": "open browse web ui viz dashboard datasette",
    "plot": "chart charts graph draw",
    "search": "grep find query",
    "analyze": "analyse analysis stats summary report compare",
    "runs": "list ls remove rm move mv",
    "success": "rule rules",
    "index": "add scan update refresh reindex watch",
    "export": "sft preference dump write save",
}
EXTRA = re.compile(r"Got unexpected extra arguments? \((.*)\)", re.DOTALL)
# What an argument is that comes after those of a command.
ARGUMENTS = {
    "inspect": ("--trajectory {} shows one, --prompt {} a prompt.", "--run {} chooses a run."),
    "runs": ("rltracer inspect DB --run {} shows a run.",) * 2,
    "success": ("--rule {} sets a rule.",) * 2,
}


def command_meant(asked: str, known: Sequence[str]) -> str:
    """Return what is to be typed in place of a command that there is not; "" where nothing is like it."""
    if meant := next((name for name, others in ALSO_CALLED.items() if asked in others.split() and name in known), None):
        return f" Did you mean {meant}?"
    if "inspect" in known and exists(asked):  # unlike a Path's, it knows of no names that are too long for a file
        return printable(f" A command comes first: rltracer inspect {quote(asked)}")
    return did_you_mean([asked], known)


def with_way_on(error: click.ClickException) -> click.ClickException:
    """Return the error of a command line with what was meant, where that can be told."""
    if not isinstance(error, click.UsageError) or error.ctx is None:
        return error
    way = ""
    if isinstance(error, click.NoSuchOption):
        way = " or ".join(_options_with(error.option_name.lstrip("-"), error.ctx.command))
        way = way and f"Did you mean {way}?"
    elif found := EXTRA.fullmatch(error.message):
        ways = ARGUMENTS.get(error.ctx.info_name or "")
        way = ways[0 if found[1].isdecimal() else 1].replace("{}", quote(found[1])) if ways else ""
    return click.UsageError(printable(f"{error.message.rstrip('.')}. {way}"), error.ctx) if way else error


def _options_with(value: str, command: click.Command) -> Iterator[str]:
    """Yield the options of a command that take this word: --acceptance passed for --passed."""
    for param in command.params:
        values = getattr(param.type, "choices", getattr(param.type, "known", ()))
        if isinstance(param, click.Option) and value in values:
            yield f"{param.opts[0]} {value}"
