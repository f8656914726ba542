"""The same prompt at other steps of its run, and in other runs of the index.

In other runs the words decide where one of the two does not record its task: a system that records no ground truth
would otherwise never stand beside one that does.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rltracer_sqlite.messages import prompt_key

from .addresses import group_url, run_url, table_url
from .drawings import rate_bar, spark
from .queries import Answer, Query
from .selection import Pair

if TYPE_CHECKING:
    from datasette.app import Datasette

MOST_STEPS = 100
MOST_RUNS = 20
NO_WORDS = prompt_key([])

STEPS = """
select id, step, split, trajectories, scored, successes, pass_rate, reward_mean
from prompt_groups where prompt_id = :prompt and run_id = :run and split is {split} and env is {env}
order by step, id
"""

# Two prompts of different recorded tasks are different, whatever their words: every game of Wordle opens alike.
SAME = """
with same as (
    select id, id = :prompt as same_task from prompts
    where id = :prompt or (key = :key and (task = '' or :task = ''))
)
"""

RUNS = """
select
    g.run_id, g.prompt_id, same.same_task, (select name from runs where id = g.run_id) as run, g.split,
    count(*) as prompt_groups,
    sum(g.trajectories) as trajectories, sum(g.scored) as scored, sum(g.successes) as successes,
    sum(g.successes) * 1.0 / nullif(sum(g.scored), 0) as pass_rate, min(g.step) as first_step, max(g.step) as last_step,
    max(g.id) as latest_group, json_group_array(json_array(g.step, g.successes, g.scored)) as curve
from same join prompt_groups g on g.prompt_id = same.id
where not (g.run_id = :run and g.split is {split} and g.env is {env})
group by g.run_id, g.split, g.env, g.prompt_id order by same.same_task desc, g.run_id, g.split, g.prompt_id limit {most}
"""

OTHERS = """
select count(*) as runs from (
    select 1 from same join prompt_groups g on g.prompt_id = same.id
    where not (g.run_id = :run and g.split is {split} and g.env is {env})
    group by g.run_id, g.split, g.env, g.prompt_id
)
"""


def elsewhere_queries(group: Mapping[str, Any]) -> list[Query]:
    """Return the queries for a prompt's groups in its run, how many other runs and splits have it, and those."""
    # Without any message there are no words to go by.
    key = None if group["key"] == NO_WORDS else group["key"]
    parameters = {"prompt": group["prompt_id"], "run": group["run_id"], "key": key, "task": group["task"]}
    texts = {"split": "null", "env": "null", "most": MOST_RUNS}
    for name in ("split", "env"):
        if group[name] is not None:
            texts[name], parameters[name] = f":{name}", group[name]
    return [Query(text.format(**texts), parameters) for text in (STEPS, SAME + OTHERS, SAME + RUNS)]


def this_run(
    datasette: Datasette, database: str, group: Mapping[str, Any], found: Answer, others: Answer
) -> dict[str, Any]:
    """Return the prompt's groups in its own run: a curve, and a link to each of the nearest ones."""
    rows = found.rows
    here = next((number for number, row in enumerate(rows) if row["id"] == group["id"]), 0)
    first = max(0, min(here - MOST_STEPS // 2, len(rows) - MOST_STEPS))
    pairs: list[Pair] = [("run_id", str(group["run_id"])), ("prompt_id", str(group["prompt_id"])), ("_sort", "step")]
    points = [(row["step"], row["pass_rate"]) for row in rows if row["step"] is not None]
    return {
        "rows": [
            {**row, "url": group_url(datasette, database, row["id"], pairs), "is_here": row["id"] == group["id"]}
            for row in rows[first : first + MOST_STEPS]
        ],
        "count": len(rows),
        "list": found,
        "is_scored": any(value is not None for _, value in points),
        "spark": spark(points, "pass rate of this prompt", 0, 1),
        "others": others.first(runs=0)["runs"],
        "table_url": table_url(
            datasette, database, "prompt_groups", run_id=group["run_id"], prompt_id=group["prompt_id"]
        ),
    }


def other_runs(datasette: Datasette, database: str, found: Answer) -> list[dict[str, Any]]:
    """Return the prompt in other runs and splits, with its curve in each."""
    return [
        {
            **row,
            "run_url": run_url(datasette, database, row["run_id"]),
            "url": group_url(
                datasette,
                database,
                row["latest_group"],
                [("run_id", row["run_id"]), ("prompt_id", row["prompt_id"]), ("_sort", "step")],
            ),
            "bar": rate_bar(row["successes"], row["scored"], row["trajectories"]),
            "spark": spark(_points(row["curve"]), "pass rate of this prompt", 0, 1),
        }
        for row in found.rows
    ]


def _points(curve: str) -> list[tuple[float, float | None]]:
    """Return (step, pass rate) of a run in the order of its steps; groups of one step are counted together."""
    steps: dict[float, tuple[int, int]] = {}
    for step, successes, scored in json.loads(curve):
        if step is not None:
            before = steps.get(step, (0, 0))
            steps[step] = (before[0] + successes, before[1] + scored)
    return [(step, successes / scored if scored else None) for step, (successes, scored) in sorted(steps.items())]
