"""The records of prime-rl and verifiers as the index reads them: only the needed fields, one decoding pass.

Field names are those of verifiers' Trace and Episode (v1) and RolloutOutput (v0). Token arrays make up most
of a record's bytes, so they are cut out before decoding; `without_arrays` says why that is exact.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec

from ..lines import decode_leniently, reencoded

Raw = msgspec.Raw
NOTHING = Raw()  # a part that is missing; what is there is decoded where it is needed
Integer = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]  # what SQLite can hold


class Usage(msgspec.Struct, gc=False):
    prompt_tokens: Integer | None = None
    completion_tokens: Integer | None = None


class Call(msgspec.Struct, gc=False):
    finish_reason: str | None = None
    usage: Usage | None = None


class Message(msgspec.Struct, gc=False):
    role: str | None = None
    content: Raw = NOTHING  # decoded for a prompt only
    tool_calls: list[Raw] | None = None


class Node(msgspec.Struct, gc=False):
    message: Message = msgspec.field(default_factory=Message)
    parent: int | None = None
    sampled: bool | None = None
    finish_reason: str | None = None  # on nodes until 2026-07-17, then in `calls`
    usage: Usage | None = None


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


ARRAY = b',"token_ids":['
ARRAY_LENGTH = len(ARRAY)
NEXT_ARRAYS = [
    (key, len(key))
    for key in (
        b',"mask":',
        b',"is_content":',
        b',"logprobs":',
        b',"advantages":',
        # Mostly these three hold nothing; found together they end the search for arrays at once.
        b',"reference_logprobs":null,"trainer_logprobs":null,"entropies":null',
        b',"reference_logprobs":',
        b',"trainer_logprobs":',
        b',"entropies":',
    )
]
BRACKET = 0x5B
SCALAR_STARTS = frozenset(b"0123456789-tfn]")
PROBE_BYTES = 1 << 16


def read_record(buffer: bytearray | bytes, start: int, end: int) -> tuple[Record, list[str]]:
    """Decode the line `buffer[start:end]`, which must be JSON of the format's types; there are no remarks on it.

    Raises ValueError or RecursionError where it is not: then `read_leniently` may help.
    """
    found = buffer.find(ARRAY, start, min(end, start + PROBE_BYTES))
    # An empty first array means a record without tokens, where searching for more of them only costs.
    if found >= 0 and buffer[found + ARRAY_LENGTH : found + ARRAY_LENGTH + 1] != b"]":
        return DECODER.decode(without_arrays(buffer, start, end)), []
    # Not copied: the undecoded parts point into the buffer, which is used again when the record is done with.
    return DECODER.decode(memoryview(buffer)[start:end]), []


def copied(buffer: bytearray | bytes, start: int, end: int) -> bytes:
    """Return `buffer[start:end]` as bytes, copied once."""
    with memoryview(buffer) as view:
        return bytes(view[start:end])


def without_arrays(buffer: bytearray | bytes, start: int, end: int) -> bytes:
    """Return `buffer[start:end]` without its token arrays; `buffer[end]` must be there, as a line's newline is.

    Exact for compact JSON: `,"token_ids":[` cannot stand inside a string, whose quotes would be escaped, and an
    array of numbers, booleans and nulls ends at the next `]`. Only a node has one of the next arrays behind it, so
    a list of the same name elsewhere, for example in `info`, stays. Anything else is left as it is.
    """
    find, pieces, kept, search = buffer.find, [], start, start
    while (found := find(ARRAY, search, end)) >= 0:
        search = found + ARRAY_LENGTH
        if buffer[search] not in SCALAR_STARTS or (stop := find(b"]", search, end) + 1) <= 0:
            continue
        first = stop
        for key, length in NEXT_ARRAYS:
            value = stop + length
            if buffer[stop:value] != key:
                continue
            if buffer[value] == BRACKET and buffer[value + 1] in SCALAR_STARTS:
                after = find(b"]", value, end) + 1
            elif buffer[value : value + 4] == b"null":
                after = value + 4
            else:
                break
            if not 0 < after <= end:
                break
            stop = after
        if stop > first:
            pieces.append(buffer[kept:found])
            kept = search = stop
    pieces.append(buffer[kept:end])
    return b"".join(pieces)


MAX_REPAIRS = 32
BAD_PATH = re.compile(r" - at `\$(?P<path>.*)`$")
PATH_STEPS = re.compile(r"\.([^.\[\]]+)|\[(\d+)\]")


def read_leniently(buffer: bytearray | bytes, start: int, end: int) -> tuple[Record, list[str]]:
    """Decode an awkward line; return it with remarks on what was replaced, or left out for its type.

    Raises ValueError with the reason when the line is no JSON object, or does not fit a record at all.
    """
    value, remark = _decoded_leniently(buffer, start, end)
    if not isinstance(value, dict):
        raise ValueError(f"a JSON {type(value).__name__}, not an object")
    remarks = [remark] if remark else []
    for _ in range(MAX_REPAIRS):
        try:
            return DECODER.decode(reencoded(value)), remarks
        except RecursionError:
            raise ValueError("nested too deeply") from None
        except msgspec.ValidationError as error:
            if not _leave_out(value, str(error)):
                raise ValueError(str(error)) from None
            remarks.append(f"left out: {error}")
    raise ValueError("too many values of unexpected types")


def _decoded_leniently(buffer: bytearray | bytes, start: int, end: int) -> tuple[Any, str | None]:
    # Decoded to Python's objects, token arrays would take ten times their bytes.
    line = without_arrays(buffer, start, end)
    try:
        return decode_leniently(line)
    except ValueError:
        if len(line) == end - start:
            raise
        return decode_leniently(copied(buffer, start, end))


def _leave_out(value: Any, error: str) -> bool:
    """Take the part that a validation error names out of `value`; say whether that was possible."""
    match = BAD_PATH.search(error)
    # Inside a dictionary the error does not say which key: then the whole dictionary goes.
    path = match["path"].split("[...]")[0] if match else ""
    steps = [name or int(index) for name, index in PATH_STEPS.findall(path)]
    if not steps:
        return False
    for step in steps[:-1]:
        value = value[step]
    if isinstance(value, dict):
        return value.pop(steps[-1], NOTHING) is not NOTHING
    # A list keeps its length, since nodes name each other by their places in it.
    found, value[steps[-1]] = value[steps[-1]], {}
    return bool(found != {})
