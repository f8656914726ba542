"""The page of a prompt over all steps of its run: its text, how its pass rate moves, its best and its worst answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from datasette.utils.asgi import Request, Response

from rltracer_sqlite.index.among import Among
from rltracer_sqlite.index.over_steps import why_neither
from rltracer_sqlite.index.states import amiss
from rltracer_sqlite.unrecorded import is_chosen

from .access import permitted_index
from .addresses import (
    DATABASE,
    export_url,
    group_url,
    integer,
    place,
    row_url,
    run_url,
    table_url,
    trajectory_url,
)
from .drawings import rate_bar, spark
from .edge import Route
from .filter_names import refuse_unknown_options
from .filter_values import missing_names
from .frame import pager, render, trail
from .live import live_prompt
from .missing import no_prompt
from .prompt_chosen import CHOSEN_BY, Chosen, choices
from .prompt_ends import ends_context
from .prompt_queries import page_queries
from .queries import Answer, answers
from .selection import at, recorded
from .success_rules import rule_of

if TYPE_CHECKING:
    from datasette.app import Datasette

STEPS_ON_A_PAGE = 100


def routes() -> list[Route]:
    """Return the addresses of this page and what answers them."""
    return [(DATABASE + r"/prompt/(?P<run>\d+)/(?P<prompt>\d+)$", prompt_page)]


async def prompt_page(datasette: Datasette, request: Request) -> Response:
    """Answer with a prompt over all steps of a run."""
    database = await permitted_index(datasette, request, "runs", "steps", "shards", "prompts", "prompt_groups")
    refuse_unknown_options(request, (*CHOSEN_BY, "start"))
    run, prompt = (integer(request.url_vars[name]) for name in ("run", "prompt"))
    among = Among(*(request.args.get(name) or None for name in CHOSEN_BY))
    chosen = Chosen(datasette, database, run, prompt, among)
    live = await live_prompt(datasette, database, run, prompt)
    head, kinds, steps, states, readable = await answers(
        datasette, request, database, *page_queries(run, prompt, among)
    )
    if not head.rows:
        raise await no_prompt(datasette, database, run, prompt)
    row = head.rows[0]
    envs = list(dict.fromkeys(kind["env"] for kind in kinds.rows if is_chosen(kind["env"], among.env)))
    context = {
        "title": f"prompt {prompt}",
        "trail": [*trail(datasette, database, (run, row["run"])), (chosen.here(among), f"prompt {prompt}")],
        "within": [("run_id", str(run))],
        "live": live,
        "row": row,
        "rule": await rule_of(datasette, database, run, row, envs or None),
        "missing": await _missing(chosen, request) if not steps.rows and not steps.interrupted else [],
        "choices": choices(chosen, kinds.rows),
        "kinds": [len(kinds.rows), kinds.first(listed=0)["listed"]],
        "envs": envs,
        **_addresses(chosen),
        **_steps_context(chosen, steps, place(request.args.get("start")) or 0),
        "amiss": [said] if states.rows and (said := amiss(states.rows[0])) else [],
        **await ends_context(chosen, steps.rows, [one["id"] for one in readable.rows]),
    }
    return await render(datasette, request, database, "prompt.html", context)


async def _missing(chosen: Chosen, request: Request) -> list[Any]:
    """Return the names in the address that no group of the prompt has."""
    fixed = [at("run_id", chosen.run), at("prompt_id", chosen.prompt)]
    return await missing_names(chosen.datasette, request, chosen.database, "prompt_groups", fixed, CHOSEN_BY)


def _addresses(chosen: Chosen) -> dict[str, Any]:
    where = chosen.where
    return {
        "run_url": run_url(*where, chosen.run),
        "row_url": row_url(*where, "prompts", chosen.prompt),
        "table_url": table_url(*where, "prompt_groups", [*chosen.pairs, ("_sort", "step")]),
        "rows_url": export_url(*where, "prompt_groups", chosen.pairs),
        "problems_url": f"{run_url(*where, chosen.run)}#problems",
    }


def _steps_context(chosen: Chosen, found: Answer, start: int) -> dict[str, Any]:
    """Return the rows of the steps of one page of the list, and what they come to in each split."""
    rows = sorted(found.rows, key=_train_first)
    return {
        "list": found,
        "count": len(rows),
        "steps": [_step(chosen, row) for row in rows[start : start + STEPS_ON_A_PAGE]],
        "numbered": len({row["step"] for row in rows if row["step"] is not None}),
        "without_step": sum(row["trajectories"] for row in rows if row["step"] is None),
        "splits": [_total(list(rows_of)) for rows_of in _by_split(rows)],
        **pager(start, STEPS_ON_A_PAGE, lambda first: chosen.here(chosen.among, first)),
    }


def _train_first(row: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what rows are ordered by: the step, and as on other pages train before the other splits."""
    return row["step"] is None, row["step"] or 0, row["split"] != "train", row["split"] or ""


def _by_split(rows: Sequence[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    found: dict[str | None, list[dict[str, Any]]] = {}
    for row in sorted(rows, key=lambda row: (row["split"] != "train", row["split"] or "")):
        found.setdefault(row["split"], []).append(row)
    return list(found.values())


def _total(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what the rows of one split come to."""
    counted = {name: sum(row[name] for row in rows) for name in ("trajectories", "scored", "successes", "rewarded")}
    means = [(row["reward_mean"], row["rewarded"]) for row in rows if row["rewarded"]]
    # Rewards of both infinities, which an index of somebody else's may hold, have no mean.
    is_known = bool(means) and all(mean is not None for mean, _ in means)
    points = [(row["step"], row["pass_rate"]) for row in rows if row["step"] is not None]
    is_drawn = sum(rate is not None for _, rate in points) > 1
    return {
        **counted,
        "split": rows[0]["split"],
        "reward_mean": sum(mean * count for mean, count in means) / counted["rewarded"] if is_known else None,
        "spark": spark(points, "pass rate of this prompt", 0, 1) if is_drawn else None,
    }


def _step(chosen: Chosen, row: dict[str, Any]) -> dict[str, Any]:
    """Return a row with its links: to its group, and where the prompt has several in that step, to all of them."""
    is_one = row["first_group"] == row["last_group"]
    kind = [
        at("run_id", chosen.run),
        at("prompt_id", chosen.prompt),
        at("step", row["step"]),
        at("split", row["split"]),
    ]
    env = [recorded(("env", chosen.among.env))] if chosen.among.env is not None else []
    return {
        **row,
        # Under this selection the neighbours of a group are the same prompt at other steps.
        "url": group_url(*chosen.where, row["first_group"], [*chosen.pairs, ("_sort", "step")]),
        "groups_url": None if is_one else table_url(*chosen.where, "prompt_groups", [*kind, *env]),
        "bar": rate_bar(row["successes"], row["scored"], row["trajectories"]),
        "neither": why_neither(row),
        "best_url": None if row["best"] is None else trajectory_url(*chosen.where, row["best"]),
        "worst_url": None if row["worst"] is None else trajectory_url(*chosen.where, row["worst"]),
    }
