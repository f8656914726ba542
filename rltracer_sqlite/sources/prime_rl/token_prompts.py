"""What the index keeps of a sequence's prompt and calls; the same ids are made into text once."""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Sequence
from hashlib import blake2b
from itertools import accumulate
from typing import NamedTuple

from ...amounts import plural
from ...messages import EMPTY_PREVIEW, is_empty, preview, prompt_context, prompt_key
from ...tokens.families import Family, family_named, find_family
from ...tokens.fold import split_reasoning
from ...tokens.templates import TOKEN_IDS, parse_conversation
from ...tokens.tokenizer import TextTokenizer
from ...tokens.toolcalls import Call, find_calls
from .samples import Sample


class Prompt(NamedTuple):
    """What identifies a prompt, and how sure it is that it was split as it was written."""

    key: str
    preview: str
    content_kind: str
    family: str | None = None


class PromptReader:
    """Prompts of sequences by their ids, each distinct prompt decoded once."""

    def __init__(self, tokenizer: TextTokenizer | None) -> None:
        self.tokenizer = tokenizer
        self.known: dict[bytes, Prompt] = {}

    def read(self, sample: Sample) -> Prompt:
        """Return the prompt of a sequence: what comes before its first trained token and first answer."""
        length = sample.prompt_length or len(sample.ids)
        ids = sample.ids[:length] if length < len(sample.ids) else sample.ids
        key = ids_digest(ids)
        if key not in self.known:
            self.known[key] = self._prompt(ids, sample)
        return self.known[key]

    def _prompt(self, ids: Sequence[int], sample: Sample) -> Prompt:
        if sample.text is not None:
            return _prompt_of(sample.text[0], ids)
        if self.tokenizer is None:
            return Prompt(_key_of_ids(ids), f"no tokenizer: {plural(len(ids), 'prompt token')}", TOKEN_IDS)
        return _prompt_of(self.tokenizer.decode(ids), ids)

    def calls(self, sample: Sample, runs: Sequence[tuple[int, int]], family: str | None) -> list[Call]:
        """Return the tool calls in the trained turns of a sequence."""
        if family is None:
            return []
        described = family_named(family)
        if self.tokenizer is None:
            texts = [sample.text[1]] if sample.text else []
        else:
            turns = [sample.ids[start:end] for start, end in runs]
            texts = [self.tokenizer.decode(turn) for turn in self._with_calls(turns, described)]
        return [call for text in texts for call in _calls_in(text, described)]

    def _with_calls(self, turns: list[list[int]], family: Family) -> list[list[int]]:
        """Return the turns that may hold a call; where the marks are tokens of their own, only from there on."""
        if not family.calls:
            return turns if family.channels else []
        marks = [self.tokenizer.id_of(syntax.open) if self.tokenizer else None for syntax in family.calls]
        ends = [self.tokenizer.id_of(closing) if self.tokenizer else None for _, closing in family.think]
        if len(marks) != 1 or len(ends) != 1 or marks[0] is None or ends[0] is None:
            return turns
        mark, end = marks[0], ends[0]
        answers = [turn[turn.index(end) :] if end in turn else turn for turn in turns]
        return [answer[answer.index(mark) :] for answer in answers if mark in answer]


def _prompt_of(text: str, ids: Sequence[int]) -> Prompt:
    conversation = parse_conversation(text, prompt_length=len(text))
    context = prompt_context(conversation.messages)
    if is_empty(context):
        return Prompt(_key_of_ids(ids), EMPTY_PREVIEW, conversation.content_kind, conversation.family)
    return Prompt(prompt_key(context), preview(context), conversation.content_kind, conversation.family)


def _calls_in(text: str, family: Family) -> list[Call]:
    if family.channels:
        messages = parse_conversation(text, family).messages
        return [call for message in messages for call in message.get("tool_calls", ())]
    # Only the text after reasoning can hold calls, as when the sequence is loaded.
    return find_calls(split_reasoning(text, family.think)[1], family.calls, {}).calls


def ids_digest(ids: Sequence[int]) -> bytes:
    """Return a short hash of token ids, equal for equal ids."""
    return blake2b(array("q", ids).tobytes(), digest_size=16).digest()


def _key_of_ids(ids: Sequence[int]) -> str:
    # Hashed with a mark of its own, so that it never meets the key of a text.
    return blake2b(b"token ids\0" + array("q", ids).tobytes(), digest_size=32).hexdigest()


def system_turn_starts(ids: Sequence[int], tokenizer: TextTokenizer) -> list[int]:
    """Return where each conversation starts in ids without recorded boundaries: at each system turn.

    This is the rule for files that record no lengths and no positions; where they do, it is not used. The first
    start is 0, or the first turn where only marks without meaning stand before it.
    """
    pieces = tokenizer.pieces(ids)
    text = "".join(pieces)
    family = find_family(text)
    if family is None:
        return [0]
    turns = [match for match in family.turn.finditer(text) if _is_system(match, family)]
    ends = list(accumulate(map(len, pieces)))
    starts = [bisect_right(ends, match.start()) for match in turns]
    # What stands before the first turn may be no more than a mark that begins every text.
    first = family.turn.search(text)
    return starts if turns and first and first.start() == turns[0].start() else [0, *starts]


def _is_system(match: re.Match[str], family: Family) -> bool:
    groups = match.groupdict()
    written = groups.get("role") or groups.get("name") or ""
    return family.roles.get(written, written) == "system"
