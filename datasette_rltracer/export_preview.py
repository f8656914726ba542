"""What the export page shows of an export before anything is written: its funnel and its first rows, or why not."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

from datasette.utils.asgi import BadRequest, Request

from rltracer_sqlite.export import ExportError, TraceDataExporter

from .bounds import gates
from .export_download import refusal
from .export_options import preferences
from .export_rows import run_specs
from .stream import Visitor

if TYPE_CHECKING:
    from datasette.app import Datasette

ROWS_SHOWN = 2
LONGEST_TEXT, MOST_ITEMS, LONGEST_ROW = 240, 12, 8_000  # of a row that is shown: characters, members, characters
CUT_HERE = "… (cut here; the download has all)"


@dataclass(frozen=True)
class Preview:
    """What is shown of an export of a `mode`: its summary and first rows, or the problem and the status that says so.

    `funnel` are the stages of the selection, also of one that has too little for its target. `run_ids` are the runs
    that it is of, by their names.
    """

    mode: str | None = None
    told: dict[str, Any] | None = None
    rows: Sequence[str] = ()
    funnel: Sequence[Mapping[str, Any]] = ()
    problem: str | None = None
    status: int = 200
    run_ids: Mapping[str, Any] = field(default_factory=dict)


async def preview(datasette: Datasette, request: Request, database: str, table: str, mode: str) -> Preview:
    """Return what is shown of the export that a request asks for."""
    try:
        wanted = preferences(request, mode)
        specs = await run_specs(datasette, request, database, table)
    except BadRequest as error:
        return Preview(mode, problem=str(error), status=400)
    gate = gates(datasette).downloads
    await gate.enter()
    visitor = Visitor(request.receive)
    try:
        exporter = TraceDataExporter(specs, wanted, visitor.stay_or_raise)
        told, rows = await visitor.run(lambda: exporter.preview(ROWS_SHOWN))
        run_ids = {run["name"]: spec.run for run, spec in zip(told["runs"], specs, strict=True)}
        return Preview(mode, told, [shortened(row) for row in rows], told["funnel"], run_ids=run_ids)
    except Exception as error:
        return _refused(mode, error)
    finally:
        visitor.close()
        gate.leave()


def _refused(mode: str, error: Exception) -> Preview:
    """Return why an export cannot be made; raises what is no such reason."""
    try:
        answer = refusal(error)
    except BadRequest as unfit:
        funnel = error.funnel if isinstance(error, ExportError) else ()
        return Preview(mode, funnel=funnel, problem=str(unfit), status=400)
    return Preview(mode, problem=str(answer.body), status=int(answer.status))


def shortened(row: object) -> str:
    """Return a row as JSON with line breaks, its long texts and lists cut, and one that is long all the same at a line.

    Whatever is cut says so where it is.
    """
    text = json.dumps(_cut(row), ensure_ascii=False, indent=1, default=str)
    if len(text) <= LONGEST_ROW:
        return text
    kept = text[:LONGEST_ROW]
    return f"{kept[: kept.rfind(chr(10))]}\n{CUT_HERE}"


def _cut(value: Any) -> Any:
    if isinstance(value, str):
        return value if len(value) <= LONGEST_TEXT else f"{value[:LONGEST_TEXT]}… ({len(value):,} characters)"
    if isinstance(value, dict):
        others = {"…": f"({len(value) - MOST_ITEMS:,} more)"} if len(value) > MOST_ITEMS else {}
        return {key: _cut(inner) for key, inner in islice(value.items(), MOST_ITEMS)} | others
    if isinstance(value, (list, tuple)):
        more = [f"… ({len(value) - MOST_ITEMS:,} more)"] if len(value) > MOST_ITEMS else []
        return [*map(_cut, value[:MOST_ITEMS]), *more]
    return value
