"""The page of a step: its prompt groups, filtered and sorted as a table of Datasette's would be."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from datasette.utils.asgi import Request, Response

from rltracer_sqlite.browse.outcome import files_in_words
from rltracer_sqlite.index.states import COUNTS, file_words, problem_words
from rltracer_sqlite.unrecorded import is_chosen

from .access import permitted_index
from .addresses import (
    DATABASE,
    STEP_PATH,
    errors_url,
    export_url,
    integer,
    place,
    run_url,
    step_of,
    step_url,
    table_url,
)
from .edge import Route
from .filter_names import refuse_unknown_filters
from .filter_values import OF_GROUPS, missing_names
from .frame import pager, render, step_words, trail
from .live import live_step
from .missing import no_step
from .queries import answers
from .selection import Selection, at, chips, read_selection, written
from .step_groups import buckets_context, described_groups, filter_form, kinds_recorded
from .step_queries import GROUPS_ON_A_PAGE, page_queries
from .success_rules import rule_of

if TYPE_CHECKING:
    from datasette.app import Datasette

    from .filter_values import Missing

MOST_ON_A_PAGE = 2_000
OWN = ("start", "_size")  # what an address can ask for besides filters and an order


def routes() -> list[Route]:
    """Return the addresses of this page and what answers them."""
    return [(f"{DATABASE}{STEP_PATH}$", step_page)]


async def step_page(datasette: Datasette, request: Request) -> Response:
    """Answer with the prompt groups of a step."""
    database = await permitted_index(
        datasette, request, "runs", "steps", "shards", "prompts", "prompt_groups", "problems"
    )
    run, step = integer(request.url_vars["run"]), step_of(request.url_vars["step"])
    start, size = place(request.args.get("start")) or 0, _size(request.args.get("_size"))
    selection = await _selection(datasette, database, request, run, step)
    live = await live_step(datasette, database, run, step)
    head, groups, buckets, choices, troubled, gone, states = await answers(
        datasette, request, database, *page_queries(run, step, selection, start, size)
    )
    if not head.rows:
        raise await no_step(datasette, database, run, step)

    def here(selected: Selection, first: int | None = None) -> str:
        own = [*selected.chosen, *selected.sorting, *([("_size", str(size))] if size != GROUPS_ON_A_PAGE else [])]
        return step_url(datasette, database, run, step, [*own, ("start", first)])

    kinds = kinds_recorded(choices.rows, groups.rows)
    about = _step_context(datasette, database, (run, step), head.rows, selection)
    context = {
        **about,
        **buckets_context(buckets, selection, here),
        "live": live,
        "rule": await rule_of(datasette, database, run, head.rows[0], [one["env"] for one in choices.rows] or None),
        **_files_context(troubled.rows, states.rows, bool(about["trajectories"])),
        "within": [*selection.fixed, *(pair for pair in selection.chosen if written(pair)[0] == "split")],
        "problems_url": f"{run_url(datasette, database, run)}#problems",
        "gone": gone.first(trajectories=0, files=0),
        "groups": described_groups(datasette, database, selection, groups.rows, kinds),
        "kinds": kinds,
        "list": groups,
        "missing": await _missing(datasette, request, database, selection) if not groups.rows else [],
        **pager(start, size, lambda first: here(selection, first)),
        "selection": selection,
        "sorted_url": here,
        "chips": chips(selection, here),
        "all_url": here(replace(selection, chosen=())),
        "form": filter_form(choices.rows, selection),
    }
    return await render(datasette, request, database, "step.html", context)


async def _missing(datasette: Datasette, request: Request, database: str, selection: Selection) -> list[Missing]:
    """Return the names in the address that no group of the step has."""
    names = [name for name in OF_GROUPS if name != "run_id"]
    return await missing_names(datasette, request, database, "prompt_groups", selection.fixed, names)


def _step_context(
    datasette: Datasette, database: str, where: tuple[int, int | None], rows: list[dict[str, Any]], selection: Selection
) -> dict[str, Any]:
    """Return what is said of the whole step, or of the split that is chosen, and the addresses beside it."""
    (run, step), row = where, rows[0]
    split = dict(map(written, selection.chosen)).get("split")
    splits = [one for one in rows if split is not None and is_chosen(one["split"], split)] or rows
    chosen = {"split": splits[0]["split"]} if len(splits) < len(rows) else {}
    pairs = [*selection.chosen, *selection.sorting]
    beside = {
        f"{name}_url": None if row[name] is None else step_url(datasette, database, run, row[name], pairs)
        for name in ("previous", "next")
    }
    return {
        "title": f"{row['run']}, {step_words(step)}",
        "trail": trail(datasette, database, (run, row["run"]), (step,)),
        "step_words": step_words(step),
        "run": row["run"],
        "run_url": run_url(datasette, database, run),
        "splits": splits,
        "split": split if chosen else None,
        "step_kind": row["step_kind"],
        "trajectories": sum(one["trajectories"] or 0 for one in splits),
        **{name: _total([one[name] for one in splits]) for name in ("truncated", "errors")},
        "all_trajectories": sum(one["trajectories"] or 0 for one in rows),
        "unread": any(one["indexed_at"] is None for one in splits),
        **beside,
        "form_url": step_url(datasette, database, run, step),
        "table_url": table_url(datasette, database, "prompt_groups", selection.pairs),
        "rows_url": export_url(datasette, database, "prompt_groups", selection.filters),
        "truncated_url": table_url(
            datasette, database, "trajectories", (), run_id=run, step=step, truncated=1, **chosen
        ),
        "errors_url": errors_url(datasette, database, run, step, **chosen),
        "trajectories_url": table_url(datasette, database, "trajectories", (), run_id=run, step=step, **chosen),
    }


def _total(counts: list[int | None]) -> int | None:
    """Return what the counts of splits come to; None where none of them records what is counted."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None


def _files_context(
    troubled: list[dict[str, Any]], states: list[dict[str, Any]], has_trajectories: bool
) -> dict[str, Any]:
    """Return what is said of the files of the step: why some gave no trajectory, and what of the others was not read.

    Where there are trajectories, files that gave none are of interest only if one of them could not be read.
    """
    troubles = files_in_words(troubled) if not has_trajectories or any(f["state"] == "unread" for f in troubled) else []
    others = [row for row in states if not (troubles and row["gave_none"])]
    row = {name: sum(one[name] for one in others) for name in COUNTS}
    row |= {"files": sum(one["files"] for one in states), "gone": 0}  # what is gone is told by itself
    return {
        "troubles": troubles,
        "amiss": [*problem_words(row), *file_words(row)],
        "of_any_step": any(one["stepless"] for one in others),
        "is_being_read": row["reading"] > 0,
    }


async def _selection(datasette: Datasette, database: str, request: Request, run: int, step: int | None) -> Selection:
    columns = await datasette.databases[database].table_columns("prompt_groups")
    refuse_unknown_filters(request, "prompt_groups", columns, OWN)
    asked = read_selection(request, "prompt_groups", columns, others=("run_id", "step"))
    return replace(asked, fixed=[("run_id", str(run)), at("step", step)])


def _size(text: str | None) -> int:
    asked = place(text)
    return GROUPS_ON_A_PAGE if not asked else min(asked, MOST_ON_A_PAGE)
