"""Turns of a rendered text folded into messages: reasoning apart, calls read, each result paired with its call."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..messages import Message
from .families import Family
from .toolblocks import listed_tools, split_tools
from .toolcalls import Call, call_of, find_calls
from .toolpairs import schemas_of

REMARKS = {
    "malformed": "{} tool call(s) malformed: left in the text as written",
    "more": "{} tool call(s) said more than a name, arguments and an id: see the text as written",
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
    return list(map(_joined, folding.messages)), folding.tools, remarks


class _Waiting:
    """Calls without a result yet. They are looked up in tables, since one text may hold very many of them."""

    def __init__(self) -> None:
        self.calls: list[Call] = []
        self.taken: set[int] = set()
        self.places: defaultdict[tuple[str, str | None], deque[int]] = defaultdict(deque)

    def add(self, call: Call) -> None:
        for key in (("id", call["id"]), ("tool", call["function"]["name"]), ("any", None)):
            self.places[key].append(len(self.calls))
        self.calls.append(call)

    def take(self, call_id: str | None, name: str | None) -> Call | None:
        """Return the call that a result belongs to: by its id, else by its tool, else the first without a result."""
        for key in [("id", call_id)] if call_id else [("tool", name), ("any", None)]:
            places = self.places.get(key)
            while places:
                if (place := places.popleft()) not in self.taken:
                    self.taken.add(place)
                    return self.calls[place]
        return None


class _Folding:
    def __init__(self, family: Family) -> None:
        self.family = family
        self.messages: list[Message] = []
        self.tools: list[dict[str, Any]] = []
        self.waiting = _Waiting()
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
        self.remarks["more"] += found.more
        message["content"] = found.text
        self.messages.append(message)
        self.waiting = _Waiting()
        self._add_calls(message, found.calls)

    def _add_channel(self, turn: Turn) -> None:
        """Add to the current answer what one channel says: an answer is all that comes before the next reply."""
        message = self.messages[-1] if self.messages else {}
        calls_on = turn.recipient is not None
        answered = message.get("content") not in ("", [""]) or message.get("tool_calls")
        if message.get("role") != "assistant" or (answered and not calls_on):
            message = {"role": "assistant", "content": ""}
            self.messages.append(message)
            self.waiting = _Waiting()
        if turn.recipient:
            self._add_calls(message, [call_of(turn.recipient, turn.text.strip(), None)])
        else:
            key = self.family.channels.get(turn.channel or "", "content")
            if (said := message.get(key)) and said != [""]:
                said.append(turn.text)
            else:
                message[key] = [turn.text]

    def _add_calls(self, message: Message, calls: Sequence[Call]) -> None:
        for call in calls:
            call["id"] = call["id"] or f"call_{self.calls}"
            self.calls += 1
            self.waiting.add(call)
        if calls:
            message.setdefault("tool_calls", []).extend(calls)

    def _add_results(self, turn: Turn) -> None:
        results, rest = _results(turn.text, self.family)
        for text in results:
            call_id, content = _named_result(text, self.family.result)
            call = self.waiting.take(call_id, turn.name)
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


def _joined(message: Message) -> Message:
    """Return a message whose channels are texts: while turns are added each is a list of what was said on it."""
    texts = {key: "\n".join(said) for key, said in message.items() if isinstance(said, list) and key != "tool_calls"}
    return {**message, **texts}


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
