"""From a row to its conversation: recorded messages, rendered or stripped text, Responses items, token ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ...tokens.families import family_named, find_family
from ...tokens.templates import TOKEN_IDS, UNSPLIT, Conversation, parse_conversation, without_text
from ...tokens.tokenizer import TextTokenizer
from ...trajectory import Message
from .mapping import Content, Role
from .message import answer, message_of
from .responses import messages_of_items
from .rows import Row, RowError, json_text


def conversation_of(
    row: Row,
    content: Content,
    completion: Role | None,
    ids: tuple[list[int], list[int]],
    tokenizer: TextTokenizer | None,
) -> Conversation:
    """Return the conversation of a row. `completion` is the column of this trajectory; `ids` are its token ids.

    Raises RowError naming the column that does not hold what the mapping says.
    """
    if content.kind == TOKEN_IDS:
        return _of_ids(ids, content, tokenizer)
    if content.kind in ("text", "rendered", "stripped"):
        return _of_text(row, content, completion)
    if content.kind == "chunks":
        from .chunks import messages_of_chunks

        return messages_of_chunks(first_list(row, content.messages), content)
    if content.kind == "responses":
        return _of_items(row, content, completion)
    return _of_messages(row, content, completion)


def _of_messages(row: Row, content: Content, completion: Role | None) -> Conversation:
    if content.messages:
        return Conversation(_messages(row, content.messages, "", content), content_kind="messages")
    messages = _messages(row, content.prompt, "user", content)
    return Conversation(messages + _messages(row, completion, "assistant", content), content_kind="messages")


def _messages(row: Row, role: Role | None, speaker: str, content: Content) -> list[Message]:
    """Return the messages of a column: a list of them, JSON text of one, or the plain text of one speaker."""
    name, value = first_value(row, role)
    if isinstance(value, str):
        listed = json_text(value) if value[:1] == "[" else None
        if not isinstance(listed, list):
            if not speaker:
                raise RowError(f"column {name}: expected a list of messages, found text")
            return [answer(value) if speaker == "assistant" else {"role": speaker, "content": value}]
        value = listed
    if isinstance(value, Mapping):
        value = [value]
    if value is None:
        return []
    if not isinstance(value, list):
        raise RowError(f"column {name}: expected a list of messages, found {type(value).__name__}")
    for position, message in enumerate(value):
        if not isinstance(message, Mapping):
            raise RowError(f"column {name}: message {position} is no object")
    return [message_of(message, content) for message in value]


def _of_text(row: Row, content: Content, completion: Role | None) -> Conversation:
    prompt, output = _text(row, content.prompt), _text(row, completion)
    found = split_text(prompt, output, content.kind, content.family)
    segments = row.get(content.segments) if content.segments else None
    if not isinstance(segments, list):
        return found
    generated = [segment for segment in segments if isinstance(segment, Mapping) and segment.get("role") == "gen"]
    turns = sum(message["role"] == "assistant" for message in found.messages)
    before = sum(message["role"] == "assistant" for message in split_text(prompt, "", content.kind, None).messages)
    # Recorded boundaries are exact. Where the template finds as many turns both agree, and its messages say more.
    return found if turns - before == len(generated) else _of_segments(segments, content)


def split_text(prompt: str, completion: str, kind: str, family: str | None) -> Conversation:
    """Return the conversation of a rendered prompt and completion, split only where the prompt's template allows it."""
    known = family_named(family) if family else None
    # What the model wrote may look like a template's marks: which template it is, the prompt alone tells.
    kept = known or find_family(prompt)
    if (kept is None or not kept.mark.search(prompt)) and (kind == "rendered" or find_family(prompt + completion)):
        return Conversation([{"role": "user", "content": prompt}, answer(completion)], content_kind=UNSPLIT)
    found = parse_conversation(prompt + completion, known, prompt_length=len(prompt))
    # A prompt of plain words was never rendered, so nothing was lost.
    return replace(found, flags=()) if found.content_kind == UNSPLIT and found.family is None else found


def _of_segments(segments: list[Any], content: Content) -> Conversation:
    messages: list[Message] = []
    family = content.family
    for segment in segments:
        if not isinstance(segment, Mapping) or not isinstance(segment.get("text"), str):
            raise RowError(f"column {content.segments}: a segment without text")
        if segment.get("role") == "prompt":
            found = split_text(segment["text"], "", content.kind, family)
            messages, family = [m for m in found.messages if m["role"] != "assistant" or m["content"]], found.family
        elif segment.get("role") == "gen":
            messages.append(answer(segment["text"], family))
        else:
            messages.append({"role": "environment", "content": segment["text"]})
    return Conversation(messages, content_kind=content.kind, flags=("split at the recorded segments",), family=family)


def _of_items(row: Row, content: Content, completion: Role | None) -> Conversation:
    name, value = first_value(row, content.prompt)
    if not isinstance(value, (str, list)):
        raise RowError(f"column {name}: expected a text or Responses items, found {type(value).__name__}")
    output = first_list(row, completion)
    instructions = first_value(row, content.instructions)[1] if content.instructions else None
    prompt = [{"role": "user", "content": value}] if isinstance(value, str) else value
    if isinstance(instructions, str) and instructions:
        prompt = [{"role": "system", "content": instructions}, *prompt]
    return Conversation(messages_of_items([*prompt, *output]), content_kind="messages")


def _of_ids(ids: tuple[list[int], list[int]], content: Content, tokenizer: TextTokenizer | None) -> Conversation:
    if tokenizer is None:
        return without_text()
    pieces = tokenizer.pieces([*ids[0], *ids[1]])
    prompt, completion = "".join(pieces[: len(ids[0])]), "".join(pieces[len(ids[0]) :])
    return split_text(prompt, completion, content.kind, content.family)


def first_value(row: Row, role: Role | None) -> tuple[str, Any]:
    """Return the first column of a role that holds something, and its value."""
    columns = role.columns if role else ()
    for column in columns:
        if (value := row.get(column)) is not None:
            return column, value
    return (columns[0] if columns else "", None)


def first_list(row: Row, role: Role | None) -> list[Any]:
    """Return the list that a role's column holds. Raises RowError."""
    name, value = first_value(row, role)
    listed = json_text(value) if isinstance(value, str) else value
    if not isinstance(listed, list):
        raise RowError(f"column {name}: expected a list, found {'nothing' if value is None else type(value).__name__}")
    return listed


def _text(row: Row, role: Role | None) -> str:
    name, value = first_value(row, role)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise RowError(f"column {name}: expected text, found {type(value).__name__}")
    return value
