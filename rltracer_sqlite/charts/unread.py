"""What of a run a chart cannot draw, unread or without a step: said in its caption, which goes wherever it does."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

from ..amounts import LONGEST_NAME, plural, ranges, shortened
from ..browse.outcome import REPEATS_OTHERS, empty_query
from ..index.states import STATES, amiss
from .data import OF_PROMPTS, SELECTION, Query, load_spec
from .gaps import Window

MOST_SPLITS = 5
UNREAD_OF = ("run_id", "split", "env", "step_gte", "step_lte")  # of the parameters of a chart's query
# Every split of a step that the run's files, or the index, know of, and of which no trajectory is there. A file that
# could not be read may not tell its split: its step is told where it has no trajectory at all. A step that was read and
# whose records repeat others, by the question of the lists of steps, misses nothing: none is its own.
UNREAD = f"""
with found as (
    select step, split from steps where run_id = :run_id
    union
    select step, split from shards where run_id = :run_id and producer is null and state <> 'aside'
),
known as (
    select step, split from found
    where step is not null and (:split = '' or split is null or split = :split)
        and (:step_gte = '' or step >= :step_gte) and (:step_lte = '' or step <= :step_lte)
),
there as (select step, split from steps where run_id = :run_id and trajectories > 0),
missing as (
    select step, split from known where split is not null except select step, split from there
    union all
    select step, split from known where split is null and step not in (select step from there where step is not null)
),
repeating as (
    select step, split from missing intersect select step, split from ({empty_query().strip()}) where {REPEATS_OTHERS}
)
select
    states.*,
    (
        select json_group_array(json_array(split, step))
        from (select step, split from missing except select step, split from repeating)
    ) as missing,
    (select json_group_array(json_array(split, step)) from repeating) as repeating,
    (
        select cast(total(trajectories) as integer) from prompt_groups where {SELECTION.strip()} and step is null
    ) as without_step
from ({STATES.format(schema="main").strip()}) as states where id = :run_id
"""


class Unread(NamedTuple):
    """What of a run a chart cannot draw.

    `steps` are the splits and steps of which no trajectory was read, a split that is not known being None; `words` say
    which these are, and of which steps all records repeat others, and `note` what is amiss with the reading of the run.
    Both are "" where there is nothing to say. `without_step` are the trajectories that have no step.
    """

    steps: list[tuple[str | None, int]]
    words: str
    note: str
    without_step: int = 0

    def said(self, chart: str) -> str:
        """Return `words`, and of a chart over steps how many trajectories have no place in it."""
        count = 0 if chart in OF_PROMPTS else self.without_step
        left = "has no step and is not drawn." if count == 1 else "have no step and are not drawn."
        return " ".join(filter(None, (self.words, f"{plural(count, 'trajectory')} {left}" if count else "")))


def unread_query(query: Query) -> tuple[str, dict[str, Any]]:
    """Return the query for the row of `unread_of`, of a chart with this query."""
    return UNREAD, {name: query.parameters[name] for name in UNREAD_OF}


def read_unread(connection: sqlite3.Connection, query: Query) -> Unread:
    """Return what a chart with this query cannot draw."""
    cursor = connection.execute(*unread_query(query))
    names, row = [column[0] for column in cursor.description], cursor.fetchone()
    return Unread([], "", "") if row is None else unread_of(dict(zip(names, row, strict=True)), query)


def unread_of(row: Mapping[str, Any], query: Query) -> Unread:
    """Return what a chart with this query cannot draw.

    `row` is as in `rltracer_sqlite.index.states.state_words`, with `missing`: [split, step] of each such step, as JSON,
    with `repeating`: those that were read and have no trajectory, since their records repeat others, and with
    `without_step`: how many of what the chart is of have no step.
    """
    steps, repeating = ([(split, step) for split, step in json.loads(row[name])] for name in ("missing", "repeating"))
    words, said = [], amiss(row)
    if steps:
        words.append(f"No trajectories of {_steps_in_words(steps, 'or')} were read.")
    if steps and query.window > 1:
        words.append("A window holds only those of its steps that were read.")
    if repeating:
        words.append(f"All records of {_steps_in_words(repeating, 'and')} repeat others, where they are counted.")
    return Unread(steps, " ".join(words), f"Note: {said}" if said else "", row["without_step"])


def drawn_words(chart: str, unread: Unread, gaps: Collection[Window]) -> str:
    """Return what is said of it wherever the drawing goes: how its `gaps` are drawn as well, and what is amiss."""
    drawn = load_spec(chart)["usermeta"]["rltracer"].get("gaps", "") if gaps else ""
    return " ".join(filter(None, (unread.said(chart), drawn, unread.note)))


def _steps_in_words(found: Iterable[tuple[str | None, int]], word: str) -> str:
    steps: dict[str, set[int]] = {}
    for split, step in found:
        steps.setdefault(split or "", set()).add(step)
    told = [_steps_of(split, steps[split]) for split in sorted(steps)]
    more = ["…"] if len(told) > MOST_SPLITS else []
    return f" {word} ".join(told[:MOST_SPLITS] + more)


def _steps_of(split: str, steps: set[int]) -> str:
    of_split = f" of {shortened(split, LONGEST_NAME)}" if split else ""
    return f"step{'s' * (len(steps) > 1)} {ranges(steps)}{of_split}"
