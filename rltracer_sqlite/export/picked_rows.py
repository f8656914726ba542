"""From picks to rows: the records are read in the order of their files, and each becomes what the mode asks for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

from ..sources.files import file_there
from ..trajectory import Trajectory
from .datadev import DatadevRows
from .errors import ExportError
from .lines import Row, line
from .preferences import ExportMode
from .records import FILE_ORDER, LOCATED, Located, conversations, read_rows
from .redact import redact
from .rows import Made, RowRejected, joined_rl_row, preference_row, sft_rows, traced_rl_row
from .runs import OpenRun, Progress
from .selection import Selection
from .written import Written, calls_in, conversations_in


class Facts(NamedTuple):
    """What the index knows of a picked trajectory besides its place."""

    pick: int
    side: int  # 0, or in a pair 0 for the better and 1 for the worse one
    slot: int
    window: int | None
    step: int | None
    split: str | None
    env: str | None
    task_key: str | None
    data_idx: Any
    reward: float | None
    success: int | None
    tool_calls: int | None
    episode_id: str | None
    preview: str
    key: str
    scored: int
    successes: int


FACTS = """
d.pick, d.side, d.slot, g.window, t.step, t.split, t.env, t.task_key, t.data_idx, t.reward, t.success, t.tool_calls,
t.episode_id, t.preview, p.key, g.scored, g.successes
"""
# A pair stands where its better trajectory stands, and its worse one is read right after it.
PICKED = """
with picked as (
    select k.pick, k.slot, 0 as side, k.id from {wanted} l join picks k on k.pick = l.pick where k.run = :run
    union all
    select k.pick, k.slot, 1 as side, k.other from {wanted} l join picks k on k.pick = l.pick
    where k.run = :run and k.other is not null
),
ordered as (
    select d.pick, row_number() over (order by {order}) as place
    from picked d cross join source.trajectories t on t.id = d.id join source.shards s on s.id = t.shard_id
    where d.side = 0
)
select {columns}
from ordered o join picked d on d.pick = o.pick
cross join source.trajectories t on t.id = d.id
cross join source.shards s on s.id = t.shard_id
cross join source.prompt_groups b on b.id = t.prompt_group_id
cross join source.prompts p on p.id = b.prompt_id
cross join members m on m.run = :run and m.prompt_group_id = b.id
cross join groups g on g.number = m.grp
order by o.place, d.side
"""


def written_rows(
    selection: Selection, written: Written, progress: Progress | None = None, doing: str = "Writing rows"
) -> Iterator[Row]:
    """Yield the rows of a selection. What cannot be a row is noted in the selection and in `written`.

    Raises ExportError where the index has changed since the selection, LocatorError where a file has.
    """
    total, done = selection.count(), 0
    selection.scratch.forget_contents()
    for run in selection.runs:
        with selection.scratch.index_errors(run), ExitStack() as stack:
            make = Maker(selection, run, written, stack)
            for parts in read_picks(selection, run):
                done += 1
                if progress is not None:
                    progress(doing, done, total)
                yield from make.rows(parts)
    if done != total:
        raise ExportError(
            f"{done:,} of {total:,} selected records are in the index now: it was changed meanwhile. Export again."
        )


Part = tuple[Facts, Located, Trajectory]


def read_picks(selection: Selection, run: OpenRun, wanted: str = "placed") -> Iterator[list[Part]]:
    """Yield each pick of a table as what was read of it: one trajectory, or the two of a pair."""
    size = len(Facts._fields)
    question = PICKED.format(wanted=wanted, order=FILE_ORDER, columns=f"{FACTS}, {LOCATED}")
    cursor = selection.scratch.copied("located", [*Facts._fields, *Located._fields], question, run, {"run": run.number})
    rows = ((Located(*row[size:]), Facts(*row[:size])) for row in cursor)
    parts: list[Part] = []
    for (place, facts), trajectory in read_rows(run, rows, conversations(run.source)):
        if parts and parts[0][0].pick != facts.pick:
            yield parts
            parts = []
        parts.append((facts, place, trajectory))
    if parts:
        yield parts


class Maker:
    """Makes the rows of one run, of the picks of a table."""

    def __init__(
        self, selection: Selection, run: OpenRun, written: Written, stack: ExitStack, wanted: str = "placed"
    ) -> None:
        self.selection, self.run, self.written = selection, run, written
        self.preferences = selection.preferences
        self.files: dict[str, str] = {}  # what a shard is called now: it may have been sealed since it was indexed
        self.data: DatadevRows | None = None
        path = run.spec.rl_data_path
        if self.preferences.mode is ExportMode.RL and path is not None:
            self.data = stack.enter_context(DatadevRows(Path(path), _wanted_rows(selection, run, wanted)))

    def rows(self, parts: list[Part]) -> Iterator[Row]:
        """Yield the rows of one pick, none where it is rejected."""
        try:
            made = self._made(parts)
        except RowRejected as error:
            self.written.rejected[str(error)] += 1
            self.written.has_rejected = True
            self.reject(parts, error)
            return
        called = [self.selection.called(self.run, place.id) for _, place, _ in parts]
        for one in made:
            row = self._without_secrets(one.row)
            if self.selection.scratch.is_new(line(row)):
                self.written.distinct += 1
            elif self.preferences.distinct:
                self.written.repeats += 1
                continue
            else:
                self.written.repeated.add(called[:1])
            if self.preferences.include_provenance:
                row["trace_provenance"] = self._without_secrets(self._provenance(parts, one))
            if self.preferences.include_raw_trace:
                row["trace"] = self._without_secrets(self._records(parts))
            self.written.rows_of[self.run.number] += 1
            is_one_of_several = bool(one.branches) and any(_branches(part[2]) > 1 for part in parts)
            self.written.count(one.row, called, is_one_of_several)
            yield row

    def contents(self, parts: list[Part]) -> list[Row]:
        """Return what the rows of one pick say, without provenance and raw trace. Raises RowRejected."""
        return [self._without_secrets(one.row) for one in self._made(parts)]

    def reject(self, parts: list[Part], error: RowRejected) -> None:
        """Rule out the trajectory that is at fault."""
        self.selection.reject(self.run, parts[0 if error.of_chosen else -1][1].id, str(error))

    def _without_secrets(self, value: Any) -> Any:
        return redact(value, self.written.redacted) if self.preferences.redact else value

    def _made(self, parts: list[Part]) -> list[Made]:
        facts, _, trajectory = parts[0]
        mode, with_tools = self.preferences.mode, self.preferences.include_tools
        if mode is ExportMode.SFT:
            return sft_rows(trajectory, with_tools, self.preferences.last_branch)
        if mode is ExportMode.PREFERENCE:
            return [preference_row(trajectory, parts[1][2], with_tools)]
        if self.data is not None:
            return [Made(joined_rl_row(trajectory, self.data.row(facts.data_idx)))]
        return [Made(traced_rl_row(trajectory, facts.env, facts.task_key))]

    def _records(self, parts: list[Part]) -> Any:
        root = self.run.root()
        found = [self.run.source.load(root, [place.locator()]).record for _, place, _ in parts]
        return found[0] if len(found) == 1 else {"chosen": found[0], "rejected": found[1]}

    def _provenance(self, parts: list[Part], made: Made) -> Row:
        told = [self._origin(facts, place) for facts, place, _ in parts]
        # An RL row holds a prompt alone, and so the counts of the whole trajectory.
        said = zip(told, parts, made.branches, conversations_in(made.row).values(), strict=False)
        for one, (_, _, trajectory), branch, messages in said:
            one |= {"branch": branch, "branch_count": _branches(trajectory), "tool_call_count": calls_in(messages)}
        if len(told) == 1:
            return told[0]
        margin = (parts[0][0].reward or 0.0) - (parts[1][0].reward or 0.0)
        return {"chosen": told[0], "rejected": told[1], "reward_margin": margin}

    def _origin(self, facts: Facts, place: Located) -> Row:
        first, last = self.run.window_bounds(facts.window, self.preferences.window_size)
        pass_rate = facts.successes / facts.scored if facts.scored else None
        return {
            "run": self.run.name, "trajectory_id": place.id, "step": facts.step, "split": facts.split,
            "env": facts.env, "window_start": first, "window_end": last,
            "prompt_key": facts.key, "prompt_preview": facts.preview, "prompt_pass_rate": pass_rate,
            "difficulty": pass_rate, "reward": facts.reward,
            "success": None if facts.success is None else bool(facts.success), "tool_call_count": facts.tool_calls,
            "trajectory_tool_call_count": facts.tool_calls, "selection_slot": facts.slot, "uid": place.uid,
            "episode_id": facts.episode_id, "file": self._file(place), "line": place.line, "item": place.item,
            "byte_offset": place.byte_offset, "byte_length": place.byte_length,
        }  # fmt: skip

    def _file(self, place: Located) -> str:
        if place.path not in self.files:
            self.files[place.path] = file_there(self.run.root(), place.locator())
        return self.files[place.path]


def _branches(trajectory: Trajectory) -> int:
    return len(trajectory.branches) or 1


def _wanted_rows(selection: Selection, run: OpenRun, wanted: str) -> list[int]:
    rows = selection.scratch.attach(run).execute(
        f"""
        select distinct t.data_idx from {wanted} l join picks k on k.pick = l.pick
        cross join source.trajectories t on t.id = k.id
        where k.run = ? and typeof(t.data_idx) = 'integer'
        """,
        (run.number,),
    )
    return [row[0] for row in rows]
