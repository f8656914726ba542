"""Which of a mapping's shapes a record has, by its columns and by what they hold."""

from __future__ import annotations

from .column_paths import is_inside, meant, names_in
from .mapping import Content, Mapping, Shape
from .rows import Row

TEXTS = ("text", "rendered", "stripped")  # the kinds of content whose columns hold text
NOUNS = {"text": "text", "number": "a number", "object": "an object", "list": "a list", "boolean": "true or false"}
TEXT = ("text",)
LISTED = ("list", "text", "object")  # a text may be JSON, or the words of one speaker


def shape_of(row: Row, mapping: Mapping) -> Shape | None:
    """Return the first shape that a record fits, or None."""
    return next((shape for shape in mapping.shapes if _fits(row, shape)), None)


def why_none(row: Row, mapping: Mapping) -> str:
    """Say what a record lacks to be of a mapping's shapes, and what it has instead."""
    for aside in mapping.asides:
        if aside.test and aside.test.fits(row.has):
            return aside.told(row.get)
    nearest = min(mapping.shapes, key=lambda shape: len(_missing(row, shape)))
    missing = _missing(row, nearest)
    names = [name[:40] for name in row.cells]
    held = ", ".join(names[:8]) + (" …" if len(names) > 8 else "")
    lack = f"no column {', '.join(missing)}" if missing else _misheld(row, nearest) or "its columns hold something else"
    probably = meant(missing[0], names_in([row])) if missing else ""
    return f"{lack}{probably or ';'} its columns: {held}" if names else "an object without columns"


def _misheld(row: Row, shape: Shape) -> str | None:
    """Return what a column of the conversation holds instead of what it should; None where that is not the reason."""
    if shape.layout != "rows":
        names = [name for name in shape.test.has if row.kind(name) != "list"]
        return f"column {names[0]} holds no list" if names else None
    is_text = shape.content.kind in TEXTS
    for role in shape.content.needed:
        column = next((column for column in role.columns if row.kind(column) != "null"), None)
        kind = row.kind(column) if column else "null"
        listed = ("list", "text") if role is shape.content.messages else LISTED
        if column and kind not in (TEXT if is_text else listed):
            return f"column {column} holds {NOUNS[kind]}, not {'text' if is_text else 'a list of messages'}"
    return None


def _missing(row: Row, shape: Shape) -> list[str]:
    parts = [
        " or ".join(role.columns)
        for role in shape.content.needed
        # What is inside the elements of a list is there when each has a row of its own.
        if not any(row.has(column) or is_inside(column, shape.explode) for column in role.columns)
    ]
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
    text = content.kind in TEXTS
    for role in content.needed:
        kinds = [row.kind(column) for column in role.columns if not is_inside(column, lists)]
        kind = next((kind for kind in kinds if kind != "null"), "null" if kinds else "list")
        if kind not in (TEXT if text and kinds else LISTED):
            return False
    if content.kind == "messages" and content.messages is not None:
        kinds = [row.kind(column) for column in content.messages.columns if not is_inside(column, lists)]
        return not kinds or "list" in kinds or "text" in kinds
    return True
