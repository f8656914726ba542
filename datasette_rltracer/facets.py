"""The pass-rate facet: ordered bins of a rate, `?_facet_passrate=pass_rate` or `=group_pass_rate`.

Its links are ordinary filters (`pass_rate__gte=0.25&pass_rate__lt=0.5`), so descriptions, JSON, CSV and exports follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from datasette.database import QueryInterrupted
from datasette.facets import Facet
from datasette.utils import escape_sqlite

from rltracer_sqlite.passrates import PASS_BINS, PassBin

from .selection import Pair

RATE_COLUMNS = ("pass_rate", "group_pass_rate")
OPERATORS = {"exact": "=", "gt": ">", "gte": ">=", "lt": "<"}
PARAMETER = "_facet_passrate"
PAGE_PARAMETERS = ("_next",)  # a page inside the old selection means nothing in the new one


class PassRateFacet(Facet):
    """Counts of the rows whose rate is 0, between 0 and 1 in quarters, and 1."""

    type = "passrate"

    async def suggest(self) -> list[dict[str, Any]]:
        """Offer each known rate column that is not shown yet; no query, so it costs nothing."""
        shown = {_column(config) for config in self.get_configs()}
        columns = await self.get_columns(self.sql, self.params)
        return [
            {"name": column, "type": self.type, "toggle_url": self._url([*self._pairs(), (PARAMETER, column)])}
            for column in RATE_COLUMNS
            if column in columns and column not in shown
        ]

    async def facet_results(self) -> tuple[list[dict[str, Any]], list[str]]:
        """Return the results and the names of the columns that took longer than the facet time limit."""
        results: list[dict[str, Any]] = []
        timed_out: list[str] = []
        columns = await self.get_columns(self.sql, self.params)
        for config in self.get_configs():
            column = _column(config)
            if column not in columns or column in [result["name"] for result in results]:
                continue
            try:
                counts = await self._count(column)
            except QueryInterrupted:
                timed_out.append(column)
                continue
            hideable = config["source"] != "metadata"
            results.append(self._result(column, counts, hideable))
        return results, timed_out

    async def _count(self, column: str) -> dict[int, int]:
        # Few distinct rates exist, and an index on the column gives their counts in order: far cheaper than asking
        # of each row which bin it is in. A rate is the nearest float to a fraction, so comparing it with 0, 1/4, 1/2,
        # 3/4 and 1 is exact.
        rate = escape_sqlite(column)
        cases = " ".join(f"when {_condition('rate', bin)} then {place}" for place, bin in enumerate(PASS_BINS))
        rows = await self.ds.execute(
            self.database,
            f"""
            select case {cases} end as bin, sum(n) as n from (
                select {rate} as rate, count(*) as n from ({self.sql}) where {rate} is not null group by {rate}
            ) group by bin
            """,
            self.params,
            truncate=False,
            custom_time_limit=self.ds.setting("facet_time_limit_ms"),
        )
        return {row["bin"]: row["n"] for row in rows}

    def _result(self, column: str, counts: Mapping[int, int], hideable: bool) -> dict[str, Any]:
        values = [self._value(column, bin, counts.get(place, 0)) for place, bin in enumerate(PASS_BINS)]
        return {
            "name": column,
            "type": self.type,
            "results": [value for value in values if value["count"] or value["selected"]],
            "hideable": hideable,
            "toggle_url": self._path([pair for pair in self._pairs() if pair != (PARAMETER, column)]),
            "truncated": False,
        }

    def _value(self, column: str, bin: PassBin, count: int) -> dict[str, Any]:
        pairs = self._pairs()
        filters = [(f"{column}__{operator}", value) for operator, value in bin.conditions]
        selected = all(pair in pairs for pair in filters)
        if selected:
            remaining = [pair for pair in pairs if pair not in filters]
        else:
            # Bins exclude one another: choosing one takes the place of the one chosen before.
            others = [(f"{column}__{operator}", value) for bin in PASS_BINS for operator, value in bin.conditions]
            remaining = [pair for pair in pairs if pair not in others] + filters
        return {
            "value": bin.label,
            "label": bin.label,
            "count": count,
            "toggle_url": self._url(remaining),
            "selected": selected,
        }

    def _pairs(self) -> list[Pair]:
        return [pair for pair in self.get_querystring_pairs() if pair[0] not in PAGE_PARAMETERS]

    def _path(self, pairs: Sequence[Pair]) -> str:
        query = f"?{urlencode(pairs)}" if pairs else ""
        return self.ds.urls.path(f"{self.request.path}{query}")

    def _url(self, pairs: Sequence[Pair]) -> str:
        return self.ds.absolute_url(self.request, self._path(pairs))


def _column(config: Mapping[str, Any]) -> str:
    # A facet is written as a name or as a JSON object with a column; whatever else stands there names no column.
    column = config["config"].get("column") or config["config"].get("simple")
    return column if isinstance(column, str) else ""


def _condition(name: str, bin: PassBin) -> str:
    return " and ".join(f"{name} {OPERATORS[operator]} {value}" for operator, value in bin.conditions)
