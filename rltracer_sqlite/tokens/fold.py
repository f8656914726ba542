"""Turns of a rendered text folded into messages: reasoning apart, calls read, each result paired with its call."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .families import Family
from .toolblocks import listed_tools, split_tools
from .toolcalls import Call, call_of, find_calls, schemas_of

Message = dict[str, Any]

REMARKS = {
    "malformed": "{} tool call(s) malformed: left in the text as written",
    "reasoning": "{} reasoning(s) without an end: all of the text behind its mark",
    "unpaired": "{} tool response(s) without a call",
    "outside": "{} text(s) outside of any turn",
    "unfinished": "the last turn has no end mark",
}


@dataclass
class Turn:
    """One turn as its template wrote it."""

    role: str  # "": between turns; "tools": a list of tools
    text: str
    ended: bool = False
    name: str | None = None  # of the tool behind a result
    channel: str | None = None
    recipient: str | None = None  # the tool that the turn calls


def fold_turns(turns: Iterable[Turn], family: Family) -> tuple[list[Message], list[dict[str, Any]], list[str]]:
    """Return the messages in the normal form, the tools that the prompt lists, and remarks for a person."""
    folding = _Folding(family)
    ends = [False]
    for turn in turns:
        folding.add(turn)
        ends.append(turn.ended)
    # Where no turn is ended, the end marks were left out; where only the last is not, it was cut off.
    folding.remarks["unfinished"] += any(ends) and not ends[-1]
    remarks = [text.format(folding.remarks[key]) for key, text in REMARKS.items() if folding.remarks[key]]
    return folding.messages, folding.tools, remarks


class _Folding:
    def __init__(self, family: Family) -> None:
        self.family = family
        self.messages: list[Message] = []
        self.tools: list[dict[str, Any]] = []
        self.waiting: list[Call] = []  # calls without a result yet
        self.calls = 0
        self.remarks: Counter[str] = Counter()

    def add(self, turn: Turn) -> None:
        if turn.role in ("system", "developer", "tools"):
            self._add_instructions(turn)
        elif turn.role == "assistant":
            self._add_channel(turn) if self.family.channels else self._add_answer(turn.text)
        elif turn.role == "tool" or (turn.role == "user" and _holds_results(turn.text, self.family)):
            self._add_results(turn)
        elif turn.role:
            self.remarks["outside"] += turn.role == "text"
            self.messages.append({"role": turn.role, "content": turn.text})
        elif turn.text.strip():
            self.remarks["outside"] += 1
            self.messages.append({"role": "text", "content": turn.text})

    def _add_instructions(self, turn: Turn) -> None:
        own, tools = ("", listed_tools(turn.text)) if turn.role == "tools" else split_tools(turn.text)
        self.tools += tools
        if own or not tools:
            role, content = ("system", turn.text) if turn.role == "tools" else (turn.role, own)
            self.messages.append({"role": role, "content": content})

    def _add_answer(self, text: str) -> None:
        message: Message = {"role": "assistant"}
        reasoning, content, cut_off = split_reasoning(text, self.family.think)
        if reasoning is not None:
            message["reasoning_content"] = reasoning
        self.remarks["reasoning"] += cut_off
        found = find_calls(content, self.family.calls, schemas_of(self.tools))
        self.remarks["malformed"] += found.malformed
        message["content"] = found.text
        self.messages.append(message)
        self.waiting = []
        self._add_calls(message, found.calls)

    def _add_channel(self, turn: Turn) -> None:
        """Add to the current answer what one channel says: an answer is all that comes before the next reply."""
        message = self.messages[-1] if self.messages else {}
        calls_on = turn.recipient is not None
        answered = message.get("content") or (message.get("tool_calls") and not calls_on)
        if message.get("role") != "assistant" or (answered and not calls_on):
            message = {"role": "assistant", "content": ""}
            self.messages.append(message)
            self.waiting = []
        if turn.recipient:
            self._add_calls(message, [call_of(turn.recipient, turn.text.strip(), None)])
        else:
            key = self.family.channels.get(turn.channel or "", "content")
            message[key] = f"{message[key]}\n{turn.text}" if message.get(key) else turn.text

    def _add_calls(self, message: Message, calls: Sequence[Call]) -> None:
        for call in calls:
            call["id"] = call["id"] or f"call_{self.calls}"
            self.calls += 1
        if calls:
            message["tool_calls"] = [*message.get("tool_calls", ()), *calls]
            self.waiting += calls

    def _add_results(self, turn: Turn) -> None:
        results, rest = _results(turn.text, self.family)
        for text in results:
            call_id, content = _named_result(text, self.family.result)
            call = self._take_call(call_id, turn.name)
            message: Message = {"role": "tool", "content": content}
            if call_id or call:
                message["tool_call_id"] = call_id or (call or {})["id"]
            name = call["function"]["name"] if call else turn.name
            if name:
                message["name"] = name
            self.remarks["unpaired"] += call is None
            self.messages.append(message)
        if rest.strip():
            self.messages.append({"role": "user", "content": rest.removeprefix("\n")})

    def _take_call(self, call_id: str | None, name: str | None) -> Call | None:
        """Return the call that a result belongs to: by its id, else by its tool, else the first without a result."""
        waiting = self.waiting
        chosen = [call for call in waiting if call_id and call["id"] == call_id]
        chosen = chosen or [call for call in waiting if name and not call_id and call["function"]["name"] == name]
        chosen = chosen or ([] if call_id else waiting[:1])
        if not chosen:
            return None
        self.waiting = [call for call in waiting if call is not chosen[0]]
        return chosen[0]


def split_reasoning(text: str, marks: Sequence[tuple[str, str]]) -> tuple[str | None, str, bool]:
    """Return the reasoning at the start of an answer or None, what follows, and whether the reasoning is cut off.

    The opening mark may be missing: some templates write it into the prompt.
    """
    for opening, closing in marks:
        begin = text.find(opening)
        end = text.find(closing)
        opened = begin >= 0 and not text[:begin].strip()
        if opened and end < 0:
            return text[begin + len(opening) :].removeprefix("\n"), "", True
        if end >= 0 and (opened or begin < 0 or begin > end):
            inner = text[begin + len(opening) : end] if opened else text[:end]
            inner = inner.removeprefix("\n").removesuffix("\n")
            # Templates write one or two line breaks behind the mark.
            content = text[end + len(closing) :].removeprefix("\n").removeprefix("\n")
            return inner if inner.strip() else None, content, False
    return None, text, False


def _holds_results(text: str, family: Family) -> bool:
    return family.results is not None and text.lstrip().startswith(family.results[0])


def _results(text: str, family: Family) -> tuple[list[str], str]:
    """Return the results that one turn holds, each without its marks, and the text behind the last of them."""
    if family.results is None or not _holds_results(text, family):
        return [text], ""
    opening, closing = family.results
    inner = text.lstrip().removeprefix(opening)
    last = inner.rfind(closing)
    inner, rest = (inner[:last], inner[last + len(closing) :]) if last >= 0 else (inner, "")
    parts = re.split(rf"{re.escape(closing)}\s*{re.escape(opening)}", inner)
    return [part.removeprefix("\n").removesuffix("\n") for part in parts], rest


def _named_result(text: str, pattern: re.Pattern[str] | None) -> tuple[str | None, str]:
    match = pattern.fullmatch(text) if pattern else None
    if not match:
        return None, text
    groups = match.groupdict()
    if groups.get("json") is None:
        return groups["id"], groups.get("content") or ""
    try:
        value = json.loads(groups["json"])
    except (ValueError, RecursionError):
        value = None
    return groups["id"], value if isinstance(value, str) else groups["json"]
