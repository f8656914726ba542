"""From the messages of a branch to what a page shows of them: turns, with each tool call beside its result."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from rltracer_sqlite.amounts import plural

from .arguments import Arguments, read_arguments
from .blocks import with_line_breaks
from .parts import Part, read_parts
from .text import Text, cut, first_words, json_text

TEXT_LIMIT = 20_000  # characters of one text
FULL_LIMIT = 5_000_000  # characters of one text of the message that is shown in full
PAGE_LIMIT = 400_000  # characters after which a page ends, at the end of a turn
PAGE_TURNS = 200
MOST_CALLS = 200  # of one message
LONG_PROMPT = 600  # characters from which on a system message is folded

ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}
SHOWN = {"role", "content", "reasoning_content", "reasoning", "tool_calls", "tool_call_id", "name"}

Shown = TypeVar("Shown")


@dataclass(frozen=True)
class Call:
    """A tool call and, where one was recorded, its result."""

    name: str | None
    id: str | None
    arguments: Arguments
    result: Turn | None


@dataclass(frozen=True)
class Turn:
    """A message as it is shown; `number` is its place in the branch, counted from 0."""

    number: int
    role: str
    kind: str  # system, user, assistant, tool or other: what its look depends on
    name: str | None
    answers: str | None  # a tool message: the id of the call that it answers
    characters: int  # of its content, the whole of it
    reasoning: list[Text]
    parts: list[Part]
    calls: list[Call] = field(default_factory=list)
    left_out: str | None = None  # says how many parts and calls are not shown
    extra: Text | None = None  # what else is recorded, as JSON
    is_full: bool = False  # shown as far as it ever is

    @property
    def is_folded(self) -> bool:
        """Say whether the message is a long system prompt, which is folded."""
        return self.kind == "system" and self.characters > LONG_PROMPT

    @property
    def opening(self) -> str:
        """Return its first words in one line."""
        return first_words(next((part.text.text for part in self.parts if part.text is not None), ""))


@dataclass(frozen=True)
class Page(Generic[Shown]):
    """The turns of a branch from one message on, as far as one page goes."""

    turns: list[Shown]  # or the messages of the raw view
    messages: int  # in the whole branch
    start: int
    following: int | None  # where the next page starts
    preceding: int | None  # and the page before
    before: int | None = None  # the message just before this one


def read_page(messages: Sequence[Mapping[str, Any]], start: int = 0, full: int | None = None) -> Page[Turn]:
    """Return the turns of a branch from message `start` on; message `full` is shown uncut.

    A tool result stands with its call, so it is no turn of its own unless its call is not in the branch.
    """
    results = paired_results(messages)
    answered = set(results.values())
    heads = [number for number in range(len(messages)) if number not in answered]
    return paged(messages, heads, start, lambda number: _turn(messages, number, results, full), _size)


def paged(
    messages: Sequence[Mapping[str, Any]],
    heads: Sequence[int],
    start: int,
    build: Callable[[int], Shown],
    size: Callable[[Shown], int],
) -> Page[Shown]:
    """Return one page: what is built of each head from message `start` on, up to a number and a size in characters."""
    first = sum(number < start for number in heads)
    begin = _begin_before(first, lambda place: size(build(heads[place])))
    turns: list[Shown] = []
    shown = 0
    for number in heads[first : first + PAGE_TURNS]:
        if shown > PAGE_LIMIT:
            break
        turns.append(build(number))
        shown += size(turns[-1])
    last = first + len(turns)
    return Page(
        turns=turns,
        messages=len(messages),
        start=heads[first] if first < len(heads) else len(messages),
        following=heads[last] if last < len(heads) else None,
        preceding=heads[begin] if first else None,
        before=heads[first - 1] if first else None,
    )


def _begin_before(first: int, size: Callable[[int], int]) -> int:
    """Return the place farthest back from which a page reaches the one before `first`."""
    begin, shown = max(first - 1, 0), 0
    while begin > max(first - PAGE_TURNS, 0):
        shown += size(begin - 1)
        if shown > PAGE_LIMIT:
            break
        begin -= 1
    return begin


def page_of(
    messages: Sequence[Mapping[str, Any]], wanted: int, read: Callable[[int], Page[Shown]], start: int = 0
) -> Page[Shown]:
    """Return the page from `start` on where it holds the wanted message, else the page that begins with it."""
    page = read(start)
    last = page.following if page.following is not None else page.messages
    if page.start <= wanted < last:
        return page
    calls = {answer: call for (call, _), answer in paired_results(messages).items()}
    return read(calls.get(wanted, wanted))


def paired_results(messages: Sequence[Mapping[str, Any]]) -> dict[tuple[int, int], int]:
    """Return the message that answers each call, by (message of the call, place among its calls).

    A result names its call by id, and the latest call of that id is meant, since ids are used again. Without
    ids the results of a turn answer its calls in their order.
    """
    pairs: dict[tuple[int, int], int] = {}
    named: dict[str, list[tuple[int, int]]] = {}
    unnamed: list[tuple[int, int]] = []
    for number, message in enumerate(messages):
        identity = message.get("tool_call_id")
        if identity or message.get("role") == "tool":
            waiting = named.get(str(identity), []) if identity else unnamed
            if waiting:
                pairs[waiting.pop(-1 if identity else 0)] = number
                continue
        calls = message.get("tool_calls") or ()
        if calls:
            unnamed = []
        for place, call in enumerate(calls):
            (named.setdefault(str(call["id"]), []) if call.get("id") else unnamed).append((number, place))
    return pairs


def _turn(
    messages: Sequence[Mapping[str, Any]], number: int, results: Mapping[tuple[int, int], int], full: int | None
) -> Turn:
    message = messages[number]
    limit = FULL_LIMIT if number == full else TEXT_LIMIT
    role = str(message.get("role") or "")
    content = read_parts(message.get("content"), limit)
    extra = {key: value for key, value in message.items() if key not in SHOWN}
    return Turn(
        number=number,
        role=role,
        kind=ROLES.get(role, "other"),
        name=_text(message.get("name")),
        answers=_text(message.get("tool_call_id")),
        characters=content.characters,
        reasoning=[cut(text, limit) for text in (*_reasoning(message), *content.thoughts)],
        parts=[with_line_breaks(part) for part in content.parts] if role == "tool" else content.parts,
        calls=list(_calls(messages, number, results, full)),
        left_out=_left_out(content.left_out, len(message.get("tool_calls") or ()) - MOST_CALLS),
        extra=cut(json_text(extra), limit) if extra else None,
        is_full=number == full,
    )


def _calls(
    messages: Sequence[Mapping[str, Any]], number: int, results: Mapping[tuple[int, int], int], full: int | None
) -> Iterator[Call]:
    limit = FULL_LIMIT if number == full else TEXT_LIMIT
    for place, call in enumerate((messages[number].get("tool_calls") or ())[:MOST_CALLS]):
        function = call.get("function") or {}
        free_text = call.get("recorded_type") is not None
        answer = results.get((number, place))
        yield Call(
            name=_text(function.get("name")),
            id=_text(call.get("id")),
            arguments=read_arguments(str(function.get("arguments") or ""), limit, free_text),
            result=_turn(messages, answer, {}, full) if answer is not None else None,
        )


def _left_out(parts: int, calls: int) -> str | None:
    said = [plural(count, f"more {name}") for count, name in ((parts, "part"), (calls, "tool call")) if count > 0]
    return f"{' and '.join(said)} not shown here; the raw record has all" if said else None


def _reasoning(message: Mapping[str, Any]) -> Iterable[str]:
    for key in ("reasoning_content", "reasoning"):
        value = message.get(key)
        if value:
            yield value if isinstance(value, str) else json_text(value)


def _size(turn: Turn) -> int:
    """Return about how many characters of a turn are on the page."""
    size = sum(len(text.text) for text in turn.reasoning)
    size += sum(len(part.text.text if part.text else part.image or "") for part in turn.parts)
    for call in turn.calls:
        size += sum(len(argument.text.text) for argument in call.arguments.named)
        size += len(call.arguments.text.text) if call.arguments.text else 0
        size += _size(call.result) if call.result else 0
    return size


def _text(value: object) -> str | None:
    return None if value is None else str(value)
