"""The success rules that pages name, with the rewards that each is on."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rltracer_sqlite.amounts import listed, shortened
from rltracer_sqlite.reward_parts import RewardParts, reward_parts

from .bounds import ask

if TYPE_CHECKING:
    from datasette.app import Datasette

Rule = tuple[str, float, "RewardParts | None"]  # path, threshold, and what the value at the path is made of
LONGEST_NAME = 40  # of a run


async def parts_of(datasette: Datasette, database: str, run: int, path: str) -> RewardParts | None:
    """Return what the value at the path of a rule is made of in a run; None unless it is the total of several rewards.

    Raises TookTooLong.
    """
    return (await parts_of_runs(datasette, database, [(run, path)]))[0]


async def parts_of_runs(
    datasette: Datasette, database: str, rules: Sequence[tuple[int, str]]
) -> list[RewardParts | None]:
    """Return the same for the rules of several runs."""

    def read(connection: sqlite3.Connection) -> list[RewardParts | None]:
        return [reward_parts(connection, run, path) for run, path in rules]

    return await ask(datasette, database, read)


async def rules_of_runs(
    datasette: Datasette, database: str, runs: Sequence[Mapping[str, Any]]
) -> list[tuple[Rule, str]]:
    """Return the different rules of some rows of `runs`, each with the names of its runs in words."""
    parts = await parts_of_runs(datasette, database, [(run["id"], run["success_path"]) for run in runs])
    names: dict[Rule, list[str]] = {}
    for run, of_run in zip(runs, parts, strict=True):
        rule = (run["success_path"], run["success_threshold"], of_run)
        names.setdefault(rule, []).append(shortened(run["name"], LONGEST_NAME))
    return [(rule, listed(of_rule)) for rule, of_rule in names.items()]
