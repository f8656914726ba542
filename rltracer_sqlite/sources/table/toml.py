"""TOML text with the line of each key, so that an error can say where it is."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from typing import Any

from .mapping import MappingError

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

Path = Sequence["str | int"]
# Mappings come from other people, and out of an index. One that people write has a few thousand characters; the time
# that reading TOML takes grows with the square of the parts of a dotted key.
MOST_CHARACTERS = 100_000
MOST_DOTS = 1000  # on one line
MOST_DEEP = 50
HEADER = re.compile(r"(\[\[?)([^\[\]]+)\]\]?\s*(?:#.*)?$")
KEY = re.compile(r"\s*([A-Za-z0-9_.\"'-]+)\s*=")


def read_toml(text: str, file: str) -> dict[str, Any]:
    """Return the values of a TOML text. Raises MappingError naming the file and the line."""
    if len(text) > MOST_CHARACTERS:
        raise MappingError(f"{file}: longer than {MOST_CHARACTERS:,} characters; this is no TOML of a mapping.")
    if any(line.count(".") > MOST_DOTS for line in text.split("\n")):
        raise MappingError(f"{file}: more than {MOST_DOTS:,} dots on one line; this is no TOML of a mapping.")
    try:
        found = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        what, _, place = str(error).partition(" (at ")
        where = f", {place.rstrip(')')}" if place else ""
        raise MappingError(f"{file}{where}: {what}; this is no TOML (text stands in double quotes).") from None
    except ValueError:  # a number of thousands of digits
        raise MappingError(f"{file}: a number is too long; this is no TOML of a mapping.") from None
    except RecursionError:
        found = None
    if found is None or _is_deep(found):
        raise MappingError(f"{file}: nested too deeply; this is no TOML of a mapping.")
    return found


def _is_deep(value: Any) -> bool:
    """Say whether tables and lists lie within each other beyond what a mapping needs, as dotted keys can make them."""
    level = [value]
    for _ in range(MOST_DEEP):
        level = [
            part
            for one in level
            if isinstance(one, (dict, list))
            for part in (one.values() if isinstance(one, dict) else one)
        ]
    return bool(level)


def toml_value(value: str | Sequence[str]) -> str:
    """Return a text, or a list of texts, as TOML. Half of a surrogate pair is no text, and becomes a question mark."""
    # JSON's escapes are TOML's, but for one character that JSON leaves as it is.
    text = json.dumps(value, ensure_ascii=False).encode("utf-8", "replace").decode()
    return text.replace("\x7f", "\\u007f")


def toml_comment(text: str) -> str:
    """Return a text that may stand in a comment: a recorded one could end the line and go on as TOML."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in text)


def line_of(text: str, path: Path) -> int:
    """Return the line, counted from 1, on which a key or table stands; for a key in an inline table, its beginning."""
    best, best_line = 0, 1
    for line, at in _places(text):
        common = next((n for n, (a, b) in enumerate(zip(at, path, strict=False)) if a != b), min(len(at), len(path)))
        if common in (len(at), len(path)) and common > best:
            best, best_line = common, line
    return best_line


def _places(text: str) -> list[tuple[int, list[str | int]]]:
    """Return (line, path) of every header and key."""
    table: list[str | int] = []
    counts: dict[str, int] = {}
    places: list[tuple[int, list[str | int]]] = []
    for number, line in enumerate(text.splitlines(), 1):
        if header := HEADER.match(line.strip()):
            table = _table(header[1] == "[[", _keys(header[2]), counts)
            places.append((number, table))
        elif key := KEY.match(line):
            places.append((number, [*table, *_keys(key[1])]))
    return places


def _table(is_array: bool, keys: list[str], counts: dict[str, int]) -> list[str | int]:
    path: list[str | int] = []
    for position, key in enumerate(keys):
        path.append(key)
        name = ".".join(map(str, path))
        if is_array and position == len(keys) - 1:
            counts[name] = counts.get(name, -1) + 1
        if name in counts:
            path.append(counts[name])
    return path


def _keys(written: str) -> list[str]:
    return [part.strip().strip("\"'") for part in written.split(".")]
