"""What the lists of the terminal hold: runs, steps and prompts, of all splits and environments or of one of them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from ..unrecorded import chosen, is_chosen
from .among import ALL, Among
from .queries import REWARDED, group_key, steps
from .totals import COUNTED, TOTALS, main_split


def run_facts(connection: sqlite3.Connection, among: Among = ALL) -> list[dict[str, Any]]:
    """Return what is known of each run, its pass rate and mean reward as on the overview: those of `split`.

    Without a split that is train, where a run has any of it, else the first one; `trajectories`, those
    `without_step` among them, and `prompt_groups` are of all splits then, `split_trajectories` are those of `split`.
    """
    if among.env is None:
        counted = COUNTED.format(table="steps", of_env="")
    else:
        of_env = chosen("env", "env")
        counted = COUNTED.format(table=f"(select * from step_summary where {of_env})", of_env=f" and {of_env}")
    rows = table_rows(
        connection,
        f"""
        with {counted}, {TOTALS}
        select r.id, r.name as run, r.source, t.* from runs r left join totals t on t.run_id = r.id order by r.id
        """,
        among.asked(),
    )
    found: dict[int, dict[str, Any]] = {}
    for row in rows:
        run = found.setdefault(row["id"], {"run_id": row["id"], "run": row["run"], "source": row["source"], "of": {}})
        if row["named"] is not None and is_chosen(row["named"] or None, among.split):
            run["of"][row["named"]] = row
    return [_run(connection, run.pop("of"), run) for run in found.values()]


def _run(connection: sqlite3.Connection, of: dict[str, dict[str, Any]], run: dict[str, Any]) -> dict[str, Any]:
    split = main_split(of)
    facts = {} if split is None else of[split]
    scored, successes = facts.get("scored", 0), facts.get("successes", 0)
    return {
        **run,
        "split": split or None,
        "trajectories": sum(row["trajectories"] for row in of.values()),
        "prompt_groups": sum(row["prompt_groups"] for row in of.values()),
        "without_step": sum(row["without_step"] for row in of.values()),
        "split_trajectories": facts.get("trajectories", 0),
        "scored": scored,
        "successes": successes,
        "pass_rate": successes / scored if scored else None,
        "rewarded": facts.get("rewarded", 0),
        "reward_mean": facts.get("reward"),
        "steps": [step for step in steps(connection, run["run_id"]) if step is not None],
    }


def step_facts(connection: sqlite3.Connection, run_id: int, among: Among = ALL) -> list[dict[str, Any]]:
    """Return what is known of each step and split of a run; the counts of one that was not read yet are None.

    `gone` counts the trajectories whose file has vanished, or cannot be read any more.
    """
    read = "steps" if among.env is None else "step_summary"
    counted = "g.indexed_at is not null" if among.env is None else "1"
    of_steps = replace(among, split=None, env=None).condition("g")
    rewarded = REWARDED.format(row="g", of_env="" if among.env is None else f"and {chosen('v.env', 'env')}")
    return list(
        table_rows(
            connection,
            f"""
            select * from (
                select step, split, trajectories, scored, prompt_groups, pass_rate, {rewarded} as rewarded, reward_mean,
                    iif(
                        exists (select 1 from shards s where s.run_id = :run and s.state in ('gone', 'unread')),
                        (
                            select count(*) from trajectories t
                            where t.run_id = :run and t.step is g.step and t.split is g.split and t.gone = 1
                                and (:env is null or {chosen("t.env", "env")})
                        ),
                        0
                    ) as gone
                from {read} g where run_id = :run and {counted} and {among.condition("g")}
                union all
                select step, split, null, null, null, null, null, null, 0 from steps g
                where run_id = :run and indexed_at is null and {of_steps}
                    and (:split is null or split is null or {chosen("split", "split")})
            ) order by step is null, step, split
            """,
            among.asked(run=run_id),
        )
    )


def group_facts(
    connection: sqlite3.Connection, run_id: int, step: int | None, among: Among = ALL
) -> dict[str, dict[str, Any]]:
    """Return number, split, env, counts, pass rate and mean reward of a step's prompts, by the keys of `list_prompts`.

    `env` is None where a prompt is of several.
    """
    rows = table_rows(
        connection,
        f"""
        select p.key, p.task, g.split, iif(count(distinct ifnull(g.env, '')) = 1, max(g.env), null) as env,
            p.id as prompt_id, sum(g.trajectories) as trajectories, sum(g.scored) as scored,
            sum(g.successes) as successes, sum(g.successes) * 1.0 / nullif(sum(g.scored), 0) as pass_rate,
            sum(g.rewards) as rewarded,
            sum(g.reward_mean * g.rewards) / sum(iif(g.reward_mean is null, 0, g.rewards)) as reward_mean
        from (
            -- Not prompt_groups.rewarded: reading an older index does not add it.
            select g.*, (select count(t.reward) from trajectories t where t.prompt_group_id = g.id) as rewards
            from prompt_groups g where g.run_id = :run and g.step is :step and {among.condition("g")}
        ) g join prompts p on p.id = g.prompt_id
        group by p.id, g.split
        """,
        among.asked(run=run_id, step=step),
    )
    return {row.pop("prompt"): row for row in map(with_key, rows)}


def count_gone(
    connection: sqlite3.Connection, run_id: int, among: Among, step: Sequence[int | None], prompts: Sequence[int] | None
) -> tuple[int, int, bool]:
    """Return how many of the trajectories that a list counts cannot be opened any more, how many it counts, and
    whether the files of all those have vanished; else some are there, and cannot be read.

    `step` names one step, or none for all of them; `prompts` are numbers, None for all.
    """
    # Nothing is counted in a run whose files are all there and can be read.
    lost = "select 1 from shards where run_id = ? and state in ('gone', 'unread')"
    if not connection.execute(lost, (run_id,)).fetchone():
        return 0, 0, True
    parameters = among.asked(run=run_id, step=step[0] if step else None, prompts=json.dumps(prompts))
    found = connection.execute(
        f"""
        select ifnull(sum(t.gone), 0), count(*), ifnull(max(t.gone = 1 and t.shard_id in (
                select id from shards where run_id = :run and state = 'unread')), 0)
        from prompt_groups g join trajectories t on t.prompt_group_id = g.id
        where g.run_id = :run and {among.condition("g")} {"and g.step is :step" if step else ""}
            and (:prompts = 'null' or g.prompt_id in (select value from json_each(:prompts)))
        """,
        parameters,
    ).fetchone()
    return int(found[0]), int(found[1]), not found[2]


def numbers_of_prompts(connection: sqlite3.Connection, run_id: int, step: int | None, among: Among = ALL) -> list[int]:
    """Return the numbers of the prompts of a step, or of all steps (None)."""
    rows = connection.execute(
        f"""
        select distinct prompt_id from prompt_groups g
        where run_id = :run and (:step is null or step = :step) and {among.condition("g")}
        """,
        among.asked(run=run_id, step=step),
    )
    return [number for (number,) in rows]


def splits_of(connection: sqlite3.Connection, run_id: int, among: Among = ALL) -> list[str | None]:
    """Return the splits of a run's trajectories, None for those of which none is recorded."""
    rows = connection.execute(
        f"""
        select distinct split from prompt_groups g where run_id = :run and {among.condition("g")} order by split
        """,
        among.asked(run=run_id),
    )
    return [split for (split,) in rows]


def with_key(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row whose prompt goes by its number and by the key that `list_prompts` gives."""
    key, task, number = row.pop("key"), row.pop("task"), row.pop("prompt_id")
    return {"prompt_id": number, "prompt": group_key(key, task, row["split"]), **row}


def table_rows(connection: sqlite3.Connection, sql: str, parameters: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the rows of a query, each with the names of its columns."""
    cursor = connection.execute(sql, parameters)
    names = [column[0] for column in cursor.description]
    return (dict(zip(names, row, strict=True)) for row in cursor)
