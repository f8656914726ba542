"""What the export page says of a preview: how much it selects of which run, by which rules, and where it can be had."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode

from datasette.utils.asgi import Request

from rltracer_sqlite.amounts import LONGEST_NAME, listed, plural, shortened_name, some_of
from rltracer_sqlite.export.conditions import TOLD_WHEN_READ
from rltracer_sqlite.export.stages import meaning

from .export_notes import linked
from .export_preview import Preview

if TYPE_CHECKING:
    from datasette.app import Datasette

MOST_COLUMNS = 400  # of runs with their numbers


def summary_context(
    datasette: Datasette, request: Request, database: str, table: str, shown: Preview
) -> dict[str, Any]:
    """Return the part of the page's context that is about its preview."""
    told = shown.told
    return {
        "previewed": shown.mode,
        "told": told,
        "funnel": shown.funnel,
        "meaning": meaning,
        "told_when_read": TOLD_WHEN_READ,
        "rows": shown.rows,
        "selected": selected_words(told) if told else None,
        "by_run": by_run(told) if told else None,
        "download_url": _download_url(datasette, request, database, table, shown.mode) if told else None,
        "notes": linked(datasette, database, told, shown.run_ids) if told else [],
    }


def selected_words(told: Mapping[str, Any]) -> str:
    """Return how much a selection has, in words: "1 trajectory of 1 prompt"."""
    what = {"pairs": "pair", "trajectories": "trajectory"}[told["unit"]]
    prompts = some_of(told["selected_prompt_groups"], told["eligible_prompt_groups"], "prompt")
    return f"{plural(told['selected_count'], what)} of {prompts}"


def by_run(told: Mapping[str, Any]) -> str | None:
    """Return how much is selected of each of several runs: "demo 3, other 1"."""
    counted = [f"{shortened_name(run['name'], LONGEST_NAME)} {run['selected_count']:,}" for run in told["runs"]]
    return listed(counted, MOST_COLUMNS) if len(counted) > 1 else None


def _download_url(datasette: Datasette, request: Request, database: str, table: str, mode: str | None) -> str:
    asked = [pair for pair in parse_qsl(request.query_string, keep_blank_values=True) if pair[0] != "_preview"]
    return f"{datasette.urls.table(database, table, format=mode)}?{urlencode(asked)}"
