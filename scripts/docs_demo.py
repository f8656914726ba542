"""The demo run for the documentation: every output shown there is made by running what stands above it."""

from __future__ import annotations

import atexit
import contextlib
import io
import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

WIDTH = 60


@cache
def demo() -> Path:
    """Return a folder in which the demo was made, once per process, at whose end it is removed."""
    folder = Path(tempfile.mkdtemp(prefix="rltracer-docs-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    os.environ["RLTRACER_HOME"] = str(folder / "home")
    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    with here(folder), contextlib.redirect_stdout(io.StringIO()):
        command("rltracer demo demo --no-serve")
    return folder


@contextlib.contextmanager
def here(folder: Path) -> Iterator[None]:
    """Work in a folder, as a reader would, so that outputs name no other place."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def command(line: str) -> str:
    """Return what one of our commands prints."""
    from shlex import split

    from click.testing import CliRunner

    from rltracer_sqlite.cli import group
    from rltracer_sqlite.cli.index import command as index

    program, *arguments = split(line)
    runner = CliRunner(env={"COLUMNS": "80"})
    result = runner.invoke({"rltracer": group, "rltracer-index": index}[program], arguments, prog_name=program)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


def command_lines() -> list[str]:
    """Return every command as it is typed, those of a group behind it."""
    import click

    from rltracer_sqlite.cli import COMMANDS, group

    lines = ["rltracer", "rltracer-index"]
    for name in sorted(COMMANDS.keys() - {"index"}):
        found = group.get_command(click.Context(group), name)
        inner = sorted(found.commands) if isinstance(found, click.Group) else []
        lines += [f"rltracer {name}", *(f"rltracer {name} {word}" for word in inner)]
    return lines


def shell(*lines: str, cut: int | None = None) -> str:
    """Return a Markdown block with commands and their real output, cut after `cut` lines."""
    folder = demo()
    shown = []
    with here(folder):
        for line in lines:
            printed = [_steady(text.rstrip(), folder) for text in command(line).rstrip().splitlines()]
            left = len(printed) - cut if cut else 0
            shown += [f"$ {line}", *([*printed[:cut], f"… {left} more lines"] if left > 0 else printed)]
    return "```\n" + "\n".join(shown) + "\n```"


def _steady(line: str, folder: Path) -> str:
    # Times differ from machine to machine, and a check of the pages must not.
    return re.sub(r"in \d+\.\d+ s\b", "in 0.1 s", line.replace(f"{folder}/", ""))


@cache
def two_runs() -> Path:
    """Return an index `two.sqlite` of the demo and of a baseline, which is the first four steps of it."""
    folder = demo() / "demo"
    later = shutil.ignore_patterns(*(f"step_{step}" for step in range(5, 9)), "monitors", "*.sqlite*")
    shutil.copytree(folder / "run", folder / "baseline", ignore=later)
    with here(demo()):
        command("rltracer-index demo/two.sqlite demo/run --name demo")
        command("rltracer-index demo/two.sqlite demo/baseline")
    return folder / "two.sqlite"


def query(sql: str, database: str = "demo.sqlite") -> str:
    """Return a Markdown block with a query and its real result on the demo, or on `two.sqlite`."""
    connection = sqlite3.connect(two_runs() if database == "two.sqlite" else demo() / "demo" / database)
    cursor = connection.execute(sql)
    names = [column[0] for column in cursor.description]
    rows = [[_cell(value) for value in row] for row in cursor]
    connection.close()
    table = ["| " + " | ".join(names) + " |", "|" + " --- |" * len(names)]
    table += ["| " + " | ".join(row) + " |" for row in rows]
    return f"```sql\n{sql.strip()}\n```\n\n" + "\n".join(table)


def recipe(title: str) -> str:
    """Return a query of the cookbook, found by its title, with its real result on the demo."""
    page = (Path(__file__).resolve().parents[1] / "docs/cookbook.md").read_text(encoding="utf-8")
    [sql] = re.findall(rf"^### \d+\. {re.escape(title)}$.*?^```sql\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    return query(sql)


def value(sql: str) -> Any:
    """Return the first value that a query gives on the demo."""
    connection = sqlite3.connect(demo() / "demo" / "demo.sqlite")
    [found, *_] = connection.execute(sql).fetchone()
    connection.close()
    return found


def _cell(value: Any) -> str:
    if value is None:
        return ""
    text = f"{value:.3g}" if isinstance(value, float) else str(value)
    text = text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"
    return text.replace("|", "\\|")


def python(code: str) -> str:
    """Return a Markdown block with a Python example and what it prints on the demo."""
    printed = io.StringIO()
    with here(demo()), contextlib.redirect_stdout(printed):
        exec(compile(code, "example", "exec"), {})
    return f"```python\n{code.strip()}\n```\n\n```\n{printed.getvalue().rstrip()}\n```"
