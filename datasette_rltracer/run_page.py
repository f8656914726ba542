"""The page of a run: its charts, steps and environments, its hardest and easiest prompts, and what went wrong."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from datasette.utils.asgi import Request, Response

from rltracer_sqlite.amounts import few, in_ranges
from rltracer_sqlite.browse.outcome import trouble
from rltracer_sqlite.index.problems import why_amiss
from rltracer_sqlite.index.states import COMPLETE, by_step, left_aside, state_words, step_amiss, step_marks
from rltracer_sqlite.passrates import WINDOW_SIZES
from rltracer_sqlite.unscored import of_environments

from . import chart_filters, charts, compat
from .access import permitted_index
from .addresses import DATABASE, integer, place, prompt_url, row_url, run_url, step_url, table_url
from .drawings import rate_bar
from .edge import Route
from .filter_names import refuse_unknown_options
from .frame import pager, render, trail
from .live import live_run
from .missing import no_run
from .overview_page import described_run, run_query
from .queries import Answer, Query, answers
from .run_queries import MOST_FILES, RUN, STEPS_ON_A_PAGE, list_queries
from .success_rules import rule_of

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
        **_rows(datasette, database, row, lists),
        **_addresses(datasette, database, identity, start),
        "problems_url": await _problems_url(datasette, database, row),
        "charts": await _charts(datasette, request, database, identity),
        "styles": ["charts.css"],
    }
    return await render(datasette, request, database, "run.html", context)


def _rows(datasette: Datasette, database: str, about: dict[str, Any], lists: dict[str, Answer]) -> dict[str, Any]:
    """Return the rows of the lists of the run that a row is `about`, with their addresses and drawings."""
    where, run, envs = (datasette, database), about["id"], lists["envs"]
    return {
        "steps": _steps(*where, about, lists),
        "envs": [_env(*where, run, row) for row in envs.rows],
        "prompts_found": {name: _prompts(*where, run, lists[name]) for name in ("hardest", "easiest")},
        "errors": [_error(*where, run, row) for row in lists["errors"].rows],
        "problems": (problems := [_problem(*where, row) for row in lists["problems"].rows]),
        "problems_shown": sum(row["problems"] for row in problems),
        "files_amiss": [_file(*where, row) for row in lists["files"].rows],
        "zero_signal": envs.first(all_zero_signal=0)["all_zero_signal"] or 0,
        "judged": envs.first(all_judged=0)["all_judged"] or 0,
        "has_tools": envs.first(has_tools=0)["has_tools"],
        "ends": lists["hardest"].first(never_passed=0, always_passed=0),
        **_moved(*where, about),
    }


def _moved(datasette: Datasette, database: str, run: dict[str, Any]) -> dict[str, Any]:
    """Return where the prompts are that gained or lost between windows of a run with several steps: a few windows."""
    steps = run["numbered_steps"]
    size = next((size for size in WINDOW_SIZES if size * FEW_WINDOWS >= steps), WINDOW_SIZES[-1])
    url = table_url(datasette, database, "prompt_changes", run_id=run["id"], window_size=size)
    return {"moved_url": url if steps > size else None, "moved_steps": size}


def _addresses(datasette: Datasette, database: str, run: int, start: int) -> dict[str, Any]:
    where, scored = (datasette, database), [("run_id", run), ("scored__gt", 0)]
    return {
        "silent_url": table_url(*where, "prompt_groups", run_id=run, zero_variance=1),
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


def _unscored_environments(envs: Answer) -> str:
    """Return the environments of which the rule scores no trajectory, in words, where it scores some of others.

    "" where not all environments are listed.
    """
    scored: dict[str | None, int] = {}
    for row in envs.rows:
        scored[row["env"]] = scored.get(row["env"], 0) + row["scored"]
    is_told = any(scored.values()) and len(envs.rows) == envs.rows[0]["listed"]
    return of_environments(env for env, count in scored.items() if not count) if is_told else ""


def _records_errors(curves: Answer) -> bool:
    """Say whether it is known of any trajectory whether it ended with an error; also where there is none."""
    row = curves.first(errors=None, trajectories=0)
    return row["errors"] is not None or not row["trajectories"]


def _no_problems(state: list[str], aside: int) -> str:
    """Return what is said in the place of a run's problems where there is none: only what was read can have one.

    So many files were left `aside`, and are listed with the reason.
    """
    if state != [COMPLETE]:
        return f"No problem in what was read; {', '.join(state)}{f'; {left_aside(aside)}' if aside else ''}."
    return f"Every line of every file was read{f', except that {left_aside(aside)}' if aside else ''}."


async def _problems_url(datasette: Datasette, database: str, run: dict[str, Any]) -> str | None:
    """Return the address of the table of a run's problems, or None where an index of before has no such view."""
    if "run_problems" not in await datasette.databases[database].view_names():
        return None
    return table_url(datasette, database, "run_problems", run_id=run["id"])


def _of_files(files: list[int]) -> list[tuple[str, str]]:
    return [("shard_id__in", ",".join(map(str, files)))]


def _marks_url(datasette: Datasette, database: str, run: dict[str, Any], row: dict[str, Any]) -> str:
    """Return the address of the problems of a step's files, or of the files where none has one, or too many have."""
    listed = json.loads(run["files_with_problems"])
    files = [one for one, step, split in listed if step == row["step"] and split in (None, row["split"])]
    if files and len(listed) <= MOST_FILES:
        return table_url(datasette, database, "problems", _of_files(files))
    return table_url(datasette, database, "shards", run_id=run["id"], step=row["step"])


async def _charts(datasette: Datasette, request: Request, database: str, run: int) -> Markup | None:
    """Return the run's charts, or None for a visitor who may not see all that they are drawn from.

    An index made before there were charts has no sums to draw them from.
    """
    if not await datasette.databases[database].table_exists("step_values"):
        return None
    for table in charts.DRAWN_FROM:
        if not await compat.can_view_table(datasette, request.actor, database, table):
            return None
    return await charts.charts_fragment(datasette, request, database, run)


def _steps(datasette: Datasette, database: str, run: dict[str, Any], lists: dict[str, Answer]) -> list[dict[str, Any]]:
    """Return the rows of the steps, with why one has no trajectory, and what of one was not read."""
    why = {(file["step"], file["split"]): trouble(file) for file in lists["empty"].rows}
    files = by_step(lists["files_of_steps"].rows)
    return [
        {
            **_step(datasette, database, run["id"], row),
            "marks_url": _marks_url(datasette, database, run, row),
            "why": why.get((row["step"], row["split"])),
            "marks": step_marks(step_amiss(files.get(row["step"], []), row["split"]), row["gone"], row["trajectories"]),
        }
        for row in lists["steps"].rows
    ]


def _step(datasette: Datasette, database: str, run: int, row: dict[str, Any]) -> dict[str, Any]:
    split = [] if row["split"] is None else [("split", row["split"])]
    return {
        **row,
        "url": step_url(datasette, database, run, row["step"], split),
        "truncated_url": table_url(
            datasette, database, "trajectories", run_id=run, step=row["step"], split=row["split"], truncated=1
        ),
        "bar": rate_bar(row["successes"], row["scored"], row["trajectories"]),
    }


def _env(datasette: Datasette, database: str, run: int, row: dict[str, Any]) -> dict[str, Any]:
    place = {"run_id": run, "env": row["env"], "split": row["split"]}
    return {
        **row,
        "url": table_url(datasette, database, "prompt_groups", **place),
        "trajectories_url": table_url(datasette, database, "trajectories", **place),
        "bar": rate_bar(row["successes"], row["scored"], row["trajectories"]),
    }


def _prompts(datasette: Datasette, database: str, run: int, found: Answer) -> list[dict[str, Any]]:
    return [
        {
            **row,
            "url": prompt_url(
                datasette,
                database,
                run,
                row["prompt_id"],
                [("split", row["split"]), ("env", row["env"])],
            ),
            "bar": rate_bar(row["successes"], row["scored"], row["trajectories"]),
        }
        for row in found.rows
    ]


def _error(datasette: Datasette, database: str, run: int, row: dict[str, Any]) -> dict[str, Any]:
    return {
        **row,
        "url": table_url(datasette, database, "trajectories", run_id=run, error_type=row["error_type"]),
        "ranges": few(in_ranges(step for step in json.loads(row["error_steps"]) if step is not None)),
        "first_url": step_url(datasette, database, run, row["first_step"]),
        "last_url": step_url(datasette, database, run, row["last_step"]),
    }


def _problem(datasette: Datasette, database: str, row: dict[str, Any]) -> dict[str, Any]:
    return {
        **row,
        "url": row_url(datasette, database, "shards", row["shard_id"]),
        "all_url": table_url(datasette, database, "problems", shard_id=row["shard_id"]),
    }


def _file(datasette: Datasette, database: str, row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "url": row_url(datasette, database, "shards", row["shard_id"]), "reason": why_amiss(row)}
