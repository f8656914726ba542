"""Makes indexes for tests: small ones from rows that a test writes down, and one of a million trajectories."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from rltracer_sqlite.index import derived, statistics
from rltracer_sqlite.index.columns import BUILT_IN, column_name
from rltracer_sqlite.index.database import finish_writing, open_for_writing
from rltracer_sqlite.index.migrations import statements

Row = Mapping[str, Any]
GROUP_KEY = ("run", "step", "split", "env", "prompt", "task", "group")


def new_index(path: Path) -> sqlite3.Connection:
    """Return a new, empty index that is quick to fill."""
    path.write_bytes(_empty())
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("pragma journal_mode = memory")
    connection.execute("pragma synchronous = off")
    return connection


@cache
def _empty() -> bytes:
    """Return the file of an empty index: copying it is quicker than making another."""
    with TemporaryDirectory() as folder:
        path = Path(folder) / "empty.sqlite"
        finish_writing(open_for_writing(path))
        return path.read_bytes()


def make_index(path: Path, rows: Iterable[Row], rule: tuple[str, float] = ("reward", 1.0)) -> Path:
    """Write an index of one trajectory per row and return its path.

    A row is {"run", "step", "split", "env", "prompt", "task", "group", …}; other keys are columns of trajectories, or
    dotted paths such as "rewards.format.score" whose column is made.
    """
    connection = new_index(path)
    connection.execute("begin")
    groups: dict[tuple[Any, ...], int] = {}
    for number, row in enumerate(rows, start=1):
        full = {
            "run": "demo",
            "step": 1,
            "split": "train",
            "env": "math",
            "prompt": "2 + 2?",
            "task": "",
            "group": None,
        }
        full.update(row)
        run_id = _run(connection, full["run"], rule)
        key = tuple(full[name] for name in GROUP_KEY)
        if key not in groups:
            groups[key] = _group(connection, run_id, full)
        _trajectory(connection, number, run_id, groups[key], full)
    refresh(connection)
    connection.execute("commit")
    connection.close()
    return path


def refresh(connection: sqlite3.Connection) -> None:
    """Recompute success and every statistic of every run."""
    runs = [row[0] for row in connection.execute("select id from runs")]
    for run_id in runs:
        statistics.apply_success(connection, run_id)  # of the groups; no step is known yet
        steps = connection.execute("select distinct step, split from trajectories where run_id = ?", (run_id,))
        statistics.refresh_steps(connection, run_id, steps.fetchall())
    derived.copy_pass_rates(
        connection, connection.execute("select json_group_array(id) from prompt_groups").fetchone()[0]
    )


def _run(connection: sqlite3.Connection, name: str, rule: tuple[str, float]) -> int:
    found = connection.execute("select id from runs where name = ?", (name,)).fetchone()
    if found:
        return int(found[0])
    run_id = connection.execute(
        """
        insert into runs (name, root, source, success_path, success_threshold, created_at)
        values (?, ?, 'prime-rl', ?, ?, '2026-01-01T00:00:00Z')
        """,
        (name, f"runs/{name}", *rule),
    ).lastrowid
    connection.execute(
        """
        insert into shards (id, run_id, path, file, layout, size, mtime_ns, state)
        values (?, ?, 'train.jsonl', 'train.jsonl', 'traces', 1, 1, 'complete')
        """,
        (run_id, run_id),
    )
    return int(run_id or 0)


def _group(connection: sqlite3.Connection, run_id: int, row: Row) -> int:
    connection.execute(
        "insert into prompts (key, task, preview) values (?, ?, ?) on conflict do nothing",
        (f"{row['prompt']:>064}", row["task"], row["prompt"]),
    )
    prompt_id = connection.execute(
        "select id from prompts where preview = ? and task = ?", (row["prompt"], row["task"])
    ).fetchone()[0]
    group = connection.execute(
        "insert into prompt_groups (run_id, step, split, env, prompt_id, group_id) values (?, ?, ?, ?, ?, ?)",
        (run_id, row["step"], row["split"], row["env"], prompt_id, row["group"]),
    )
    return int(group.lastrowid or 0)


def _trajectory(connection: sqlite3.Connection, number: int, run_id: int, group_id: int, row: Row) -> None:
    columns = {
        "run_id": run_id, "uid": f"{number:032x}", "prompt_group_id": group_id, "turns": 1, "tool_calls": 0,
        "branches": 1, "ok": 1, "content_kind": "messages", "shard_id": run_id, "byte_offset": number * 100,
        "byte_length": 100, "line": number, "preview": row["prompt"],
    }  # fmt: skip
    for key, value in row.items():
        if key not in ("run", "prompt", "task", "group"):
            columns[_column(connection, key)] = value
    names = ", ".join(f'"{name}"' for name in columns)
    connection.execute(
        f"insert into trajectories ({names}) values ({', '.join('?' * len(columns))})", tuple(columns.values())
    )


def _column(connection: sqlite3.Connection, key: str) -> str:
    if "." not in key or key in BUILT_IN:
        return BUILT_IN.get(key, key)
    name = column_name(key)
    if not connection.execute("select 1 from fields where path = ?", (key,)).fetchone():
        connection.execute(f'alter table trajectories add column "{name}" any')
        connection.execute("insert into fields (path, column_name, kind) values (?, ?, 'number')", (key, name))
    connection.execute("update fields set trajectories = trajectories + 1 where path = ?", (key,))
    return name


def make_large_index(path: Path, steps: int = 500, prompts_per_step: int = 250, rollouts: int = 8) -> Path:
    """Write an index of steps × prompts_per_step groups of `rollouts` trajectories by SQL: a million in about 20 s."""
    connection = new_index(path)
    connection.execute("begin")
    run_id = _run(connection, "large", ("reward", 1.0))
    for name in ("format", "answer"):
        _column(connection, f"rewards.{name}.score")
    indexes = connection.execute(
        "select name, sql from sqlite_master where type = 'index' and tbl_name = 'trajectories' and sql is not null"
    ).fetchall()
    for name, _ in indexes:
        connection.execute(f"drop index {name}")
    sizes = {"steps": steps, "prompts": prompts_per_step, "rollouts": rollouts, "run": run_id}
    for statement in statements(LARGE):
        names = {key: value for key, value in sizes.items() if f":{key}" in statement}
        connection.execute(statement, names)
    for _, sql in indexes:
        connection.execute(sql)
    for step, split in connection.execute("select distinct step, split from prompt_groups").fetchall():
        derived.refresh_step_values(connection, run_id, step, split)
    connection.execute("analyze")
    connection.execute("commit")
    connection.close()
    return path


LARGE = """
create temp table numbers(n integer primary key);
insert into numbers
with recursive counted(n) as (
    values (0) union all select n + 1 from counted where n + 1 < :steps * :prompts * :rollouts
)
select n from counted;
insert into prompts (id, key, task, preview)
select n + 1, printf('%064x', n), '', 'Prompt number ' || n from numbers where n < :prompts * 20;
insert into prompt_groups (id, run_id, step, split, env, prompt_id)
select
    n + 1, :run, n / :prompts + 1,
    case when n % 10 = 9 and (n / :prompts) % 5 = 0 then 'eval' else 'train' end,
    case ((n * 7) % (:prompts * 20)) % 3 when 0 then 'math' when 1 then 'code' else 'wordle' end,
    (n * 7) % (:prompts * 20) + 1
from numbers where n < :steps * :prompts;
create temp table drawn as
select
    n, n / :rollouts + 1 as group_id,
    ((n * 2654435761) % 1000003) / 1000003.0
        < ((n / :rollouts * 7) % (:prompts * 20)) * 1.4 / (:prompts * 20) - 0.3
        + n * 0.3 / (:steps * :prompts * :rollouts) as passed
from numbers;
insert into trajectories (run_id, uid, prompt_group_id, step, split, env, reward, success, turns, tool_calls, branches,
    prompt_tokens, completion_tokens, stop_condition, truncated, ok, shard_id, byte_offset, byte_length, content_kind,
    preview, reward_format, reward_answer)
select
    :run, printf('%032x', d.n), g.id, g.step, g.split, g.env, d.passed, d.passed, 1 + d.n % 4, d.n % 3, 1,
    300 + d.n % 100, 500 + d.n % 1000 + g.step, case when d.n % 13 = 0 then 'length' else 'stop' end, d.n % 13 = 0,
    d.n % 97 <> 0, :run, d.n * 1000, 1000, 'messages', p.preview || ', with words behind it as in life', d.n % 2,
    d.passed
from drawn d join prompt_groups g on g.id = d.group_id join prompts p on p.id = g.prompt_id order by d.n;
create temp table counted as
select
    prompt_group_id, count(*) as n, sum(success) as c, count(reward) as rewarded, avg(reward) as mean,
    min(reward) as low, max(reward) as high
from trajectories group by prompt_group_id order by prompt_group_id;
update prompt_groups set trajectories = n, scored = n, successes = c, rewarded = counted.rewarded,
    reward_mean = mean, reward_min = low, reward_max = high
from counted where counted.prompt_group_id = prompt_groups.id;
update trajectories set group_pass_rate = g.pass_rate from prompt_groups g where g.id = trajectories.prompt_group_id;
insert into steps (run_id, step, split, indexed_at, trajectories, prompt_groups, scored, successes, rewarded)
select :run, step, split, '2026-01-01T00:00:00Z', sum(trajectories), count(*), sum(scored), sum(successes),
    sum(rewarded)
from prompt_groups group by step, split;
"""
