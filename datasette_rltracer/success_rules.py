"""The success rules that pages name, with the rewards that each is on."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from rltracer_sqlite.amounts import listed, shortened
from rltracer_sqlite.reward_parts import RewardParts, as_written, reward_parts, rule_in_words

from .bounds import ask

if TYPE_CHECKING:
    from datasette.app import Datasette

LONGEST_NAME = 40  # of a run
LONGEST_PATH = 80
Run = Mapping[str, Any]  # a row with `success_path` and `success_threshold`


@dataclass(frozen=True)
class Rule:
    """A success rule: as it is written, and what the reward is made of where it is on several."""

    written: str
    parts: RewardParts | None

    @property
    def words(self) -> str:
        """The rule in words, as the terminal has it."""
        return rule_in_words(self.written, self.parts)

    def after(self, in_brackets: bool) -> str:
        """Return what follows the rule as it is written, outside of brackets or in them; "" where nothing does."""
        return rule_in_words(self.written, self.parts, in_brackets).removeprefix(self.written)


async def rule_of(
    datasette: Datasette, database: str, run: int, row: Run, envs: Collection[str | None] | None = None
) -> Rule:
    """Return the rule of a run, by a row that has it; `envs` are the environments of what it is said of, if not all.

    Raises TookTooLong.
    """
    return await ask(datasette, database, lambda connection: read_rule(connection, run, row, envs))


def read_rule(connection: sqlite3.Connection, run: int, row: Run, envs: Collection[str | None] | None = None) -> Rule:
    """Return the same from a connection."""
    path = row["success_path"]
    return Rule(
        as_written(shortened(str(path), LONGEST_PATH), row["success_threshold"]),
        reward_parts(connection, run, path, envs),
    )


def rule_of_trajectory(connection: sqlite3.Connection, row: Run) -> Rule:
    """Return the rule by which a trajectory has passed or failed, of the rewards of its own environment."""
    return read_rule(connection, row["run_id"], row, [row["env"]])


async def rules_of_runs(datasette: Datasette, database: str, runs: Sequence[Run]) -> list[tuple[Rule, str]]:
    """Return the different rules of some rows of `runs`, each with the names of its runs in words."""

    def read(connection: sqlite3.Connection) -> list[Rule]:
        return [read_rule(connection, run["id"], run) for run in runs]

    names: dict[Rule, list[str]] = {}
    for run, rule in zip(runs, await ask(datasette, database, read), strict=True):
        names.setdefault(rule, []).append(shortened(run["name"], LONGEST_NAME))
    return [(rule, listed(of_rule)) for rule, of_rule in names.items()]
