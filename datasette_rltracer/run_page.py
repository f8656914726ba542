"""The page of a run: its charts, steps and environments, its hardest and easiest prompts, and what went wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datasette.utils.asgi import Request, Response

from rltracer_sqlite.index.states import COMPLETE, ENDED, left_aside, state_words
from rltracer_sqlite.passrates import WINDOW_SIZES
from rltracer_sqlite.unscored import of_environments

from . import chart_filters, charts, compat
from .access import permitted_index
from .addresses import DATABASE, integer, place, row_url, run_url, table_url
from .edge import Route
from .filter_names import refuse_unknown_options
from .frame import pager, render, trail
from .live import live_run
from .missing import no_run
from .overview_page import described_run, run_query
from .queries import Answer, Query, answers
from .run_queries import RUN, STEPS_ON_A_PAGE, list_queries
from .run_rows import list_rows
from .success_rules import rule_of
from .unscored import unscored_prompts

if TYPE_CHECKING:
    from datasette.app import Datasette
    from markupsafe import Markup

FEW_WINDOWS = 5


def routes() -> list[Route]:
    """Return the addresses of this page and what answers them."""
    return [(DATABASE + r"/run/(?P<run>\d+)$", run_page)]


async def run_page(datasette: Datasette, request: Request) -> Response:
    """Answer with what an index knows of a run."""
    database = await permitted_index(
        datasette, request, "runs", "steps", "shards", "prompts", "prompt_groups", "problems"
    )
    refuse_unknown_options(request, ("start", *chart_filters.OPTIONS))
    identity, start = integer(request.url_vars["run"]), place(request.args.get("start")) or 0
    queries = list_queries(identity, start)
    live = await live_run(datasette, database, identity)
    run, curves, *found = await answers(
        datasette, request, database, Query(RUN, {"run_id": identity}), run_query(identity), *queries.values()
    )
    if not run.rows:
        raise await no_run(datasette, database, identity)
    row = run.rows[0]
    lists: dict[str, Answer] = dict(zip(queries, found, strict=True))
    context = {
        "title": row["name"],
        "live": live,
        "trail": trail(datasette, database, (identity, row["name"])),
        "within": [("run_id", str(identity))],
        "run": row,
        "rule": await rule_of(datasette, database, identity, row),
        "state": state_words(row),
        "no_problems": _no_problems(state_words(row), row["aside"]),
        "curves": described_run(datasette, database, curves.rows[0]) if curves.rows else {},
        "records_errors": _records_errors(curves),
        "found": lists,
        "counts": {name: answer.rows[0].get("listed", 0) if answer.rows else 0 for name, answer in lists.items()},
        "unscored_envs": _unscored_environments(lists["envs"]),
        "unscored": await unscored_prompts(datasette, request, database, row, lists),
        **list_rows(datasette, database, row, lists),
        **_moved(datasette, database, row),
        **_addresses(datasette, database, identity, start),
        "problems_url": await _problems_url(datasette, database, row),
        "charts": await _charts(datasette, request, database, identity),
        "styles": ["charts.css"],
    }
    return await render(datasette, request, database, "run.html", context)


def _moved(datasette: Datasette, database: str, run: dict[str, Any]) -> dict[str, Any]:
    """Return where the prompts are that gained or lost between windows of a run with several steps: a few windows."""
    steps = run["numbered_steps"]
    size = next((size for size in WINDOW_SIZES if size * FEW_WINDOWS >= steps), WINDOW_SIZES[-1])
    url = table_url(datasette, database, "prompt_changes", run_id=run["id"], window_size=size)
    return {"moved_url": url if steps > size else None, "moved_steps": size}


def _addresses(datasette: Datasette, database: str, run: int, start: int) -> dict[str, Any]:
    where, scored = (datasette, database), [("run_id", run), ("scored__gt", 0)]
    return {
        "row_url": row_url(*where, "runs", run),
        "steps_url": table_url(*where, "steps", run_id=run),
        "groups_url": table_url(*where, "prompt_groups", run_id=run),
        "hardest_url": table_url(*where, "prompt_pass_rates", [*scored, ("_sort", "pass_rate")]),
        "never_url": table_url(*where, "prompt_pass_rates", [*scored, ("successes", 0)]),
        "always_url": table_url(*where, "prompt_pass_rates", [*scored, ("pass_rate", 1)]),
        "tools_url": table_url(*where, "tool_use", run_id=run),
        "easiest_url": table_url(*where, "prompt_pass_rates", [*scored, ("_sort_desc", "pass_rate")]),
        "failed_url": table_url(*where, "trajectories", [("error_type__notnull", 1)], run_id=run),
        **pager(start, STEPS_ON_A_PAGE, lambda first: run_url(*where, run, start=first)),
    }


def _unscored_environments(envs: Answer) -> str | None:
    """Return ' of a, b' for the environments of which the rule scores no trajectory, "" where it scores none at all.

    None where it scores some of each, where these have no names, and where not all environments are listed.
    """
    scored: dict[str | None, int] = {}
    for row in envs.rows:
        scored[row["env"]] = scored.get(row["env"], 0) + row["scored"]
    if not envs.rows or len(envs.rows) < envs.rows[0]["listed"]:
        return None
    if not any(scored.values()):
        return ""
    return of_environments(env for env, count in scored.items() if not count) or None


def _records_errors(curves: Answer) -> bool:
    """Say whether it is known of any trajectory whether it ended with an error; also where there is none."""
    row = curves.first(errors=None, trajectories=0)
    return row["errors"] is not None or not row["trajectories"]


def _no_problems(state: list[str], aside: int) -> str:
    """Return what is said in the place of a run's problems where there is none: only what was read can have one.

    So many files were left `aside`, and are listed with the reason.
    """
    if state != [COMPLETE]:
        told = ", ".join(words for words in state if words != ENDED)
        return f"No problem in what was read; {told}{f'; {left_aside(aside)}' if aside else ''}."
    return f"Every line of every file was read{f', except that {left_aside(aside)}' if aside else ''}."


async def _problems_url(datasette: Datasette, database: str, run: dict[str, Any]) -> str | None:
    """Return the address of the table of a run's problems, or None where an index of before has no such view."""
    if "run_problems" not in await datasette.databases[database].view_names():
        return None
    return table_url(datasette, database, "run_problems", run_id=run["id"])


async def _charts(datasette: Datasette, request: Request, database: str, run: int) -> Markup | None:
    """Return the run's charts, or None for a visitor who may not see all that they are drawn from.

    An index made before there were charts has no sums to draw them from.
    """
    if not await datasette.databases[database].table_exists("step_values"):
        return None
    if await compat.first_hidden(datasette, request.actor, database, *charts.DRAWN_FROM) is not None:
        return None
    return await charts.charts_fragment(datasette, request, database, run)
