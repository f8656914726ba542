"""What a mapping of one's own misses, told after it has been used: judged by the first rows of a few files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple

from ...amounts import plural
from ...tokens.tokenizer import TokenizerError
from ..base import Entry, Shard
from ..places import Root, files_below
from .column_paths import meant, names_in
from .entries import Place, read_row
from .files import ENDINGS_TO_READ, MOST_VISITED, candidates, shard_of
from .mapping import Content, Mapping, Role, Shape
from .recognise import sample
from .rows import Row, expand
from .shapes import shape_of

FILES, ROWS, MOST_KEYS = 5, 20, 10


class Tried(NamedTuple):
    """A row that fits a shape, its entry, and its messages."""

    shape: Shape
    row: Row
    entry: Entry
    messages: list[dict[str, Any]]


def check_mapping(root: Root, mapping: Mapping) -> list[str]:
    """Return a sentence for each thing that a mapping speaks of and the first rows at `root` do not have."""
    tried = list(_tried(root, mapping))
    return [*_missing_columns(tried), *_misread_messages(tried), *_missing_rewards(tried)] if tried else []


def nothing_fits(root: Root, mapping: Mapping) -> str:
    """Say that no file at `root` has a name that a mapping accepts, and which files are there."""
    found = list(islice(_other_files(root, mapping), 3))
    there = f"It holds {', '.join(found)}, …" if found else "It holds no file of a kind that a mapping can read."
    wanted = ", ".join(template.written for template in mapping.paths) or "any"
    return f"No file in {root} fits files.paths of {mapping.name} ({wanted}). {there}"


def _tried(root: Root, mapping: Mapping) -> Iterator[Tried]:
    for shard in islice(candidates(root, mapping, MOST_VISITED), FILES):
        for record in [] if shard.aside else sample(root, shard, mapping.table, ROWS):
            if shape := shape_of(record, mapping):
                yield from _rows(record, shape, shard)


def _rows(record: Row, shape: Shape, shard: Shard) -> Iterator[Tried]:
    try:
        for item, row in islice(expand(record, shape), ROWS):
            reading = read_row(row, shape, shard, Place(0, 0, 1, item), with_ids=False)
            yield Tried(shape, row, reading.entry, reading.conversation.messages)
    except (ValueError, TokenizerError):
        return  # what cannot be read is told as a problem


def _missing_columns(tried: list[Tried]) -> Iterator[str]:
    for shape in {id(one.shape): one.shape for one in tried}.values():
        rows = [one.row for one in tried if one.shape is shape]
        names = names_in(rows)
        for key, columns in _named(shape):
            if not any(row.has(column) for row in rows for column in columns):
                lack = f"none of the first {plural(len(rows), 'row')} has a column {' or '.join(columns)}"
                yield f"{key}: {lack}{meant(columns[0], names)}"


def _named(shape: Shape) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield (key, columns) for each place of a mapping that names columns, apart from the conversation's own."""
    roles: list[tuple[str, Role]] = [(f"columns.{name}", role) for name, role in shape.roles.items()]
    roles += [(f"variant.{one.label}", role) for one in shape.variants for role in (one.completion, one.reward) if role]
    yield from ((key, role.columns) for key, role in roles if role.columns)
    if rewards := shape.rewards:
        yield from (("rewards.columns", (name,)) for name in rewards.columns)
        if rewards.inside:
            yield "rewards.inside", (rewards.inside,)


def _misread_messages(tried: list[Tried]) -> Iterator[str]:
    content = tried[0].shape.content
    messages = [message for one in tried for message in one.messages]
    roles = Counter(str(message["role"]) for message in messages)
    keys = "the keys of messages are " + ", ".join(_recorded_keys(messages, content))
    if roles[""]:
        yield f'content.role: {plural(roles[""], "message")} without anything under "{content.role}"; {keys}'
    elif messages and "assistant" not in roles:
        known = ", ".join(list(roles)[:MOST_KEYS])
        yield f"content.roles: no message is the assistant's; say there what these roles mean: {known}"
    if messages and not any(message.get("content") or message.get("tool_calls") for message in messages):
        yield f'content.text: no message has anything under "{content.text}"; {keys}'


def _recorded_keys(messages: list[dict[str, Any]], content: Content) -> list[str]:
    """Return the keys that messages were recorded with: the normal form has a role and a content in any case."""
    recorded = {"role": content.role, "content": content.text}
    present = (key for message in messages for key, value in message.items() if value or key not in recorded)
    return list(dict.fromkeys(recorded.get(key, key) for key in present))[:MOST_KEYS]


def _missing_rewards(tried: list[Tried]) -> Iterator[str]:
    if not any(one.entry.reward is not None for one in tried):
        yield "no row has a reward, which pass rates and preference pairs are made of: see [columns] and [rewards]"


def _other_files(root: Root, mapping: Mapping) -> Iterator[str]:
    if root.is_dir():
        files = (file for file in islice(files_below(root), MOST_VISITED) if file.endswith(ENDINGS_TO_READ))
        yield from (file for file in files if shard_of(root, file, mapping) is None)
