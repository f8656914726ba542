"""`rltracer sources`: the formats that can be read, their mappings, and a mapping for a format of one's own."""

from __future__ import annotations

import inspect
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import CONTEXT, Group
from .places import FILE
from .say import say
from .visible import printable

if TYPE_CHECKING:
    from ..sources.base import Entry
    from ..sources.table import TableSource

TRIED = 2000  # rows that a proposed mapping is tried on


@click.group(cls=Group, context_settings=CONTEXT, invoke_without_command=True)
@click.pass_context
def command(ctx: click.Context) -> None:
    """List the formats that can be read, show how one is read, or propose how to read a file of your own.

    \b
    Examples:
      rltracer sources
      rltracer sources show verl
      rltracer sources guess rollouts.jsonl > my.toml
      rltracer-index run.sqlite /data/my-run --mapping my.toml
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_sources)


@command.command("list")
def list_sources() -> None:
    """List the installed sources in the order in which they are tried."""
    from ..sources import source_named, source_names

    names = source_names()
    width = max(map(len, names))
    for name in names:
        source = source_named(name)
        mapping = getattr(source, "mapping", None)
        say(f"{name:{width}}  {mapping.title if mapping else _first_line(source)}", hanging=width + 2)


@command.command("show")
@click.argument("name")
def show(name: str) -> None:
    """Print the mapping of a source as TOML: a mapping of your own can start from it."""
    from ..sources import source_named
    from ..sources.base import SourceError

    source = source_named(name)
    mapping = getattr(source, "mapping", None)
    if mapping is None:
        where = type(source).__module__
        raise SourceError(f"The source {name} is code, not a mapping: {where}. {_first_line(source)}")
    click.echo(printable(mapping.text.rstrip("\n")))


@command.command("guess")
@click.argument("file", type=FILE)
def guess(file: Path) -> None:
    """Propose a mapping for FILE from its first records. The mapping is printed, what to check goes to stderr."""
    from ..sources import missing, source_for
    from ..sources.base import SourceError
    from ..sources.table.guess import guess_mapping

    if not file.is_file():
        raise SourceError(f"{file} is no file: give one of its tables." if file.exists() else missing(file, "The file"))
    try:
        known = source_for(file).name
    except SourceError:
        known = None
    if known:
        say(f"{file} is read by the source {known}; it needs no mapping of its own.", err=True)
    proposed = guess_mapping(file)
    click.echo(printable(proposed.toml.rstrip("\n")))
    for note in [*proposed.notes, *_tried(file, proposed.toml)]:
        say(f"- {note}", err=True)


def _tried(file: Path, toml: str) -> list[str]:
    """Say what the first rows of a file give when they are read by a mapping."""
    from ..sources.base import SourceError
    from ..sources.table import TableSource
    from ..sources.table.check import check_mapping
    from ..sources.table.mapping_file import parse_mapping

    try:
        source = TableSource(parse_mapping(toml, "the proposed mapping"))
        entries, problem = _read(source, file)
        missed = check_mapping(file, source.mapping)
    except SourceError as error:
        return [f"tried on the file: {error}"]
    if not entries:
        return [f"tried on the file: no trajectory ({problem})" if problem else "tried on the file: no trajectory"]
    rewards = [entry.reward for entry in entries if entry.reward is not None]
    mean = f"mean reward {sum(rewards) / len(rewards):.4g}" if rewards else "no rewards"
    mean += f" over {len(rewards):,}" if 0 < len(rewards) < len(entries) else ""
    steps = {entry.step for entry in entries if entry.step is not None}
    prompts = {entry.prompt_key for entry in entries}
    counts = f"trajectories {len(entries):,}, prompts {len(prompts):,}, steps {len(steps):,}, {mean}"
    notes = [f"tried on its first rows: {counts}", f"the first prompt: {entries[0].preview[:100]}"]
    return [*notes, *missed, *([f"a problem: {problem}"] if problem else [])]


def _read(source: TableSource, file: Path) -> tuple[list[Entry], str | None]:
    from ..sources.base import Entry, Problem

    entries: list[Entry] = []
    problem = None
    for shard in source.shards(file):
        # Bounded by what is found and not by the entries: a file may hold none of them.
        for found in islice(source.scan(file, shard), TRIED):
            if isinstance(found, Entry):
                entries.append(found)
            elif isinstance(found, Problem):
                problem = problem or found.reason
    return entries, problem


def _first_line(source: object) -> str:
    return (inspect.getdoc(type(source)) or "").split("\n")[0]
