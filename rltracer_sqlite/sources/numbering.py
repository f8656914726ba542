"""What the number of a record in its file is of: a line, a row of a table, or a sequence of token ids."""

from __future__ import annotations

from .base import PACKED

ROWS = (".parquet", ".sqlite", ".sqlite3", ".db")
SEQUENCES = (".bin", ".pt")


def numbered(file: str, line: int | None, item: int | None) -> str:
    """Return where in its file a record is, as a person finds it: 'line 12', 'row 8', 'sequence 3 of micro batch 1'.

    `line` counts the records of the file from 1 and `item` what is in one of them from 0, as the index has them.
    Returns an empty text where neither is known.
    """
    # An index that nobody vouched for may hold anything.
    line, item = (number if isinstance(number, int) else None for number in (line, item))
    name, inside = str(file).removesuffix(PACKED).lower(), "" if item is None else f"trajectory {item + 1:,} in it"
    if name.endswith(".pt") and item is not None:  # counted through the whole file
        return f"sequence {item + 1:,}"
    if line is None:
        return "" if item is None else f"trajectory {item + 1:,} of the file"
    if name.endswith(SEQUENCES):
        return f"sequence {line:,}" if item is None else f"sequence {item + 1:,} of micro batch {line:,}"
    return " · ".join(part for part in (f"{'row' if name.endswith(ROWS) else 'line'} {line:,}", inside) if part)
