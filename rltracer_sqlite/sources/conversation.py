"""What every source derives from a conversation in the same way: an index entry, and a decoded trajectory.

A source that has the messages of a record and the numbers beside them needs nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from .. import messages as normal
from ..tool_names import called_tools, names_json, names_of
from ..trajectory import Message, Trajectory
from ..truth import bare
from .base import Entry, Locator, Shard
from .values import MAX_TEXT, place_of, place_uid


def entry_of(
    shard: Shard,
    messages: Sequence[Mapping[str, Any]],
    offset: int,
    length: int,
    line: int,
    item: int | None = None,
    *,
    reward: float | None = None,
    truth: Any = None,
    example: int | str | None = None,
) -> Entry:
    """Return the entry of a conversation: its place, its prompt, its turns; set further fields on it.

    `truth` is the recorded ground truth, which tells tasks with the same words apart; `example` is the recorded
    number of the example, which identifies a prompt without words.
    """
    entry = Entry(place_uid(shard.path, offset, item), offset, length, line, item)
    entry.step, entry.split, entry.reward, entry.data_idx, entry.branches = shard.step, shard.split, reward, example, 1
    entry.task = truth_hash(truth)
    called: list[Any] = []
    for message in messages:
        entry.turns += message.get("role") == "assistant"
        called += message.get("tool_calls") or ()
    if called:
        entry.tool_calls, entry.tools = len(called), names_json(called_tools(called))
    context = normal.prompt_context(messages)
    if normal.is_empty(context):
        context = [{"role": "example", "content": "" if example is None else str(example)}]
        entry.preview = normal.EMPTY_PREVIEW
    else:
        entry.preview = normal.preview(context)
    entry.prompt_key = normal.prompt_key(context)
    return entry


def trajectory_of(
    entry: Entry,
    locator: Locator,
    messages: list[Message],
    raw: bytes,
    record: dict[str, Any],
    *,
    tools: Any = None,
    truth: Any = None,
    remarks: Sequence[str] = (),
) -> Trajectory:
    """Return the trajectory of one conversation, with the metadata that an entry of it holds.

    `raw` is the record as it stands in its file, `record` the decoded record, `truth` the recorded ground truth,
    which is shown as the expected answer; `remarks` are for a reader.
    """
    return Trajectory(
        messages=messages,
        metadata=_metadata(entry, locator, remarks) | {"truth": None if bare(truth) is None else truth},
        branches=[messages] if messages else [],
        branch_nodes=[list(range(len(messages)))] if messages else [],
        trained=[True] if messages else [],
        tools=normal.tool_definitions(tools),
        raw=raw,
        record=record,
    )


def _metadata(entry: Entry, locator: Locator, remarks: Sequence[str]) -> dict[str, Any]:
    """Return `Trajectory.metadata` with the keys that every source has. A value that is not recorded is None."""
    named = {path: value for path, value in entry.values.items() if path.startswith("rewards.")}
    info = {path: value for path, value in entry.values.items() if path.startswith("info.") and value is not None}
    return {
        "uid": locator.uid,
        "env": entry.env,
        "agent": entry.agent,
        "task": {"key": entry.task_key} if entry.task_key else None,
        "reward": entry.reward,
        "rewards": {
            path.removeprefix("rewards.").removesuffix(".score"): {"score": value, "weight": None}
            for path, value in [*named.items(), *((name, None) for name in entry.unrewarded)]
        },
        "metrics": {
            path: value
            for path, value in entry.values.items()
            if path not in named and path not in info and value is not None
        },
        "info": {path.removeprefix("info."): value for path, value in info.items()},
        "advantage": entry.advantage,
        "logprobs": None,
        "tool_calls": entry.tool_calls,
        "tools": names_of(entry.tools),
        "completion": {
            "stop_condition": entry.stop_condition,
            "truncated": None if entry.truncated is None else bool(entry.truncated),
            "prompt_tokens": entry.prompt_tokens,
            "completion_tokens": entry.completion_tokens,
            "turns": entry.turns,
        },
        "timing": None if entry.seconds is None else {"total": entry.seconds},
        "errors": [{"type": entry.error_type}] if entry.error_type else [],
        "content_kind": entry.content_kind,
        "remarks": list(remarks),
        "locator": place_of(locator),
        "annotations": [],
    }


def truth_hash(truth: Any) -> str:
    """Return a short hash of a recorded ground truth, or '' where none is recorded; [x] counts as x."""
    if (truth := bare(truth)) is None:
        return ""
    try:
        encoded = msgspec.json.encode(truth, order="sorted")
    except (TypeError, ValueError, RecursionError):
        encoded = repr(truth).encode("utf-8", "surrogatepass")
    return sha256(encoded).hexdigest()[:16]


def short_text(value: Any) -> str | None:
    """Return a recorded text or number as a text of one line that can be indexed; anything else, or none, is None."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    return normal.one_line(str(value))[:MAX_TEXT] or None
