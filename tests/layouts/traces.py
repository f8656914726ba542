"""Writers of the layouts whose lines are bare traces of verifiers v1: prime-rl's J1a to J1c, verifiers' V1a and V1b."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from .expected import Expected
from .files import append
from .records import MODEL, Record, hex_id
from .samples import COMPACTED, DELEGATED, FORKED, JUDGE_FAIL, JUDGE_PASS, MATH, TERMINAL, Sample, note_trace, trace_of

YOUNG_KEYS = ("version", "verifiers", "agent", "tools", "calls", "ok")  # of July 17, 2026 and later


def _write(
    expected: Expected, path: Path, samples: Sequence[Sample], build: Callable[..., Record], **facts: Any
) -> list[Record]:
    file = path.relative_to(expected.root).as_posix()
    records = [build(sample, hex_id(file, number)) for number, sample in enumerate(samples)]
    for sample, record, place in zip(samples, records, append(path, *records), strict=True):
        note_trace(expected, sample, record, path, place, **facts)
    return records


def write_j1a(folder: Path) -> Expected:
    """Write prime-rl's rollouts of June 23 to July 9, 2026: bare traces under the names of J0, nulls kept."""
    expected = Expected(folder)
    steps = folder / "run_default" / "rollouts"
    for step, samples in enumerate([[JUDGE_FAIL, JUDGE_PASS, COMPACTED], [TERMINAL, DELEGATED]]):
        path = steps / f"step_{step}" / "train_rollouts.jsonl"
        _write(expected, path, samples, _j1a_trace, split="train", step=step)
    for sample in (JUDGE_PASS, MATH):
        path = steps / "step_1" / f"eval_rollouts_{sample.env}.jsonl"
        _write(expected, path, [sample], _j1a_trace, split="eval", step=1)
    return expected


def write_j1b(folder: Path) -> Expected:
    """Write prime-rl's rollouts of July 9 and 10, 2026: under run_default, metadata at the root of the trace.

    Step 1 has flat tasks, step 2 has {type, data}. One trace arrives in step 1 and ships in step 2.
    """
    expected = Expected(folder)
    _write_all_and_effective(expected, folder / "run_default" / "rollouts", _j1b_trace)
    return expected


def write_j1c(folder: Path) -> Expected:
    """Write prime-rl's rollouts of August 8 to 21, 2026: no run_default, metadata in `info` and `run`."""
    expected = Expected(folder)
    _write_all_and_effective(expected, folder / "rollouts", _j1c_trace)
    return expected


def _write_all_and_effective(expected: Expected, steps: Path, build: Callable[..., Record]) -> None:
    def write_all(split: str, step: int, samples: Sequence[Sample]) -> list[Record]:
        path = steps / f"step_{step}" / split / "all" / "traces.jsonl"
        return _write(expected, path, samples, partial(build, split=split, step=step), split=split, step=step)

    first = write_all("train", 1, [JUDGE_FAIL, JUDGE_PASS, COMPACTED])
    second = write_all("train", 2, [TERMINAL, FORKED])
    evaluated = write_all("eval", 1, [MATH, JUDGE_PASS])
    for split, step, records in (("train", 1, first[:1]), ("train", 2, [first[1], second[0]]), ("eval", 1, evaluated)):
        append(steps / f"step_{step}" / split / "effective" / "traces.jsonl", *records)
        for record in records:
            expected.ship(record["id"], ship_step=step)


def _j1a_trace(sample: Sample, uid: str) -> Record:
    return _nulls_kept(_old_trace(sample, uid))


def _j1b_trace(sample: Sample, uid: str, split: str, step: int) -> Record:
    record = _old_trace(sample, uid, nested=step > 1)
    record |= {"kind": split, "env_name": sample.env, "group_id": hex_id("j1b", sample.env, split, step)}
    evaluated = step if split == "eval" else None
    return _nulls_kept(record | {"policy_version": step - 1, "eval_step": evaluated, "runtime": None})


def _j1c_trace(sample: Sample, uid: str, split: str, step: int) -> Record:
    info = {"env_name": sample.env, "group_id": hex_id("j1c", sample.env, split, step), "policy_version": step - 1}
    run = {"type": split, "id": "run-1", "name": "demo", "step": step}
    return _nulls_kept(trace_of(sample, uid, run=run, info={**info, "episode_id": hex_id("episode", uid)}))


def write_v1a(folder: Path) -> Expected:
    """Write an evaluation of verifiers of June 22 to July 8, 2026: bare traces in results.jsonl, nothing null."""
    expected = Expected(folder)
    samples = [JUDGE_FAIL, JUDGE_PASS, TERMINAL, COMPACTED]
    _write(expected, _eval_folder(folder) / "results.jsonl", samples, partial(_old_trace, token_ids=False))
    return expected


def write_v1b(folder: Path) -> Expected:
    """Write an evaluation of verifiers of July 8 to 21, 2026: bare traces in traces.jsonl, tasks as {type, data}."""
    expected = Expected(folder)
    build = partial(_old_trace, token_ids=False, nested=True)
    _write(expected, _eval_folder(folder) / "traces.jsonl", [JUDGE_FAIL, MATH, JUDGE_PASS, DELEGATED], build)
    return expected


def _eval_folder(folder: Path) -> Path:
    path = folder / "outputs" / "judge-bench--Qwen--Qwen3-4B--default" / "b2d97dea-4789-4284-a94a-b12e80d6c8c9"
    path.mkdir(parents=True)
    (path / "config.toml").write_text(f'model = "{MODEL}"\nnum_rollouts = 3\n[taskset]\nid = "judge-bench"\n')
    return path


def _old_trace(sample: Sample, uid: str, *, token_ids: bool = True, nested: bool = False) -> Record:
    record = trace_of(sample, uid, token_ids=token_ids, rewards=sample.floats())
    record = {key: value for key, value in record.items() if key not in YOUNG_KEYS}
    usage = {"prompt_tokens": 49, "completion_tokens": 26}
    for one in record["nodes"]:
        del one["is_content"], one["timestamp"]
        one |= {"finish_reason": "stop", "usage": usage} if one["sampled"] else {}
    record["timing"]["generation"] = record["timing"].pop("agent")
    return record | {"task": {"type": "QATask", "data": sample.task} if nested else sample.task}


def _nulls_kept(record: Record) -> Record:
    """Return a trace as `to_record()` wrote it until August 21, 2026: every field that has no value is null."""
    unset = dict.fromkeys(["parent", *(["advantages"] if "calls" in record else ["finish_reason", "usage"])])
    unsaid = dict.fromkeys(["content", "reasoning_content", "tool_calls", "provider_state"])
    nodes = []
    for one in record["nodes"]:
        said = {**(unsaid if one["message"]["role"] == "assistant" else {}), **one["message"]}
        nodes.append({**unset, **one, "message": said})
    return {**record, "nodes": nodes, "metrics": {**record["metrics"], "perplexity_gap": None}}
