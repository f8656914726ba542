"""Which prompt and which task a record is of: what tells trajectories of the same prompt from others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from ... import messages as normal
from ...truth import NAMES
from ..base import Entry
from ..values import recorded_uid, short
from .record_types import ANY, NOTHING, Node, Raw, Record, Task, TaskData, is_there

KNOWN_PROMPTS = 1024  # prompts whose key and preview are remembered
SHORT_PROMPT = 1 << 14  # bytes; only prompts up to this length are


def prompt_nodes(nodes: list[Node], first_assistant: int | None) -> list[Node]:
    """Return the nodes that lead to the first assistant message, root first: the prompt."""
    path: list[Node] = []
    current = len(nodes) if first_assistant is None else first_assistant
    parent = current - 1 if first_assistant is None else nodes[current].parent
    # A parent that does not come before its node is treated as missing, as in the branches.
    while parent is not None and 0 <= parent < current:
        path.append(nodes[parent])
        current, parent = parent, nodes[parent].parent
    return path[::-1]


class Prompt(NamedTuple):
    """What the index keeps of the messages of a prompt that has words."""

    key: str
    preview: str


def prompt_of(context: Sequence[Mapping[str, Any]]) -> Prompt | None:
    """Return the key and preview of a prompt's messages; None where they have no text at all."""
    return None if normal.is_empty(context) else Prompt(normal.prompt_key(context), normal.preview(context))


def recorded_prompt(nodes: list[Node]) -> Prompt | None:
    """Return the key and preview of the prompt that these nodes are; None where they have no text at all."""
    recorded = tuple([(node.message.role, bytes(node.message.content)) for node in nodes])
    # A long prompt, such as one with images, is not worth its place in the memory of known ones.
    is_short = sum([len(content) for _, content in recorded]) <= SHORT_PROMPT
    return (_known_prompt if is_short else _known_prompt.__wrapped__)(recorded)


@lru_cache(maxsize=KNOWN_PROMPTS)
def _known_prompt(recorded: tuple[tuple[str | None, bytes], ...]) -> Prompt | None:
    # The rollouts of a group begin with the same bytes, so most of them need no decoding and hashing.
    return prompt_of([{"role": role, "content": ANY.decode(raw) if raw else None} for role, raw in recorded])


def identify(entry: Entry, prompt: Prompt | None, task: Any, example: int | str | None) -> None:
    """Fill in what says which prompt and task a trajectory is of."""
    if isinstance(task, Task):
        data = task.data or task
        example = data.idx if data.idx is not None else example
        entry.task_key = short(task.key or task.name)
        entry.task = recorded_uid(task.key or task.hash) or truth_hash(data)
    entry.data_idx = short(example) if isinstance(example, str) else example
    if prompt is None:
        # Without words the record's own example id is all that tells prompts apart.
        words = "" if example is None else f"{entry.env or ''} {example}"
        prompt = Prompt(normal.prompt_key([{"role": "example", "content": words}]), normal.EMPTY_PREVIEW)
    entry.prompt_key, entry.preview = prompt


def truth_hash(data: TaskData | Record) -> str:
    """Return a short hash of a task's recorded ground truth, or '' where none is recorded."""
    for name in NAMES:
        value = getattr(data, name, NOTHING)
        if is_there(value) and bytes(value) != b'""':
            # Encoded anew, since writers differ in spaces and escapes.
            return sha256(msgspec.json.encode(decoded(value), order="sorted")).hexdigest()[:16]
    return ""


def decoded(raw: Raw) -> Any:
    """Return the value of a part that was left undecoded; None where it is missing."""
    return ANY.decode(raw) if is_there(raw) else None
