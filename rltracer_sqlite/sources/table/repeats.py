"""Rows that a file repeats from the end of the file before it.

TRL logs a queue of the last rows that it does not empty, so consecutive files overlap (GRPOTrainer.log). Rows
elsewhere that happen to be equal are different samples: only the end of one file and the beginning of the next count.
"""

from __future__ import annotations

from ..base import SourceError
from ..files import open_shard
from ..parquet_file import ParquetError
from ..places import Root
from .mapping import Mapping
from .parquet import parquet_rows
from .rows import encoded


def repeated_rows(root: Root, path: str, before: str, mapping: Mapping) -> int:
    """Return how many rows at the beginning of a Parquet shard repeat the last rows of the shard `before`."""
    steps = {column for shape in mapping.shapes if "step" in shape.roles for column in shape.roles["step"].columns}
    try:
        earlier, later = _rows(root, before, steps), _rows(root, path, steps)
    except (ParquetError, SourceError, OSError):
        return 0
    for length in range(min(len(earlier), len(later)), 0, -1):
        if earlier[-length:] == later[:length]:
            # A single equal row may be chance; a whole file is not.
            return length if length == len(later) or len(set(later[:length])) > 1 else 0
    return 0


def _rows(root: Root, path: str, left_out: set[str]) -> list[bytes]:
    with open_shard(root, path) as reader:
        rows = parquet_rows(reader, path)
        return [encoded({name: cell for name, cell in row.cells.items() if name not in left_out}) for row in rows]
