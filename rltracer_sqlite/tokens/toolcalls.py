"""Tool calls in the text of an assistant turn, by the syntaxes that `families` describes.

What is not written as it should be stays text: a call is only what can be told to be one.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from .families import CallSyntax
from .toolpairs import Schemas, read_pairs

KEYS = {"name", "arguments", "parameters", "id", "type"}
MAX_CALLS = 1_000  # in one turn; what comes after stays text

Call = dict[str, Any]


class _Written(msgspec.Struct):
    name: str
    arguments: msgspec.Raw = msgspec.Raw()
    parameters: msgspec.Raw = msgspec.Raw()
    id: str | None = None


class _Exact(_Written, forbid_unknown_fields=True):
    type: str | None = None


@dataclass
class Found:
    """What an assistant's text holds: its own words, and its calls.

    `malformed` counts the calls that could not be read, `more` those that said more than a call has a place for.
    """

    text: str
    calls: list[Call] = field(default_factory=list)
    malformed: int = 0
    more: int = 0


def find_calls(text: str, syntaxes: Sequence[CallSyntax], schemas: Schemas) -> Found:
    """Take the calls out of an assistant's text. A call that cannot be read stays in the text and is counted."""
    for syntax in syntaxes:
        if not syntax.open:
            whole, more = _json_calls(text.strip(), need_arguments=True)
            if whole:
                return Found("", whole, more=more)
        elif syntax.open in text:
            return _marked_calls(text, syntax, schemas)
    return Found(text)


def _marked_calls(text: str, syntax: CallSyntax, schemas: Schemas) -> Found:
    found, words, at = Found(""), [], 0
    for _ in range(MAX_CALLS):
        begin = text.find(syntax.open, at)
        if begin < 0:
            break
        body = begin + len(syntax.open)
        end, after = _end_of_call(text, body, syntax)
        calls, more = _read_body(text[body:end], syntax, schemas) if end >= 0 else ([], 0)
        if calls:
            words.append(text[at:begin])
            found.calls += calls
            found.more += more
        else:
            found.malformed += 1
            after = after if end >= 0 else body
            words.append(text[at:after])
        at = after
    words.append(text[at:])
    found.text = _words(words, syntax)
    return found


def _words(words: list[str], syntax: CallSyntax) -> str:
    """Join what stands around the calls; the white space that a template writes between calls is no content."""
    first, others = words[0], words[1:]
    for mark in filter(None, syntax.section):
        first, others = first.replace(mark, ""), [word.replace(mark, "") for word in others]
    if others:
        first = first.removesuffix("\n")
    return first + "".join(word for word in others if word.strip())


def _end_of_call(text: str, body: int, syntax: CallSyntax) -> tuple[int, int]:
    """Return where the body of a call ends, and where the text goes on behind it; (-1, …) if it has no end."""
    if not syntax.close:
        following = text.find(syntax.open, body)
        end = following if following >= 0 else len(text)
        return end, end
    search = _end_of_json(text, body)
    for pair in syntax.pairs:
        if search == body and pair.name_open and text[body : body + 64].lstrip().startswith(pair.name_open):
            # The values are text that may hold the closing mark; the end of the inner mark comes just before it.
            search = max(body, text.find(f"{pair.end}\n{syntax.close}", body))
    end = text.find(syntax.close, search)
    return end, end + len(syntax.close)


def _end_of_json(text: str, start: int) -> int:
    """Return the end of the JSON value at `start`, whose strings may hold the closing mark, or `start` itself."""
    begin = start + len(text[start : start + 64]) - len(text[start : start + 64].lstrip())
    if not text.startswith("{", begin):
        return start
    try:
        return json.JSONDecoder(strict=False).raw_decode(text, begin)[1]
    except (ValueError, RecursionError):
        return start


def _read_body(body: str, syntax: CallSyntax, schemas: Schemas) -> tuple[list[Call], int]:
    calls, more = _json_calls(body.strip())
    if calls:
        return calls, more
    for pattern in syntax.bodies:
        match = pattern.fullmatch(body.strip())
        if match:
            written = match.groupdict()
            return [call_of(written["name"].strip(), written["arguments"].strip(), written.get("id"))], 0
    for pair in syntax.pairs:
        if call := read_pairs(body, pair, schemas):
            return [call_of(*call, None)], 0
    return [], 0


def _json_calls(text: str, need_arguments: bool = False) -> tuple[list[Call], int]:
    """Return the calls of one JSON object or a list of them, and how many say more; none unless each has a name.

    An object that has other keys in the place of its arguments is no call: it would seem to be one without any.
    """
    if not text.startswith(("{", "[")):
        return [], 0
    written, more = _written(text)
    parts = [(one.name, (bytes(one.arguments) or bytes(one.parameters)).decode(), one.id) for one in written]
    if (need_arguments and not all(arguments.startswith("{") for _, arguments, _ in parts)) or (
        more and not all(arguments for _, arguments, _ in parts)
    ):
        return [], 0
    return [call_of(name, _unquoted(arguments) or "{}", call_id) for name, arguments, call_id in parts], more


def _written(text: str) -> tuple[Sequence[_Written], int]:
    """Return what is written as calls, the arguments exactly as the model wrote them, and how many say more."""
    try:
        exact = _listed(msgspec.json.decode(text, type=_Exact | list[_Exact]))
        return exact, sum(bool(bytes(one.arguments) and bytes(one.parameters)) for one in exact)
    except (ValueError, RecursionError):
        pass
    try:
        loose = _listed(msgspec.json.decode(text, type=_Written | list[_Written]))
        return loose, 1
    except (ValueError, RecursionError):
        return _lenient(text)


def _listed(written: Any) -> list[Any]:
    return written if isinstance(written, list) else [written]


def _lenient(text: str) -> tuple[list[_Written], int]:
    """Read what a strict parser refuses, such as a line break inside a string."""
    try:
        several = _listed(json.loads(text, strict=False))
    except (ValueError, RecursionError):
        return [], 0
    written, more = [], 0
    for one in several:
        if not isinstance(one, dict) or not isinstance(one.get("name"), str):
            return [], 0
        arguments, call_id = one.get("arguments", one.get("parameters")), one.get("id")
        encoded = b"" if arguments is None else json.dumps(arguments, ensure_ascii=False).encode("utf-8", "replace")
        kept = call_id if isinstance(call_id, str) else None
        more += not one.keys() <= KEYS or ("arguments" in one and "parameters" in one) or kept is not call_id
        written.append(_Written(one["name"], msgspec.Raw(encoded), id=kept))
    return written, more


def _unquoted(arguments: str) -> str:
    """Return arguments that were written as a JSON string as what the string holds."""
    if arguments.startswith('"'):
        return str(json.loads(arguments, strict=False))
    return arguments


def call_of(name: str, arguments: str, call_id: str | None) -> Call:
    """Return a call in the normal form of `rltracer_sqlite.messages`."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
