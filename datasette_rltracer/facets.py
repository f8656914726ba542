"""The facets that count every row: bins of a pass rate, outcomes of trajectories, and values with what has none.

They are `?_facet_passrate=pass_rate` (or `=group_pass_rate`), `?_facet_outcome=success` and `?_facet_recorded=env`.
Their links are ordinary filters (`pass_rate__gte=0.25&pass_rate__lt=0.5`, `env__isnull=1`), so descriptions, JSON, CSV
and exports follow.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar
from urllib.parse import urlencode

from datasette.database import QueryInterrupted
from datasette.facets import Facet
from datasette.utils import escape_sqlite

from rltracer_sqlite.metadata import RECORDED_FACETS
from rltracer_sqlite.passrates import PASS_BINS, PassBin
from rltracer_sqlite.unrecorded import NOT_RECORDED

from .selection import Pair

CONDITIONS = {
    "exact": "{} = {}", "gt": "{} > {}", "gte": "{} >= {}", "lt": "{} < {}", "isnull": "{} is null",
}  # fmt: skip
PAGE_PARAMETERS = ("_next",)  # a page inside the old selection means nothing in the new one
UNSCORED = PassBin("unscored", (("isnull", "1"),))
UNRECORDED = PassBin(NOT_RECORDED, UNSCORED.conditions)
# Of trajectories, since one may be unscored in a group that has a pass rate: their outcomes have an "unscored" as well.
NONE_WORDS = {"group_pass_rate": "group unscored", "zero_variance": "fewer than two, or no reward"}


@dataclass(frozen=True)
class Counted:
    """Bins that exclude one another, in their order, and how many rows are in each; whether there are more bins."""

    bins: Sequence[PassBin]
    counts: Sequence[int]
    is_cut: bool = False


class OrderedFacet(Facet):
    """Counts of the rows in each of a few bins that exclude one another, in the order of the bins."""

    columns: ClassVar[tuple[str, ...]]  # those that it is offered for

    @property
    def parameter(self) -> str:
        """Return the name by which an address asks for this facet."""
        return f"_facet_{self.type}"

    async def suggest(self) -> list[dict[str, Any]]:
        """Offer each known column that is not shown yet; no query, so it costs nothing."""
        shown = {_column(config) for config in self.get_configs()}
        columns = await self.get_columns(self.sql, self.params)
        return [
            {"name": column, "type": self.type, "toggle_url": self._url([*self._pairs(), (self.parameter, column)])}
            for column in self.columns
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
                counted = await self._count(column)
            except QueryInterrupted:
                timed_out.append(column)
                continue
            hideable = config["source"] != "metadata"
            results.append(self._result(column, counted, hideable))
        return results, timed_out

    async def _count(self, column: str) -> Counted:
        """Return how many rows are in each bin. Raises QueryInterrupted."""
        raise NotImplementedError

    async def _rows(self, sql: str) -> list[Any]:
        limit = self.ds.setting("facet_time_limit_ms")
        found = await self.ds.execute(self.database, sql, self.params, truncate=False, custom_time_limit=limit)
        return list(found.rows)

    def _result(self, column: str, counted: Counted, hideable: bool) -> dict[str, Any]:
        each = zip(counted.bins, counted.counts, strict=True)
        values = [self._value(column, bin, count, counted.bins) for bin, count in each]
        return {
            "name": column,
            "type": self.type,
            "results": [value for value in values if value["count"] or value["selected"]],
            "hideable": hideable,
            "toggle_url": self._path([pair for pair in self._pairs() if pair != (self.parameter, column)]),
            "truncated": counted.is_cut,
        }

    def _value(self, column: str, bin: PassBin, count: int, bins: Sequence[PassBin]) -> dict[str, Any]:
        pairs = self._pairs()
        selected = set(_filters(column, bin)) <= {_written_short(pair) for pair in pairs}
        # Bins exclude one another: choosing one takes the place of the one chosen before.
        given_up = {pair for other in ((bin,) if selected else bins) for pair in _filters(column, other)}
        remaining = [pair for pair in pairs if _written_short(pair) not in given_up]
        if not selected:
            remaining += _filters(column, bin)
        return {
            "value": bin.label,
            "label": NONE_WORDS.get(column, bin.label) if bin in (UNSCORED, UNRECORDED) else bin.label,
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


class PassRateFacet(OrderedFacet):
    """Counts of the rows whose rate is 0, between 0 and 1 in quarters, 1, and null."""

    type = "passrate"
    columns = ("pass_rate", "group_pass_rate")
    bins = (*PASS_BINS, UNSCORED)

    async def _count(self, column: str) -> Counted:
        # Few distinct rates exist, and an index on the column gives their counts in order, null among them: far
        # cheaper than asking of each row which bin it is in. A rate is the nearest float to a fraction, so comparing
        # it with 0, 1/4, 1/2, 3/4 and 1 is exact.
        name = escape_sqlite(column)
        cases = " ".join(f"when {_condition('value', bin)} then {place}" for place, bin in enumerate(self.bins))
        rows = await self._rows(
            f"""
            select case {cases} end as bin, sum(n) as n from (
                select {name} as value, count(*) as n from ({self.sql}) group by {name}
            ) group by bin
            """
        )
        found = {row["bin"]: row["n"] for row in rows}
        return Counted(self.bins, [found.get(place, 0) for place in range(len(self.bins))])


class OutcomeFacet(OrderedFacet):
    """Counts of the trajectories that passed, failed and have no score."""

    type = "outcome"
    columns = ("success",)
    bins = (PassBin("passed", (("exact", "1"),)), PassBin("failed", (("exact", "0"),)), UNSCORED)

    async def _count(self, column: str) -> Counted:
        # Grouped by the outcome, SQLite would take the rows in the order of its index and look each of them up for the
        # filters. Without groups it takes whichever index has all of it.
        name = escape_sqlite(column)
        counts = (f"count(*) filter (where {_condition(name, bin)})" for bin in self.bins)
        [row] = await self._rows(f"select {', '.join(counts)} from ({self.sql})")
        return Counted(self.bins, tuple(row))


class RecordedFacet(OrderedFacet):
    """Counts of the rows by a recorded value, the most frequent first, and at the end of those without one.

    Datasette's own facet leaves these out, so that its counts add up to fewer rows than there are.
    """

    type = "recorded"
    columns = RECORDED_FACETS

    async def suggest(self) -> list[dict[str, Any]]:
        """Offer nothing: it stands where it belongs already, and Datasette offers its own."""
        return []

    async def _count(self, column: str) -> Counted:
        name, size = escape_sqlite(column), self.get_facet_size()
        rows = await self._rows(
            f"""
            select {name} as value, count(*) as n from ({self.sql})
            group by {name} order by {name} is null desc, n desc, {name} limit {size + 2}
            """
        )
        known = [(row["value"], row["n"]) for row in rows if row["value"] is not None]
        bins = [PassBin(str(value), (("exact", str(value)),)) for value, _ in known[:size]]
        unrecorded = sum(row["n"] for row in rows if row["value"] is None)
        return Counted([*bins, UNRECORDED], [*(n for _, n in known[:size]), unrecorded], len(known) > size)


def _column(config: Mapping[str, Any]) -> str:
    # A facet is written as a name or as a JSON object with a column; whatever else stands there names no column.
    column = config["config"].get("column") or config["config"].get("simple")
    return column if isinstance(column, str) else ""


def _condition(name: str, bin: PassBin) -> str:
    return " and ".join(CONDITIONS[operator].format(name, value) for operator, value in bin.conditions)


def _filters(column: str, bin: PassBin) -> list[Pair]:
    return [_written_short((f"{column}__{operator}", value)) for operator, value in bin.conditions]


def _written_short(pair: Pair) -> Pair:
    """Return a filter in the shorter of its two ways: `success=1` means what `success__exact=1` means."""
    short = pair[0].removesuffix("__exact")
    # Of a column whose own name reads like a filter or a parameter there is only the longer one.
    return pair if short.startswith("_") or "__" in short else (short, pair[1])
