"""The prompts and prompt groups of a batch of entries, inside the caller's transaction."""

from __future__ import annotations

import json
import sqlite3
from typing import Any

from ..sources.base import Entry


def group_ids(connection: sqlite3.Connection, run_id: int, entries: list[Entry]) -> list[int]:
    """Return the prompt group of each entry, made where there is none yet."""
    prompts = _prompt_ids(connection, entries)
    keys = [
        (entry.step, entry.split, entry.env, prompts[entry.prompt_key, entry.task], entry.group_id) for entry in entries
    ]
    known: dict[tuple[Any, ...], int] = {}
    for key in dict.fromkeys(keys):
        known[key] = _group_id(connection, run_id, key)
    return [known[key] for key in keys]


def _group_id(connection: sqlite3.Connection, run_id: int, key: tuple[Any, ...]) -> int:
    # `is`, so that nulls are equal; the expressions are those of the unique index.
    found = connection.execute(
        """
        select id from prompt_groups where run_id = ? and ifnull(step, -1) = ifnull(?, -1)
            and ifnull(split, '') = ifnull(?, '') and ifnull(env, '') = ifnull(?, '') and prompt_id = ?
            and ifnull(group_id, '') = ifnull(?, '')
        """,
        (run_id, *key),
    ).fetchone()
    if found:
        return int(found[0])
    cursor = connection.execute(
        "insert into prompt_groups (run_id, step, split, env, prompt_id, group_id) values (?, ?, ?, ?, ?, ?)",
        (run_id, *key),
    )
    return int(cursor.lastrowid or 0)


def _prompt_ids(connection: sqlite3.Connection, entries: list[Entry]) -> dict[tuple[str, str], int]:
    previews = {(entry.prompt_key, entry.task): entry.preview for entry in entries}
    connection.executemany(
        "insert or ignore into prompts (key, task, preview) values (?, ?, ?)",
        [(key, task, preview) for (key, task), preview in previews.items()],
    )
    rows = connection.execute(
        "select key, task, id from prompts where key in (select value from json_each(?))",
        (json.dumps([key for key, _ in previews]),),
    )
    return {(key, task): identity for key, task, identity in rows}
