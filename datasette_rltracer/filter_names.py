"""The names in an address that filter rows: one that a page does not know is refused, since it would filter nothing."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches
from urllib.parse import parse_qsl

from datasette.filters import Filters
from datasette.plugins import pm
from datasette.utils.asgi import BadRequest, Request

from .text import plain

# What Datasette's own pages have in an address about their look; it says nothing of which rows are meant.
LOOKS_OF_DATASETTE = {
    "_col", "_nocol", "_size", "_shape", "_next", "_labels", "_extra", "_nofacet", "_nosuggest", "_nocount", "_json",
    "_json_infinity", "_nl", "_trace", "_ttl", "_stream", "_dl", "_header", "_format",
}  # fmt: skip
FACETS = "_facet"  # the beginning of names that are about its look too
# What mail, chats, advertisements and scripts write behind any address (`_` keeps a cache from answering). A page that
# refused it would refuse whoever followed a link; it filters nothing, and nobody means it to.
OF_OTHERS = {"_", "fbclid", "gclid", "dclid", "msclkid", "mc_cid", "mc_eid", "_ga", "_gl"}
CAMPAIGNS = "utm_"

# Datasette's own filters of a table, beside those by its columns; `_search_` is followed by a column.
OF_DATASETTE = {"_where", "_search", "_searchmode", "_through", "_timelimit", "_fts_table", "_fts_pk"}
ORDERS = ("_sort", "_sort_desc")
SEARCH_IN = "_search_"
LONGEST_SHOWN = 80  # characters of a name


def refuse_unknown_filters(request: Request, table: str, columns: Iterable[str], own: Iterable[str]) -> None:
    """Raise BadRequest for the first name of an address that is no filter by these columns, and not one of `own`.

    `table` is what has the columns, for the sentence. An order by what is no column is refused as well.
    """
    known, options = list(columns), set(own)
    for name, value in parse_qsl(request.query_string, keep_blank_values=True, errors="replace"):
        if name in ORDERS and value and value not in known:
            raise BadRequest(_sentence(f"{table} has no column {value} to sort by", value, known))
        if name in options or name in ORDERS or is_filter(name, known) or is_meaningless(name):
            continue
        column, separator, operator = name.rpartition("__")
        if separator and column in known:
            raise BadRequest(_sentence(f"{name}: there is no filter __{operator}", operator, lookups(), "__"))
        if name in OF_DATASETTE or name.startswith(SEARCH_IN):
            raise BadRequest(f"This page cannot filter by {plain(name)[:LONGEST_SHOWN]}; the tables of Datasette can.")
        if name.startswith("_") and not separator:
            raise BadRequest(_sentence(f"There is no option {name}", name, options))
        raise BadRequest(_sentence(f"{table} has no column {column or name}", column or name, [*known, *options]))


def refuse_unknown_options(request: Request, own: Iterable[str]) -> None:
    """Raise BadRequest for the first name of an address that is not one of `own`, on a page that filters no rows."""
    options = list(own)
    for name, _ in parse_qsl(request.query_string, keep_blank_values=True, errors="replace"):
        if name not in options and not is_meaningless(name):
            raise BadRequest(_sentence(f"This page has no option {name}", name, options))


def is_meaningless(name: str) -> bool:
    """Say whether a name in an address chooses nothing on a page of ours, so that it may stand there unread."""
    return name in OF_OTHERS or name in LOOKS_OF_DATASETTE or name.startswith((CAMPAIGNS, FACETS))


def is_filter(name: str, columns: Iterable[str]) -> bool:
    """Say whether a name filters rows by one of these columns, as Datasette's own pages read it."""
    known = set(columns)
    if name in known:
        return True
    column, _, operator = name.rpartition("__")
    return column in known and operator in lookups()


def lookups() -> list[str]:
    """Return what can stand behind a column and two underscores."""
    return [key for key, _, _ in Filters([]).lookups()]


def is_filter_of_datasette(name: str) -> bool:
    """Say whether a name filters rows of Datasette's own tables without naming a column.

    Other plugins may filter by names of their own, which nobody can list; where there are any, none is refused.
    """
    return name in OF_DATASETTE or name.startswith(SEARCH_IN) or (name.startswith("_") and others_filter())


def others_filter() -> bool:
    """Say whether a plugin other than Datasette itself filters the rows of tables."""
    found = pm.hook.filters_from_request.get_hookimpls()
    return any(not hook.plugin_name.startswith("datasette.") for hook in found)


def _sentence(said: str, wanted: str, names: Iterable[str], prefix: str = "") -> str:
    said = plain(said)
    shown = said if len(said) <= 2 * LONGEST_SHOWN else f"{said[: 2 * LONGEST_SHOWN]}…"
    close = get_close_matches(wanted[:LONGEST_SHOWN], sorted(set(names)), n=3)
    return f"{shown}; similar: {', '.join(prefix + name for name in close)}." if close else f"{shown}."
