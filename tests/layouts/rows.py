"""Writers of the layouts whose lines are rows of verifiers v0: prime-rl's J0, verifiers' evals and prime-rl's evals."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .expected import Expected
from .files import Dump, append, append_torn, line, pandas_line, spaced_line, write_json
from .records import MODEL, Record, hex_id, v0_row
from .samples import JUDGE_FAIL, JUDGE_PASS, MATH, TERMINAL, Sample

NAN = float("nan")
FOLDER = "judge-eval--Qwen--Qwen3-4B"
METRICS = ("boxed", "correct_final_label", "num_tool_calls", "num_turns")


def _row(sample: Sample, old: bool = False, **overrides: Any) -> Record:
    messages = [_old_message(said) if old else _v0_message(said) for said in sample.messages]
    facts = {"example_id": sample.task["idx"], "reward": sample.reward, "metrics": sample.metrics, **overrides}
    return v0_row(messages, answer=sample.task.get("answer"), tool_defs=sample.tools or None, **facts)


def _v0_message(said: Record) -> Record:
    calls = said.get("tool_calls")
    return said if calls is None else {**said, "content": "", "tool_calls": [json.dumps(call) for call in calls]}


def _old_message(said: Record) -> Record:
    # Up to 0.1.9: nested calls, no tool_call_id, and pandas fills the missing column with nulls.
    calls = []
    for call in said.get("tool_calls", []):
        function = {"name": call["name"], "arguments": call["arguments"]}
        calls.append(json.dumps({"id": call["id"], "type": "function", "function": function}))
    return {"role": said["role"], "content": said.get("content", ""), "tool_calls": calls or None}


def _write(expected: Expected, path: Path, rows: list[Record], dump: Dump, **facts: Any) -> None:
    for row, place in zip(rows, append(path, *rows, dump=dump), strict=True):
        reward = row["reward"] if row["reward"] == row["reward"] else None
        truth = {"messages": row["prompt"] + row["completion"], "reward": reward, "advantage": row.get("advantage")}
        expected.note(row.get("rollout_id"), path, place, **truth, **facts)


def write_j0(folder: Path, generation: str = "06-01") -> Expected:
    """Write prime-rl's rollouts of April to June 2026: "04-10" with `trajectory`, "04-15" without it, or "06-01"."""
    expected = Expected(folder)
    steps = folder / "run_default" / "rollouts"
    if generation == "06-01":
        _write_with_metadata(expected, steps)
        return expected
    extra = _trajectory if generation == "04-10" else lambda sample: {}
    for step, samples in enumerate([[JUDGE_FAIL, JUDGE_PASS, TERMINAL], [MATH, JUDGE_PASS]]):
        rows = [_row(sample, **extra(sample)) for sample in samples]
        rows[-1] |= {"reward": NAN, "metrics": {"nan_metric": NAN}} if step else {}
        _write(expected, steps / f"step_{step}" / "train_rollouts.jsonl", rows, spaced_line, split="train", step=step)
    rows = [_row(sample, **extra(sample)) for sample in (MATH, TERMINAL)]
    _write(expected, steps / "step_0" / "eval_rollouts.jsonl", rows, spaced_line, split="eval", step=0)
    return expected


def _trajectory(sample: Sample) -> Record:
    messages = [_v0_message(said) for said in sample.messages]
    turns = [index for index, said in enumerate(messages) if said["role"] == "assistant"]
    tokens: Record = {"prompt_ids": [1, 2, 3], "prompt_mask": [0, 0, 0], "completion_ids": [4, 5]}
    tokens |= {"completion_mask": [1, 1], "completion_logprobs": [-0.5, -0.25]}
    step = {"response": None, "tokens": tokens, "reward": sample.reward, "advantage": None, "extras": {}}
    return {"trajectory": [{"prompt": messages[:turn], "completion": [messages[turn]], **step} for turn in turns]}


def _write_with_metadata(expected: Expected, steps: Path) -> None:
    for step, samples in enumerate([[JUDGE_FAIL, JUDGE_PASS], [MATH, TERMINAL]]):
        rows = [_row(s, **_metadata(s, step, i), advantage=i - 0.5, is_filtered=False) for i, s in enumerate(samples)]
        rows[-1] |= {"reward": None} if step else {}  # orjson writes a NaN as null
        _write(expected, steps / f"step_{step}" / "train_rollouts.jsonl", rows, line, split="train", step=step)
    for sample in (JUDGE_PASS, MATH):
        path = steps / "step_1" / f"eval_rollouts_{sample.env}.jsonl"
        rows = [_row(sample, **_metadata(sample, 1, f"eval-{n}"), eval_step=1) for n in range(2)]
        _write(expected, path, rows, line, split="eval", step=1)


def _metadata(sample: Sample, step: int, number: object) -> Record:
    ids = {"group_id": hex_id("j0", sample.env, step), "rollout_id": hex_id("j0", sample.env, step, number)}
    return {"env_name": sample.env, **ids, "policy_version": step, "off_policy_steps": 0}


def write_v0(folder: Path, version: str = "0.1.11") -> Expected:
    """Write one evaluation as verifiers 0.1.3, 0.1.8 (both by pandas) or 0.1.11 (json.dump, its last line torn) did."""
    expected = Expected(folder)
    path = folder / "outputs" / "evals" / FOLDER / "39841cac" / "results.jsonl"
    samples = [JUDGE_FAIL, TERMINAL, JUDGE_PASS, TERMINAL, MATH]  # the rollouts of an example are interleaved
    metadata: Record = {"model": MODEL, "num_examples": 3, "rollouts_per_example": 2, "avg_reward": 0.5}
    if version == "0.1.11":
        rows = [_row(sample, task=sample.env) for sample in samples]
        rows[-1]["metrics"] = {"boxed": NAN}
        _write(expected, path, rows, spaced_line)
        expected.torn = {path.relative_to(folder).as_posix(): append_torn(path, _row(MATH), spaced_line)}
        metadata |= {"env_id": "judge-eval", "avg_metrics": {"boxed": NAN}, "pass_at_k": {"1": 0.5}}
    else:
        _write(expected, path, [_flat_row(sample, version) for sample in samples], pandas_line)
        metadata |= {"env": "judge-eval", "date": "2025-08-27"} if version == "0.1.3" else {"env_id": "judge-eval"}
    write_json(path.parent / "metadata.json", metadata)
    return expected


def _flat_row(sample: Sample, version: str) -> Record:
    row = _row(sample, old=True)
    name, timing = "id", {}
    if version != "0.1.3":
        name, timing = "example_id", {"generation_ms": 1200.5, "scoring_ms": 3.25, "total_ms": 1203.75}
    kept = {key: row[key] for key in ("prompt", "completion", "answer", "reward")}
    metrics = {metric: sample.metrics.get(metric) for metric in METRICS}  # a column that is not given is null
    return {name: row["example_id"], **kept, "task": sample.env, **timing, **metrics}


def write_pe(folder: Path, variant: str = "step") -> Expected:
    """Write prime-rl's own evaluations: "step" as evals/step_N/<env>/, "stream" as evals/<env>--<model>/<id>/."""
    expected = Expected(folder)
    if variant == "stream":
        rows = [_pe_row(sample, number) for number, sample in enumerate((JUDGE_FAIL, JUDGE_PASS, TERMINAL))]
        _write(expected, folder / "evals" / FOLDER / "2d711642" / "results.jsonl", rows, spaced_line)
        return expected
    for step in (0, 20):
        path = folder / "evals" / f"step_{step}" / "judge-eval" / "results.jsonl"
        rows = [_flat_row(sample, "0.1.8") for sample in (JUDGE_FAIL, JUDGE_PASS, MATH)]
        _write(expected, path, rows, pandas_line, split="eval", step=step)
        write_json(path.parent / "metadata.json", {"env_id": "judge-eval", "model": MODEL})
    return expected


def _pe_row(sample: Sample, number: int) -> Record:
    row = _flat_row(sample, "0.1.8")
    return {**row, "rollout_idx": number, "completion_len": 26, "is_truncated": False, "info": {}, "oai_tools": "[]"}
