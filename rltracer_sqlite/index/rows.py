"""Entries to rows: prompts, groups, trajectories and annotations of one batch, inside the caller's transaction."""

from __future__ import annotations

import json
import sqlite3
from operator import attrgetter
from typing import Any, NamedTuple

from ..sources.base import Entry, Problem, Shard, Update
from .annotations import insert_annotations, insert_copies, keep_place, keep_rewritten, overlay, resolve
from .columns import BUILT_IN, Columns
from .statistics import apply_success, mark_steps, refresh_groups

DEFAULT_SUCCESS = ("reward", 1.0)
LABEL_SUCCESS = ("metrics.correct_final_label", 1.0)

MAX_DIGITS = 18  # what surely fits SQLite's integers
# Columns of `trajectories` that an entry fills under the same name.
ENTRY_COLUMNS = (
    "uid", "step", "dispatch_step", "ship_step", "split", "env", "agent", "effective", "reward", "advantage",
    "logprob_mean", "turns", "tool_calls", "branches", "prompt_tokens", "completion_tokens", "stop_condition",
    "truncated", "ok", "error_type", "episode_id", "group_id", "task_key", "data_idx", "policy_version",
    "started_at", "seconds", "content_kind", "byte_offset", "byte_length", "line", "item", "preview",
)  # fmt: skip
read_columns = attrgetter(*ENTRY_COLUMNS)
FIXED_COLUMNS = ("run_id", "prompt_group_id", "success", "shard_id", "gone", "group_pass_rate")


class Existing(NamedTuple):
    """What the index already knows of a uid."""

    id: int
    shard_id: int
    prompt_group_id: int | None
    step: int | None
    split: str | None
    byte_offset: int


class RunWriter:
    """Writes batches of one run. One object per refresh; every method runs inside the caller's transaction."""

    def __init__(self, connection: sqlite3.Connection, run_id: int) -> None:
        self.connection, self.run_id = connection, run_id
        self.columns = Columns(connection)
        self.replaced = False  # has a row been written over?
        self.touched_steps: set[tuple[int | None, str | None]] = set()  # whose numbers are to be recomputed
        self.rule = self._rule()
        self.producers: dict[int, str | None] = {}
        self.paths: dict[int, str] = {}
        for shard_id, producer, path in connection.execute(
            "select id, producer, path from shards where run_id = ?", (run_id,)
        ):
            self.producers[shard_id], self.paths[shard_id] = producer, path
        self.gone = {row[0] for row in connection.execute("select id from shards where state = 'gone'")}
        self.has_annotations = bool(
            connection.execute("select exists (select 1 from annotations where run_id = ?)", (run_id,)).fetchone()[0]
        )

    def _rule(self) -> tuple[str, float, bool]:
        path, threshold, chosen = self.connection.execute(
            "select success_path, success_threshold, success_chosen from runs where id = ?", (self.run_id,)
        ).fetchone()
        return path, threshold, bool(chosen)

    def write(
        self,
        shard_id: int,
        shard: Shard,
        entries: list[Entry],
        updates: list[Update],
        problems: list[Problem],
        seen: set[int] | None = None,
    ) -> set[int]:
        """Write one batch of a shard; return the ids of the trajectories whose record it holds.

        `seen` are the ids that this reading of the shard from its start has given so far; None for a shard that
        has grown, all of whose rows were seen.
        """
        self.producers[shard_id], self.paths[shard_id] = shard.producer, shard.path
        self.gone.discard(shard_id)
        if shard.producer == "effective":
            updates = [*updates, *(_as_update(entry, shard) for entry in entries)]
        records, repeated = _distinct(entries)
        existing = self._existing([entry.uid for entry in records])
        repeated += _seen_before(records, existing, shard_id, seen)
        mine, copies = self._sorted_out(records, existing, shard_id, repeated)
        held, touched_groups, touched_steps = self._write_trajectories(shard_id, mine, existing)
        self._write_annotations(shard_id, shard.producer or shard.layout, updates, [entry.uid for entry in mine])
        insert_copies(self.connection, self.run_id, shard_id, copies)
        self.connection.executemany(
            "insert into problems (shard_id, line, byte_offset, byte_length, reason) values (?, ?, ?, ?, ?)",
            [(shard_id, p.line, p.byte_offset, p.byte_length, p.reason[:500]) for p in [*problems, *repeated]],
        )
        refresh_groups(self.connection, touched_groups)
        mark_steps(self.connection, self.run_id, touched_steps)
        self.touched_steps |= touched_steps
        return held

    # -- trajectories

    def _sorted_out(
        self, entries: list[Entry], existing: dict[str, Existing], shard_id: int, repeated: list[Problem]
    ) -> tuple[list[Entry], list[Entry]]:
        """Part the entries whose row belongs to this shard from copies of records that belong elsewhere.

        A complete record comes before the copy under effective/, and a file that is there before one that is gone.
        Of two files that hold the same record the later path has the row, whichever was read first.
        """
        mine, copies, moving = [], [], []
        for entry in entries:
            known = existing.get(entry.uid)
            if known is None or known.shard_id == shard_id or known.shard_id in self.gone:
                mine.append(entry)
                continue
            here, there = self.producers[shard_id], self.producers.get(known.shard_id)
            if here is None and there is None:
                repeated.append(_repeats(entry, self.paths.get(known.shard_id, "another file")))
                if self.paths[shard_id] > self.paths.get(known.shard_id, ""):
                    mine.append(entry)
                    moving.append(known.id)
                else:
                    copies.append(entry)
            elif here is None or (there is not None and self.paths[shard_id] > self.paths.get(known.shard_id, "")):
                mine.append(entry)
        if moving:
            keep_place(self.connection, moving)
        return mine, copies

    def _write_trajectories(
        self, shard_id: int, entries: list[Entry], existing: dict[str, Existing]
    ) -> tuple[set[int], set[int], set[tuple[int | None, str | None]]]:
        self.columns.add(entries)
        self._choose_rule(entries)
        groups = self._group_ids(entries)
        next_id = self._next_id()
        dynamic = self.columns.dynamic
        paths = [path for path, _ in dynamic]
        for entry in entries:
            _settle_example(entry)
        successes = [self._success(entry) for entry in entries]
        rates = _pass_rates(groups, successes)
        inserts, changes = [], []
        held, touched_groups = set(), set(groups)
        touched_steps = {(entry.step, entry.split) for entry in entries}
        for entry, group_id, success in zip(entries, groups, successes, strict=True):
            fixed = self.run_id, group_id, success, shard_id, 0, rates.get(group_id)
            row = (*fixed, *read_columns(entry), *map(entry.values.get, paths))
            known = existing.get(entry.uid)
            if known is None:
                inserts.append((next_id, *row))
                held.add(next_id)
                next_id += 1
                continue
            changes.append((*row, known.id))
            held.add(known.id)
            touched_steps.add((known.step, known.split))
            if known.prompt_group_id is not None:
                touched_groups.add(known.prompt_group_id)
        names = [*FIXED_COLUMNS, *ENTRY_COLUMNS, *(column for _, column in dynamic)]
        quoted = [f'"{name}"' for name in names]
        self.connection.executemany(
            f"insert into trajectories (id, {', '.join(quoted)}) values ({', '.join('?' * (len(names) + 1))})", inserts
        )
        self.connection.executemany(
            f"update trajectories set {', '.join(f'{name} = ?' for name in quoted)} where id = ?", changes
        )
        self.replaced = self.replaced or bool(changes)
        return held, touched_groups, touched_steps

    def _success(self, entry: Entry) -> int | None:
        path, threshold, _ = self.rule
        value = entry.values.get(path)
        if value is None and path.startswith("rewards."):
            value = entry.values.get(f"{path}.score")
        if value is None and path in BUILT_IN:
            value = getattr(entry, BUILT_IN[path])
        return int(value >= threshold) if isinstance(value, (int, float)) else None

    def rule_without_label(self) -> None:
        """Go back to the reward when no record of the run has the label any more, unless a person chose the rule."""
        path, _, chosen = self.rule
        column = self.columns.by_path.get(path)
        if chosen or path != LABEL_SUCCESS[0] or column is None:
            return
        query = f'select exists (select 1 from trajectories where run_id = ? and "{column}" is not null)'
        if not self.connection.execute(query, (self.run_id,)).fetchone()[0]:
            self._set_rule(DEFAULT_SUCCESS)

    def _set_rule(self, rule: tuple[str, float]) -> None:
        self.connection.execute(
            "update runs set success_path = ?, success_threshold = ? where id = ?", (*rule, self.run_id)
        )
        self.rule = (*rule, False)
        apply_success(self.connection, self.run_id)

    def _choose_rule(self, entries: list[Entry]) -> None:
        """Switch to the label's rule when the first record with a final label is seen, unless a person chose one."""
        path, _, chosen = self.rule
        if chosen or path != DEFAULT_SUCCESS[0] or not any(LABEL_SUCCESS[0] in entry.values for entry in entries):
            return
        self._set_rule(LABEL_SUCCESS)

    def _existing(self, uids: list[str]) -> dict[str, Existing]:
        rows = self.connection.execute(
            """
            select uid, id, shard_id, prompt_group_id, step, split, byte_offset from trajectories
            where run_id = ? and uid in (select value from json_each(?))
            """,
            (self.run_id, json.dumps(uids)),
        )
        return {uid: Existing(*rest) for uid, *rest in rows}

    def _next_id(self) -> int:
        row = self.connection.execute("select seq from sqlite_sequence where name = 'trajectories'").fetchone()
        return int(row[0]) + 1 if row else 1

    # -- prompts and groups

    def _group_ids(self, entries: list[Entry]) -> list[int]:
        prompts = self._prompt_ids(entries)
        keys = [
            (entry.step, entry.split, entry.env, prompts[entry.prompt_key, entry.task], entry.group_id)
            for entry in entries
        ]
        known: dict[tuple[Any, ...], int] = {}
        for key in dict.fromkeys(keys):
            known[key] = self._group_id(key)
        return [known[key] for key in keys]

    def _group_id(self, key: tuple[Any, ...]) -> int:
        # `is`, so that nulls are equal; the expressions are those of the unique index.
        found = self.connection.execute(
            """
            select id from prompt_groups where run_id = ? and ifnull(step, -1) = ifnull(?, -1)
                and ifnull(split, '') = ifnull(?, '') and ifnull(env, '') = ifnull(?, '') and prompt_id = ?
                and ifnull(group_id, '') = ifnull(?, '')
            """,
            (self.run_id, *key),
        ).fetchone()
        if found:
            return int(found[0])
        cursor = self.connection.execute(
            "insert into prompt_groups (run_id, step, split, env, prompt_id, group_id) values (?, ?, ?, ?, ?, ?)",
            (self.run_id, *key),
        )
        return int(cursor.lastrowid or 0)

    def _prompt_ids(self, entries: list[Entry]) -> dict[tuple[str, str], int]:
        previews = {(entry.prompt_key, entry.task): entry.preview for entry in entries}
        self.connection.executemany(
            "insert or ignore into prompts (key, task, preview) values (?, ?, ?)",
            [(key, task, preview) for (key, task), preview in previews.items()],
        )
        rows = self.connection.execute(
            "select key, task, id from prompts where key in (select value from json_each(?))",
            (json.dumps([key for key, _ in previews]),),
        )
        return {(key, task): identity for key, task, identity in rows}

    # -- annotations

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


def _distinct(entries: list[Entry]) -> tuple[list[Entry], list[Problem]]:
    """Keep the last entry of each uid of a batch; tell the others as problems."""
    last = {entry.uid: entry for entry in entries}
    if len(last) == len(entries):
        return entries, []
    earlier = [entry for entry in entries if last[entry.uid] is not entry]
    return list(last.values()), [_repeats(entry, "a later line") for entry in earlier]


def _seen_before(
    entries: list[Entry], existing: dict[str, Existing], shard_id: int, seen: set[int] | None
) -> list[Problem]:
    """Tell the ids that stood in an earlier part of the same shard."""
    found = []
    for entry in entries:
        known = existing.get(entry.uid)
        stood = known is not None and known.shard_id == shard_id and known.byte_offset < entry.byte_offset
        if known is not None and stood and (seen is None or known.id in seen):
            found.append(_repeats(entry, "an earlier line"))
    return found


def _repeats(entry: Entry, other: str) -> Problem:
    reason = f"the id {entry.uid[:80]} stands again in {other}; a trajectory is counted once"
    return Problem(entry.line, entry.byte_offset, entry.byte_length, reason)
