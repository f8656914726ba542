"""What a person is told of an error: what is at fault, and what can be done."""

from __future__ import annotations

import os
import sqlite3
import sys
from pathlib import Path
from traceback import walk_tb

import click

from ..arguments import is_text, shown
from ..errors import SourceError
from ..index.database import IndexFileError, open_index
from ..index.soundness import odd_values

# An index of an earlier version lacks what was added since; the next indexing adds it, and keeps what is there.
EARLIER = "The index lacks what this version reads ({}). Index its run again, which brings it up to date"
# What SQLite says when the machine, and not the database, is at fault; nothing that was written before is lost.
MACHINE = {
    "disk is full": "There is no room left to write to ({}). Make room and run this again: it goes on from here.",
    "disk I/O error": "The index or its disk cannot be read or written ({}). When it can, run this again.",
    "readonly database": "The index cannot be written to ({}): its folder or its disk is read-only.",
    "database is locked": "The index is in use by another program ({}). Run this again when that is done.",
}


def explained(error: Exception) -> str | None:
    """Return the sentence for an error that a person can mend, or None for what is a bug."""
    if isinstance(error, (SourceError, IndexFileError)):
        return str(error)
    if isinstance(error, sqlite3.Error):
        return _explained_by_sqlite(str(error))
    if isinstance(error, OSError) and _is_of_output(error):
        return f"What is printed cannot be written: {error.strerror or error}."
    if isinstance(error, OSError):
        return f"{error.filename or 'The run or the index'} cannot be used: {error.strerror or error}."
    if isinstance(error, ValueError) and (odd := _no_text(sys.argv[1:])):
        return f"{shown(odd)} among the arguments is not UTF-8: nothing in an index is called so."
    return _damage(sys.argv[1:])


def _is_of_output(error: OSError) -> bool:
    """Say whether an error came up while something was printed: of its stream it says nothing."""
    frames = [frame.f_code for frame, _ in walk_tb(error.__traceback__)]
    return bool(frames) and frames[-1] is click.echo.__code__


def _no_text(arguments: list[str]) -> str | None:
    """Return the first argument that is neither text nor the path of a file, which need not be text; None for none."""
    return next((one for one in arguments if not is_text(one) and not os.path.lexists(one)), None)


def _damage(arguments: list[str]) -> str | None:
    """Return what is wrong with an index among the arguments of a command that failed, or None where nothing is."""
    for argument in arguments:
        try:
            connection = open_index(Path(argument))
        except (IndexFileError, OSError, ValueError):
            continue
        odd = odd_values(connection)
        connection.close()
        if odd is not None:
            return f"{argument} is damaged: {odd}. Make it again with rltracer-index --rebuild."
    return None


def _explained_by_sqlite(error: str) -> str:
    for said, sentence in MACHINE.items():
        if said in error:
            return sentence.format(error)
    if error.startswith("no such column"):
        return f"{EARLIER.format(error)}; where that does not help, make it again with --rebuild."
    # A database that was damaged, or changed by hand; it can be made again from the files.
    return f"The index cannot be used: {error}. Make it again with --rebuild."
