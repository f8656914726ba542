"""Filters of an export: by the pass rate of a prompt, and by recorded values, also as people write these."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from ..amounts import exactly
from ..arguments import as_number, is_text, shown
from ..reprs import given
from ..unrecorded import NOT_RECORDED
from .errors import ExportError

FIELD = re.compile(r"(?P<path>[^<>=?\s](?:[^<>=?]*[^<>=?\s])?)(?P<missing>\??)\s*(?P<operator><=|>=|=)(?P<value>.+)")


@dataclass(frozen=True)
class DifficultyFilter:
    """Inclusive bounds of a prompt's pass rate; difficulty is the same number, and all given bounds must hold.

    A prompt of which nothing is scored has no pass rate: it is kept only where no bound is given. Raises ExportError
    for what is no number from 0 to 1.
    """

    min_pass_rate: float | None = None
    max_pass_rate: float | None = None
    min_difficulty: float | None = None
    max_difficulty: float | None = None

    def __post_init__(self) -> None:
        for name, value in ((one.name, getattr(self, one.name)) for one in fields(self)):
            if value is None:
                continue
            bound = as_number(value)
            if bound is None or not 0 <= bound <= 1:
                raise ExportError(f"{name} is {shown(value)}: a pass rate lies between 0 and 1.")
            object.__setattr__(self, name, bound)
        for what in ("pass_rate", "difficulty"):
            low, high = getattr(self, f"min_{what}"), getattr(self, f"max_{what}")
            if low is not None and high is not None and low > high:
                raise ExportError(f"min_{what} {low} is above max_{what} {high}: no prompt can be between them.")

    __repr__ = given

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        """The smallest and the largest pass rate that all bounds allow; None where nothing bounds it."""
        low = [bound for bound in (self.min_pass_rate, self.min_difficulty) if bound is not None]
        high = [bound for bound in (self.max_pass_rate, self.max_difficulty) if bound is not None]
        return max(low, default=None), min(high, default=None)

    def accepts(self, pass_rate: float | None) -> bool:
        """Say whether a prompt of this pass rate is kept."""
        low, high = self.bounds
        if pass_rate is None:
            return low is None and high is None
        return (low is None or pass_rate >= low) and (high is None or pass_rate <= high)


@dataclass(frozen=True)
class FieldFilter:
    """Keep trajectories whose recorded value at a dotted path is within inclusive bounds, or among allowed values.

    True and False count as 1 and 0. A trajectory without the value is dropped unless `include_missing`, for which
    NOT_RECORDED among the allowed values stands too. Raises ExportError for what cannot be meant.
    """

    path: str
    minimum: float | None = None
    maximum: float | None = None
    allowed_values: tuple[Any, ...] | None = None
    include_missing: bool = False

    def __post_init__(self) -> None:
        if not is_text(self.path) or not self.path:
            raise ExportError("A field filter needs a path, for example metrics.num_turns.")
        for name, bound in (("minimum", self.minimum), ("maximum", self.maximum)):
            if bound is not None:
                number = _recorded(bound)
                if number is None or isinstance(number, str):
                    raise ExportError(f"The bounds of {self.path} are numbers, and {shown(bound)} is none.")
                object.__setattr__(self, name, number)
        if self.minimum is not None and self.maximum is not None and self.minimum > self.maximum:
            raise ExportError(f"The minimum {self.minimum} of {self.path} is above its maximum {self.maximum}.")
        if self.allowed_values is not None:
            if not isinstance(self.allowed_values, (tuple, list, set, frozenset)):
                found = shown(self.allowed_values)
                raise ExportError(f"The allowed values of {self.path} are a list, and {found} is none.")
            allowed = tuple(map(_recorded, self.allowed_values))
            if None in allowed:
                raise ExportError(f"The allowed values of {self.path} are text, numbers or truth values.")
            object.__setattr__(self, "allowed_values", allowed)
        if not isinstance(self.include_missing, bool):
            raise ExportError(f"include_missing is {shown(self.include_missing)}: it is True or False.")
        if self.allowed_values is not None and NOT_RECORDED in self.allowed_values:
            others = tuple(one for one in self.allowed_values if one != NOT_RECORDED)
            object.__setattr__(self, "allowed_values", others)
            object.__setattr__(self, "include_missing", True)

    __repr__ = given

    def accepts(self, record: Mapping[str, Any]) -> bool:
        """Say whether a decoded record passes."""
        value = value_at_path(record, self.path)
        if value is None:
            return self.include_missing
        if self.allowed_values is not None and value not in self.allowed_values:
            return False
        if self.minimum is None and self.maximum is None:
            return True
        # NaN lies within no bounds.
        return isinstance(value, (int, float)) and (
            (self.minimum is None or value >= self.minimum) and (self.maximum is None or value <= self.maximum)
        )

    def __str__(self) -> str:
        parts = [f">= {exactly(self.minimum)}"] if self.minimum is not None else []
        parts += [f"<= {exactly(self.maximum)}"] if self.maximum is not None else []
        if self.allowed_values == () and self.include_missing:
            return f"{self.path} {NOT_RECORDED}"
        if self.allowed_values is not None:
            parts.append(f"in {', '.join(dict.fromkeys(map(str, dict.fromkeys(self.allowed_values))))}")
        condition = f"{self.path} {' and '.join(parts) or 'recorded'}"
        return f"{condition} or missing" if self.include_missing else condition


def value_at_path(record: Mapping[str, Any], path: str) -> Any:
    """Return the value at a dotted path, or None where there is none; a key may hold dots itself."""
    if path in record:
        return record[path]
    end = len(path)
    while (end := path.rfind(".", 0, end)) > 0:
        inner = record.get(path[:end])
        if isinstance(inner, Mapping) and (found := value_at_path(inner, path[end + 1 :])) is not None:
            return found
    return None


def _recorded(value: Any) -> str | float | None:
    """Return a value as a record can have it: text, a number or a truth value; None for all else."""
    return value if isinstance(value, bool) or is_text(value) else as_number(value)


def parse_field(text: str) -> FieldFilter:
    """Return the filter that a text means; a question mark behind the path keeps what has no value there.

    Raises ExportError.
    """
    match = FIELD.fullmatch(text.strip())
    if not match:
        raise ExportError(f"{text!r} is no filter; write PATH<=VALUE, PATH>=VALUE or PATH=VALUE,VALUE.")
    path, missing, value = match["path"], bool(match["missing"]), match["value"].strip()
    if match["operator"] == "=":
        allowed = [one for part in value.split(",") for one in _meanings(part.strip())]
        return FieldFilter(path, allowed_values=tuple(allowed), include_missing=missing)
    try:
        bound = float(value)
    except ValueError:
        raise ExportError(f"{value!r} in {text!r} is no number.") from None
    low = match["operator"] == ">="
    return FieldFilter(path, bound if low else None, None if low else bound, include_missing=missing)


def _meanings(text: str) -> list[Any]:
    """Return what a written value may mean: itself, and the number or truth value that it spells."""
    if text.lower() in ("true", "false"):
        return [text, text.lower() == "true"]
    try:
        return [text, float(text)]
    except ValueError:
        return [text]
