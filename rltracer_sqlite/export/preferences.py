"""What a person may ask of an export: which trajectories, how many of them, and what stands in a row."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields
from enum import Enum
from typing import Any

from ..arguments import as_integer, as_number, shown
from ..outcomes import NAMED_BEFORE
from ..reprs import given
from .errors import ExportError
from .filters import DifficultyFilter, FieldFilter


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
class ExportPreferences:
    """What to select, and what to write of it.

    `mode`, `acceptance` and `order` are members of ExportMode, Acceptance and Order, or their texts: "sft", "rl" or
    "preference"; "correct", "incorrect" or "any"; "sample" or "shortest". `acceptance` is asked of the chosen one of a
    pair, and `rejected_outcome` of the rejected one. `difficulty` bounds the pass rate of prompts, and every one of
    `field_filters` must accept a trajectory.

    `per_prompt` is per prompt and window (None: all), `global_per_prompt` per prompt over all runs and windows, and
    `unique_prompts` keeps one over all of them. `target_count` is exactly how many are written: trajectories, in
    preference mode pairs. `window_size` is a number of steps; None makes the whole range one window.
    `tool_call_sampling_power` weighs a trajectory by its calls ** power. `seed` decides every draw.

    `effective_only` keeps what was part of a training batch, `drop_truncated` drops what a limit cut off;
    `keep_generation_errors` and `drop_scoring_errors` say what becomes of trajectories with errors. `reward_margin` is
    the least difference between the rewards of a pair, which is never 0. `rl_from_trace` takes the prompts of RL rows
    from the traces, where a run has no rl_data_path. `include_provenance`, `include_raw_trace` and `include_tools` say
    what stands in a row, and `redact` replaces secrets in it. `distinct` writes rows of the same content once,
    provenance and raw trace aside; quotas and the target take others instead. `last_branch` makes one SFT row of a
    trajectory, that of its last branch, so that a target is one of rows too. docs/export.md explains each.

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
    last_branch: bool = False
    rejected_outcome: Acceptance | str = Acceptance.ANY

    def __post_init__(self) -> None:
        choices: dict[str, type[Enum]]
        choices = {"mode": ExportMode, "acceptance": Acceptance, "order": Order, "rejected_outcome": Acceptance}
        for name, kind in choices.items():
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

    @property
    def can_replace(self) -> bool:
        """Say whether something that is not selected can take the place of what is left out."""
        # Each trajectory of a prompt gives the same RL row.
        return self.is_limited or (self.mode is not ExportMode.RL and self.quota is not None)

    def as_json(self) -> dict[str, Any]:
        """Return the preferences as JSON has them, for the summary."""
        values = asdict(self)
        values["field_filters"] = [
            {**asdict(one), "allowed_values": None if one.allowed_values is None else list(one.allowed_values)}
            for one in self.field_filters
        ]
        return {name: value.value if isinstance(value, Enum) else value for name, value in values.items()}


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
