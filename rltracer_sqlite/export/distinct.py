"""Rows of the same content as one before: found before anything is written, so that others can take their places.

What was selected is read, and what repeats an earlier row is ruled out; the next of the draw takes its place, and is
read in its turn. No record is read twice for that, and only fingerprints of rows are kept, beside the selection.
"""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import replace

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
MOST_DOUBLED = 40  # times that it is looked twice as far ahead: farther than any quota goes
UNSAID = "not exists (select 1 from said s where s.run = k.run and s.id = k.id and s.other is k.other)"
SELECTED = f"insert into unread select l.pick from placed l join picks k on k.pick = l.pick where {UNSAID}"
AHEAD = f"""
insert into unread
select k.pick from picks k where k.unit in (select unit from repeating) and k.slot <= ? and {UNSAID}
"""
SAID = "cross join said s on s.run = k.run and s.id = k.id and s.other is k.other"
# A pick repeats others where each of its rows stands in a pick before it.
REPEATED = f"""
insert into repeated
with known as (
    select k.pick, row_number() over (partition by s.hash order by l.position) as turn
    from placed l cross join picks k on k.pick = l.pick {SAID}
)
select pick from known group by pick having min(turn) > 1
"""
REPEATED_AHEAD = f"""
insert into repeated
with known as (
    select k.pick, row_number() over (partition by k.unit, s.hash order by k.slot) as turn
    from picks k {SAID} where k.unit in (select unit from repeating)
)
select pick from known group by pick having min(turn) > 1
"""
# Of a pair one side is ruled out, by turns, so that neither is used up before the other.
RULE_OUT = """
insert or ignore into unfit (run, stage, id)
select k.run, :stage, case when k.other is null or :turn % 2 then k.id else k.other end
from repeated r join picks k on k.pick = r.pick
"""
# Each trajectory of a prompt gives the same RL row.
RULE_OUT_UNITS = """
insert or ignore into unfit (run, stage, id)
select k.run, :stage, t.id from repeated r cross join picks k on k.pick = r.pick
cross join members m on m.run = k.run and m.unit = k.unit
cross join source.trajectories t on t.prompt_group_id = m.prompt_group_id
where k.run = :run
"""


def replace_repeats(selection: Selection, rejected: Counter[str], progress: Progress | None = None) -> None:
    """Leave in a selection only what gives a row of its own, as long as anything can take the places of others.

    What cannot be a row is ruled out as well, and counted in `rejected` by its reason. Raises ExportError where too
    few are left for the target, or too many repeat each other, LocatorError where a file has changed.
    """
    preferences = selection.preferences
    if not preferences.can_replace:
        return  # rows are left out when they are written
    with selection.scratch.index_errors(selection.runs[0]):
        is_settled = _settle(_Search(selection, rejected, progress), selection)
    if is_settled:
        selection.refuse_fewer(are_compared=True)
    elif preferences.target_count is not None:
        raise ExportError(
            "Too many of the selected rows say the same as others: distinct=True cannot replace them all."
        )
    # Else as many as a quota allows are asked for, and what still repeats others is left out when it is written.


def _settle(search: _Search, selection: Selection) -> bool:
    """Rule out repeats and select again until nothing selected repeats another, and say whether that came to an end."""
    for turn in range(MOST_ROUNDS):
        unfit = search.read(SELECTED)
        repeated = search.rule_out(REPEATED, turn)
        if not unfit and not repeated:
            return True
        if repeated and selection.preferences.mode is ExportMode.SFT:
            search.look_ahead(2 << min(turn, MOST_DOUBLED))
        selection.select_again(takes_fewer=True)  # how many differ is known when all that are left have been compared
    return False


class _Search:
    """What is known of the rows of picks, in the tables of a selection."""

    def __init__(self, selection: Selection, rejected: Counter[str], progress: Progress | None) -> None:
        self.selection, self.rejected, self.progress = selection, rejected, progress
        self.connection = selection.scratch.connection

    def read(self, which: str, *parameters: int) -> bool:
        """Read the picks that a statement puts into `unread`, and say whether any of them cannot be a row."""
        self.connection.execute("delete from unread")
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
                        self.rejected[str(error)] += 1
                        unfit = True
                        continue
                    other = parts[1][1].id if len(parts) > 1 else None
                    self._note(run, parts[0][1].id, other, said)
        return unfit

    def _note(self, run: OpenRun, id: int, other: int | None, said: list[int]) -> None:
        rows = [(run.number, id, other, one) for one in said]
        self.connection.executemany("insert into said (run, id, other, hash) values (?, ?, ?, ?)", rows)

    def rule_out(self, which: str, turn: int = 0) -> int:
        """Rule out the picks that a statement puts into `repeated`, and return how many there are."""
        self.connection.execute("delete from repeated")
        self.connection.execute(which)
        values = {"stage": DISTINCT, "turn": turn}
        if self.selection.preferences.mode is not ExportMode.RL:
            self.connection.execute(RULE_OUT, values)
        else:
            for run in self.selection.runs:
                self.selection.scratch.attach(run).execute(RULE_OUT_UNITS, {**values, "run": run.number})
        return self.selection.scratch.count("repeated")

    def look_ahead(self, times: int) -> None:
        """Rule out what repeats others of its prompt among the next of the draw; farther each time, to be done soon."""
        self.connection.execute("delete from repeating")
        self.connection.execute(
            "insert into repeating select distinct k.unit from repeated r join picks k on k.pick = r.pick"
        )
        slots = self.selection.value("select max(k.slot) from placed l join picks k on k.pick = l.pick") * times
        preferences = self.selection.preferences
        self.selection.rank(preferences if preferences.quota is None else replace(preferences, per_prompt=slots))
        self.read(AHEAD, slots)
        self.rule_out(REPEATED_AHEAD)
