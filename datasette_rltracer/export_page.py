"""The export page: the preferences as a form, and on request the funnel that they give, before anything is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from datasette.utils.asgi import BadRequest, Request, Response

from rltracer_sqlite.amounts import LONGEST_NAME, shortened_name
from rltracer_sqlite.export import ExportPreferences, TraceRunSpec
from rltracer_sqlite.outcomes import NAMED_BEFORE
from rltracer_sqlite.unrecorded import NOT_RECORDED

from . import compat
from .access import permitted_index
from .addresses import DATABASE, export_url, table_url
from .edge import Route
from .export_options import (
    BOUNDS,
    FIELDS,
    LABELS,
    MODES,
    NUMBERS,
    SWITCHES,
    TABLES,
    filters,
    in_form_words,
    refuse_unknown,
)
from .export_preview import Preview, preview
from .export_rows import MADE_OF
from .export_summary import summary_context
from .export_title import numbers, subject
from .filter_values import missing_names
from .frame import render, trail
from .missing import NotThere
from .queries import LONGEST_TEXT as LONGEST_KEPT
from .queries import Answer, Query, answers
from .run_names import names_of, names_query, run_choices
from .selection import Pair, written

if TYPE_CHECKING:
    from datasette.app import Datasette

Choice = tuple[str, str]  # a value, and what is said of it

# What a download without these preferences takes, where an empty choice would look like another one.
DOWNLOADED = {"_acceptance": "any", "_rejected": "any", "_order": "sample"}
ENVS = f"""
select distinct ifnull(env, '{NOT_RECORDED}') as value from prompt_groups
{{where}} order by env is null, env limit 200
"""
# In an export, what has no known split counts as train.
HAS_TRAIN = "select exists (select 1 from prompt_groups where (split = 'train' or split is null){and_run}) as found"
WITHIN = ("run_id", "step", "step__isnull")  # filters of either table that a search takes as well
# A filter on one of these says itself which split is meant.
NAMES_SPLIT = {"split", "prompt_group_id", "id", "uid"}


def routes() -> list[Route]:
    """Return the address of this page and what answers it."""
    return [(DATABASE + r"/export$", export_page)]


async def export_page(datasette: Datasette, request: Request) -> Response:
    """Answer with the form; `_preview` names the kind of data whose funnel is shown below it."""
    database = await permitted_index(datasette, request, *MADE_OF)
    table = request.args.get("_table") or TABLES[0]
    if table not in TABLES:
        ways = [(f"the table {name}", export_url(datasette, database, name)) for name in TABLES]
        raise NotThere("Training data is made of the tables trajectories and prompt_groups.", database, ways)
    mode = request.args.get("_preview")
    if mode is not None and mode not in MODES:
        raise BadRequest(f"_preview={mode!r} is one of {', '.join(MODES)}.")
    try:
        await refuse_unknown(datasette, request, database, table)
    except BadRequest as error:
        return await form_page(datasette, request, database, table, str(error), 400)
    if mode is None:
        return await form_page(datasette, request, database, table)
    shown = await preview(datasette, request, database, table, mode)
    return await form_page(datasette, request, database, table, previewed=shown)


async def form_page(
    datasette: Datasette,
    request: Request,
    database: str,
    table: str,
    problem: str | None = None,
    status: int = 200,
    previewed: Preview | None = None,
) -> Response:
    """Answer with the form as it is filled in, and why it cannot be met or what it would give."""
    shown = previewed or Preview(problem=problem, status=status)
    chosen = filters(request)
    given = dict(map(written, chosen))
    missing = await missing_names(datasette, request, database, table) if shown.problem else []
    run = given.get("run_id")
    queries = names_query(chosen), _envs(run), _has_train(run)
    found, envs, train = await answers(datasette, request, database, *queries)
    runs = names_of(found.rows)
    about, others = subject(chosen, runs)
    context: dict[str, Any] = {
        "title": f"training data from {about}",
        "trail": [
            *_way_down(datasette, database, chosen, runs),
            (export_url(datasette, database, table, chosen), "export"),
        ],
        "subject": about,
        "others": others,
        "form_url": export_url(datasette, database),
        "styles": ["export.css"],
        "within": [(name, value) for name, value in chosen if name in WITHIN],
        "table": table,
        "hidden": [pair for pair in chosen if written(pair)[0] not in FIELDS],
        "chosen": {name: given.get(name, "") for name in FIELDS},
        "choices": _choices(runs, envs, given),
        "table_url": table_url(datasette, database, table, chosen),
        "fields_url": await _fields_url(datasette, request, database),
        "downloads": {name: datasette.urls.table(database, table, format=name) for name in MODES},
        "modes": MODES,
        "values": values(request, bool(train.first(found=True)["found"])),
        "fields": [*[text for text in request.args.getlist("_field") if text.strip()], ""],
        "labels": LABELS,
        **summary_context(datasette, request, database, table, shown),
        "problem": in_form_words(shown.problem) if shown.problem else None,
        "missing": missing,
    }
    return await render(datasette, request, database, "export.html", context, shown.status)


async def _fields_url(datasette: Datasette, request: Request, database: str) -> str | None:
    """Return the address of the table of what is recorded, or None for a visitor who may not see it."""
    if await compat.first_hidden(datasette, request.actor, database, "fields") is not None:
        return None
    return str(datasette.urls.table(database, "fields"))


def _way_down(
    datasette: Datasette, database: str, chosen: Sequence[Pair], runs: Mapping[str, str]
) -> list[tuple[str, str]]:
    """Return the way to the run, the step of it and the prompt group that filters name."""
    given = numbers(chosen)
    number, step, group = (given.get(name) for name in ("run_id", "step", "prompt_group_id"))
    run = (int(number), runs[number]) if number and number in runs else None
    at_step = (None,) if ("step__isnull", "1") in chosen else (int(step),) if step else None
    return trail(datasette, database, run, at_step, int(group) if group else None)


def _envs(run: str | None) -> Query:
    """Return the query for the environments that there are, of a run where one is chosen."""
    return Query(ENVS.format(where="where run_id = :run" if run else ""), {"run": run} if run else {})


def _has_train(run: str | None) -> Query:
    """Return the query for whether there is something of the split train, in a run where one is chosen."""
    return Query(HAS_TRAIN.format(and_run=" and run_id = :run" if run else ""), {"run": run} if run else {})


def _choices(runs: Mapping[str, str], envs: Answer, given: Mapping[str, str]) -> list[tuple[str, str, list[Choice]]]:
    """Return the fields of run and environment with what can be chosen in each; a choice of one is none."""
    # What is longer than any name that an index keeps cannot be chosen: the page would repeat it.
    names = [name for row in envs.rows if len(name := str(row["value"])) <= LONGEST_KEPT]
    in_environments = [(name, shortened_name(name, LONGEST_NAME)) for name in names]
    found = []
    for name, label, options in (("run_id", "run", run_choices(runs)), ("env", "environment", in_environments)):
        if (asked := given.get(name)) and asked not in {value for value, _ in options}:
            options.append((asked, shortened_name(asked, LONGEST_NAME)))
        if len(options) > 1 or asked:
            found.append((name, label, options))
    return found


def values(request: Request, has_train: bool) -> dict[str, str]:
    """Return what stands in the form: what was asked for, else what `rltracer export` does when it is told nothing.

    Train is asked for only where there is something of it.
    """
    asked = {name: request.args.get(name) for name in [*NUMBERS, *BOUNDS, *SWITCHES, "_split", "_no_tools", "_preview"]}
    if any(value is not None for value in asked.values()):
        return {name: _named(value or DOWNLOADED.get(name, "")) for name, value in asked.items()}
    split = _split(filters(request)) if has_train else ""
    return dict.fromkeys(asked, "") | _defaults() | {"_split": split}


def _defaults() -> dict[str, str]:
    usual = ExportPreferences().as_json()
    named = {key: name for key, (name, _) in NUMBERS.items()} | SWITCHES
    return {key: "" if usual[name] in (None, False) else _named(str(usual[name])) for key, name in named.items()}


def _named(value: str) -> str:
    """Return a value as the form has it, an outcome by the word that people read."""
    return NAMED_BEFORE.get(value, value)


def _split(chosen: Sequence[tuple[str, str]]) -> str:
    """Return the split that a new form asks for: the usual one, unless the table's filters choose it themselves."""
    columns = {name.partition("__")[0] for name, _ in chosen}
    is_chosen = bool(columns & NAMES_SPLIT) or any(name == "_where" and "split" in value for name, value in chosen)
    return "" if is_chosen else TraceRunSpec.split or ""
