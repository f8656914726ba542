"""The records of prime-rl and verifiers as the index reads them: only the needed fields, and what kind each is.

Field names are those of verifiers' Trace and Episode (v1) and RolloutOutput (v0).
"""

from __future__ import annotations

from typing import Annotated, Any, TypeAlias

import msgspec

Raw = msgspec.Raw
NOTHING = Raw()  # a part that is missing; what is there is decoded where it is needed
Integer = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]  # what SQLite can hold


class Usage(msgspec.Struct, gc=False):
    prompt_tokens: Integer | None = None
    completion_tokens: Integer | None = None


class Call(msgspec.Struct, gc=False):
    finish_reason: str | None = None
    usage: Usage | None = None


# A union of everything is as lenient as Any, and decodes an object to a struct of the few parts that are needed.
Odd: TypeAlias = str | int | float | bool | list[Any] | None


class Function(msgspec.Struct, gc=False):
    name: Odd | dict[str, Any] | msgspec.UnsetType = msgspec.UNSET


class ToolCall(msgspec.Struct, gc=False):
    """What an assistant asks a tool to do; its arguments are not decoded."""

    name: Odd | dict[str, Any] = None
    function: Function | Odd = None


class Message(msgspec.Struct, gc=False):
    role: str | None = None
    content: Raw = NOTHING  # decoded for a prompt only
    tool_calls: list[ToolCall | Odd] | None = None


class Node(msgspec.Struct, gc=False):
    message: Message = msgspec.field(default_factory=Message)
    parent: int | None = None
    sampled: bool | None = None
    finish_reason: str | None = None  # on nodes until 2026-07-17, then in `calls`
    usage: Usage | None = None
    cut: Any = msgspec.field(default=None, name="_cut")  # `record_decoding.MARK`, where token arrays were


class Reward(msgspec.Struct, gc=False):
    score: float | None = None
    weight: float | None = None


class TaskData(msgspec.Struct, gc=False):
    idx: Integer | str | None = None
    prompt: Raw = NOTHING
    system_prompt: Raw = NOTHING
    answer: Raw = NOTHING
    ground_truth: Raw = NOTHING
    solution: Raw = NOTHING
    target: Raw = NOTHING


class Task(TaskData, gc=False):
    """A task; until 2026-07-09 its data lay at its own root."""

    data: TaskData | None = None
    key: str | None = None
    hash: str | None = None
    name: str | None = None


class Agent(msgspec.Struct, gc=False):
    name: str | None = None


class Env(msgspec.Struct, gc=False):
    id: str | None = None
    name: str | None = None


class Group(msgspec.Struct, gc=False):
    id: str | None = None


class Policy(msgspec.Struct, gc=False):
    start: Integer | None = None


class Work(msgspec.Struct, gc=False):
    type: str | None = None
    step: Integer | None = None
    policy: Policy | None = None


class Run(msgspec.Struct, gc=False):
    type: str | None = None
    step: Integer | None = None
    work: Work | None = None


class Record(msgspec.Struct, gc=False):
    """One line, whatever it is; which fields are there tells (`kind`)."""

    id: Any = None
    traces: list[Record] | None = None
    nodes: list[Node] | None = None
    task: Task | str | None = None
    agent: Agent | None = None
    env: Env | str | None = None
    group: Group | None = None
    run: Run | None = None
    calls: list[Call] | None = None
    rewards: dict[str, Reward | float | None] | None = None
    metrics: dict[str, Any] | None = None
    info: dict[str, Any] | None = None
    is_completed: bool | None = None
    is_truncated: bool | None = None
    ok: bool | None = None
    stop_condition: str | None = None
    errors: list[Any] | None = None
    error: Any = None
    timing: Any = None
    num_input_tokens: Integer | None = None
    num_output_tokens: Integer | None = None
    # root metadata of 2026-07-09, and of the v0 rows from 2026-06-01 on
    kind: str | None = None
    env_name: str | None = None
    group_id: str | None = None
    policy_version: Integer | None = None
    eval_step: Integer | None = None
    # v0 rows
    example_id: Integer | str | None = None
    rollout_id: str | None = None
    prompt: Raw = NOTHING
    completion: Raw = NOTHING
    answer: Raw = NOTHING
    reward: float | None = None
    advantage: float | None = None
    is_filtered: bool | None = None
    token_usage: Any = None
    total_ms: float | None = None
    # lines that are no trajectory
    token_ids: Raw = NOTHING
    export_sequence_idx: int | None = None
    trace_id: str | None = None
    branches: Raw = NOTHING
    trace_ids: Raw = NOTHING
    chunk: int | None = None
    valid: Any = None


DECODER = msgspec.json.Decoder(Record)
MESSAGES = msgspec.json.Decoder(list[Message])
ANY = msgspec.json.Decoder()


def kind(record: Record) -> str | None:
    """Say what a line is: episode, trace, v0, update, token_export, index_row or validation; None for none of them."""
    if record.nodes is not None:
        return "trace"
    if record.traces is not None:
        return "episode"
    if is_there(record.prompt) and is_there(record.completion) and _scored(record):
        return "v0"
    if record.trace_id is not None and (is_there(record.branches) or record.info is not None):
        return "update"
    if is_there(record.token_ids) and record.export_sequence_idx is not None:
        return "token_export"
    if is_there(record.trace_ids) and record.chunk is not None:
        return "index_row"
    return "validation" if record.valid is not None and not is_there(record.prompt) else None


def is_there(raw: Raw) -> bool:
    """Say whether a part that was left undecoded is recorded, and not null."""
    with memoryview(raw) as view:
        return len(view) > 4 or view.tobytes() not in (b"", b"null")


def _scored(record: Record) -> bool:
    # A data set of prompts and completions is no rollout, and other systems write prompts and completions too; a row
    # of verifiers says which example it is of, or carries metrics, or names its task beside its reward.
    named_task = isinstance(record.task, str) and record.reward is not None
    return record.example_id is not None or record.metrics is not None or named_task
