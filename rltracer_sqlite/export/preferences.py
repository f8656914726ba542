"""What a person may ask of an export: which trajectories, how many of them, and what stands in a row."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from enum import Enum
from typing import Any

from ..arguments import as_integer, as_number, is_text, shown
from ..outcomes import NAMED_BEFORE
from ..printed import given


class ExportError(ValueError):
    """An export that cannot be made as asked, in a sentence that says what to do."""


class ExportMode(str, Enum):
    """The shape of the rows: SFT for whole conversations, RL for prompts, PREFERENCE for pairs of answers."""

    SFT = "sft"
    RL = "rl"
    PREFERENCE = "preference"


class Acceptance(str, Enum):
    """Which outcomes, by the run's success rule, may become rows: CORRECT for those that passed, INCORRECT for failed.

    "passed" and "failed" mean the same. An unscored trajectory is neither.
    """

    ANY = "any"
    CORRECT = "correct"
    INCORRECT = "incorrect"

    @classmethod
    def _missing_(cls, value: object) -> Acceptance | None:
        return next((cls(old) for old, new in NAMED_BEFORE.items() if value == new), None)


class Order(str, Enum):
    """Which trajectories of a prompt come first: those of a seeded draw, or those with the fewest completion tokens."""

    SAMPLE = "sample"
    SHORTEST = "shortest"


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

    True and False count as 1 and 0. A trajectory without the value is dropped unless `include_missing`. Raises
    ExportError for what cannot be meant.
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
        parts = [f">= {self.minimum:g}"] if self.minimum is not None else []
        parts += [f"<= {self.maximum:g}"] if self.maximum is not None else []
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


@dataclass(frozen=True)
class ExportPreferences:
    """What to select, and what to write of it.

    `mode`, `acceptance` and `order` are members of ExportMode, Acceptance and Order, or their texts: "sft", "rl" or
    "preference"; "correct", "incorrect" or "any"; "sample" or "shortest". `difficulty` bounds the pass rate of prompts,
    and every one of `field_filters` must accept a trajectory.

    `per_prompt` is per prompt and window (None: all), `global_per_prompt` per prompt over all runs and windows, and
    `unique_prompts` keeps one over all of them. `target_count` is exactly how many are written: trajectories, in
    preference mode pairs. `window_size` is a number of steps; None makes the whole range one window.
    `tool_call_sampling_power` weighs a trajectory by its calls ** power. `seed` decides every draw.

    `effective_only` keeps what was part of a training batch, `drop_truncated` drops what a limit cut off;
    `keep_generation_errors` and `drop_scoring_errors` say what becomes of trajectories with errors. `reward_margin` is
    the least difference between the rewards of a pair, which is never 0. `rl_from_trace` takes the prompts of RL rows
    from the traces, where a run has no rl_data_path. `include_provenance`, `include_raw_trace` and `include_tools` say
    what stands in a row, and `redact` replaces secrets in it. `distinct` leaves out rows of the same content as one
    before, provenance and raw trace aside. docs/export.md explains each.

    Raises ExportError for what cannot be meant.
    """

    mode: ExportMode | str = ExportMode.SFT
    acceptance: Acceptance | str = Acceptance.CORRECT
    difficulty: DifficultyFilter = field(default_factory=DifficultyFilter)
    field_filters: tuple[FieldFilter, ...] = ()
    per_prompt: int | None = 2
    global_per_prompt: int | None = None
    target_count: int | None = None
    window_size: int | None = None
    unique_prompts: bool = False
    tool_call_sampling_power: float = 0.0
    seed: int = 17
    include_provenance: bool = False
    include_raw_trace: bool = False
    include_tools: bool = True
    order: Order | str = Order.SAMPLE
    effective_only: bool = False
    drop_truncated: bool = False
    keep_generation_errors: bool = False
    drop_scoring_errors: bool = False
    reward_margin: float = 0.0
    rl_from_trace: bool = False
    redact: bool = False
    distinct: bool = False

    def __post_init__(self) -> None:
        for name, kind in (("mode", ExportMode), ("acceptance", Acceptance), ("order", Order)):
            object.__setattr__(self, name, _member(kind, name, getattr(self, name)))
        _check_parts(self)
        object.__setattr__(self, "field_filters", tuple(self.field_filters))
        for name in ("per_prompt", "global_per_prompt", "target_count", "window_size"):
            if (value := getattr(self, name)) is None:
                continue
            if (limit := as_integer(value)) is None or limit < 1:
                raise ExportError(f"{name} is {shown(value)}: a limit is a whole number from 1 on.")
            object.__setattr__(self, name, limit)
        for name in ("tool_call_sampling_power", "reward_margin"):
            value = getattr(self, name)
            if (number := as_number(value)) is None or not math.isfinite(number) or number < 0:
                raise ExportError(f"{name} is {shown(value)}: it is a finite number, 0 or more.")
            object.__setattr__(self, name, number)
        if (seed := as_integer(self.seed)) is None:
            raise ExportError(f"seed is {shown(self.seed)}: it is a whole number.")
        object.__setattr__(self, "seed", seed)
        if self.order is not Order.SAMPLE and self.tool_call_sampling_power:
            raise ExportError("tool_call_sampling_power weighs a draw, and order='shortest' makes none: choose one.")

    __repr__ = given

    @property
    def quota(self) -> int | None:
        """How many rows a prompt may give per window: an RL data set needs a prompt only once."""
        return 1 if self.mode is ExportMode.RL else self.per_prompt

    @property
    def is_limited(self) -> bool:
        """Say whether anything is counted over all prompts together, so that their order matters."""
        return any((self.target_count, self.global_per_prompt, self.unique_prompts))

    def as_json(self) -> dict[str, Any]:
        """Return the preferences as JSON has them, for the summary."""
        values = asdict(self)
        values["field_filters"] = [
            {**asdict(one), "allowed_values": None if one.allowed_values is None else list(one.allowed_values)}
            for one in self.field_filters
        ]
        return {name: value.value if isinstance(value, Enum) else value for name, value in values.items()}


def _recorded(value: Any) -> str | float | None:
    """Return a value as a record can have it: text, a number or a truth value; None for all else."""
    return value if isinstance(value, bool) or is_text(value) else as_number(value)


def _check_parts(preferences: ExportPreferences) -> None:
    if not isinstance(preferences.difficulty, DifficultyFilter):
        raise ExportError(f"difficulty is {shown(preferences.difficulty)}: it is a DifficultyFilter.")
    filters = preferences.field_filters
    if not isinstance(filters, (tuple, list)) or not all(isinstance(one, FieldFilter) for one in filters):
        raise ExportError(f"field_filters is {shown(filters)}: it is a tuple of FieldFilter.")
    for one in fields(preferences):
        if one.type == "bool" and not isinstance(value := getattr(preferences, one.name), bool):
            raise ExportError(f"{one.name} is {shown(value)}: it is True or False.")


def _member(kind: type[Enum], name: str, value: Any) -> Enum:
    if isinstance(value, str):
        with suppress(ValueError):
            return kind(value)
    raise ExportError(f"{name} is {shown(value)}: it is one of {', '.join(one.value for one in kind)}.")
