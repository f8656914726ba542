"""The columns of scores in lists of steps, prompts and runs in the terminal: counts, pass rate and mean reward."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from .columns import decimal


@dataclass(frozen=True)
class ScoreColumns:
    """How many trajectories each row is of, its pass rate and mean reward, and over how many these are.

    The last two have columns where a row of the list has trajectories that are not scored, and where it has rewards of
    others than the scored ones.
    """

    has_unscored: bool
    has_over: bool

    @classmethod
    def of(cls, facts: Sequence[dict[str, Any]]) -> ScoreColumns:
        """Return the columns that a list of these rows has."""
        return cls(any(fact["scored"] != fact["trajectories"] for fact in facts), any_over(facts))

    def head(self, between: str = "") -> str:
        """Return the heads of the columns; what stands `between` the counts and the rates is the list's own."""
        counts = f"{'trajectories':>12}" + (f"  {'scored':>6}" if self.has_unscored else "")
        return f"{counts}{between}  {'pass rate':>9}  {reward_head(self.has_over)}"

    def cells(self, fact: dict[str, Any], between: str = "") -> str:
        """Return what a row has beneath `head`."""
        counts = f"{count(fact['trajectories']):>12}" + (f"  {count(fact['scored']):>6}" if self.has_unscored else "")
        return f"{counts}{between}  {decimal(fact['pass_rate']):>9}  {reward(fact, self.has_over)}"


def rewards_differ(fact: dict[str, Any]) -> bool:
    """Say whether the mean reward of a row is over another number of trajectories than its pass rate."""
    return bool(fact["rewarded"]) and fact["rewarded"] != fact["scored"]


def any_over(facts: Sequence[dict[str, Any]]) -> bool:
    """Say whether a list has to say over how many trajectories the mean reward of each row is."""
    return any(map(rewards_differ, facts))


def reward_head(has_over: bool, width: int = 7) -> str:
    """Return the head of the columns of `reward`."""
    return f"{'reward':>{width}}" + (f"  {'over':>4}" if has_over else "")


def reward(fact: dict[str, Any], has_over: bool, width: int = 7) -> str:
    """Return the mean reward of a row of a list, and over how many it is where a row has others than the scored."""
    return f"{decimal(fact['reward_mean']):>{width}}" + (f"  {count(fact['rewarded']):>4}" if has_over else "")


def count(number: int | None) -> str:
    """Return a count, or a dash for what has not been read."""
    return "–" if number is None else f"{number:,}"
