"""Entries to rows: what one batch of a shard writes, inside the caller's transaction."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Collection
from operator import attrgetter
from typing import Any

from ..sources.base import Entry, Problem, Shard, Update
from .annotations import insert_annotations, insert_copies, keep_place, keep_rewritten, overlay, resolve
from .columns import Columns, uncount
from .derived import StepKey
from .growing import Sums, add_to_steps, sums_of
from .moved_rows import Move
from .plan import read_again
from .prompts import group_ids
from .repeats import Existing, Place, distinct, seen_before, sort_out
from .statistics import refresh_groups, refresh_steps
from .success import RunRule

MAX_DIGITS = 18  # what surely fits SQLite's integers
# Columns of `trajectories` that an entry fills under the same name.
ENTRY_COLUMNS = (
    "uid", "step", "dispatch_step", "ship_step", "split", "env", "agent", "effective", "reward", "advantage",
    "logprob_mean", "turns", "tool_calls", "tools", "branches", "prompt_tokens", "completion_tokens",
    "stop_condition", "truncated", "ok", "error_type", "episode_id", "group_id", "task_key", "data_idx",
    "policy_version", "started_at", "seconds", "content_kind", "byte_offset", "byte_length", "line", "item", "preview",
)  # fmt: skip
read_columns = attrgetter(*ENTRY_COLUMNS)
FIXED_COLUMNS = ("run_id", "prompt_group_id", "success", "shard_id", "gone", "group_pass_rate")


class RunWriter:
    """Writes batches of one run. One object per refresh; every method runs inside the caller's transaction."""

    def __init__(self, connection: sqlite3.Connection, run_id: int, back: Collection[int] = ()) -> None:
        """Write a run of which the shards `back` are there again, or were not to be read when they were tried last."""
        self.connection, self.run_id = connection, run_id
        self.columns = Columns(connection)
        self.replaced = False  # has a row been written over?
        self.touched_steps: set[StepKey] = set()  # whose numbers are to be recomputed at the end of a file
        self.rule = RunRule(connection, run_id)
        shards = connection.execute("select id, path, file, producer, step from shards where run_id = ?", (run_id,))
        self.places = {shard_id: Place(*place) for shard_id, *place in shards}
        self.gone = {row[0] for row in connection.execute("select id from shards where state = 'gone'")}
        self.back = back
        self.moved: Counter[Move] = Counter()
        self.has_annotations = bool(
            connection.execute("select exists (select 1 from annotations where run_id = ?)", (run_id,)).fetchone()[0]
        )

    def write(
        self,
        shard_id: int,
        shard: Shard,
        entries: list[Entry],
        updates: list[Update],
        problems: list[Problem],
        seen: set[int] | None = None,
        is_last: bool = False,
    ) -> set[int]:
        """Write one batch of a shard; return the ids of the trajectories whose record it holds.

        `seen` are the ids that this reading of the shard from its start has given so far; None for a shard that
        has grown, all of whose rows were seen. The numbers of steps are kept up to date, but with the last batch:
        `count_steps` follows.
        """
        self.places[shard_id] = Place(shard.path, shard.file, shard.producer, shard.step)
        self.gone.discard(shard_id)
        if shard.producer == "effective":
            updates = [*updates, *(_as_update(entry, shard) for entry in entries)]
        records, repeated = distinct(entries)
        existing = self._existing([entry.uid for entry in records])
        repeated += seen_before(records, existing, shard_id, seen)
        if shard.producer == "effective":
            repeated += seen_before(records, self._copied(shard_id, existing), shard_id, None)
        found = sort_out(records, existing, shard_id, self.places)
        if found.moving:
            keep_place(self.connection, found.moving)
        # A file that is gone and whose rows are another's now may have the later records, and is read when it is back.
        read_again(self.connection, {known.shard_id for known in existing.values()} & self.gone)
        held, touched_groups, gone = self._write_trajectories(shard_id, found.mine, existing, is_last)
        self._write_annotations(shard_id, shard.producer or shard.layout, updates, [entry.uid for entry in found.mine])
        insert_copies(self.connection, self.run_id, shard_id, found.copies)
        told = [(shard_id, problem) for problem in (*problems, *repeated)]
        self._write_problems([*told, *found.repeats])
        refresh_groups(self.connection, touched_groups)
        if not is_last:
            add_to_steps(self.connection, self.run_id, gone, sums_of(self.connection, held))
        return held

    def count_steps(self) -> None:
        """Recompute the numbers of the steps that were touched since it was called before."""
        refresh_steps(self.connection, self.run_id, self.touched_steps)
        self.touched_steps.clear()

    def _write_problems(self, problems: list[tuple[int, Problem]]) -> None:
        # Counted at once, so that a reading which is stopped has told what it had found by then.
        self.connection.executemany(
            "insert into problems (shard_id, line, byte_offset, byte_length, reason) values (?, ?, ?, ?, ?)",
            [(shard_id, p.line, p.byte_offset, p.byte_length, p.reason[:500]) for shard_id, p in problems],
        )
        self.connection.executemany(
            "update shards set problems = problems + ? where id = ?",
            [(count, shard_id) for shard_id, count in Counter(shard_id for shard_id, _ in problems).items()],
        )

    def _write_trajectories(
        self, shard_id: int, entries: list[Entry], existing: dict[str, Existing], is_last: bool
    ) -> tuple[set[int], set[int], Sums]:
        """Return the ids that were written, their groups, and what those added up to that are written over."""
        self.columns.add(entries)
        self.rule.choose(entries)
        groups = group_ids(self.connection, self.run_id, entries)
        rows, known = self._rows(shard_id, entries, groups), [existing.get(entry.uid) for entry in entries]
        new = (row for row, before in zip(rows, known, strict=True) if before is None)
        inserts = [(identity, *row) for identity, row in enumerate(new, self._next_id())]
        changes = [(*row, before.id) for row, before in zip(rows, known, strict=True) if before is not None]
        held = {row[0] for row in inserts}.union(row[-1] for row in changes)
        self._note_touched(shard_id, entries, known)
        before_groups = (before.prompt_group_id for before in known if before is not None)
        touched_groups = {*groups, *(group for group in before_groups if group is not None)}
        return held, touched_groups, self._put(inserts, changes, is_last)

    def _rows(self, shard_id: int, entries: list[Entry], groups: list[int]) -> list[tuple[Any, ...]]:
        """Return what stands in the columns that `_put` names, of each entry."""
        for entry in entries:
            _settle_example(entry)
        paths = [path for path, _ in self.columns.dynamic]
        successes = [self.rule.success(entry) for entry in entries]
        rates = _pass_rates(groups, successes)
        rows = []
        for entry, group_id, success in zip(entries, groups, successes, strict=True):
            fixed = self.run_id, group_id, success, shard_id, 0, rates.get(group_id)
            rows.append((*fixed, *read_columns(entry), *map(entry.values.get, paths)))
        return rows

    def _note_touched(self, shard_id: int, entries: list[Entry], known: list[Existing | None]) -> None:
        """Note the steps whose numbers change, and the rows that have moved to this shard."""
        self.touched_steps.update((entry.step, entry.split) for entry in entries)
        for entry, before in zip(entries, known, strict=True):
            if before is None:
                continue
            if before.shard_id != shard_id and (before.is_gone or shard_id in self.back):
                self.moved[Move(not before.is_gone, before.step, entry.step)] += 1
            self.touched_steps.add((before.step, before.split))

    def _put(self, inserts: list[tuple[Any, ...]], changes: list[tuple[Any, ...]], is_last: bool) -> Sums:
        """Write new rows, with their ids in front, and changed ones, with theirs behind.

        Returns what the latter added up to before; {} where `is_last`.
        """
        names = [*FIXED_COLUMNS, *ENTRY_COLUMNS, *(column for _, column in self.columns.dynamic)]
        quoted = [f'"{name}"' for name in names]
        written_over = [row[-1] for row in changes]
        gone = {} if is_last else sums_of(self.connection, written_over)
        uncount(self.connection, written_over)
        self.connection.executemany(
            f"insert into trajectories (id, {', '.join(quoted)}) values ({', '.join('?' * (len(names) + 1))})", inserts
        )
        self.connection.executemany(
            f"update trajectories set {', '.join(f'{name} = ?' for name in quoted)} where id = ?", changes
        )
        self.replaced = self.replaced or bool(changes)
        return gone

    def _existing(self, uids: list[str]) -> dict[str, Existing]:
        rows = self.connection.execute(
            """
            select uid, id, shard_id, prompt_group_id, step, split, line, byte_offset, byte_length, gone
            from trajectories
            where run_id = ? and uid in (select value from json_each(?))
            """,
            (self.run_id, json.dumps(uids)),
        )
        return {uid: Existing(*rest) for uid, *rest in rows}

    def _copied(self, shard_id: int, existing: dict[str, Existing]) -> dict[str, Existing]:
        """Return where a file under effective/ was found to hold records before whose rows are those of other files."""
        elsewhere = [uid for uid, known in existing.items() if known.shard_id != shard_id]
        rows = self.connection.execute(
            """
            select uid, trajectory_id, shard_id, null, null, null, line, byte_offset, byte_length, 0 from annotations
            where run_id = ? and shard_id = ? and uid in (select value from json_each(?)) and producer = 'effective'
            order by byte_offset
            """,
            (self.run_id, shard_id, json.dumps(elsewhere)),
        )
        return {uid: Existing(*rest) for uid, *rest in rows}

    def _next_id(self) -> int:
        row = self.connection.execute("select seq from sqlite_sequence where name = 'trajectories'").fetchone()
        return int(row[0]) + 1 if row else 1

    def _write_annotations(self, shard_id: int, producer: str, updates: list[Update], record_uids: list[str]) -> None:
        ids = {uid: known.id for uid, known in self._existing([update.uid for update in updates]).items()}
        if updates:
            insert_annotations(self.connection, self.run_id, shard_id, producer, updates, ids)
        self.has_annotations = self.has_annotations or bool(updates)
        if not self.has_annotations:
            return
        resolve(self.connection, self.run_id, record_uids)
        keep_rewritten(self.connection, self.run_id, record_uids)
        overlay(self.connection, self.run_id, {*record_uids, *ids})


def _pass_rates(groups: list[int], successes: list[int | None]) -> dict[int, float]:
    """Return the pass rate of each group within a batch, so that a group that is whole in it is written once."""
    counts: dict[int, list[int]] = {}
    for group_id, success in zip(groups, successes, strict=True):
        if success is not None:
            count = counts.setdefault(group_id, [0, 0])
            count[0] += success
            count[1] += 1
    return {group_id: passed / scored for group_id, (passed, scored) in counts.items()}


def _settle_example(entry: Entry) -> None:
    """Keep an example's number as a number; a name serves as the task's key where it has none."""
    example = entry.data_idx
    if example is None or (isinstance(example, int) and not isinstance(example, bool)):
        return
    text = str(example)
    entry.data_idx = int(text) if text.isdecimal() and len(text) <= MAX_DIGITS else None
    if entry.data_idx is None and entry.task_key is None:
        entry.task_key = text


def _as_update(entry: Entry, shard: Shard) -> Update:
    return Update(
        entry.uid, entry.byte_offset, entry.byte_length, entry.line, entry.item, 1, entry.advantage,
        entry.ship_step if entry.ship_step is not None else shard.step,
    )  # fmt: skip
