"""The keys of a TOML file by the kind of their values: an error names the file, the line and the key."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from difflib import get_close_matches
from typing import Any

from .mapping import MappingError
from .toml import line_of

Keys = tuple["str | int", ...]


class Checked:
    """A TOML text whose tables are read key by key.

    `at` is the place of a table, the keys and list positions that lead to it. What is not of the expected kind raises
    MappingError; a key that is absent has the default.
    """

    def __init__(self, text: str, file: str) -> None:
        self.text, self.file = text, file

    def table(self, value: dict[str, Any], key: str, at: Keys) -> dict[str, Any]:
        found = value.get(key, {})
        if not isinstance(found, dict):
            raise self.error((*at, key), f"expected a table, found {shown_value(found)}")
        return found

    def tables(self, value: dict[str, Any], key: str, at: Keys) -> list[dict[str, Any]]:
        found = value.get(key, [])
        if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
            raise self.error((*at, key), f"expected [[{key}]] tables, found {shown_value(found)}")
        return found

    def text_at(self, value: dict[str, Any], key: str, at: Keys, default: str | None = None) -> str:
        found = value.get(key, default)
        if found is None:
            raise self.error(at, f"the key {key} is missing")
        if not isinstance(found, str):
            raise self.error((*at, key), f"expected a text, found {shown_value(found)}")
        return found

    def texts(self, value: dict[str, Any], key: str, at: Keys, shown: Keys | None = None) -> tuple[str, ...]:
        found = value.get(key, [])
        listed = [found] if isinstance(found, str) else found
        if not isinstance(listed, list) or not all(isinstance(one, str) and one for one in listed):
            raise self.error(shown or (*at, key), f"expected a name or a list of names, found {shown_value(found)}")
        return tuple(listed)

    def flag(self, value: dict[str, Any], key: str, at: Keys) -> bool:
        found = value.get(key, False)
        if not isinstance(found, bool):
            raise self.error((*at, key), f"expected true or false, found {shown_value(found)}")
        return found

    def choice(self, value: dict[str, Any], key: str, at: Keys, choices: Sequence[str], default: str) -> str:
        found = value.get(key, default)
        if found != default and found not in choices:
            raise self.error((*at, key), f"expected one of {', '.join(choices)}, found {shown_value(found)}")
        return str(found)

    def text_map(self, value: dict[str, Any], key: str, at: Keys) -> dict[str, str]:
        found = self.table(value, key, at)
        return {name: self.text_at(found, name, (*at, key)) for name in found}

    def known(self, value: Any, keys: Collection[str], at: Keys) -> None:
        """Raise an error for a key that a table does not have, with the key that was probably meant."""
        if not isinstance(value, dict):
            raise self.error(at, f"expected a table, found {shown_value(value)}")
        for key in value:
            if key not in keys:
                close = get_close_matches(key, keys, 1)
                meant = f"did you mean {close[0]}?" if close else f"the keys here are {', '.join(keys)}"
                raise self.error((*at, key), f"there is no such key; {meant}")

    def error(self, at: Keys, what: str) -> MappingError:
        key = ".".join(str(part) for part in at if isinstance(part, str))
        line = line_of(self.text, at)
        end = "" if what.endswith("?") else "."
        return MappingError(f"{self.file}, line {line}" + (f", key {key}" if key else "") + f": {what}{end}")


def shown_value(value: Any) -> str:
    """Return a value as errors show it: itself where it is short, otherwise its type."""
    return repr(value) if len(repr(value)) <= 60 else type(value).__name__
