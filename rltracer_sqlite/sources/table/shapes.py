"""Which of a mapping's shapes a record has, by its columns and by what they hold."""

from __future__ import annotations

from .mapping import Content, Mapping, Shape
from .rows import Row

TEXT = ("text",)
LISTED = ("list", "text", "object")  # a text may be JSON, or the words of one speaker


def shape_of(row: Row, mapping: Mapping) -> Shape | None:
    """Return the first shape that a record fits, or None."""
    return next((shape for shape in mapping.shapes if _fits(row, shape)), None)


def why_none(row: Row, mapping: Mapping) -> str:
    """Say what a record lacks to be of a mapping's shapes, and what it has instead."""
    for aside in mapping.asides:
        if aside.test and aside.test.fits(row.has):
            return aside.says
    missing = min((_missing(row, shape) for shape in mapping.shapes), key=len)
    names = [name[:40] for name in row.cells]
    held = ", ".join(names[:8]) + (" …" if len(names) > 8 else "")
    lack = f"no column {', '.join(missing)}" if missing else f"its columns do not hold what {mapping.name} writes"
    return f"{lack}; its columns: {held}" if names else "an object without columns"


def _missing(row: Row, shape: Shape) -> list[str]:
    parts = [" or ".join(role.columns) for role in shape.content.needed if not any(map(row.has, role.columns))]
    return list(dict.fromkeys([*(name for name in shape.test.has if not row.has(name)), *parts]))


def _fits(row: Row, shape: Shape) -> bool:
    if not shape.test.fits(row.has):
        return False
    if shape.layout != "rows":
        return all(row.kind(name) == "list" for name in shape.test.has)
    # The first of the lists is that of the completions; the others need not be recorded.
    is_grouped = not shape.explode or row.kind(shape.explode[0]) == "list"
    return is_grouped and _holds(row, shape.content, shape.explode)


def _holds(row: Row, content: Content, lists: tuple[str, ...]) -> bool:
    """Say whether the columns of the conversation hold what the kind of content needs."""
    text = content.kind in ("text", "rendered", "stripped")
    for role in content.needed:
        kinds = [row.kind(column) for column in role.columns if column not in lists]
        kind = next((kind for kind in kinds if kind != "null"), "null" if kinds else "list")
        if kind not in (TEXT if text and kinds else LISTED):
            return False
    if content.kind == "messages" and content.messages is not None:
        kinds = [row.kind(column) for column in content.messages.columns]
        return "list" in kinds or "text" in kinds
    return True
