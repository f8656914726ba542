"""What a filter in an address names and the listed rows have not: which such names there are, with links to them.

A page asks this where a list is left empty, so that no page pays for it that shows something.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urlencode

from datasette.utils import escape_sqlite
from datasette.utils.asgi import Request

from rltracer_sqlite.unrecorded import NOT_RECORDED

from .queries import Query, answers
from .selection import NAMED, Pair, Selection
from .text import plain

if TYPE_CHECKING:
    from datasette.app import Datasette

# The columns whose values are names that a person chooses from, each with an index of its own, and what a name is of.
NAMES = {
    "run_id": "run",
    "split": "split",
    "env": "env",
    "stop_condition": "stop_condition",
    "error_type": "error_type",
}
OF_GROUPS = ("run_id", "split", "env")
OF_ROWS = ("stop_condition", "error_type")
MOST_NAMED = 20
PLACES = ("start", "_next")  # of a list that another name has not
VALUES = """
select value from (
    select distinct {column} as value from {table} where {where} and {column} is not null order by 1 limit {most}
)
"""
NONE = f"""
union all select '{NOT_RECORDED}' where exists (select 1 from {{table}} where {{where}} and {{column}} is null)
"""
RUNS = "select id as value, substr(name, 1, 200) as name from runs where {where} order by id desc limit {most}"


@dataclass(frozen=True)
class Missing:
    """A name that is not there: what it is of, and (words, address) of those that there are."""

    what: str
    asked: str
    ways: list[tuple[str, str]]


async def missing_names(
    datasette: Datasette,
    request: Request,
    database: str,
    table: str,
    fixed: Sequence[Pair] = (),
    names: Iterable[str] = OF_GROUPS,
) -> list[Missing]:
    """Return which names in an address no row of a table has, among those that pass the `fixed` filters."""
    asked = {name: value for name, value in parse_qsl(request.query_string) if name in names}
    where, parameters = Selection(table, fixed).where()
    queries = [Query(_values(name, table, where), parameters if name != "run_id" else {}) for name in asked]
    found = await answers(datasette, request, database, *queries)
    return [
        one
        for (name, value), answer in zip(asked.items(), found, strict=True)
        if not answer.interrupted and (one := _missing(datasette, request, name, value, answer.rows))
    ]


def not_among(datasette: Datasette, request: Request, name: str, values: Sequence[str]) -> list[Missing]:
    """Return whether the address asks for a name that is not among these, as `missing_names` does."""
    asked = dict(parse_qsl(request.query_string)).get(name)
    one = _missing(datasette, request, name, asked, [{"value": value} for value in values]) if asked else None
    return [one] if one else []


def _values(name: str, table: str, where: str) -> str:
    if name == "run_id":
        return RUNS.format(where="1", most=MOST_NAMED)
    query = VALUES + NONE if name in NAMED else VALUES
    return query.format(column=escape_sqlite(name), table=escape_sqlite(table), where=where, most=MOST_NAMED)


def _missing(
    datasette: Datasette, request: Request, name: str, asked: str, rows: Sequence[dict[str, Any]]
) -> Missing | None:
    """Return what is said of a name, unless it is there, or may be: of very many names only some were looked at."""
    if len(rows) >= MOST_NAMED or asked in {str(row["value"]) for row in rows}:
        return None
    values = [(plain(row.get("name") or row["value"]), str(row["value"])) for row in rows]
    ways = [(words, _instead(datasette, request, name, value)) for words, value in values]
    return Missing(NAMES[name], plain(asked), ways)


def _instead(datasette: Datasette, request: Request, name: str, value: str) -> str:
    """Return the address of the same page with another name."""
    pairs = [pair for pair in parse_qsl(request.query_string) if pair[0] not in PLACES]
    query = urlencode([(key, value if key == name else old) for key, old in pairs])
    return f"{datasette.urls.path(request.scope.get('route_path') or request.path)}?{query}"
