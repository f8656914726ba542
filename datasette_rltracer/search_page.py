"""The page that searches the messages of all trajectories, and shows each match where it stands in its record."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from datasette.utils.asgi import Request, Response

from rltracer_sqlite.amounts import ranges
from rltracer_sqlite.search import (
    NEWEST_FIRST,
    QueryError,
    as_phrase,
    found_rows,
    found_summary,
    full_text_query,
    has_old_text,
    has_text,
)
from rltracer_sqlite.search.tables import TEXT_TABLE, Coverage, coverage_query
from rltracer_sqlite.unrecorded import NOT_RECORDED

from .access import permitted_index
from .addresses import DATABASE, export_url, place, search_url, table_url
from .bounds import ask
from .edge import Route
from .filter_names import refuse_unknown_filters
from .filter_values import NAMES, missing_names
from .frame import pager, render
from .indexes import file_name, offer_search
from .queries import Answer, Query, answers
from .run_names import names_of, names_query, run_choices
from .search_snippets import read_snippets
from .selection import Selection, chips, read_selection, written
from .success_rules import rules_of_runs

if TYPE_CHECKING:
    from datasette.app import Datasette

RESULTS_ON_A_PAGE = 20
RULES = """
select id, name, success_path, success_threshold from runs where id in (select value from json_each(:runs)) order by id
"""
LONGEST_SHOWN = 200  # characters of a search in the title
ORDERS = {
    "newest": None,
    "oldest": ("id", False),
    "highest reward": ("reward", True),
    "lowest reward": ("reward", False),
}
# What the form has fields for; other filters stand above the results and can be taken off there.
FIELDS = ("run_id", "success", "split", "step__gte", "step__lte")
UNSCORED = ("success__isnull", "1")

SPLITS = f"""
select distinct ifnull(split, '{NOT_RECORDED}') as split from steps where split is not null or trajectories > 0
order by steps.split is null, steps.split limit 50
"""


def routes() -> list[Route]:
    """Return the address of this page and what answers it."""
    return [(DATABASE + r"/search$", search_page)]


async def search_page(datasette: Datasette, request: Request) -> Response:
    """Answer with the trajectories that a search finds. A search that cannot be asked says why, in one sentence."""
    database = await permitted_index(datasette, request, "runs", "steps", "shards", TEXT_TABLE)
    text = (request.args.get("q") or "").strip()
    start = place(request.args.get("start")) or 0
    columns = await datasette.databases[database].table_columns("trajectories")
    refuse_unknown_filters(request, "trajectories", columns, ("q", "start"))
    selection = _with_outcome(read_selection(request, "trajectories", columns))
    splits, found = await answers(datasette, request, database, Query(SPLITS), names_query(selection.chosen))
    runs = names_of(found.rows)
    is_searchable = await ask(datasette, database, has_text)
    coverage = await _coverage(datasette, request, database, selection) if is_searchable else None
    context: dict[str, Any] = {
        "title": f"search for {text[:LONGEST_SHOWN]}" if text else "search",
        "trail": [(search_url(datasette, database), "search")],
        "within": selection.chosen,
        "chips": chips(selection, lambda chosen: search_url(datasette, database, None, chosen.pairs), runs),
        "all_url": search_url(datasette, database),
        "query": text,
        "form_url": search_url(datasette, database),
        "form": _form(selection, [row["split"] for row in splits.rows], runs),
        "file": file_name(datasette, database),
        "is_searchable": is_searchable,
        "coverage": coverage,
        "is_old": not is_searchable and await ask(datasette, database, has_old_text),
        "problem": None,
        "results": None,
    }
    status = 200
    if is_searchable:
        await offer_search(datasette, database)
    if text and is_searchable:
        try:
            full_text_query(text)
        except QueryError as error:
            context["problem"], status = str(error), 400
        else:
            context.update(await _results(datasette, request, database, selection, runs, text, start))
    return await render(datasette, request, database, "search.html", context, status)


async def _coverage(datasette: Datasette, request: Request, database: str, selection: Selection) -> Coverage | None:
    """Return how many of the trajectories that pass the filters can be searched; None where counting took too long."""
    where, parameters = selection.where()
    [counted] = await answers(datasette, request, database, Query(coverage_query(where), parameters))
    return Coverage.of(**counted.rows[0]) if counted.rows else None


async def _results(
    datasette: Datasette,
    request: Request,
    database: str,
    selection: Selection,
    runs: Mapping[str, str],
    text: str,
    start: int,
) -> dict[str, Any]:
    match, phrase = full_text_query(text), as_phrase(text)
    queries = [results_query(selection, match, start), summary_query(selection, match)]
    queries += [summary_query(selection, full_text_query(phrase))] if phrase else []
    listed, summary, *as_one = await answers(datasette, request, database, *queries)
    of_runs = json.dumps([row["run_id"] for row in listed.rows])
    [ruled] = await answers(datasette, request, database, Query(RULES, {"runs": of_runs}))
    snippets = await read_snippets(datasette, database, listed.rows, match)
    is_empty = not listed.rows and bool(selection.chosen)
    missing = await missing_names(datasette, request, database, "trajectories", names=NAMES) if is_empty else []

    def here(selected: Selection, first: int | None = None) -> str:
        return search_url(datasette, database, text, [*selected.chosen, *selected.sorting, ("start", first)])

    return {
        "results": [{**row, "hit": snippet} for row, snippet in zip(listed.rows, snippets, strict=True)],
        "rules": await rules_of_runs(datasette, database, ruled.rows),
        "list": listed,
        "missing": missing,
        "summary": _summary(summary),
        "summary_list": summary,
        **pager(start, RESULTS_ON_A_PAGE, lambda first: here(selection, first)),
        "chips": chips(selection, here, runs),
        "all_url": search_url(datasette, database, text),
        "phrase": phrase,
        "of_phrase": _summary(as_one[0]) if as_one else None,
        "phrase_url": search_url(datasette, database, phrase, selection.pairs),
        "orders": [
            (words, here(Selection("trajectories", (), selection.chosen, order)), selection.order == order)
            for words, order in ORDERS.items()
        ],
        "table_url": table_url(datasette, database, "trajectories", [*_table_search(text, match), *selection.pairs]),
        "rows_url": export_url(datasette, database, "trajectories", [*_table_search(text, match), *selection.filters]),
    }


def results_query(selection: Selection, match: str, start: int) -> Query:
    """Return the query for the trajectories that match and pass the filters, from place `start` on."""
    where, parameters = selection.where()
    order = selection.ordering() if selection.order else NEWEST_FIRST
    return Query(found_rows(where, RESULTS_ON_A_PAGE, start, order), {**parameters, "match": match})


def summary_query(selection: Selection, match: str) -> Query:
    """Return the query for how many trajectories match and pass the filters, and how many of them passed."""
    where, parameters = selection.where()
    return Query(found_summary(where), {**parameters, "match": match})


def _summary(answer: Answer) -> dict[str, Any] | None:
    """Return what was counted, with the steps in words; None where counting took too long."""
    if not answer.rows:
        return None
    steps = json.loads(answer.rows[0]["found_steps"])
    return {**answer.rows[0], "steps": len(steps), "step_words": ranges(steps)}


def _table_search(text: str, match: str) -> list[tuple[str, str]]:
    """Return the search in the words of Datasette's table page, which quotes words by itself unless told not to."""
    plain = all(character.isalnum() or character == " " for character in text) and "OR" not in text.split()
    return [("_search", text)] if plain and "NOT" not in text.split() else [("_search", match), ("_searchmode", "raw")]


def _with_outcome(selection: Selection) -> Selection:
    """Return the selection with the filter of Datasette for what the form calls unscored, which is no value."""
    pairs = [UNSCORED if pair == ("success", "unscored") else pair for pair in selection.chosen]
    return replace(selection, chosen=list(dict.fromkeys(pairs)))


def _form(selection: Selection, splits: list[str], runs: dict[str, str]) -> dict[str, Any]:
    given = dict(map(written, selection.chosen))
    if (run := given.get("run_id")) and run not in runs:
        runs = {**runs, run: run}
    if (asked := given.get("split")) and asked not in splits:
        splits = [*splits, asked]
    outcome = {"success": "unscored"} if UNSCORED in selection.chosen else {}
    fields = FIELDS if len(runs) > 1 else FIELDS[1:]  # of an index with one run, its number stays as it is
    others = [pair for pair in selection.chosen if written(pair)[0] not in fields and pair != UNSCORED]
    return {
        "given": {name: given.get(name, "") for name in FIELDS} | outcome,
        "runs": run_choices(runs) if len(runs) > 1 else [],
        "splits": splits,
        "hidden": [*others, *selection.sorting],
    }
