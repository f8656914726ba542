"""What both lists of the runs of an index say of each run: `rltracer runs`, and `rltracer inspect` of several."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..amounts import plural
from .visible import in_line, json_line

if TYPE_CHECKING:
    import sqlite3

    from ..index.among import Among
    from ..index.queries import Run

FOR_PEOPLE = ("success_path", "rule", "unscored_envs")  # what JSON does not have of a run


def facts_of_runs(connection: sqlite3.Connection, among: Among) -> list[dict[str, Any]]:
    """Return what is said of each run: what it has, how it fares, where it is and how complete."""
    from ..index.lists import run_facts
    from ..index.queries import runs
    from ..index.states import run_states

    known, states = {run.id: run for run in runs(connection)}, run_states(connection)
    return [
        {**fact, **_rule_facts(connection, known[fact["run_id"]]), "root": known[fact["run_id"]].root,
         "problems": (state := states[fact["run_id"]])["problems"],
         "state": ", ".join(state_of(state))}
        for fact in run_facts(connection, among)
    ]  # fmt: skip


def state_of(row: dict[str, Any]) -> list[str]:
    """Return how complete the reading of a run is, and how many problems it has, in words."""
    from ..index.states import problem_words, state_words

    return [*state_words(row), *problem_words(row)]


def _rule_facts(connection: sqlite3.Connection, run: Run) -> dict[str, Any]:
    """Return the success rule of a run: as it is written, in words, and the rewards and environments it is about."""
    from ..reward_parts import reward_parts, rule_in_words
    from ..unscored import unscored_environments

    parts = reward_parts(connection, run.id, run.success_path)
    return {
        "success": run.success, "success_path": run.success_path, "reward_parts": parts and parts.paths,
        "rule": in_line(rule_in_words(run.success, parts)),
        "unscored_envs": unscored_environments(connection, run.id),
    }  # fmt: skip


def for_programs(fact: dict[str, Any]) -> str:
    """Return what is said of a run as a line of JSON."""
    return json_line({name: value for name, value in fact.items() if name not in FOR_PEOPLE})


def counted_of(fact: dict[str, Any]) -> str:
    """Return how many trajectories a run has, and how many of them have no step, where others have one."""
    return ", ".join([plural(fact["trajectories"], "trajectory"), *without_step(fact["without_step"], fact["steps"])])


def without_step(count: int, steps: object) -> list[str]:
    """Return how many trajectories have no step, in words; nothing where none has, or no `steps` are recorded."""
    return [f"{count:,} without a step"] if count and steps else []


def scored_of(fact: dict[str, Any], of: str = "/") -> str:
    """Return how many trajectories of a run's split are scored, and of how many where not all are."""
    scored, of_split = fact["scored"], fact["split_trajectories"]
    return f"{scored:,}" if scored == of_split else f"{scored:,}{of}{of_split:,}"
