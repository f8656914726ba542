"""The runs of an index: making one, naming it, and its success rule."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence

from ..sources.base import Source, SourceError
from ..sources.places import Root, real_place
from ..sources.remote import RemoteRoot
from .database import transaction
from .plan import TO_READ_AGAIN
from .queries import Run, runs
from .statistics import apply_success, utc_now
from .success import DEFAULT_SUCCESS, default_rule


def ensure_run(
    connection: sqlite3.Connection,
    source: Source,
    root: Root,
    name: str | None = None,
    suggested: str | None = None,
) -> int:
    """Return the id of the run at `root`, making its row when it is new, and keep how its source reads it.

    `name` is what the run is to be called, also where it is known already; `suggested` is for a new one, which gets a
    number where it is taken. Raises SourceError where another run has the `name`.
    """
    refuse_name(runs(connection), root, name)
    where = str(real_place(root))
    found = connection.execute("select id, name, source from runs where root = ?", (where,)).fetchone()
    if not found:
        return _make_run(connection, source, where, name or _free_name(connection, suggested or run_name(root)))
    run_id, old_name, old_source = found
    if old_source != source.name:
        raise SourceError(f"The run {root} is indexed as {old_source}, and reads as {source.name} now. Use --rebuild.")
    if name and name != old_name:
        connection.execute("update runs set name = ? where id = ?", (name, run_id))
    _keep_reading(connection, source, run_id)
    return int(run_id)


def _make_run(connection: sqlite3.Connection, source: Source, where: str, name: str) -> int:
    cursor = connection.execute(
        """
        insert into runs (name, root, source, tokenizer, mapping, step_kind, success_path, success_threshold,
            created_at)
        values (?, ?, ?, ?, ?, ?, ?, ?, ?)
        """,
        (name, where, source.name, *_how_read(source), *DEFAULT_SUCCESS, utc_now()),
    )
    return int(cursor.lastrowid or 0)


def _how_read(source: Source) -> tuple[str | None, str | None, str | None]:
    """Return what a run keeps of how its source reads it: tokenizer, mapping and kind of step."""
    mapping = getattr(getattr(source, "mapping", None), "text", None)
    return getattr(source, "tokenizer", None), mapping, getattr(source, "step_kind", None)


def _keep_reading(connection: sqlite3.Connection, source: Source, run_id: int) -> None:
    """Keep how the source of a known run reads it; what it reads differently from before is read again."""
    tokenizer, mapping, step_kind = _how_read(source)
    query = "select tokenizer, mapping from runs where id = ?"
    old_tokenizer, old_mapping = connection.execute(query, (run_id,)).fetchone()
    if mapping != old_mapping:
        # What an edited mapping says of files that have not changed is found by reading them again.
        connection.execute(f"update shards set {TO_READ_AGAIN} where run_id = ? and state <> 'gone'", (run_id,))
    if tokenizer and tokenizer != old_tokenizer:
        _read_texts_again(connection, run_id)
    if tokenizer or mapping:
        connection.execute(
            "update runs set tokenizer = coalesce(?, tokenizer), mapping = ?, step_kind = ? where id = ?",
            (tokenizer, mapping, step_kind, run_id),
        )


def _read_texts_again(connection: sqlite3.Connection, run_id: int) -> None:
    """Have the shards read again whose token ids another tokenizer, or none, has made into prompts."""
    connection.execute(
        f"""
        update shards set {TO_READ_AGAIN} where run_id = ? and state <> 'gone' and exists (
            select 1 from trajectories t where t.shard_id = shards.id and t.content_kind <> 'messages'
        )
        """,
        (run_id,),
    )


def refuse_name(known: Sequence[Run], root: Root, name: str | None) -> None:
    """Raise SourceError where another run than that at `root` is called `name`."""
    for run in known:
        if run.name == name and run.root != str(real_place(root)):
            raise SourceError(f"The name {name} is that of another run, {run.root}: give another one.")


def refuse_nested(known: Iterable[tuple[str, Root]], root: Root) -> None:
    """Raise SourceError where a new run lies in a run of the same index, or holds one: `known` are (name, root).

    A run is whatever lies at its root, and its trajectories are told apart by their ids within it. So the same files
    under two roots are two runs, and every count over both would be wrong.
    """
    here = real_place(root)
    others = [(name, other) for name, other in known if isinstance(other, RemoteRoot) == isinstance(here, RemoteRoot)]
    if any(here == other for _, other in others):
        return
    for name, other in others:
        if here.is_relative_to(other) or other.is_relative_to(here):
            what = "lies in" if here.is_relative_to(other) else "holds"
            raise SourceError(
                f"{root} {what} another run, {name} ({other}), and its rollouts would be counted twice: index one of "
                "them into another database."
            )


def naming(connection: sqlite3.Connection, root: Root, name: str | None = None) -> str | None:
    """Return what is to be told of the name that `ensure_run` is about to give a run; None where it is as expected."""
    where, wanted = str(real_place(root)), name or run_name(root)
    known = runs(connection)
    for run in known:
        if run.root == where:
            return f"it was called {run.name}" if name and name != run.name else None
    others = [run.root for run in known if run.name == wanted]
    return f"{wanted} is the name of another run, {others[0]}; --name gives this one its own" if others else None


def set_success(connection: sqlite3.Connection, run_id: int, path: str, threshold: float) -> None:
    """Set a run's success rule and apply it to what is indexed, without reading a file."""
    with transaction(connection):
        _apply(connection, run_id, (path, threshold), is_chosen=True)


def set_default_success(connection: sqlite3.Connection, run_id: int) -> None:
    """Bring the rule of a run back that it has while none is set, as `set_success` sets one."""
    with transaction(connection):
        _apply(connection, run_id, default_rule(connection, run_id), is_chosen=False)


def _apply(connection: sqlite3.Connection, run_id: int, rule: tuple[str, float], is_chosen: bool) -> None:
    connection.execute(
        "update runs set success_path = ?, success_threshold = ?, success_chosen = ? where id = ?",
        (*rule, is_chosen, run_id),
    )
    apply_success(connection, run_id)


def run_name(root: Root) -> str:
    """Return a short name for a run: its folder's, or that of the experiment around a folder of a fixed name."""
    fixed = {"rollouts", "run_default", "token_exports", "outputs", "evals", "batches"}
    path = real_place(root)
    while path.name in fixed and path.parent != path:
        path = path.parent
    return path.name or "run"


def _free_name(connection: sqlite3.Connection, wanted: str) -> str:
    name, number = wanted, 2
    while connection.execute("select 1 from runs where name = ?", (name,)).fetchone():
        name, number = f"{wanted} ({number})", number + 1
    return name
