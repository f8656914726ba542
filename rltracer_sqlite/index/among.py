"""What a list is narrowed to: a split, an environment and steps, as an SQL condition with its parameters."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..unrecorded import chosen


@dataclass(frozen=True)
class Among:
    """The trajectories that a list is of: those of a split, of an environment and of a range of steps; None: of all.

    NOT_RECORDED are those of which no split or environment is recorded, and `is_without_step` those without a step.
    """

    split: str | None = None
    env: str | None = None
    first: int | None = field(default=None, kw_only=True)  # step
    last: int | None = field(default=None, kw_only=True)
    is_without_step: bool = field(default=False, kw_only=True)

    @property
    def is_all(self) -> bool:
        """Whether nothing is left out."""
        return not self.given and not self.is_of_steps

    @property
    def is_of_steps(self) -> bool:
        """Whether only some steps are chosen."""
        return self.is_without_step or (self.first, self.last) != (None, None)

    def has_step(self, step: int | None) -> bool:
        """Say whether what has this step, or none (None), is chosen as far as its step goes."""
        if not self.is_of_steps:
            return True
        if step is None or self.is_without_step:
            return step is None and self.is_without_step
        return (self.first is None or step >= self.first) and (self.last is None or step <= self.last)

    @property
    def filters(self) -> dict[str, Any]:
        """What is asked for, as `Groups` and its sentences take it."""
        return {"split": self.split, "env": self.env, "first": self.first, "last": self.last}

    @property
    def given(self) -> dict[str, str]:
        """The split and the environment that are chosen, by the names of their columns."""
        return {name: value for name, value in (("split", self.split), ("env", self.env)) if value is not None}

    def condition(self, row: str) -> str:
        """Return the SQL condition for a row of this name, with `asked()` as its parameters."""
        kept = [chosen(f"{row}.{name}", name) for name in self.given]
        kept += [f"{row}.step is null"] if self.is_without_step else []
        kept += [f"{row}.step >= :first_step"] if self.first is not None else []
        kept += [f"{row}.step <= :last_step"] if self.last is not None else []
        return " and ".join(kept) or "1 = 1"

    def asked(self, **others: Any) -> dict[str, Any]:
        """Return the parameters of a question with `condition`, and others."""
        return {"split": self.split, "env": self.env, "first_step": self.first, "last_step": self.last, **others}


ALL = Among()
