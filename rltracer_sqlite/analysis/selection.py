"""What is analysed, and the counts of it: one row per window, split, env and prompt."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..amounts import plural
from ..arguments import instance, text, whole_number
from ..index.columns import quoted
from ..passrates import SuccessRule, success_column
from ..reprs import given, short
from ..unrecorded import chosen

STORED = """
    select g.step as step, g.split as split, g.env as env, g.prompt_id as prompt_id, g.zero_variance as zero_variance,
        g.trajectories as trajectories, g.scored as scored, g.successes as successes
    from prompt_groups g
    where g.run_id = :run {filters}
"""
RECOUNTED = """
    select g.step as step, g.split as split, g.env as env, g.prompt_id as prompt_id, g.zero_variance as zero_variance,
        count(*) as trajectories, count({value}) as scored, coalesce(sum({value} >= :threshold), 0) as successes
    from prompt_groups g join trajectories t on t.prompt_group_id = g.id
    where g.run_id = :run {filters}
    group by g.id
"""
WINDOW = "case when :size is null and step is not null then 0 else (step - :first) / :size end"
Rewards = dict[tuple[int | None, str | None, str | None], tuple[int, float | None]]


@dataclass(frozen=True)
class Selection:
    """Which trajectories to analyse and how. None: no limit; for `window` one window, for `rule` the run's own rule.

    Windows begin at the first step of the run within the step range, whatever the split and env, so that the windows
    of splits and envs are the same. `window` is a number of steps. Raises TypeError and ValueError for what cannot be
    meant.
    """

    window: int | None = None
    split: str | None = None
    env: str | None = None
    step_start: int | None = None
    step_end: int | None = None
    rule: SuccessRule | None = None

    def __post_init__(self) -> None:
        for name in ("split", "env"):
            if (value := getattr(self, name)) is not None:
                text(name, value)
        for name, least in (("window", 1), ("step_start", 0), ("step_end", 0)):
            if (value := getattr(self, name)) is not None:
                object.__setattr__(self, name, whole_number(name, value, least))
        if self.step_start is not None and self.step_end is not None and self.step_end < self.step_start:
            raise ValueError(f"The steps {self.step_start} to {self.step_end} end before they begin.")
        if self.rule is not None:
            instance("rule", self.rule, SuccessRule)

    __repr__ = given

    def as_dict(self) -> dict[str, Any]:
        """Return the selection with its rule in words."""
        return {**vars(self), "rule": str(self.rule) if self.rule else None}


class PromptCount(NamedTuple):
    """The counts of one prompt in one window, split and env.

    `judged_groups` counts its prompt groups with the rewards of two trajectories or more, and `zero_variance` those of
    them whose rewards are all equal; `scored` counts its trajectories with a value that decides success.
    """

    window: int | None
    split: str | None
    env: str | None
    prompt_id: int
    prompt_key: str
    task: str
    preview: str
    prompt_groups: int
    zero_variance: int
    judged_groups: int
    trajectories: int
    scored: int
    successes: int

    def __repr__(self) -> str:
        counts = f"{self.successes:,} of {self.scored:,} scored, {plural(self.trajectories, 'trajectory')}"
        return f"<PromptCount of prompt {self.prompt_id}: {counts}, {short(self.preview)}>"


class UnscoredTrajectory(NamedTuple):
    """A trajectory without a value that decides success, and where its record is."""

    id: int
    uid: str
    step: int | None
    split: str | None
    env: str | None
    error_type: str | None
    path: str
    line: int | None
    preview: str

    def __repr__(self) -> str:
        return f"<UnscoredTrajectory {self.id}: {short(self.error_type)}, {short(self.path, 100)}>"


def end_steps(connection: sqlite3.Connection, run_id: int, selection: Selection) -> tuple[int | None, int | None]:
    """Return the steps at which the windows begin and end; None where the run has no step in the range."""
    within = """
        from prompt_groups
        where run_id = :run and (:start is null or step >= :start) and (:end is null or step <= :end)
    """
    first, last = connection.execute(
        f"select (select min(step) {within}), (select max(step) {within})",
        {"run": run_id, "start": selection.step_start, "end": selection.step_end},
    ).fetchone()
    return first, last


def read_counts(connection: sqlite3.Connection, run_id: int, selection: Selection) -> list[PromptCount]:
    """Return the counts of a run, in the order of window, split, env and prompt key.

    Raises SuccessRuleError where the rule names a value that the index does not hold.
    """
    first, _ = end_steps(connection, run_id, selection)
    parameters: dict[str, Any] = {**_parameters(run_id, selection), "first": first, "size": selection.window}
    if selection.rule is None:
        groups = STORED.format(filters=_filters(selection, "g"))
    else:
        value = _number(success_column(connection, selection.rule.path))
        groups = RECOUNTED.format(filters=_filters(selection, "g"), value=value)
    rows = connection.execute(
        f"""
        select {WINDOW} as place,
            g.split, g.env, g.prompt_id, p.key, p.task, p.preview, count(*), coalesce(sum(zero_variance), 0),
            count(zero_variance), sum(trajectories), sum(scored), sum(successes)
        from ({groups}) g join prompts p on p.id = g.prompt_id
        group by place, g.split, g.env, g.prompt_id
        order by place, g.split, g.env, p.key, p.task
        """,
        parameters,
    )
    return [PromptCount(*row) for row in rows]


def read_rewards(connection: sqlite3.Connection, run_id: int, selection: Selection) -> Rewards:
    """Return how many trajectories have a reward, and the sum of these rewards, by (window, split, env).

    They are of the sums that are kept per step: a group's mean says nothing without how many have a reward.
    """
    first, _ = end_steps(connection, run_id, selection)
    rows = connection.execute(
        f"""
        select {WINDOW} as place, split, env, sum(trajectories), sum(total) from step_values s
        where run_id = :run and name = 'reward' {_filters(selection, "s")} group by place, split, env
        """,
        {**_parameters(run_id, selection), "first": first, "size": selection.window},
    )
    return {(window, split, env): (count, total) for window, split, env, count, total in rows}


def list_unscored(connection: sqlite3.Connection, run_id: int, selection: Selection) -> list[UnscoredTrajectory]:
    """Return the trajectories of the selection whose success is not known."""
    value = "t.success" if selection.rule is None else _number(success_column(connection, selection.rule.path))
    rows = connection.execute(
        f"""
        select t.id, t.uid, t.step, t.split, t.env, t.error_type, s.file, t.line, t.preview
        from trajectories t join shards s on s.id = t.shard_id
        where t.run_id = :run and {value} is null {_filters(selection, "t")} order by t.id
        """,
        _parameters(run_id, selection),
    )
    return [UnscoredTrajectory(*row) for row in rows]


def _filters(selection: Selection, table: str) -> str:
    given = {
        "split": chosen(f"{table}.split", "split"),
        "env": chosen(f"{table}.env", "env"),
        "step_start": f"{table}.step >= :step_start",
        "step_end": f"{table}.step <= :step_end",
    }
    return " ".join(f"and {condition}" for name, condition in given.items() if getattr(selection, name) is not None)


def _parameters(run_id: int, selection: Selection) -> dict[str, Any]:
    return {
        "run": run_id,
        "split": selection.split,
        "env": selection.env,
        "step_start": selection.step_start,
        "step_end": selection.step_end,
        "threshold": selection.rule.threshold if selection.rule else None,
    }


def _number(column: str) -> str:
    # A column made for a recorded path takes any value: what is no number does not score.
    value = quoted(column)
    return f"(case when typeof({value}) in ('integer', 'real') then {value} end)"
