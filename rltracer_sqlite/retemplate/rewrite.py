"""Rewriting SFT files: what prompts are wanted, which source rows they came from, and the rows under the new prompt.

The prompts of all inputs are read first, as hashes in a temporary database; then the sources, of which only what is
wanted is kept there; then the inputs again, to be written. So memory does not grow with any of the files.
"""

from __future__ import annotations

import json
import os
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ..export.lines import format_of, line, packed
from ..export.write import refuse_name, replacing
from .files import TemplateSource, read_rows, source_rows
from .templates import PromptTemplate, RetemplateError, prefix_key, source_values, split_row

TABLES = """
create table wanted (key blob primary key, first text, prefix text, source text) without rowid;
"""


def retemplate(
    inputs: Sequence[Path], outputs: Sequence[Path], sources: Sequence[TemplateSource], template: Path
) -> dict[str, Any]:
    """Write each input under the new template to the output of the same place, and return a report.

    Inputs and outputs are JSONL, compressed where their names end in .gz or .zst. Every row keeps everything from
    its first answer on, and all columns besides `messages` and `tools`. Raises RetemplateError where a row has no
    source row, or several with different prompts, and ExportError where an output cannot be written; then none is.
    """
    check_outputs(inputs, outputs)
    if not sources:
        raise RetemplateError("A source is needed: a Parquet file, and the template that its prompts were made with.")
    new = PromptTemplate.load(template)
    old = [PromptTemplate.load(source.template) for source in sources]
    connection = sqlite3.connect("", isolation_level=None)
    try:
        connection.execute("pragma journal_mode = off")
        connection.executescript(TABLES)
        for path in inputs:
            _note_wanted(connection, path)
        counted = [_find(connection, source, first, new) for source, first in zip(sources, old, strict=True)]
        _refuse_missing(connection)
        with ExitStack() as stack:
            written = [_rewrite(connection, *pair, new, stack) for pair in zip(inputs, outputs, strict=True)]
        matched = connection.execute("select count(*) from wanted").fetchone()[0]
    finally:
        connection.close()
    rewrites = [
        {"input": str(source), "output": str(target), "rows": count}
        for source, target, count in zip(inputs, outputs, written, strict=True)
    ]
    found = [
        {"parquet": str(source.parquet), "template": str(source.template), "sha256": first.sha256, **count}
        for source, first, count in zip(sources, old, counted, strict=True)
    ]
    made = {"path": str(template), "sha256": new.sha256, "tools": len(new.tools)}
    return {"rewrites": rewrites, "rows": sum(written), "prompts": matched, "template": made, "sources": found}


def check_outputs(inputs: Sequence[Path], outputs: Sequence[Path]) -> None:
    """Raise RetemplateError or ExportError unless there is an output for each input, named as what is written."""
    if not inputs or len(inputs) != len(outputs):
        raise RetemplateError(f"{len(inputs)} inputs and {len(outputs)} outputs: give one output for each input.")
    for target in outputs:
        refuse_name(target)
        if format_of(target) == "parquet":
            raise RetemplateError(f"{target} is named as Parquet: retemplate writes JSONL.")
    if len({os.path.realpath(target) for target in outputs}) < len(outputs):
        raise RetemplateError("Two outputs are the same file; give one output for each input.")


def _note_wanted(connection: sqlite3.Connection, path: Path) -> None:
    def keys() -> Iterator[tuple[bytes, str]]:
        for number, row in read_rows(path):
            prompt, _ = _split(row, path, number)
            yield prefix_key(prompt), f"row {number:,} of {path}"

    connection.execute("begin")
    try:
        connection.executemany("insert or ignore into wanted (key, first) values (?, ?)", keys())
    finally:
        connection.execute("commit")


def _find(
    connection: sqlite3.Connection, source: TemplateSource, old: PromptTemplate, new: PromptTemplate
) -> dict[str, int]:
    """Render each source row under both templates, and keep the new prompt where the old one is wanted."""
    rows = used = 0
    connection.execute("begin")
    try:
        for recorded in source_rows(source):
            rows += 1
            where = f"row {rows:,} of {source.parquet}"
            try:
                variants = source_values(json.loads(recorded) if isinstance(recorded, (str, bytes)) else recorded)
            except (RetemplateError, ValueError, RecursionError) as error:
                raise RetemplateError(f"{where} cannot be used: {error}.") from None
            rendered = [(prefix_key(old.render(values)), json.dumps(new.render(values))) for values in variants]
            kept = [_keep(connection, key, prefix, where) for key, prefix in rendered]
            used += any(kept)
    finally:
        connection.execute("commit")
    return {"rows": rows, "used": used}


def _keep(connection: sqlite3.Connection, key: bytes, prefix: str, where: str) -> bool:
    """Keep a new prompt where its old one is wanted, and say whether it is. Raises RetemplateError for a second one."""
    known = connection.execute("select first, prefix, source from wanted where key = ?", (key,)).fetchone()
    if known is None:
        return False
    first, other, other_where = known
    if other is None:
        connection.execute("update wanted set prefix = ?, source = ? where key = ?", (prefix, where, key))
    elif other != prefix:
        raise RetemplateError(
            f"The prompt of {first} came from {other_where} or from {where}, which give different new prompts: "
            "the old template leaves out what tells them apart."
        )
    return True


def _refuse_missing(connection: sqlite3.Connection) -> None:
    count, first = connection.execute("select count(*), min(first) from wanted where prefix is null").fetchone()
    if count:
        raise RetemplateError(
            f"{count:,} {'prompt has' if count == 1 else 'prompts have'} no source row, first that of {first}. "
            "Is the template the one that these prompts were made with, and are all sources given?"
        )


def _rewrite(connection: sqlite3.Connection, source: Path, target: Path, new: PromptTemplate, stack: ExitStack) -> int:
    """Write one file beside its target; the targets are replaced together, when the stack is left without an error."""
    tools = json.dumps(list(new.tools), ensure_ascii=False) if new.tools else None
    count = 0

    def rewritten() -> Iterator[bytes]:
        nonlocal count
        for number, row in read_rows(source):
            prompt, rest = _split(row, source, number)
            found = connection.execute("select prefix from wanted where key = ?", (prefix_key(prompt),)).fetchone()
            if found is None:
                raise RetemplateError(f"{source} has changed while it was read.")
            row["messages"] = [*json.loads(found[0]), *rest]
            row.pop("tools", None)
            if tools is not None:
                row["tools"] = tools
            count += 1
            yield line(row)

    file = stack.enter_context(replacing(target))
    for chunk in packed(rewritten(), format_of(target)):
        file.write(chunk)
    return count


def _split(row: Any, path: Path, number: int) -> tuple[list[Any], list[Any]]:
    try:
        return split_row(row)
    except RetemplateError as error:
        raise RetemplateError(f"Row {number:,} of {path} cannot be used: {error}.") from None
