"""The shape of a record: drafts become version 1 traces, and traces episodes, as verifiers writes them.

Keys stand in the order of verifiers' classes. Where a draft comes without tokens, as from an endpoint that returns
none, the counts in `usage` are estimates, at four bytes of UTF-8 a token.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from .sampling import NodeTokens
from .task import Draft, Record, Task

MODELS = {"agent": "Qwen/Qwen3-4B", "solver": "Qwen/Qwen3-4B", "judge": "Qwen/Qwen3-8B"}
RUN = {"type": "train", "id": "run-5a3e", "name": "sample--qwen3-4b"}
TOKENS_PER_SECOND = 60
TOOL_SECONDS = 0.4


def identifier(*parts: object) -> str:
    """Return 32 hexadecimal digits that depend on the parts only."""
    return sha256("\0".join(map(str, parts)).encode()).hexdigest()[:32]


def group_identifier(*parts: object) -> str:
    """Return a UUID that depends on the parts only."""
    return str(UUID(identifier("group", *parts), version=4))


def dumps(record: Any) -> bytes:
    """Return compact JSON in one line, with its line end."""
    return orjson.dumps(record, option=orjson.OPT_APPEND_NEWLINE)


def task_record(task: Task) -> Record:
    """Return a task as an episode and its traces repeat it."""
    data = {
        "idx": task.idx,
        "name": task.name,
        "prompt": task.prompt,
        "system_prompt": task.system_prompt,
        "skills": [],
        "network_allow": ["*"],
        "network_block": [],
        "artifacts": [],
        "artifact_max_bytes": 33554432,
        "timeout": {},
        "resources": {},
        "answer": task.answer,
    }
    return {"type": task.kind, "data": data, "key": task.name, "hash": sha256(orjson.dumps(data)).hexdigest()}


def agent_record(task: Task, name: str) -> Record:
    """Return who sampled a trace; only the judge is not trained."""
    config = {
        "model": MODELS[name],
        "sampling": {"temperature": 1.0, "max_tokens": 1024},
        "max_turns": task.max_turns,
        "timeout": {},
        "retries": {"max_retries": 0, "rules": []},
        "network_notice": True,
    }
    runtime = {"borrowed": False, "type": "subprocess"}
    return {"config": config, "runtime": runtime, "name": name, "trainable": name != "judge"}


def trace_record(
    task: Task, draft: Draft, uid: str, agent: str, began: float, tokens: Sequence[NodeTokens] = ()
) -> Record:
    """Return a draft as a trace that began at a Unix time in seconds; `tokens` are those of each node, or none."""
    nodes, calls, ended = _nodes_and_calls(task, draft, MODELS[agent], began + 2, tokens)
    read = sum(call["usage"]["prompt_tokens"] - call["usage"]["cached_input_tokens"] for call in calls)
    written = sum(call["usage"]["completion_tokens"] for call in calls)
    return {
        "version": 1,
        "id": uid,
        "verifiers": {"version": "0.4.0"},
        "task": task_record(task),
        "agent": agent_record(task, agent),
        "tools": list(task.tools),
        "nodes": nodes,
        "calls": calls,
        "mm_token_type_id_map": {},
        "request_rewrites": [],
        "response_rewrites": [],
        "rewards": {name: {"score": score, "weight": weight} for name, (score, weight) in draft.rewards.items()},
        "metrics": draft.metrics,
        "info": draft.info,
        "extra_usage": [],
        "is_completed": True,
        "ok": not draft.errors,
        "stop_condition": draft.stop,
        "is_timeout": False,
        "errors": draft.errors,
        "timing": _timing(began, ended, calls),
        "num_input_tokens": read,
        "num_output_tokens": written,
        "num_total_tokens": read + written,
    }


def _timing(began: float, ended: float, calls: Sequence[Record]) -> Record:
    """Return the spans of a trace, and how much of the agent's the model took."""
    sampling = round(sum(call["time"]["end"] - call["time"]["start"] for call in calls), 3)
    waiting = round(ended - began - 2 - sampling, 3)
    span = {"start": began + 2, "end": ended, "model": {"duration": sampling}, "harness": {"duration": waiting}}
    return {
        "start": began,
        "boot": {"start": began, "end": began + 1.5},
        "setup": {"start": began + 1.5, "end": began + 2},
        "agent": span,
        "finalize": {"start": ended, "end": ended},
        "scoring": {"start": ended, "end": round(ended + 0.25, 3)},
    }


def episode_record(
    task: Task, uid: str, group: str, work: Record, traces: Sequence[Record], error: Record | None
) -> Record:
    """Return the traces of one run of an environment as an episode, or an error where none came to be."""
    env = f"agentic-judge+{task.env}" if len(traces) > 1 else task.env
    record = {
        "id": uid,
        "env": {"id": env, "name": task.env},
        "task": task_record(task),
        "group": {"id": group},
        "run": {**RUN, "work": work},
        "ok": error is None and all(trace["ok"] for trace in traces),
        "is_timeout": False,
        "errors": [error] if error else [],
        "traces": list(traces),
    }
    return with_totals(record)


def with_totals(episode: Record) -> Record:
    """Return an episode with the sums of its traces' tokens, which stand at its end."""
    names = ("num_input_tokens", "num_output_tokens", "num_total_tokens")
    return {**episode, **{name: sum(trace[name] for trace in episode["traces"]) for name in names}}


def _nodes_and_calls(
    task: Task, draft: Draft, model: str, now: float, measured: Sequence[NodeTokens]
) -> tuple[list[Record], list[Record], float]:
    nodes: list[Record] = []
    calls: list[Record] = []
    context: list[int] = []  # tokens up to and with each node, along its branch
    cached: list[int] = []  # how many of them were in the last call of that branch
    for index, node in enumerate(draft.nodes):
        parent, message, sampled = node["parent"], node["message"], node["sampled"]
        before, known = (0, 0) if parent is None else (context[parent], cached[parent])
        size = _measured(measured[index]) if measured else _estimated(message, sampled)
        context.append(before + size.context + size.sampled)
        cached.append(context[index] if sampled else known)
        took = size.sampled / TOKENS_PER_SECOND if sampled else TOOL_SECONDS if message["role"] == "tool" else 0.0
        began, now = now, round(now + took, 3)
        if sampled:
            usage = {"prompt_tokens": before + size.context, "completion_tokens": size.sampled}
            usage |= {"cached_input_tokens": known, "reasoning_tokens": size.thinking}
            reason = "tool_calls" if "tool_calls" in message else "length" if draft.cut else "stop"
            made = {"model": model, "endpoint": "/chat/completions", "finish_reason": reason, "usage": usage}
            calls.append({"node": index, **made, "time": {"start": began, "end": now}})
        place = {"parent": parent} if parent is not None else {"tools": list(task.tools)} if task.tools else {}
        edges = {"semantic_parents": node["semantic_parents"]}
        arrays = measured[index].record() if measured else {}
        nodes.append({**place, **edges, "message": message, "sampled": sampled, "timestamp": now, **arrays})
    return nodes, calls, now


class Size(NamedTuple):
    """The tokens of a node: of the template, sampled, and how many of the latter are reasoning."""

    context: int
    sampled: int
    thinking: int


def _measured(tokens: NodeTokens) -> Size:
    return Size(len(tokens.context), len(tokens.sampled), tokens.thinking)


def _estimated(message: Record, sampled: bool) -> Size:
    if not sampled:
        return Size(_tokens(message), 0, 0)
    return Size(0, _tokens(message), _estimate(message.get("reasoning_content", "")))


def _tokens(message: Record) -> int:
    # A picture counts by its area, not by the length of its data URI; four more tokens frame every message.
    parts = [part for part in message.get("content") or "" if isinstance(part, dict)]
    image = 64 * len([part for part in parts if part["type"] == "image_url"])
    texts: list[str] = [part.get("text", "") for part in parts] or [message.get("content", "")]
    texts += [message.get("reasoning_content", ""), *(call["arguments"] for call in message.get("tool_calls", ()))]
    return 4 + image + sum(map(_estimate, texts))


def _estimate(text: str) -> int:
    return (len(text.encode()) + 3) // 4
