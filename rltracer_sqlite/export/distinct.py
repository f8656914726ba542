"""Rows of the same content as one before: found before anything is written, so that others can take their places.

What was selected is read, and what repeats an earlier row is ruled out; the next of the draw takes its place, and is
read in its turn. No record is read twice for that, and only fingerprints of rows are kept, beside the selection.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import NamedTuple

from .conditions import DISTINCT
from .errors import ExportError
from .lines import line
from .picked_rows import Maker, read_picks
from .preferences import ExportMode
from .rows import RowRejected
from .runs import OpenRun, Progress
from .selection import Selection
from .written import Written

MOST_ROUNDS = 1000
UNSAID = "not exists (select 1 from said s where s.run = k.run and s.id = k.id and s.other is k.other)"
SELECTED = f"insert into unread select l.pick from placed l join picks k on k.pick = l.pick where {UNSAID}"
AHEAD = f"""
insert into unread
select k.pick from picks k where k.unit in (select unit from repeating) and k.slot <= ? and {UNSAID}
"""
SAID = "cross join said s on s.run = k.run and s.id = k.id and s.other is k.other"
# A pick repeats others where each of its rows stands in a pick before it.
REPEATED = f"""
with known as (
    select k.pick, row_number() over (partition by s.hash order by l.position) as turn
    from placed l cross join picks k on k.pick = l.pick {SAID}
)
select pick from known group by pick having min(turn) > 1
"""
REPEATED_AHEAD = f"""
with known as (
    select k.pick, row_number() over (partition by k.unit, s.hash order by k.slot) as turn
    from picks k {SAID} where k.unit in (select unit from repeating)
)
select pick from known group by pick having min(turn) > 1
"""


class Pick(NamedTuple):
    """A pick that only repeats others, and its number of rows."""

    run: int
    unit: int
    id: int
    other: int | None
    rows: int


def replace_repeats(selection: Selection, written: Written, progress: Progress | None = None) -> None:
    """Leave in a selection only what gives a row of its own, as long as anything can take the places of others.

    What cannot be a row is ruled out as well, and counted in `written` with the repeats. Raises ExportError where too
    few are left for the target, LocatorError where a file has changed.
    """
    preferences = selection.preferences
    if not preferences.can_replace:
        return  # rows are left out when they are written
    search = _Search(selection, written, progress)
    for number in range(MOST_ROUNDS):
        unfit = search.read(SELECTED)
        repeated = search.repeated(REPEATED)
        if not unfit and not repeated:
            return
        search.rule_out(repeated, number)
        if repeated and preferences.mode is ExportMode.SFT:
            search.look_ahead(repeated, 2 << number)
        selection.select_again()
    raise ExportError("Too many of the selected rows say the same as others: distinct=True cannot replace them all.")


class _Search:
    """What is known of the rows of picks, in the tables of a selection."""

    def __init__(self, selection: Selection, written: Written, progress: Progress | None) -> None:
        self.selection, self.written, self.progress = selection, written, progress
        self.connection = selection.scratch.connection

    def read(self, which: str, *parameters: int) -> bool:
        """Read the picks that a statement puts into `unread`, and say whether any of them cannot be a row."""
        self.connection.execute("delete from unread")
        with self.selection.scratch.index_errors(self.selection.runs[0]):
            self.connection.execute(which, parameters)
        total, done, unfit = self.selection.scratch.count("unread"), 0, False
        for run in self.selection.runs:
            with self.selection.scratch.index_errors(run), ExitStack() as stack:
                maker = Maker(self.selection, run, Written(), stack, "unread")
                for parts in read_picks(self.selection, run, "unread"):
                    done += 1
                    if self.progress is not None:
                        self.progress("Comparing rows", done, total)
                    try:
                        said = [hash(line(row)) for row in maker.contents(parts)]
                    except RowRejected as error:
                        maker.reject(parts, error)
                        self.written.rejected[str(error)] += 1
                        unfit = True
                        continue
                    other = parts[1][1].id if len(parts) > 1 else None
                    self._note(run, parts[0][1].id, other, said)
        return unfit

    def _note(self, run: OpenRun, id: int, other: int | None, said: list[int]) -> None:
        rows = [(run.number, id, other, one) for one in said]
        self.connection.executemany("insert into said (run, id, other, hash) values (?, ?, ?, ?)", rows)

    def repeated(self, which: str) -> list[Pick]:
        """Return the picks that say nothing which no pick before them says."""
        return [
            Pick(*row)
            for row in self.connection.execute(
                f"""
                select k.run, k.unit, k.id, k.other, count(*) from picks k {SAID}
                where k.pick in ({which}) group by k.pick order by k.pick
                """
            )
        ]

    def rule_out(self, repeated: list[Pick], number: int) -> None:
        """Rule these picks out. Of a pair one side is, by turns, so that neither is used up before the other."""
        of_rl = self.selection.preferences.mode is ExportMode.RL
        for one in repeated:
            run = self.selection.runs[one.run]
            self.written.repeats += one.rows
            if of_rl:  # each trajectory of a prompt gives the same row
                self.selection.reject_unit(run, one.unit, DISTINCT)
            else:
                id = one.id if one.other is None or number % 2 else one.other
                self.selection.reject(run, id, None, DISTINCT)

    def look_ahead(self, repeated: list[Pick], times: int) -> None:
        """Rule out what repeats others of its prompt among the next of the draw; farther each time, to be done soon."""
        self.connection.execute("delete from repeating")
        self.connection.executemany("insert or ignore into repeating values (?)", ((one.unit,) for one in repeated))
        slots = self.selection.value("select max(k.slot) from placed l join picks k on k.pick = l.pick") * times
        preferences = self.selection.preferences
        wider = preferences if preferences.quota is None else replace(preferences, per_prompt=slots)
        self.selection.rank(wider)
        self.read(AHEAD, slots)
        self.rule_out(self.repeated(REPEATED_AHEAD), 0)
