"""The page of all runs of an index: their state, how far they are, and how pass rate and reward have moved."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from datasette.utils.asgi import Request, Response
from markupsafe import Markup

from rltracer_sqlite.amounts import MOST_RANGES, few
from rltracer_sqlite.index.states import COUNTED_STATES, COUNTED_STEPS, COUNTS, STEPS_AMISS, state_words
from rltracer_sqlite.index.totals import COUNTED, TOTALS
from rltracer_sqlite.index.without_text import WITHOUT_TEXT

from .access import permitted_index
from .addresses import DATABASE, overview_url, place, run_url, step_url
from .drawings import Point, rate_bar, spark
from .edge import Route
from .filter_names import refuse_unknown_options
from .frame import pager, render
from .live import live_overview
from .queries import Query, answers
from .success_rules import rules_of_runs
from .text import plain
from .unscored import unscored_environments

if TYPE_CHECKING:
    from datasette.app import Datasette

RUNS_ON_A_PAGE = 100
INFINITE = re.compile(r"(?<=[\[,])-?Inf(?=[],])")

# A curve has at most 60 points however many steps there are, and stands on one split: train, where there is one. Of
# ranges of steps no more are asked for than are shown.
RUNS = f"""
with spans as (
    select
        run_id, min(step) as first, max(step) as last,
        min(case when trajectories = 0 then '9' when split = 'train' then '0' else '1' || ifnull(split, '') end)
            as chosen
    from steps group by run_id
),
{COUNTED.format(table="steps", of_env="").strip()},
chosen as (
    select s.*, first, last from counted s join spans using (run_id)
    where case when split = 'train' then '0' else '1' || named end = chosen
),
points as (
    select
        run_id, min(step) as step, sum(successes) * 1.0 / nullif(sum(scored), 0) as pass_rate,
        sum(reward_total) / sum(rewarded) as reward
    from chosen where step is not null group by run_id, (step - first) * 60 / (last - first + 1)
),
{TOTALS.strip()},
ranges as (
    select
        run_id, min(step) as first, max(step) as last,
        row_number() over (partition by run_id order by min(step)) as place,
        count(*) over (partition by run_id) as among
    from (
        select run_id, step, step - row_number() over (partition by run_id order by step) as shift
        from (select distinct run_id, step from steps where step is not null)
    )
    group by run_id, shift
),
files as (
    select run_id, {COUNTED_STATES.strip()} from shards s group by run_id
)
select
    r.id, r.name, r.source, r.success_path, r.success_threshold, r.indexed_at, first as first_step, last as last_step,
    {COUNTED_STEPS.format(schema="main").strip()},
    (select sum(trajectories) from steps where run_id = r.id) as trajectories,
    (select sum(trajectories) from steps where run_id = r.id and step is null) as without_step,
    (select sum(prompt_groups) from steps where run_id = r.id) as prompt_groups,
    (select sum(truncated) from steps where run_id = r.id) as truncated,
    (select sum(errors) from steps where run_id = r.id) as errors,
    (select max(split) from chosen where run_id = r.id) as split,
    (select json_group_array(json_array(named, successes, scored, trajectories, rewarded, reward)) from totals
        where run_id = r.id) as splits,
    {", ".join(f"ifnull({name}, 0) as {name}" for name in ("files", *COUNTS))},
    {STEPS_AMISS.format(schema="main").strip()},
    {WITHOUT_TEXT.format(schema="main").strip()},
    (select json_group_array(json_array(first, last)) from ranges
        where run_id = r.id and (place <= {MOST_RANGES} or place = among)) as ranges,
    (select json_group_array(json_array(step, pass_rate, reward)) from points where run_id = r.id) as curve
from runs r left join spans on spans.run_id = r.id left join files on files.run_id = r.id
"""


def runs_query(start: int = 0, size: int = RUNS_ON_A_PAGE) -> Query:
    """Return the query for the runs of an index, the newest first."""
    return Query(f"{RUNS}order by r.indexed_at desc, r.id desc limit {size} offset {start}")


def run_query(run: int) -> Query:
    """Return the query for one run, with its curves."""
    return Query(f"{RUNS}where r.id = :run_id", {"run_id": run})


async def overview_page(datasette: Datasette, request: Request) -> Response:
    """Answer with the runs of an index."""
    database = await permitted_index(datasette, request, "runs", "steps", "shards")
    refuse_unknown_options(request, ("start",))
    start = place(request.args.get("start")) or 0
    live = await live_overview(datasette, database)
    runs, count = await answers(
        datasette, request, database, runs_query(start), Query("select count(*) as runs from runs")
    )
    described = [described_run(datasette, database, row) for row in runs.rows]
    context = {
        "title": "Rollouts",
        "live": live,
        "runs": described,
        "rules": await rules_of_runs(datasette, database, runs.rows),
        "unscored": await unscored_environments(datasette, request, database, described),
        "list": runs,
        "count": count.first(runs=len(runs.rows))["runs"],
        **pager(start, RUNS_ON_A_PAGE, lambda first: overview_url(datasette, database, start=first)),
    }
    return await render(datasette, request, database, "overview.html", context)


def routes() -> list[Route]:
    """Return the addresses of this page and what answers them."""
    return [(DATABASE + r"/?$", overview_page)]


def described_run(datasette: Datasette, database: str, row: dict[str, Any]) -> dict[str, Any]:
    """Return a run's row with its addresses, its state in words and its curves."""
    points, split = sorted(_listed(row["curve"])), row["split"] or ""
    totals = {one[0]: Total(*one) for one in sorted(_listed(row["splits"]))}
    chosen, label = totals.pop(split, Total()), plain(split or "all")
    return {
        **row,
        "url": run_url(datasette, database, row["id"]),
        "first_url": step_url(datasette, database, row["id"], row["first_step"]),
        "last_url": step_url(datasette, database, row["id"], row["last_step"]),
        "ranges": few(sorted((first, last) for first, last in _listed(row["ranges"]))),
        "state": state_words(row),
        "rate": chosen.rate,
        "rate_bar": rate_bar(chosen.successes, chosen.scored, chosen.trajectories),
        "pass_spark": _curve([(x, y) for x, y, _ in points], f"pass rate ({label})", 0, 1),
        "reward_spark": _curve([(x, y) for x, _, y in points], f"mean reward ({label})"),
        "successes": chosen.successes,
        "scored": chosen.scored,
        "of_split": chosen.trajectories,
        "rewarded": chosen.rewarded,
        "reward": chosen.reward,
        "others": list(totals.values()),
    }


def _listed(text: str | None) -> list[Any]:
    """Return what SQLite wrote as JSON, in which it has Inf for a mean of numbers that no sum can hold."""
    return json.loads(INFINITE.sub("null", text or "[]"))  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Total:
    """What the trajectories of one split of a run amount to, over all steps that have been read."""

    split: str = ""
    successes: int = 0
    scored: int = 0
    trajectories: int = 0
    rewarded: int = 0
    reward: float | None = None

    @property
    def rate(self) -> float | None:
        """The share of successes; None where nothing is scored."""
        return self.successes / self.scored if self.scored else None


def _curve(points: list[Point], label: str, low: float | None = None, high: float | None = None) -> Markup:
    """Return a curve; nothing without a value, since the number before it says so already."""
    return spark(points, label, low, high) if any(y is not None for _, y in points) else Markup("")
