"""How a filter asks for what has no value: by the words that lists and pages show in its place."""

from __future__ import annotations

NOT_RECORDED = "not recorded"


def chosen(column: str, parameter: str) -> str:
    """Return SQL that is true where a column has the value of a parameter, or has none and that is NOT_RECORDED."""
    return f"ifnull({column}, '{NOT_RECORDED}') = :{parameter}"


def is_chosen(value: str | None, asked: str | None) -> bool:
    """Say whether a value of a row is what is asked for; None asks for every value."""
    return asked is None or (NOT_RECORDED if value is None else value) == asked


def named(what: str, value: str) -> str:
    """Return what a chosen split or environment is called in a sentence: its name, or "no split"."""
    return f"no {what}" if value == NOT_RECORDED else value
