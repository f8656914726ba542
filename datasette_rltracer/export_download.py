"""The download of training data: what the visitor sees of `trajectories` or `prompt_groups`, through the exporter."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from datasette.utils.asgi import Forbidden, Request, Response

from rltracer_sqlite.export import ExportError, ExportPreferences, TraceDataExporter
from rltracer_sqlite.index.database import IndexFileError
from rltracer_sqlite.roots import RootNotAllowed
from rltracer_sqlite.sources.base import SourceError

from .bounds import gates
from .export_options import Refused, preferences, refuse_unknown
from .export_rows import may_read, run_specs
from .stream import StreamingResponse, Visitor, VisitorLeft

if TYPE_CHECKING:
    from datasette.app import Datasette

CONTENT_TYPE = "application/x-ndjson; charset=utf-8"


async def download(datasette: Datasette, request: Request, database: str, table: str, mode: str) -> Response:
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
    datasette: Datasette,
    request: Request,
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
        answer = refusal(error)
        on_end()
        return answer
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", f"{database}-{table}")[:100]
    return StreamingResponse(prepared.chunks(), visitor, opened, f"{name}.{mode}.jsonl", CONTENT_TYPE, on_end)


def refusal(error: BaseException) -> Response:
    """Return the answer to an export that cannot be made; raises what is no such thing."""
    if isinstance(error, VisitorLeft):
        return Response.text("", status=499)
    if isinstance(error, RootNotAllowed):
        raise Forbidden(str(error)) from None
    if isinstance(error, ExportError):
        raise Refused(str(error)) from None
    if isinstance(error, (SourceError, IndexFileError, OSError)):
        return Response.text(f"{error}\n", status=409, headers={"x-content-type-options": "nosniff"})
    raise error
