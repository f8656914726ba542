"""What is measured, in the order of the table. To add an operation, append it to the list of its file."""

from __future__ import annotations

from . import analysing, exporting, indexing, other_tools, reading, refreshing
from .operation import Operation


def all_operations() -> list[Operation]:
    """Return every operation in the order of the table."""
    modules = (indexing, reading, refreshing, analysing, exporting, other_tools)
    return [operation for module in modules for operation in module.OPERATIONS]
