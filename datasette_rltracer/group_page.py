"""The workbench of a prompt group: the prompt once, its trajectories as rows, and the same prompt elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from datasette.utils.asgi import Request, Response

from rltracer_sqlite.comparison import DERIVED

from .access import permitted_index
from .addresses import (
    DATABASE,
    compare_url,
    export_url,
    group_url,
    integer,
    place,
    row_url,
    table_url,
    trajectory_url,
)
from .bounds import ask
from .edge import Route
from .filter_values import OF_ROWS, missing_names
from .frame import pager, render, trail
from .group_records import LAST_WORDS_LIMIT, MOST_LAST_WORDS, read_records
from .group_rows import (
    MOST_REWARDS,
    NARROW_REWARDS,
    ROWS_ON_A_PAGE,
    described_rows,
    reward_columns,
    rows_query,
    shown_rewards,
)
from .group_selection import order_words, scope_words, selections, usual_choices
from .group_workbench import Workbench
from .live import live_group
from .missing import no_group
from .prompt_elsewhere import elsewhere_queries, other_runs, this_run
from .queries import Answer, Query, answers
from .selection import NO_NEIGHBOURS, Pair, Selection, at, chips, neighbours
from .siblings import ENDS
from .success_rules import rule_of
from .trained import unlisted_words

if TYPE_CHECKING:
    from datasette.app import Datasette

GROUP = """
select g.*, p.preview, p.key, p.task, r.name as run, r.success_path, r.success_threshold
from prompt_groups g join prompts p on p.id = g.prompt_id join runs r on r.id = g.run_id where g.id = :group
"""

# The first, the best and the worst of the whole group, whatever is filtered; rewards that are equal have neither.
WHOLE = f"""
select
    count(*) as trajectories, sum(byte_length) as bytes, min(id) as first, {ENDS},
    count(reward) as rewarded, count(distinct reward) as rewards, count(advantage) as recorded
from trajectories where prompt_group_id = :group
"""


def routes() -> list[Route]:
    """Return the addresses of this page and what answers them."""
    return [(DATABASE + r"/group/(?P<id>\d+)$", group_page)]


async def group_page(datasette: Datasette, request: Request) -> Response:
    """Answer with a prompt group."""
    database = await permitted_index(datasette, request, "runs", "shards", "prompts", "prompt_groups")
    identity = integer(request.url_vars["id"])
    live = await live_group(datasette, database, identity)
    [found] = await answers(datasette, request, database, Query(GROUP, {"group": identity}))
    if not found.rows:
        raise await no_group(datasette, database, identity)
    group = found.rows[0]
    bench = Workbench(datasette, database, group, *await selections(datasette, database, request, group))
    start = place(request.args.get("start")) or 0
    rewards = await ask(datasette, database, reward_columns)
    listed, count, ends, beside, *others = await answers(
        datasette,
        request,
        database,
        rows_query(identity, bench.rows, rewards, start),
        _count_query(identity, bench.rows),
        Query(WHOLE, {"group": identity}),
        neighbours(bench.groups, identity),
        *elsewhere_queries(group),
    )
    context = {
        "title": f"prompt group {identity}",
        "trail": trail(
            datasette, database, (group["run_id"], group["run"]), (group["step"],), identity, group["prompt_id"]
        ),
        "within": [("run_id", str(group["run_id"]))],
        "live": live,
        "group": group,
        "rule": await rule_of(datasette, database, group["run_id"], group, [group["env"]]),
        **await _missing_context(bench, request, beside, listed),
        "count": count.first(trajectories=len(listed.rows))["trajectories"],
        **_beside_context(bench, beside),
        **_elsewhere_context(bench, *others),
        **_rows_context(bench, listed, rewards, start),
        **await _records_context(bench, listed, ends, request.args.get("words") == "1"),
    }
    return await render(datasette, request, database, "group.html", context)


async def _missing_context(bench: Workbench, request: Request, beside: Answer, listed: Answer) -> dict[str, Any]:
    """Return the names in the address that no group, or no trajectory of this one, has; asked where a list is empty."""
    where = (bench.datasette, request, bench.database)
    of_groups, of_rows = beside.first(**NO_NEIGHBOURS)["listed"] == 0, not listed.rows and bool(bench.rows.chosen)
    fixed = [at("prompt_group_id", bench.group["id"])]
    return {
        "missing_groups": await missing_names(*where, "prompt_groups") if of_groups else [],
        "missing_rows": await missing_names(*where, "trajectories", fixed, OF_ROWS) if of_rows else [],
    }


def _beside_context(bench: Workbench, beside: Answer) -> dict[str, Any]:
    """Return what is said of the groups before and after this one, and where else it is listed."""
    near, where = beside.first(**NO_NEIGHBOURS), (bench.datasette, bench.database)
    return {
        "beside": near,
        "previous_url": bench.beside(near["previous"]),
        "next_url": bench.beside(near["next"]),
        "scope": scope_words(bench.groups, bench.group),
        "beside_url": beside.sql_url,
        "step_url": bench.step_url(),
        "row_url": row_url(*where, "prompt_groups", bench.group["id"]),
        "prompt_url": bench.prompt_url(),
    }


def _elsewhere_context(bench: Workbench, own: Answer, count: Answer, others: Answer) -> dict[str, Any]:
    where = (bench.datasette, bench.database)
    return {
        "this_run": this_run(*where, bench.group, own, count),
        "other_runs": other_runs(*where, others),
        "other_runs_list": others,
    }


def _rows_context(bench: Workbench, listed: Answer, rewards: Sequence[tuple[str, str]], start: int) -> dict[str, Any]:
    """Return the rows as far as the index knows them, and the links to other selections of them."""
    rows, shown = bench.rows, shown_rewards(rewards, listed.rows)
    identity = bench.group["id"]
    return {
        "list": listed,
        "rewards": shown[:MOST_REWARDS],
        "reward_count": len(shown),
        "narrow_rewards": NARROW_REWARDS,
        **pager(start, ROWS_ON_A_PAGE, lambda first: bench.here(rows, first)),
        "selection": rows,
        "sorted_url": bench.here,
        "chips": chips(rows, bench.here),
        "all_url": bench.here(replace(rows, chosen=())),
        "choices": usual_choices(rows, bench.here),
        "order": order_words(rows),
        "usual_order_url": bench.here(replace(rows, order=None)) if rows.order else None,
        "read_url": bench.trajectory(listed.rows[0]["id"]) if listed.rows else None,
        "table_url": table_url(
            bench.datasette, bench.database, "trajectories", _as_listed(rows), prompt_group_id=identity
        ),
        "rows_url": export_url(
            bench.datasette, bench.database, "trajectories", [("prompt_group_id", str(identity)), *rows.filters]
        ),
    }


async def _records_context(bench: Workbench, listed: Answer, ends: Answer, wants_words: bool) -> dict[str, Any]:
    """Return the prompt and the rows with their last words, where reading so many records is asked for or cheap."""
    end = ends.first(trajectories=0, bytes=None, first=None, best=None, worst=None, rewarded=0, rewards=0, recorded=0)
    size = end["bytes"]
    reads_words = size is not None and size <= (MOST_LAST_WORDS if wants_words else LAST_WORDS_LIMIT)
    where = (bench.datasette, bench.database)
    read = await read_records(*where, end["first"], [row["id"] for row in listed.rows], reads_words)
    return {
        "ends": end,
        "derived": DERIVED,
        "prompt": read.prompt,
        "expected": read.expected,
        "preview": bench.group["preview"],
        "rows": [
            {**row, "url": bench.trajectory(row["id"]), "last_words": read.words.get(row["id"])}
            for row in described_rows(listed.rows, bench.group)
        ],
        "unlisted": next(filter(None, (unlisted_words(row, bench.group["split"]) for row in listed.rows)), ""),
        "kept": "kept" if bench.group["split"] == "eval" else "trained on",
        "has_agents": len({row["agent"] for row in listed.rows}) > 1,  # else each row would say the same
        "without_text": read.why,
        "has_words": reads_words and (any(read.words.values()) or bool(read.why)),
        "words_url": group_url(*where, bench.group["id"], [*bench.pairs, ("words", "1")]),
        "can_read_words": not reads_words and (size or 0) <= MOST_LAST_WORDS,
        "compare_url": compare_url(*where, end["best"], end["worst"]) if end["rewards"] > 1 else None,
        "here": lambda **query: bench.trajectory(end["first"], **query),
        "record_url": trajectory_url(*where, end["first"], "/record") if end["first"] else None,
    }


def _as_listed(rows: Selection) -> list[Pair]:
    """Return the filters and the order of a list as the tables of Datasette need them, the usual order said too."""
    return replace(rows, order=rows.shown_order).pairs


def _count_query(group: int, selection: Selection) -> Query:
    where, parameters = selection.where()
    sql = f"select count(*) as trajectories from trajectories where prompt_group_id = :group and {where}"
    return Query(sql, {**parameters, "group": group})
