"""Training data from a table: what the visitor sees of `trajectories` or `prompt_groups`, through the exporter.

`/db/trajectories.sft?<filters>` answers with rows for SFT, `.rl` with prompts and `.preference` with pairs. The
filters are Datasette's own, and Datasette itself applies them, as the visitor.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

from datasette.utils.asgi import BadRequest, Forbidden, NotFound, Response

from rltracer_sqlite.export import ExportError, ExportPreferences, TableRows, TraceDataExporter, TraceRunSpec
from rltracer_sqlite.export.fields import parse_field
from rltracer_sqlite.export.preferences import DifficultyFilter
from rltracer_sqlite.index.database import IndexFileError
from rltracer_sqlite.index.queries import runs
from rltracer_sqlite.roots import RootNotAllowed, Roots
from rltracer_sqlite.sources.base import SourceError

from . import compat
from .access import PLUGIN, may_view
from .addresses import own_url
from .bounds import Busy, ask, gates
from .edge import refused as turned_away
from .edge import within
from .filter_names import is_filter_of_datasette, is_meaningless, refuse_unknown_filters
from .indexes import is_known_index, is_rollout_index
from .stream import StreamingResponse, Visitor, VisitorLeft

TABLES = ("trajectories", "prompt_groups")
MADE_OF = ("trajectories", "runs", "shards", "prompt_groups", "prompts")
MODES = {"sft": "SFT conversations", "rl": "RL prompts", "preference": "preference pairs"}
CONTENT_TYPE = "application/x-ndjson; charset=utf-8"
LABEL = "Export training data"
SPLITS = ("train", "eval")

# An order of rows is left out because each page of a sorted table sorts all of it again.
ORDERS = {"_sort", "_sort_desc", "_sort_by_desc"}
NUMBERS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "_per_prompt": ("per_prompt", lambda text: None if text == "all" else int(text)),
    "_global_per_prompt": ("global_per_prompt", int),
    "_target": ("target_count", int),
    "_window": ("window_size", int),
    "_tool_call_power": ("tool_call_sampling_power", float),
    "_seed": ("seed", int),
    "_margin": ("reward_margin", float),
    "_acceptance": ("acceptance", str),
    "_order": ("order", str),
}
BOUNDS = {"_min_pass_rate": "min_pass_rate", "_max_pass_rate": "max_pass_rate"}
SWITCHES = {
    "_unique_prompts": "unique_prompts",
    "_effective_only": "effective_only",
    "_no_truncated": "drop_truncated",
    "_keep_errors": "keep_generation_errors",
    "_no_scoring_errors": "drop_scoring_errors",
    "_provenance": "include_provenance",
    "_redact": "redact",
}
FIELDS = ("run_id", "env", "step__gte", "step__lte")  # filters that the form of the export page has fields for
OWN = {*NUMBERS, *BOUNDS, *SWITCHES, "_field", "_split", "_no_tools", "_preview"}
IDENTITY_FREE = {
    "host",
    "connection",
    "content-length",
    "content-type",
    "accept",
    "accept-encoding",
    "transfer-encoding",
}
OFF = ("", "0", "off", "false")


def renderers() -> list[dict[str, Any]]:
    """Return an output renderer per kind of training data, for `register_output_renderer`."""
    return [{"extension": mode, "render": _renderer(mode), "can_render": can_render} for mode in MODES]


def can_render(datasette: Any, database: str, table: str | None, view_name: str) -> bool:
    """Say whether a page offers training data: the tables of an index that trajectories can be chosen in."""
    return view_name == "table" and table in TABLES and is_known_index(datasette, database)


async def table_entries(datasette: Any, actor: Any, database: str, table: str, request: Any) -> list[dict[str, str]]:
    """Return the entry for the menu of a table or view of an index: the export page, with the table's filters."""
    if not await is_rollout_index(datasette, database):
        return []
    if not await compat.can_view_table(datasette, actor, database, "trajectories"):
        return []
    pairs = filters(request) if table in TABLES and request is not None else []
    chosen = table if table in TABLES else TABLES[0]
    return [{"href": export_url(datasette, database, chosen, pairs), "label": LABEL}]


def export_url(datasette: Any, database: str, table: str, pairs: Sequence[tuple[str, str]]) -> str:
    """Return the address of the export page for the rows of a table that pass these filters."""
    return own_url(datasette, database, "export", [("_table", table), *pairs])


def filters(request: Any) -> list[tuple[str, str]]:
    """Return the part of a query string that says which rows of a table are meant."""
    pairs = parse_qsl(request.query_string, keep_blank_values=True)
    others = ORDERS | OWN | {"_table"}
    meant = [pair for pair in pairs if pair[0] not in others and not is_meaningless(pair[0])]
    return [(name, value) for name, value in meant if value or name not in FIELDS]  # a field that was left empty


def preferences(request: Any, mode: str) -> ExportPreferences:
    """Return what a query string asks for; by default every row of the table, each prompt once for RL.

    Raises BadRequest with a sentence.
    """
    args = request.args
    values: dict[str, Any] = {"acceptance": "any", "per_prompt": None}
    try:
        for key, (name, read) in NUMBERS.items():
            if text := (args.get(key) or "").strip():
                values[name] = _read(read, key, text)
        bounds = {name: _read(float, key, args.get(key)) for key, name in BOUNDS.items() if args.get(key)}
        values["difficulty"] = DifficultyFilter(**bounds)
        values["field_filters"] = tuple(parse_field(text) for text in args.getlist("_field") if text.strip())
        values |= {name: (args.get(key) or "") not in OFF for key, name in SWITCHES.items()}
        values["include_tools"] = (args.get("_no_tools") or "") in OFF
        return ExportPreferences(mode=mode, rl_from_trace=True, **values)
    except ExportError as error:
        raise BadRequest(str(error)) from None


async def refuse_unknown(datasette: Any, request: Any, database: str, table: str) -> None:
    """Raise BadRequest for a name in the address that is no option, and no filter of the table's rows."""
    sent = {name for name in request.args if is_filter_of_datasette(name)}
    columns = await datasette.databases[database].table_columns(table)
    refuse_unknown_filters(request, table, columns, {*ORDERS, *OWN, "_table", *sent})


def _read(read: Callable[[str], Any], key: str, text: str) -> Any:
    try:
        return read(text)
    except ValueError:
        raise ExportError(f"{key}={text!r} is no number.") from None


def _renderer(mode: str) -> Callable[..., Any]:
    async def render(datasette: Any, request: Any, database: str, table: str | None, view_name: str) -> Any:
        if view_name != "table" or table not in TABLES or not await is_rollout_index(datasette, database):
            raise NotFound("Training data is made of the tables trajectories and prompt_groups of an index.")
        try:
            return await within(datasette, database, download(datasette, request, database, table, mode))
        except BadRequest as error:
            if "text/html" not in (request.headers.get("accept") or ""):
                raise
            return await in_the_form(datasette, request, database, table, str(error))
        except Busy as error:
            return turned_away(error)

    return render


async def in_the_form(datasette: Any, request: Any, database: str, table: str, problem: str) -> Response:
    """Answer a person whose download is refused with the form as it was filled in, and the reason."""
    from .export_page import form_page  # it is made of this module

    return await form_page(datasette, request, database, table, problem, 400)


async def download(datasette: Any, request: Any, database: str, table: str, mode: str) -> Response:
    """Answer with the rows of one kind of training data. Nothing is sent before everything has been read once."""
    await may_read(datasette, request, database, table)
    await refuse_unknown(datasette, request, database, table)
    wanted = preferences(request, mode)
    gate = gates(datasette).downloads
    await gate.enter()
    try:
        return await _prepared(datasette, request, database, table, mode, wanted, gate.leave)
    except BaseException:
        gate.leave()
        raise


async def _prepared(
    datasette: Any,
    request: Any,
    database: str,
    table: str,
    mode: str,
    wanted: ExportPreferences,
    on_end: Callable[[], None],
) -> Response:
    specs = await run_specs(datasette, request, database, table)
    visitor = Visitor(request.receive)
    try:
        exporter = TraceDataExporter(specs, wanted, visitor.stay_or_raise)
        opened = exporter.prepared()
        prepared = await visitor.run(opened.__enter__)
    except BaseException as error:
        visitor.close()
        answer = refused(error)
        on_end()
        return answer
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", f"{database}-{table}")[:100]
    return StreamingResponse(prepared.chunks(), visitor, opened, f"{name}.{mode}.jsonl", CONTENT_TYPE, on_end)


def refused(error: BaseException) -> Response:
    """Return the answer to an export that cannot be made; raises what is no such thing."""
    if isinstance(error, VisitorLeft):
        return Response.text("", status=499)
    if isinstance(error, RootNotAllowed):
        raise Forbidden(str(error)) from None
    if isinstance(error, ExportError):
        raise BadRequest(str(error)) from None
    if isinstance(error, (SourceError, IndexFileError, OSError)):
        return Response.text(f"{error}\n", status=409, headers={"x-content-type-options": "nosniff"})
    raise error


async def run_specs(datasette: Any, request: Any, database: str, table: str) -> list[TraceRunSpec]:
    """Return the runs that a table's filtered rows belong to, restricted to these rows.

    Raises Forbidden where the visitor may not see the table, or what its rows are about.
    """
    await may_read(datasette, request, database, table)
    attached = datasette.databases[database]
    if attached.path is None:
        raise BadRequest("This database is in memory only; an export reads its index from a file.")
    config = compat.plugin_config(datasette, PLUGIN, database)
    asked = {
        "split": _split(request.args.get("_split") or ""),
        "roots": Roots.for_database(attached.path, config.get("roots")),
    }
    known = await ask(datasette, database, runs)
    chosen = filters(request)
    if not chosen:  # the whole table: no need to page through it
        return [_spec(attached.path, run, config, asked, None) for run in known] or _no_rows()
    by_run = await _chosen_rows(datasette, request, database, table, chosen)
    found = [run for run in known if run.id in by_run]
    return [_spec(attached.path, run, config, asked, TableRows(table, by_run[run.id])) for run in found] or _no_rows()


def _split(asked: str) -> str | None:
    if asked in SPLITS:
        return asked
    if asked not in ("", "any"):
        raise BadRequest(f"_split={asked!r} is one of {', '.join(SPLITS)}, or any.")
    return None


async def may_read(datasette: Any, request: Any, database: str, table: str) -> None:
    """Raise Forbidden where the visitor may not see the table, or what training data is made of."""
    await may_view(datasette, request, database, table, *MADE_OF)


def _spec(path: str, run: Any, config: dict[str, Any], asked: dict[str, Any], only: TableRows | None) -> TraceRunSpec:
    # Where a run's RL data lies is for the owner of the server to say, never for a visitor.
    data = config.get("rl_data") or {}
    return TraceRunSpec.from_index(Path(path), run.id, only=only, rl_data_path=data.get(run.name), **asked)


def _no_rows() -> list[TraceRunSpec]:
    raise ExportBadRequest("No row of the table passes its filters, so there is nothing to export.")


class ExportBadRequest(BadRequest):  # type: ignore[misc]
    """An export of nothing."""


async def _chosen_rows(
    datasette: Any, request: Any, database: str, table: str, chosen: list[tuple[str, str]]
) -> dict[int, Sequence[int]]:
    """Return the ids of the rows that pass, by their run: asked page by page of Datasette itself, as the visitor."""
    headers = {name: value for name, value in request.headers.items() if name not in IDENTITY_FREE}
    fixed = [("_size", "max"), ("_shape", "objects"), ("_col", "id"), ("_col", "run_id")]
    quiet = [("_nofacet", "1"), ("_nosuggest", "1"), ("_nocount", "1")]
    url = datasette.urls.table(database, table, format="json")
    by_run: dict[int, array[int]] = {}
    following = None
    while True:
        pairs = [*chosen, *fixed, *quiet, *([("_next", following)] if following else [])]
        response = await datasette.client.request(
            "GET", f"{url}?{urlencode(pairs)}", avoid_path_rewrites=True, headers=headers
        )
        if response.status_code == 403:
            raise Forbidden("You may not view these rows.")
        if response.status_code != 200:
            raise BadRequest(f"Datasette refuses these filters: {_error(response)}")
        page = response.json()
        for row in page["rows"]:  # 0.65 adds columns that were not asked for
            by_run.setdefault(row["run_id"], array("q")).append(row["id"])
        following = page.get("next")
        if not following:
            return dict(by_run)


def _error(response: Any) -> str:
    try:
        return str(response.json().get("error"))[:500]
    except ValueError:
        return f"status {response.status_code}"
