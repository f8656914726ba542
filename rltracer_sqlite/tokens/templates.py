"""Conversations from rendered text, by the chat template of its family.

A text that keeps its markers is split exactly. One whose markers were removed is split only where its family still
tells turns apart; otherwise it is a prompt and a completion, and `content_kind` says so.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..messages import Message
from .families import Family, find_family, find_stripped_family
from .fold import REMARKS, Turn, fold_turns, split_reasoning
from .toolcalls import find_calls
from .toolpairs import schemas_of

RENDERED = "rendered"  # split at the markers of a chat template
STRIPPED = "stripped"  # split at what is left of the markers
TOKEN_IDS = "token_ids"  # not decoded: there is no tokenizer
UNSPLIT = "prompt_completion"  # not split: one message of prompt and one of completion
UNTOLD = (TOKEN_IDS, UNSPLIT)  # where a tool call cannot be told from other text

# What is said in the place of the text of token ids, wherever they are shown.
NO_TEXT = "no text: token ids without a tokenizer; index with --tokenizer PATH"


@dataclass(frozen=True)
class Conversation:
    """What a rendered text says: messages in the normal form, the tools its prompt lists, and how sure that is."""

    messages: list[Message]
    tools: list[dict[str, Any]] = field(default_factory=list)
    content_kind: str = RENDERED
    flags: tuple[str, ...] = ()  # remarks for a person, such as "1 tool call is malformed and stays text"
    family: str | None = None


def without_text() -> Conversation:
    """Return the conversation of token ids that no tokenizer decodes: no message, and the reason."""
    return Conversation([], content_kind=TOKEN_IDS, flags=(NO_TEXT,))


def parse_conversation(text: str, family: Family | None = None, prompt_length: int | None = None) -> Conversation:
    """Return the conversation that a chat template rendered as `text`.

    `family` overrides what the text itself tells. `prompt_length` is the number of characters before the first
    sampled one, where that is known: it is all that can be said of a text that cannot be split.
    """
    kept = family or find_family(text)
    if kept and kept.mark.search(text):
        return _split(text, kept, kept.turn, RENDERED)
    stripped = family or find_stripped_family(text)
    if stripped and stripped.stripped_turn and stripped.stripped_turn.search(text):
        return _split(text, stripped, stripped.stripped_turn, STRIPPED)
    return _unsplit(text, stripped, prompt_length)


def _split(text: str, family: Family, pattern: re.Pattern[str], kind: str) -> Conversation:
    separator = "\n" if kind == STRIPPED else family.separator
    messages, tools, flags = fold_turns(_turns(text, family, pattern, separator), family)
    if kind == STRIPPED:
        flags.insert(0, "roles are read from lines of text: a message that holds such a line cannot be told apart")
    return Conversation(messages, tools, kind, tuple(flags), family.name)


def _turns(text: str, family: Family, pattern: re.Pattern[str], separator: str) -> Iterator[Turn]:
    matches = list(pattern.finditer(text))
    first = matches[0].start() if matches else len(text)
    leading, ended = _body(_without_noise(text[:first], family), family, separator)
    if leading.strip():
        yield Turn(family.leading or "text", leading, ended)
    # A text can hold a mark of its family and not one turn of it.
    for match, following in zip(matches, [*matches[1:], None], strict=False):
        end = following.start() if following else len(text)
        body, ended = _body(text[match.end() : end], family, separator if following else "")
        turn = _turn(match, body, ended, family)
        # An empty turn that was never ended is a header that asks the model to go on.
        if body.strip() or ended or (following and turn.role not in ("assistant", "")):
            yield turn


def _turn(match: re.Match[str], body: str, ended: bool, family: Family) -> Turn:
    groups = match.groupdict()
    written = groups.get("role") or groups.get("name") or ""
    role = family.roles.get(written, family.others or written)
    name = written.removeprefix("functions.") if written not in family.roles and family.others else None
    recipient = family.recipient.search(match[0]) if family.recipient and role == "assistant" else None
    heading = family.headings.get(role, "")
    return Turn(
        role=role,
        text=body.removeprefix(heading),
        ended=ended,
        name=name,
        channel=groups.get("channel"),
        recipient=recipient["name"] if recipient else None,
    )


def _without_noise(text: str, family: Family) -> str:
    # By places in the text, since a padded one may begin with very many marks.
    kept = at = 0
    while True:
        while at < len(text) and text[at].isspace():
            at += 1
        mark = next((mark for mark in family.noise if text.startswith(mark, at)), None)
        if mark is None:
            return text[kept:]
        kept = at = at + len(mark)


def _body(text: str, family: Family, separator: str) -> tuple[str, bool]:
    """Return the text of a turn without what ends it, and whether an end mark does."""
    end = _end_marks(text, family.ends)
    text = text.removesuffix(separator) if end is None else text[:end]
    if family.padding:
        text = text.removeprefix(family.padding).removesuffix(family.padding)
    return text, end is not None


def _end_marks(text: str, marks: Sequence[str]) -> int | None:
    """Return where the end marks begin that close a text, or None. From the right: a text may be full of marks."""
    at, first = len(text), None
    while at:
        while at and text[at - 1].isspace():
            at -= 1
        mark = next((mark for mark in marks if text.endswith(mark, 0, at)), None)
        if mark is None:
            break
        at = first = at - len(mark)
    return first


def _unsplit(text: str, family: Family | None, prompt_length: int | None) -> Conversation:
    name = family.name if family else None
    if prompt_length is None:
        return Conversation([{"role": "user", "content": text}], [], UNSPLIT, ("its turns cannot be told apart",), name)
    prompt, completion = text[:prompt_length], text[prompt_length:]
    messages: list[Message] = [{"role": "user", "content": prompt}] if prompt else []
    flags = ["its turns cannot be told apart: shown as prompt and completion"]
    answer: Message = {"role": "assistant"}
    reasoning, content = _cut_reasoning(completion, family)
    if reasoning is not None:
        answer["reasoning_content"] = reasoning
    found = find_calls(content, family.calls if family else (), schemas_of([]))
    answer["content"] = found.text
    flags += [REMARKS[key].format(count) for key in ("malformed", "more") if (count := getattr(found, key))]
    if found.calls:
        answer["tool_calls"] = found.calls
    return Conversation([*messages, answer], [], UNSPLIT, tuple(flags), name)


def _cut_reasoning(completion: str, family: Family | None) -> tuple[str | None, str]:
    cut = family.stripped_cut if family else None
    if cut and completion.startswith(cut[0]) and cut[1] in completion:
        reasoning, _, content = completion.removeprefix(cut[0]).partition(cut[1])
        return reasoning, content
    reasoning_text, content, _ = split_reasoning(completion, family.think if family else (("<think>", "</think>"),))
    return reasoning_text, content
