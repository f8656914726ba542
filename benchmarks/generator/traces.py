"""Rollouts as verifiers' Trace and Episode records (verifiers 0.4.0: v1/trace.py, v1/graph.py, v1/episode.py)."""

from __future__ import annotations

import argparse
import hashlib
from typing import Any

import numpy as np

from .rollouts import TOOLS, Node, Rollout, RolloutMaker

MODEL = "Qwen/Qwen3-8B"
STREAMS = ("reference_logprobs", "trainer_logprobs", "entropies", "loss_weights")
FIRST_STEP_AT = 1_786_000_000.0  # Unix time, seconds
TRACEBACK = (
    'Traceback (most recent call last):\n  File "/srv/app/run.py", line 88, in step\n    raise SandboxError(msg)\n'
)


class TraceWriter:
    """Turns rollouts into records whose keys have the order in which verifiers writes them."""

    def __init__(self, maker: RolloutMaker, options: argparse.Namespace) -> None:
        self.maker, self.options = maker, options

    def trace(self, rollout: Rollout) -> dict[str, Any]:
        """Return a Trace; its token arrays are numpy arrays."""
        began = FIRST_STEP_AT + rollout.step * 300.0 + rollout.number * 3.17
        now, before = began + 2.5, 0
        nodes: list[dict[str, Any]] = []
        calls: list[dict[str, Any]] = []
        for place, node in enumerate(rollout.nodes):
            if node.sampled:
                now += float(rollout.rng.gamma(2.0, 2.0))
            nodes.append(self._node(rollout, node, place, now))
            if node.sampled:
                calls.append(_call(node, place, before, now))
            before += len(node.ids)
        sampled = rollout.sampled_tokens
        return {
            "version": 1,
            "id": rollout.id,
            "verifiers": {"version": "0.4.0", "commit": None},
            "task": _task(rollout),
            "agent": _agent(rollout),
            "tools": TOOLS,
            "nodes": nodes,
            "calls": calls,
            "mm_token_type_id_map": {},
            "request_rewrites": [],
            "response_rewrites": [],
            **_scores(rollout),
            "info": _info(rollout),
            "root_reply": None,
            "extra_usage": [],
            "is_completed": not rollout.failed,
            "ok": not rollout.failed,
            "stop_condition": "sandbox_error" if rollout.failed else "agent_completed",
            "is_timeout": False,
            "errors": [_error()] if rollout.failed else [],
            "timing": _timing(began, now),
            "num_input_tokens": before - sampled,
            "num_output_tokens": sampled,
            "num_total_tokens": before,
        }

    def _node(self, rollout: Rollout, node: Node, place: int, now: float) -> dict[str, Any]:
        record = {
            "parent": place - 1 if place else None,
            "semantic_parents": [],
            "message": node.message,
            "sampled": node.sampled,
            "timestamp": now,
        }
        arrays = self._arrays(rollout, node) if self.options.tokens else _no_arrays()
        return {**record, **arrays, **dict.fromkeys(STREAMS)}

    def _arrays(self, rollout: Rollout, node: Node) -> dict[str, Any]:
        count = len(node.ids)
        mask, is_content = np.zeros(count, bool), np.ones(count, bool)
        is_content[: node.head] = False
        if node.tail:
            is_content[-node.tail :] = False
        arrays: dict[str, Any] = {"token_ids": node.ids, "mask": mask, "is_content": is_content}
        if not node.sampled:
            return {**arrays, "logprobs": [], "advantages": None}
        mask[node.head :] = True
        logprobs = self.maker.logprobs(rollout.rng, count - node.head).astype(np.float64)
        advantages = np.full(count - node.head, rollout.advantage)
        if self.options.float_decimals is not None:
            logprobs, advantages = (np.round(x, self.options.float_decimals) for x in (logprobs, advantages))
        return {**arrays, "logprobs": logprobs, "advantages": advantages if self.options.advantages else None}


def episode(traces: list[dict[str, Any]], step: int, split: str, group: str) -> dict[str, Any]:
    """Return an Episode around traces, without nulls, as prime-rl writes it."""
    first, ok = traces[0], all(trace["ok"] for trace in traces)
    env = first["info"]["env_name"]
    work = {"type": split, "step": step, "policy": {"start": max(0, step - 2), "end": step - 1}}
    totals = ("num_input_tokens", "num_output_tokens", "num_total_tokens")
    record = {
        "id": hashlib.md5(first["id"].encode()).hexdigest(),
        "env": {"id": f"agentic+{env}", "name": env},
        "task": first["task"],
        "group": {"id": group},
        "run": {"type": "train", "id": "run-bench", "name": "bench", "work": work},
        "ok": ok,
        "is_timeout": False,
        "errors": [],
        "traces": traces,
        **{total: sum(trace[total] for trace in traces) for total in totals},
    }
    return without_nulls(record)


def without_nulls(value: Any) -> Any:
    """Return a record without the keys whose value is null, at any depth."""
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    if type(value) is list and value and isinstance(value[0], (dict, list)):
        return [without_nulls(inner) for inner in value]
    return value


def _no_arrays() -> dict[str, Any]:
    return {"token_ids": [], "mask": [], "is_content": [], "logprobs": [], "advantages": None}


def _call(node: Node, place: int, before: int, now: float) -> dict[str, Any]:
    sampling = {"temperature": 1.0, "top_p": None, "reasoning_effort": None, "max_tokens": 16384}
    usage = {
        "prompt_tokens": before + node.head,
        "completion_tokens": len(node.ids) - node.head,
        "cached_input_tokens": None,
        "reasoning_tokens": None,
        "cost": None,
    }
    return {
        "node": place,
        "model": MODEL,
        "sampling": sampling,
        "endpoint": "/chat/completions",
        "finish_reason": "tool_calls" if node.message["tool_calls"] else "stop",
        "usage": usage,
        "time": {"start": now - 1.9, "end": now},
        "error": None,
        "policy": None,
        "acp": None,
    }


def _task(rollout: Rollout) -> dict[str, Any]:
    data = {
        "idx": rollout.prompt,
        "id": None,
        "name": f"{rollout.env}-{rollout.prompt}",
        "description": None,
        "prompt": rollout.prompt_text,
        "system_prompt": rollout.system_text,
        "image": "python:3.12-slim",
        "workdir": "/app",
        "agent_user": None,
        "skills": [],
        "network_allow": ["*"],
        "network_block": [],
        "artifacts": [],
        "artifact_max_bytes": 33554432,
        "timeout": {"setup": None, "agent": None, "finalize": None, "scoring": None},
        "resources": {"cpu": None, "memory": None, "gpu": None, "disk": None},
        "answer": f"{(rollout.prompt * 7919) % 10007}",
    }
    key = hashlib.sha256(f"{rollout.env}:{rollout.prompt}".encode()).hexdigest()
    return {"type": f"{rollout.env.title().replace('-', '')}Task", "data": data, "key": key, "hash": key}


def _agent(rollout: Rollout) -> dict[str, Any]:
    harness = {
        "id": "default",
        "env": {},
        "forward_env": [],
        "mcp_header_env": {},
        "tool_timeout": 600.0,
        "disabled_tools": None,
        "skills": [],
    }
    runtime = {
        "allow": ["*"],
        "block": [],
        "type": "prime",
        "image": "python:3.11-slim",
        "workdir": None,
        "region": None,
        "labels": [],
        "cpu": 1.0,
        "memory": 2.0,
        "gpu": None,
        "disk": 5.0,
        "checkpoint": None,
        "idle_timeout": 3600.0,
        "creates_per_min": None,
    }
    config = {
        "harness": harness,
        "runtime": runtime,
        "model": MODEL,
        "client": None,
        "sampling": {"temperature": 1.0},
        "max_turns": None,
        "max_input_tokens": None,
        "max_output_tokens": None,
        "max_total_tokens": None,
        "timeout": {"setup": None, "rollout": None, "finalize": None, "scoring": None},
        "retries": {"max_retries": 0, "rules": []},
        "network_notice": True,
    }
    return {"config": config, "runtime": None, "name": rollout.agent, "trainable": True}


def _scores(rollout: Rollout) -> dict[str, Any]:
    """Return the named rewards and the metrics; a failed rollout has neither."""
    if rollout.failed:
        return {"rewards": {"correct": None, "format": None}, "metrics": {}}
    correct = float(rollout.correct)
    well_formed = float(rollout.rng.random() < 0.9)
    metrics = {
        "correct_final_label": correct,
        "num_turns": float(rollout.turns),
        "num_tool_calls": float(sum(1 for node in rollout.nodes if node.message.get("tool_calls"))),
        "judge_score": round(float(rollout.rng.random()), 6),
    }
    rewards = {"correct": {"score": correct, "weight": 1.0}, "format": {"score": well_formed, "weight": 0.1}}
    return {"rewards": rewards, "metrics": metrics}


def _info(rollout: Rollout) -> dict[str, Any]:
    info: dict[str, Any] = {
        "env_name": rollout.env,
        "group_id": f"g{rollout.step}-{rollout.prompt}",
        "episode_id": f"e{rollout.id[:12]}",
        "policy_version": rollout.step - 1,
    }
    return info if rollout.failed else {**info, "advantage": rollout.advantage}


def _error() -> dict[str, Any]:
    return {
        "type": "SandboxError",
        "message": "container exited 137 (OOM)",
        "status_code": None,
        "traceback": TRACEBACK,
    }


def _timing(began: float, now: float) -> dict[str, Any]:
    busy = now - began - 2.5
    return {
        "start": began,
        "boot": {"start": began, "end": began + 1.25},
        "setup": {"start": began + 1.25, "end": began + 2.5},
        "agent": {
            "start": began + 2.5,
            "end": now,
            "model": {"duration": busy * 0.8},
            "harness": {"duration": busy * 0.2},
        },
        "finalize": {"start": now, "end": now + 0.01},
        "scoring": {"start": now + 0.01, "end": now + 0.4},
    }
