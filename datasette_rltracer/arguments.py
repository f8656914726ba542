"""The arguments of a tool call as a person reads them: one by one where they are a JSON object, else as recorded."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import NoReturn

from .text import TOKEN, Text, cut, reindented

LONGEST_PARSED = 1_000_000  # characters; longer arguments are shown as recorded
KINDS = {"{": "object", "[": "array", "t": "boolean", "f": "boolean", "n": "null"}


@dataclass(frozen=True)
class Argument:
    """One named argument. A string is shown as the text it stands for; anything else as its JSON, with its kind."""

    name: str
    text: Text
    kind: str | None = None  # None: a string


@dataclass(frozen=True)
class Arguments:
    """The arguments of a call: `named`, or where they cannot be named one `text`; `remark` says why."""

    named: list[Argument] = field(default_factory=list)
    text: Text | None = None
    remark: str | None = None


def read_arguments(recorded: str, limit: int, free_text: bool = False) -> Arguments:
    """Return what to show of recorded arguments, each text cut at `limit` characters.

    `free_text`: the tool takes a text, so that not being JSON is no remark.
    """
    if not recorded.strip():
        return Arguments(remark="no arguments")
    if free_text or len(recorded) > LONGEST_PARSED:
        return Arguments(text=cut(recorded, limit))
    try:
        value = json.loads(recorded, parse_constant=_refuse)
    except RecursionError:
        return Arguments(text=cut(recorded, limit), remark="arguments are nested too deeply, shown as recorded")
    except ValueError:
        return Arguments(text=cut(recorded, limit), remark="arguments are not JSON, shown as recorded")
    if not isinstance(value, dict):
        return Arguments(text=cut(reindented(recorded), limit), remark="arguments are JSON, but no object")
    named = [_argument(json.loads(name), tokens, limit) for name, tokens in _members(recorded)]
    repeated = len({argument.name for argument in named}) < len(named)
    return Arguments(named, remark="an argument is given twice" if repeated else None if named else "no arguments")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not JSON")


def _members(text: str) -> list[tuple[str, list[str]]]:
    """Return (name, tokens of the value) of each member of a JSON object, in its order, repeated names kept."""
    members: list[tuple[str, list[str]]] = []
    depth, name_comes = 0, True
    for token in TOKEN.findall(text):
        depth -= token in "]}"
        if depth == 1 and token == ",":
            name_comes = True
        elif depth == 1 and name_comes and token.startswith('"'):
            members.append((token, []))
            name_comes = False
        elif depth >= 1 and members and not (depth == 1 and token == ":"):
            members[-1][1].append(token)
        depth += token in "[{"
    return members


def _argument(name: str, tokens: list[str], limit: int) -> Argument:
    if tokens[0].startswith('"'):
        return Argument(name, cut(json.loads(tokens[0]), limit))
    return Argument(name, cut(reindented("".join(tokens)), limit), KINDS.get(tokens[0][0], "number"))
