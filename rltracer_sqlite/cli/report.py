"""What indexing tells: the progress bar, the summary, and what was found where nothing was."""

from __future__ import annotations

import sqlite3
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import printable

if TYPE_CHECKING:
    from ..index.refresh import Progress, Refreshed
    from ..sources.places import Root

MAX_ASIDE = 10


class ProgressBar:
    """A bar on a terminal, nothing in a pipe or with --quiet: `with ProgressBar(...) as progress:`."""

    def __init__(self, root: Root, quiet: bool) -> None:
        self.shown = not quiet and sys.stderr.isatty()
        self.label = printable(root.name or str(root))[:30]

    def __enter__(self) -> Progress | None:
        return self._update if self.shown else None

    def _update(self, read: int, total: int) -> None:
        width, share = 30, min(read / total, 1.0) if total else 1.0
        filled = "#" * int(width * share)
        text = f"{self.label} [{filled:<{width}}] {size(read)} of {size(total)}"
        click.echo("\r" + text[:79].ljust(79), err=True, nl=False)

    def __exit__(self, *error: object) -> None:
        if self.shown:
            click.echo("\r" + " " * 79 + "\r", err=True, nl=False)


def summary(
    connection: sqlite3.Connection, results: list[Refreshed], seconds: float, database: Path, discover: bool
) -> str:
    """Return the closing lines of an indexing: each run, what was left aside, and how to open the database."""
    from shlex import quote

    lines = []
    for result in results:
        lines += run_lines(connection, result, discover)
    read = sum(result.read_bytes for result in results)
    lines.append(f"Read {size(read)} in {seconds:.2f} s. Open it with:")
    lines.append(f"  datasette {quote(str(database))} --setting suggest_facets off")
    return "\n".join(printable(line) for line in lines)


def run_lines(connection: sqlite3.Connection, result: Refreshed, discover: bool = False) -> list[str]:
    """Return what an indexing did with one run."""
    name, path, threshold = connection.execute(
        "select name, success_path, success_threshold from runs where id = ?", (result.run_id,)
    ).fetchone()
    count = counts(connection, result.run_id)
    if discover:
        return [f"{name}: {count['steps']:,} steps discovered, {count['unread']:,} of them not read yet"]
    lines = [
        f"{name}: {count['trajectories']:,} trajectories, {count['prompt_groups']:,} prompt groups, "
        f"{count['steps']:,} steps, {count['problems']:,} problems; success: {path} >= {threshold:g}"
    ]
    lines += [f"  waiting: the last line of {file} is unfinished; it is read when complete" for file in result.waiting]
    lines += [f"  gone: {file} has vanished; its rows are kept and flagged" for file in result.gone]
    lines += [f"  left aside: {file}: {reason}" for file, reason in list(result.aside.items())[:MAX_ASIDE]]
    if len(result.aside) > MAX_ASIDE:
        lines.append(f"  left aside: {len(result.aside) - MAX_ASIDE} more files, see the table shards")
    lines += [f"  left aside: {count:,} files: {reason}" for reason, count in result.unused.items()]
    lines += [f"  {note}" for note in result.notes]
    if count["trajectories"] and not count["scored"]:
        lines.append(f"  unscored: no trajectory records {path}; --success sets another rule")
    if result.removed:
        lines.append(f"  removed: {result.removed:,} rows whose records a rewritten file no longer holds")
    return lines


def counts(connection: sqlite3.Connection, run_id: int) -> dict[str, int]:
    """Return how many trajectories, prompt groups, steps, unread steps, problems and bytes a run has in the index."""
    row = connection.execute(
        """
        select (select count(*) from trajectories where run_id = :run),
            (select count(*) from prompt_groups where run_id = :run),
            (select count(distinct step) from steps where run_id = :run and step is not null),
            (select count(distinct step) from unread_steps where run_id = :run and step is not null),
            (select count(*) from problems p join shards s on s.id = p.shard_id where s.run_id = :run),
            (select coalesce(sum(size), 0) from shards where run_id = :run),
            (select coalesce(sum(scored), 0) from prompt_groups where run_id = :run)
        """,
        {"run": run_id},
    ).fetchone()
    return dict(
        zip(("trajectories", "prompt_groups", "steps", "unread", "problems", "bytes", "scored"), row, strict=True)
    )


def nothing_found(connection: sqlite3.Connection, result: Refreshed, discover: bool) -> str | None:
    """Return what was found instead, where a run that is not empty gave no trajectory."""
    count = counts(connection, result.run_id)
    if discover or count["trajectories"]:
        return None
    root = connection.execute("select root from runs where id = ?", (result.run_id,)).fetchone()[0]
    found = connection.execute(
        "select s.path, p.reason from problems p join shards s on s.id = p.shard_id where s.run_id = ? limit 3",
        (result.run_id,),
    ).fetchall()
    if not found and not connection.execute("select 1 from shards where run_id = ?", (result.run_id,)).fetchone():
        return f"No trajectories in {root}: no file of it is of the steps that were asked for."
    if not found:
        return f"No trajectories in {root}: its files hold no complete record yet."
    what = "; ".join(f"{path}: {reason}" for path, reason in found)
    return f"No trajectories in {root}. Found instead: {what}"


def size(number: float) -> str:
    """Return a number of bytes for people, in powers of 1000."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if number < 1000:
            return f"{number:.0f} {unit}" if unit == "bytes" else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} TB"
