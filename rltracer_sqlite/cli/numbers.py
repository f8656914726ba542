"""Numbers on the command line: those that an index can hold, and ranges of steps."""

from __future__ import annotations

import re
from math import isnan
from typing import Any

import click

from ..unrecorded import NOT_RECORDED

LARGEST = 2**63 - 1  # what SQLite can hold
NUMBER = re.compile(r"[-+\d.,_ ]*")  # what is meant as a number, if not as a whole one
RANGE = re.compile(r"(\d{1,18}|)(-?)(\d{1,18}|)")


class Whole(click.types.IntParamType):
    """A whole number that an index can hold."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        _refuse_text(value, self, param, ctx)
        return _held(super().convert(value, param, ctx), self, param, ctx)


class WholeOrNone(Whole):
    """The whole number of a step, or NOT_RECORDED for what has none, beside an option for a range of steps."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == NOT_RECORDED:
            return value
        if isinstance(value, str) and (found := RANGE.fullmatch(value)) and found[2] and (found[1] or not found[3]):
            self.fail(f"{value!r} is a range: --steps {value} takes it.", param, ctx)
        return super().convert(value, param, ctx)


class From(click.IntRange):
    """A whole number from a smallest one on that an index can hold."""

    def __init__(self, smallest: int) -> None:
        super().__init__(smallest)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        _refuse_text(value, self, param, ctx)
        return _held(super().convert(value, param, ctx), self, param, ctx)


class Between(click.FloatRange):
    """A number of a range; one that is none, which no bound excludes, is refused."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


UNNUMBERED = -1


class FromOrPlace(From):
    """The optional number of an option, or what comes after the option where the number is left out, as text.

    Where nothing comes after it, it is UNNUMBERED, which nobody can type.
    """

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if not isinstance(value, str):
            return value
        return super().convert(value, param, ctx) if NUMBER.fullmatch(value) else value


def _refuse_text(value: Any, kind: click.ParamType[Any], param: click.Parameter | None, ctx: Any) -> None:
    try:
        int(value)
    except ValueError:
        kind.fail(f"{value!r} is not a whole number.", param, ctx)


def _held(number: int, kind: click.ParamType[Any], param: click.Parameter | None, ctx: click.Context | None) -> int:
    if abs(number) > LARGEST:
        kind.fail("there is no number as large as that in an index.", param, ctx)
    return number


def parse_range(text: str | None) -> tuple[int | None, int | None]:
    """Return the first and the last step that `--steps` means, None where it has no end. Raises BadParameter."""
    if text is None:
        return None, None
    match = RANGE.fullmatch(text.strip())
    if not match or text.strip() in ("", "-"):
        raise click.BadParameter(f"{text!r} is not a range of steps; write 1-100, 21 or 40-.", param_hint="--steps")
    first = int(match[1]) if match[1] else None
    last = int(match[3]) if match[3] else None if match[2] else first
    if last is not None and last < (first or 0):
        raise click.BadParameter(f"{text!r} ends before it begins.", param_hint="--steps")
    return first, last


def refuse_backwards(first: int | None, last: int | None) -> None:
    """Raise UsageError where --step-end comes before --step-start."""
    if first is not None and last is not None and last < first:
        raise click.UsageError(f"--step-end {last} comes before --step-start {first}.")
