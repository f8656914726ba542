"""The v0 rows of verifiers and prime-rl (RolloutOutput): a prompt, a completion and what it scored."""

from __future__ import annotations

from typing import Any

import msgspec

from ... import messages as normal
from ..base import Entry, Shard
from ..lines import decode_leniently
from ..values import add_values, flag, integer, place_uid, recorded_uid, short
from .called import written_names
from .entries import common, error_type
from .identity import decoded, identify, prompt_of, truth_hash
from .record_types import MESSAGES, Raw, Record

# The top-level values of a row that are its own, and no metric written flat beside it.
OWN_FIELDS = {
    "id", "example_id", "rollout_idx", "reward", "advantage", "is_completed", "is_truncated", "is_filtered",
    "policy_version", "off_policy_steps", "eval_step", "generation_ms", "scoring_ms", "total_ms", "completion_len",
}  # fmt: skip


def flat_values(line: bytes | bytearray) -> dict[str, Any]:
    """Return the numbers that a row without `metrics` carries at its top level: there they are its metrics."""
    row = decode_leniently(bytes(line))[0]
    numbers = {name: value for name, value in row.items() if isinstance(value, (bool, int, float))}
    return {name: value for name, value in numbers.items() if name not in OWN_FIELDS}


def v0_entry(record: Record, shard: Shard, offset: int, length: int, line: int, flat: dict[str, Any]) -> Entry:
    """Return the entry of a v0 row; `flat` are its top-level values, where it has no `metrics` of its own."""
    entry = common(record, record, shard, offset, length, line, None)
    entry.uid = recorded_uid(record.rollout_id) or place_uid(shard.path, offset, None)
    entry.episode_id, entry.branches = None, 1
    entry.advantage = record.advantage if record.advantage is not None else entry.advantage
    if record.is_filtered is not None:
        entry.effective = int(not record.is_filtered)
    add_values(entry.values, "", flat)
    prompt, completion = decoded(record.prompt), completion_messages(record.completion)
    called: list[Any] = []
    for role, calls in completion:
        entry.turns += role == "assistant"
        called += calls
    if called:
        entry.tool_calls, entry.tools = len(called), written_names(called)
    context = [{"role": "user", "content": prompt}] if isinstance(prompt, str) else prompt
    context = [message for message in context if isinstance(message, dict)] if isinstance(context, list) else []
    example = record.example_id if record.example_id is not None else _example_id(record.id)
    identify(entry, prompt_of(normal.prompt_context(context)), None, example)
    entry.task = truth_hash(record)
    usage = record.token_usage if isinstance(record.token_usage, dict) else {}
    entry.prompt_tokens, entry.completion_tokens = (
        integer(usage.get("input_tokens")),
        integer(usage.get("output_tokens")),
    )
    entry.truncated = flag(record.is_truncated)
    entry.error_type = error_type(record.error) or entry.error_type
    if record.error:
        entry.ok = 0
    if entry.seconds is None and record.total_ms is not None:
        entry.seconds = record.total_ms / 1000
    if entry.env is None and isinstance(record.task, str):
        entry.env = short(record.task)
    return entry


def completion_messages(completion: Raw) -> list[tuple[str | None, list[Any]]]:
    """Return (role, tool calls) of each message of a v0 completion; a text is one assistant message."""
    with memoryview(completion) as recorded:
        if (beginning := recorded[:1].tobytes()) != b"[":
            return [("assistant", [])] if beginning == b'"' else []
    try:
        return [(message.role, message.tool_calls or []) for message in MESSAGES.decode(completion)]
    except msgspec.ValidationError:
        return [_counted(message) for message in decoded(completion) if isinstance(message, dict)]


def _counted(message: dict[str, Any]) -> tuple[str | None, list[Any]]:
    calls = message.get("tool_calls")
    return message.get("role"), calls if isinstance(calls, list) else []


def _example_id(recorded: Any) -> int | str | None:
    if isinstance(recorded, bool):
        return None  # Python counts it among the integers
    if isinstance(recorded, int) and integer(recorded) is None:
        return str(recorded)  # more than a column of integers holds
    return recorded if isinstance(recorded, (int, str)) else None
