"""`rltracer-index`: index runs into a SQLite database."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import printable, run

if TYPE_CHECKING:
    import sqlite3

    from ..index.refresh import Progress, Refreshed


@click.command(context_settings={"help_option_names": ["-h", "--help"]})
@click.argument("database", type=click.Path(path_type=Path))
@click.argument("runs", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="RUN...")
@click.option("--steps", metavar="N-M", help="Read these steps only, for example 1-100, 21 or 40- (to the end).")
@click.option("--discover", is_flag=True, help="List the steps of a run without reading any of its files.")
@click.option("--name", help="A name for the run. Default: the name of its folder.")
@click.option("--success", metavar="PATH>=VALUE", help="What counts as a success, for example 'reward>=0.5'.")
@click.option("--tokenizer", metavar="PATH", help="A tokenizer.json, or its folder, for files that hold token ids.")
@click.option(
    "--rebuild", is_flag=True, help="Make the database anew; the old one stays until the new one is complete."
)
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def command(
    database: Path,
    runs: tuple[Path, ...],
    steps: str | None,
    discover: bool,
    name: str | None,
    success: str | None,
    tokenizer: str | None,
    rebuild: bool,
    quiet: bool,
) -> None:
    """Index one or more training runs into DATABASE, a SQLite file that Datasette can serve.

    RUN is an experiment folder, its run_default or rollouts folder, a folder of evaluations, or a single file.
    The index keeps where each trajectory is and what it can be selected by; the text stays in the run's files,
    which are never written to. Run it again to add what is new: unchanged files are not read.

    \b
    Examples:
      rltracer-index run.sqlite /data/my-run
      rltracer-index both.sqlite /data/run-a /data/run-b --steps 1-100
      rltracer-index run.sqlite /data/my-run --success 'rewards.correct.score>=1'
    """
    wanted = parse_steps(steps)
    rule = parse_success(success) if success else None
    if name and len(runs) > 1:
        raise click.UsageError("--name names one run; index several runs one after the other.")
    started = time.perf_counter()
    target = Path(f"{database}.rebuilding") if rebuild else database
    empty = _index(target, runs, wanted, discover, name, rule, tokenizer, quiet, rebuild, started, database)
    if rebuild:
        from ..index.database import replace_database

        replace_database(target, database)
    sys.exit(1 if empty else 0)


def main() -> None:
    """Run `rltracer-index`."""
    run(command)


def parse_steps(text: str | None) -> Callable[[int | None], bool]:
    """Return the test for a step that `--steps` means; a file that does not tell its step is always read."""
    if text is None:
        return lambda step: True
    match = re.fullmatch(r"(\d*)(-?)(\d*)", text.strip())
    if not match or text.strip() in ("", "-"):
        raise click.BadParameter(f"{text!r} is not a range of steps; write 1-100, 21 or 40-.", param_hint="--steps")
    first = int(match[1] or 0)
    last = int(match[3]) if match[3] else (first if not match[2] else sys.maxsize)
    if last < first:
        raise click.BadParameter(f"{text!r} ends before it begins.", param_hint="--steps")
    return lambda step: step is None or first <= step <= last


def parse_success(text: str) -> tuple[str, float]:
    """Return (path, threshold) of a success rule such as 'rewards.reward.score >= 0.5'."""
    match = re.fullmatch(r"\s*([^<>=\s]+)\s*>=\s*([-+.\deE]+)\s*", text)
    try:
        if match:
            return match[1], float(match[2])
    except ValueError:
        pass
    raise click.BadParameter(
        f"{text!r} is no rule; write PATH>=VALUE, for example reward>=0.5.", param_hint="--success"
    )


def _index(
    target: Path,
    roots: tuple[Path, ...],
    steps: Callable[[int | None], bool],
    discover: bool,
    name: str | None,
    rule: tuple[str, float] | None,
    tokenizer: str | None,
    quiet: bool,
    rebuild: bool,
    started: float,
    shown: Path,
) -> bool:
    """Index each run into `target`, print the summary, and say whether nothing was found in a run that is not empty."""
    from ..index.database import finish_writing, open_for_writing, remove_database
    from ..roots import remember_root
    from ..sources import source_for

    sources = [(root, source_for(root, tokenizer)) for root in roots]  # refuse a bad path before touching the database
    if rebuild:
        remove_database(target)
    existed = target.exists()
    connection = open_for_writing(target)
    results = []
    try:
        for root, source in sources:
            with _progress_bar(root, quiet) as progress:
                results.append(_index_run(connection, source, root, name, rule, tokenizer, steps, discover, progress))
            try:
                remember_root(root)
            except OSError as error:
                click.echo(f"Note: the list of roots cannot be written ({error}); see rltracer roots --help.", err=True)
        report = None if quiet else _report(connection, results, time.perf_counter() - started, shown, discover)
        empty = [message for result in results if (message := _nothing(connection, result, discover))]
    finally:
        finish_writing(connection)
    for message in empty:
        click.echo(f"Error: {printable(message)}", err=True)
    if empty and not existed:
        remove_database(target)
    if report and not empty:
        click.echo(report)
    return bool(empty)


def _index_run(
    connection: sqlite3.Connection,
    source: object,
    root: Path,
    name: str | None,
    rule: tuple[str, float] | None,
    tokenizer: str | None,
    steps: Callable[[int | None], bool],
    discover: bool,
    progress: Progress | None,
) -> Refreshed:
    from ..index.refresh import refresh_run
    from ..index.runs import ensure_run, set_success

    run_id = ensure_run(connection, source.name, root, name, tokenizer)  # type: ignore[attr-defined]
    if rule:
        set_success(connection, run_id, *rule)
    return refresh_run(connection, source, root, run_id, steps, discover, progress)  # type: ignore[arg-type]


class _progress_bar:
    """A bar on a terminal, nothing in a pipe or with --quiet."""

    def __init__(self, root: Path, quiet: bool) -> None:
        self.shown = not quiet and sys.stderr.isatty()
        self.label = printable(root.name or str(root))[:30]
        self.bar: object | None = None

    def __enter__(self) -> Progress | None:
        return self._update if self.shown else None

    def _update(self, read: int, total: int) -> None:
        width, share = 30, read / total if total else 1.0
        filled = "#" * int(width * share)
        text = f"\r{self.label} [{filled:<{width}}] {size(read)} of {size(total)}"
        click.echo(text[:79].ljust(79), err=True, nl=False)

    def __exit__(self, *error: object) -> None:
        if self.shown:
            click.echo("\r" + " " * 79 + "\r", err=True, nl=False)


def _report(
    connection: sqlite3.Connection, results: list[Refreshed], seconds: float, database: Path, discover: bool
) -> str:
    lines = []
    for result in results:
        lines += _run_lines(connection, result, discover)
    read = sum(result.read_bytes for result in results)
    lines.append(f"Read {size(read)} in {seconds:.2f} s. Open it with:")
    lines.append(f"  datasette {_shell(database)} --setting suggest_facets off")
    return "\n".join(printable(line) for line in lines)


def _run_lines(connection: sqlite3.Connection, result: Refreshed, discover: bool) -> list[str]:
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
    lines += [f"  left aside: {file}: {reason}" for file, reason in list(result.aside.items())[:10]]
    if len(result.aside) > 10:
        lines.append(f"  left aside: {len(result.aside) - 10} more files, see the table shards")
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
            (select coalesce(sum(size), 0) from shards where run_id = :run)
        """,
        {"run": run_id},
    ).fetchone()
    return dict(zip(("trajectories", "prompt_groups", "steps", "unread", "problems", "bytes"), row, strict=True))


def _nothing(connection: sqlite3.Connection, result: Refreshed, discover: bool) -> str | None:
    """Return what was found instead, where a run that is not empty gave no trajectory."""
    count = counts(connection, result.run_id)
    if discover or count["trajectories"]:
        return None
    root = connection.execute("select root from runs where id = ?", (result.run_id,)).fetchone()[0]
    found = connection.execute(
        "select s.path, p.reason from problems p join shards s on s.id = p.shard_id where s.run_id = ? limit 3",
        (result.run_id,),
    ).fetchall()
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


def _shell(path: Path) -> str:
    from shlex import quote

    return quote(str(path))


if __name__ == "__main__":
    main()
