"""Builders of single records, with keyword overrides.

Records have the shape of verifiers 0.4.0 unless an override says otherwise; a value of `ABSENT` leaves the key out.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import count
from typing import Any, Final

Record = dict[str, Any]

ABSENT: Final = object()
MODEL = "Qwen/Qwen3-4B"
START = 1_780_000_000.0
_fresh = count(1)


def hex_id(*parts: object) -> str:
    """Return an id of 32 hexadecimal digits that depends on the parts only."""
    return sha256("\0".join(map(str, parts)).encode()).hexdigest()[:32]


def message(role: str, content: Any = None, **extra: Any) -> Record:
    """Return a message of verifiers v1; without a content the key is missing, as in the files."""
    return {"role": role, **({} if content is None else {"content": content}), **extra}


def tool_call(id: str, name: str, arguments: Any, **extra: Any) -> Record:
    """Return a tool call in the flat form, its arguments a string."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": id, "name": name, "arguments": text, **extra}


def node(said: Record, parent: int | None = None, *, token_ids: bool = False, **overrides: Any) -> Record:
    """Return a node of a message graph. Its mask is true on sampled tokens, and only those have a logprob."""
    sampled = bool(overrides.pop("sampled", said.get("role") == "assistant"))
    ids = _token_ids(said) if token_ids else []
    mask = [sampled and position > 2 for position in range(len(ids))]
    logprobs = [-round(0.01 * (position + 1), 4) for position in range(sum(mask))]
    root = {} if parent is None else {"parent": parent}
    tokens = {"token_ids": ids, "mask": mask, "is_content": [not sampled or bit for bit in mask], "logprobs": logprobs}
    return _overridden({**root, "message": said, "sampled": sampled, "timestamp": START + 3, **tokens}, overrides)


def _token_ids(said: Record) -> list[int]:
    # Not a real tokenizer: three tokens open a message as in ChatML, one closes it, every byte between is a token.
    text = json.dumps([said.get("content"), said.get("tool_calls")]).encode()[:24]
    return [151644, 200, 198, *text, 151645]


def nodes_of(messages: Sequence[Record], parents: Sequence[int | None] | None = None, **extra: Any) -> list[Record]:
    """Return the nodes of a conversation, a chain where no parents are given."""
    chain = [None, *range(len(messages) - 1)][: len(messages)] if parents is None else parents
    return [node(said, parent, **extra) for said, parent in zip(messages, chain, strict=True)]


def paths(nodes: Sequence[Record]) -> list[list[int]]:
    """Return the root-to-leaf paths of a graph in the order of their leaves."""
    parents = [one.get("parent") for one in nodes]
    found = []
    for leaf in (index for index in range(len(nodes)) if index not in parents):
        path = [leaf]
        while (parent := parents[path[0]]) is not None:
            path.insert(0, parent)
        found.append(path)
    return found


def task_of(data: Mapping[str, Any]) -> Record:
    """Return a task around its data, with the stable key and the content hash; a whole task is returned as it is."""
    if "data" in data:
        return dict(data)
    digest = sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()
    return {"type": "QATask", "data": dict(data), "key": data.get("name", digest), "hash": digest}


def trace(
    messages: Sequence[Record] = (),
    *,
    nodes: Sequence[Record] | None = None,
    rewards: Mapping[str, Any] | None = None,
    task: Mapping[str, Any] | None = None,
    group: str | None = None,
    agent: str = "agent",
    trainable: bool = True,
    token_ids: bool = False,
    **overrides: Any,
) -> Record:
    """Return a trace: `task` is its data or the whole task, `group` goes to info.group_id."""
    graph = list(nodes_of(messages, token_ids=token_ids) if nodes is None else nodes)
    stages = ("boot", "setup", "agent", "finalize", "scoring")
    record = {
        "version": 1,
        "id": f"{next(_fresh):032x}",
        "verifiers": {"version": "0.4.0"},
        "task": task_of({"idx": 0} if task is None else task),
        "agent": {"config": {"model": MODEL, "sampling": {"temperature": 0.7}}, "name": agent, "trainable": trainable},
        "tools": [],
        "nodes": graph,
        "calls": [_model_call(index) for index, one in enumerate(graph) if one.get("sampled")],
        "rewards": dict(rewards or {}),
        "metrics": {},
        "info": {} if group is None else {"group_id": group},
        "extra_usage": [],
        "is_completed": True,
        "ok": True,
        "stop_condition": "agent_completed",
        "errors": [],
        "timing": {"start": START, **{stage: {"start": START + 1, "end": START + 2.5} for stage in stages}},
    }
    return _overridden(record, overrides)


def _model_call(index: int) -> Record:
    usage = {"prompt_tokens": 40 + index, "completion_tokens": 20 + index}
    time = {"start": START + 1, "end": START + 1.5}
    return {"node": index, "model": MODEL, "finish_reason": "stop", "usage": usage, "time": time}


def episode(
    traces: Sequence[Record] = (),
    *,
    env: str = "judge-bench",
    task: Mapping[str, Any] | None = None,
    group: str | None = None,
    step: int | None = None,
    split: str = "train",
    errors: Sequence[Record] = (),
    **overrides: Any,
) -> Record:
    """Return an episode. With a step it was dispatched by a training run, without one by an evaluation."""
    run: Record = {"type": "eval", "id": "eval-1", "name": "demo"}
    if step is not None:
        work = {"type": split, "step": step, "policy": {"start": step - 1, "end": step}}
        run = {"type": "train", "id": "run-1", "name": "demo", "work": work}
    record = {
        "id": f"{next(_fresh):032x}",
        "env": {"id": env, "name": env},
        "task": task_of(task) if task is not None else traces[0]["task"] if traces else task_of({"idx": 0}),
        **({} if group is None else {"group": {"id": group}}),
        "run": run,
        "ok": not errors,
        "errors": list(errors),
        "traces": list(traces),
    }
    return _overridden(record, overrides)


def v0_row(
    messages: Sequence[Record] = (),
    *,
    example_id: int | str = 0,
    reward: float | None = 1.0,
    metrics: Mapping[str, float] | None = None,
    **overrides: Any,
) -> Record:
    """Return a row of verifiers v0: messages split before the first assistant turn, metrics repeated at the root."""
    turns = [index for index, said in enumerate(messages) if said.get("role") == "assistant"]
    first = turns[0] if turns else len(messages)
    record = {
        "example_id": example_id,
        "prompt": list(messages[:first]),
        "completion": list(messages[first:]),
        "answer": "pass",
        "info": {"difficulty": "easy"},
        "reward": reward,
        "error": None,
        "timing": {"start_time": START, "generation_ms": 2500.0, "scoring_ms": 100.0, "total_ms": 2600.0},
        "is_completed": True,
        "is_truncated": False,
        "stop_condition": "no_tools_called",
        "metrics": dict(metrics or {}),
        "tool_defs": None,
        "token_usage": {"input_tokens": 70.0, "output_tokens": 26.0},
        **(metrics or {}),
    }
    return _overridden(record, overrides)


def _overridden(record: Record, overrides: Mapping[str, Any]) -> Record:
    return {key: value for key, value in {**record, **overrides}.items() if value is not ABSENT}
