"""The filters and the order that an address carries, in the words of Datasette's own table pages.

`pass_rate__gte=0.5&_sort=reward_mean` means here what it means there, so a selection can be handed on as a link,
opened as a table, and walked through with previous and next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any
from urllib.parse import parse_qsl, urlencode

from datasette.filters import Filters
from datasette.utils import escape_sqlite
from datasette.utils.asgi import BadRequest, Request

from rltracer_sqlite.amounts import LONGEST_NAME, shortened_name
from rltracer_sqlite.unrecorded import NOT_RECORDED

from .filter_names import is_filter
from .queries import Query

Pair = tuple[str, str]
NO_NEIGHBOURS: dict[str, Any] = {"listed": None, "place": None, "previous": None, "next": None}
ORDERS = {"_sort": False, "_sort_desc": True}
MOST_FILTERS = 30
LONGEST_SELECTION = 4_000  # characters of an address: each link of a page repeats them
TRAIN_FIRST = "split is not 'train', split, id"  # as splits are listed on other pages
BOUNDS = ("__gt", "__gte", "__lt", "__lte")
NAMED = ("split", "env", "agent", "stop_condition")  # columns of names, of which a form offers NOT_RECORDED as well
RUN = ("run_id", "run_id__exact")
ABSENCES = {f"{name}__isnull": name for name in NAMED}


@dataclass(frozen=True)
class Selection:
    """Rows of one table: those that pass the filters, in an order. `chosen` are the filters that can be taken off.

    Without an `order` they come in the `usual` one, which no link has to carry.
    """

    table: str
    fixed: Sequence[Pair] = ()
    chosen: Sequence[Pair] = ()
    order: tuple[str, bool] | None = None  # column, descending
    usual: tuple[str, bool] | None = None
    values: Mapping[str, str] = field(default_factory=dict, repr=False)  # what is sorted by in place of a column

    @property
    def filters(self) -> list[Pair]:
        """Return all filters as pairs of a query string."""
        return [*self.fixed, *self.chosen]

    @property
    def sorting(self) -> list[Pair]:
        """Return the order as a pair of a query string, or nothing where it is the usual one."""
        return [("_sort_desc" if self.order[1] else "_sort", self.order[0])] if self.order else []

    @property
    def shown_order(self) -> tuple[str, bool] | None:
        """Return the order that was asked for, else the usual one; None where it is that of the ids, train first."""
        return self.order or self.usual

    @property
    def pairs(self) -> list[Pair]:
        """Return what a link carries to stay inside the selection."""
        return [*self.filters, *self.sorting]

    def where(self) -> tuple[str, dict[str, Any]]:
        """Return the filters as an SQL condition with its parameters. Raises BadRequest for a filter that is none."""
        try:
            clauses, parameters = Filters(sorted(self.filters)).build_where_clauses(self.table)
        except ValueError:
            raise BadRequest("A filter in this address cannot be used.") from None
        return " and ".join(clauses) or "1", parameters

    def ordering(self) -> str:
        """Return the order as SQL: rows without the value last, equal ones in the order of their ids."""
        if self.shown_order is None:
            return TRAIN_FIRST if self.table == "prompt_groups" else "id"
        column, descending = self.shown_order
        value = self.values.get(column) or escape_sqlite(column)
        return f"{value} is null, {value}{' desc' * descending}, id"

    def without(self, pair: Pair) -> Selection:
        """Return the selection without one of its chosen filters."""
        return replace(self, chosen=[other for other in self.chosen if other != pair])

    def sorted_by(self, column: str, descending_first: bool = True) -> Selection:
        """Return the selection in the order of a column; asked for again, in the opposite order, then in the usual."""
        orders = ((column, descending_first), (column, not descending_first), None)
        now = self.shown_order
        following = orders[orders.index(now) + 1] if now in orders[:2] else orders[0]
        return replace(self, order=None if following == self.usual else following)


def read_selection(request: Request, table: str, columns: Iterable[str], others: Iterable[str] = ()) -> Selection:
    """Return the selection of rows of a table that the address of a request asks for.

    Filters on what is no column of the table, or on one of `others`, belong to somebody else and are left out.
    Raises BadRequest where there is more of it than the links of a page can carry.
    """
    known = [column for column in columns if column not in set(others)]
    chosen: list[Pair] = []
    order = None
    for name, value in parse_qsl(request.query_string, keep_blank_values=True, errors="replace"):
        if name in ORDERS and value in known and order is None:
            order = (value, ORDERS[name])
        elif not value and (name in known or name.endswith(BOUNDS)):
            continue  # what a form sends of a field that was left empty
        elif is_filter(name, known) and (pair := recorded((name, value))) not in chosen:
            chosen.append(pair)
    selection = Selection(table, (), chosen, order)
    if len(chosen) > MOST_FILTERS:
        raise BadRequest(f"An address of these pages may have {MOST_FILTERS} filters; this one has {len(chosen)}.")
    if len(urlencode(selection.pairs)) > LONGEST_SELECTION:
        raise BadRequest("The filters in this address are too long for a page; the table of Datasette takes them.")
    return selection


def in_words(pair: Pair, runs: Mapping[str, str] | None = None) -> str:
    """Return a filter as Datasette says it, "pass_rate ≥ 0.5", and of a run that `runs` has by its number its name."""
    if runs and pair[0] in RUN and (name := runs.get(pair[1])) is not None:
        pair = ("run", shortened_name(name, LONGEST_NAME))
    return str(Filters([pair]).human_description_en()).removeprefix("where ")


def chips(
    selection: Selection, here: Callable[[Selection], str], runs: Mapping[str, str] | None = None
) -> list[tuple[str, str]]:
    """Return each chosen filter in words, with the address of the page without it."""
    return [(in_words(pair, runs), here(selection.without(pair))) for pair in selection.chosen]


def neighbours(selection: Selection, key: int) -> Query:
    """Return the query for how many rows a selection has, the place of one, and the ids before and after it.

    The place is null where the row is not in the selection; then the first row comes after it. Where the query takes
    too long, NO_NEIGHBOURS stands for its answer.
    """
    condition, parameters = selection.where()
    sql = f"""
        with listed as (
            select id, row_number() over (order by {selection.ordering()}) as place
            from {escape_sqlite(selection.table)} where {condition}
        ),
        here as (select max(place) as place from listed where id = :key)
        select
            (select count(*) from listed) as listed,
            place,
            (select id from listed where listed.place = here.place - 1) as previous,
            (select id from listed where listed.place = ifnull(here.place, 0) + 1) as next
        from here
        """
    return Query(sql, {**parameters, "key": key})


def at(name: str, value: object) -> Pair:
    """Return the filter for a value of a column, or for its absence."""
    return (f"{name}__isnull", "1") if value is None else (name, str(value))


def recorded(pair: Pair) -> Pair:
    """Return a filter as Datasette has it: of a name, NOT_RECORDED is what a form says for no value."""
    name, value = pair
    return at(name, None) if name in NAMED and value == NOT_RECORDED else pair


def written(pair: Pair) -> Pair:
    """Return a filter as a form says it: the opposite of `recorded`."""
    name, _ = pair
    return (ABSENCES[name], NOT_RECORDED) if name in ABSENCES else pair


def names_among(values: Iterable[str | None]) -> list[str]:
    """Return the names in a column in their order, and last what stands for none."""
    found = set(values)
    return sorted((name for name in found if name is not None), key=str) + [NOT_RECORDED] * (None in found)
