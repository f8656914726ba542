"""The names of runs: as the choices of a form, and in place of the number that a filter has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rltracer_sqlite.amounts import LONGEST_NAME, shortened_name

from .queries import Query
from .selection import Pair

RUNS = """
select id, name from runs
where id in (select id from runs order by id desc limit 200) or id = :asked
order by id desc
"""


def names_query(chosen: Iterable[Pair]) -> Query:
    """Return the query for the newest runs, and the one that filters ask for."""
    return Query(RUNS, {"asked": dict(chosen).get("run_id")})


def names_of(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the names of runs by their numbers as text, in the order of the rows."""
    return {str(row["id"]): str(row["name"]) for row in rows}


def run_choices(names: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return each run with its name to choose it by; names that look alike when they are cut have their numbers too."""
    cut = {number: shortened_name(name, LONGEST_NAME) for number, name in names.items()}
    alike = Counter(cut.values())
    return [(number, f"{name} ({number})" if alike[name] > 1 else name) for number, name in cut.items()]
