"""The runs of an index: making one, naming it, and its success rule."""

from __future__ import annotations

import sqlite3

from ..sources.base import Source, SourceError
from ..sources.places import Root
from .database import transaction
from .statistics import apply_success, refresh_steps, utc_now
from .success import DEFAULT_SUCCESS


def ensure_run(connection: sqlite3.Connection, source: Source, root: Root, name: str | None = None) -> int:
    """Return the id of the run at `root`, making its row when it is new, and keep how its source reads it."""
    where = str(root.resolve())
    mapping = getattr(getattr(source, "mapping", None), "text", None)
    tokenizer, step_kind = getattr(source, "tokenizer", None), getattr(source, "step_kind", None)
    found = connection.execute(
        "select id, name, source, mapping, tokenizer from runs where root = ?", (where,)
    ).fetchone()
    if not found:
        cursor = connection.execute(
            """
            insert into runs (name, root, source, tokenizer, mapping, step_kind, success_path, success_threshold,
                created_at)
            values (?, ?, ?, ?, ?, ?, ?, ?, ?)
            """,
            (_free_name(connection, name or run_name(root)), where, source.name, tokenizer, mapping, step_kind,
             *DEFAULT_SUCCESS, utc_now()),
        )  # fmt: skip
        return int(cursor.lastrowid or 0)
    run_id, old_name, old_source, old_mapping, old_tokenizer = found
    if old_source != source.name:
        raise SourceError(f"{root} is indexed as {old_source}, and reads as {source.name} now. Use --rebuild.")
    if name and name != old_name:
        connection.execute("update runs set name = ? where id = ?", (_free_name(connection, name), run_id))
    if mapping != old_mapping:
        # What an edited mapping says of files that have not changed is found by reading them again.
        connection.execute("update shards set state = 'unread' where run_id = ? and state <> 'gone'", (run_id,))
    if tokenizer and tokenizer != old_tokenizer:
        _read_texts_again(connection, run_id)
    if tokenizer or mapping:
        connection.execute(
            "update runs set tokenizer = coalesce(?, tokenizer), mapping = ?, step_kind = ? where id = ?",
            (tokenizer, mapping, step_kind, run_id),
        )
    return int(run_id)


def _read_texts_again(connection: sqlite3.Connection, run_id: int) -> None:
    """Have the shards read again whose token ids another tokenizer, or none, has made into prompts."""
    connection.execute(
        """
        update shards set state = 'unread' where run_id = ? and state <> 'gone' and exists (
            select 1 from trajectories t where t.shard_id = shards.id and t.content_kind <> 'messages'
        )
        """,
        (run_id,),
    )


def set_success(connection: sqlite3.Connection, run_id: int, path: str, threshold: float) -> None:
    """Set a run's success rule and apply it to what is indexed, without reading a file."""
    with transaction(connection):
        connection.execute(
            "update runs set success_path = ?, success_threshold = ?, success_chosen = 1 where id = ?",
            (path, threshold, run_id),
        )
        apply_success(connection, run_id)
        refresh_steps(connection, run_id)


def run_name(root: Root) -> str:
    """Return a short name for a run: its folder's, or that of the experiment around a folder of a fixed name."""
    fixed = {"rollouts", "run_default", "token_exports", "outputs", "evals", "batches"}
    path = root.resolve()
    while path.name in fixed and path.parent != path:
        path = path.parent
    return path.name or "run"


def _free_name(connection: sqlite3.Connection, wanted: str) -> str:
    name, number = wanted, 2
    while connection.execute("select 1 from runs where name = ?", (name,)).fetchone():
        name, number = f"{wanted} ({number})", number + 1
    return name
