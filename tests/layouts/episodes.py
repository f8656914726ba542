"""Writers of the layouts whose lines are episodes: prime-rl's J2 and verifiers' V1c."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

from . import samples as known
from .expected import Expected
from .files import append, append_torn, write_json
from .records import MODEL, Record, episode, hex_id
from .samples import Sample, note_trace, trace_of

FAILURE = {"type": "TimeoutError", "message": "the episode took longer than 600 s"}
Plan = Sequence[Sequence[Sample]]


def episode_of(samples: Sequence[Sample], uid: str, token_ids: bool = True, **overrides: Any) -> Record:
    """Return samples as the traces of one episode; none of them makes one that failed before an agent ran."""
    traces = [trace_of(sample, hex_id(uid, item), token_ids=token_ids) for item, sample in enumerate(samples)]
    env = samples[0].env if samples else "judge-bench"
    # The rollouts of one prompt are a group; an evaluation has no groups.
    group = hex_id(env, overrides.get("split"), overrides["step"]) if "step" in overrides else None
    return episode(traces, id=uid, env=env, group=group, errors=[] if samples else [FAILURE], **overrides)


def _write(expected: Expected, path: Path, plan: Plan, build: Callable[..., Record], **facts: Any) -> list[Record]:
    file = path.relative_to(expected.root).as_posix()
    records = [build(samples, hex_id(file, number)) for number, samples in enumerate(plan)]
    for samples, record, place in zip(plan, records, append(path, *records), strict=True):
        note_episode(expected, samples, record, path, place, **facts)
    return records


def note_episode(expected: Expected, samples: Sequence[Sample], record: Record, *where: Any, **facts: Any) -> None:
    """Note the traces of a written episode, or that it failed without one."""
    for item, (sample, trace) in enumerate(zip(samples, record["traces"], strict=True)):
        note_trace(expected, sample, trace, *where, item=item, **facts)
    expected.failed += [] if samples else [record["id"]]


def write_j2(folder: Path) -> Expected:
    """Write prime-rl's rollouts of August 21 to 31, 2026: two agents, branches, a failed episode, a torn last line.

    One episode arrives in step 1 and ships in step 2. `effective` has the trained traces only, with advantages.
    """
    expected = Expected(folder)
    steps = folder / "rollouts"
    plan = [[known.JUDGE_FAIL, known.GRADER], [known.JUDGE_PASS, known.GRADER], [known.COMPACTED], []]
    first = _write_all(expected, steps, plan, "train", 1)
    second = _write_all(expected, steps, [[known.DELEGATED], [known.PICTURE], [known.FORKED]], "train", 2)
    evaluated = _write_all(expected, steps, [[known.MATH], [known.TERMINAL]], "eval", 1)
    _write_effective(expected, steps, first[:1], "train", 1, -0.5)
    _write_effective(expected, steps, [first[1], second[0]], "train", 2, 0.5)
    _write_effective(expected, steps, evaluated, "eval", 1, None)
    path = steps / "step_2" / "train" / "all" / "traces.jsonl"
    expected.torn = {path.relative_to(folder).as_posix(): append_torn(path, episode_of([known.MATH], hex_id("torn")))}
    append(folder / "metrics.jsonl", {"step": 1, "time": 1780001000.0, "reward/mean": 0.5})
    return expected


def _write_all(expected: Expected, steps: Path, plan: Plan, split: str, step: int) -> list[Record]:
    def build(samples: Sequence[Sample], uid: str) -> Record:
        record = episode_of(samples, uid, step=step, split=split)
        record["env"]["id"] = f"agentic-judge+{record['env']['name']}"
        return record

    path = steps / f"step_{step}" / split / "all" / "traces.jsonl"
    return _write(expected, path, plan, build, split=split, step=step)


def _write_effective(
    expected: Expected, steps: Path, episodes: list[Record], split: str, step: int, advantage: float | None
) -> None:
    for record in deepcopy(episodes):
        record["traces"] = [trace for trace in record["traces"] if trace["agent"]["trainable"]]
        for trace in record["traces"]:
            expected.ship(trace["id"], ship_step=step, advantage=advantage)
            if advantage is not None:
                _add_advantages(trace, advantage)
        append(steps / f"step_{step}" / split / "effective" / "traces.jsonl", record)


def _add_advantages(trace: Record, advantage: float) -> None:
    trace["info"]["advantage"] = advantage
    for one in trace["nodes"]:
        if one["sampled"]:
            one["advantages"] = [advantage] * len(one["logprobs"])


def write_v1c(folder: Path, generation: str = "0.4.0") -> Expected:
    """Write an evaluation of verifiers as episodes: of July 21, 2026 ("07-21") or of "0.4.0"."""
    expected = Expected(folder)
    july = generation == "07-21"
    name = "agentic-judge+judge-bench--Qwen--Qwen3-4B--default/8f0e3fa7" if july else "judge-bench--qwen3-4b--1a2b"
    path = folder / "outputs" / name / "traces.jsonl"
    plan = [[known.JUDGE_FAIL, known.GRADER], [known.JUDGE_PASS, known.GRADER], [known.COMPACTED], []]
    _write(expected, path, plan, _july_episode if july else _eval_episode)
    if july:
        (path.parent / "config.toml").write_text(f'model = "{MODEL}"\n[env]\nid = "agentic-judge"\n')
    else:
        write_json(path.parent / "configs" / "resolved" / "eval.json", {"model": MODEL, "num_rollouts": 3})
    return expected


def _eval_episode(samples: Sequence[Sample], uid: str) -> Record:
    return episode_of(samples, uid, token_ids=False, is_timeout=False)


def _july_episode(samples: Sequence[Sample], uid: str) -> Record:
    record = _eval_episode(samples, uid)
    for sample, trace in zip(samples, record["traces"], strict=True):
        agent = {"model": MODEL, "name": trace["agent"]["name"], "trainable": trace["agent"]["trainable"]}
        trace |= {"agent": agent, "rewards": sample.floats(), "run": {"type": "eval", "id": "eval-1"}}
        trace["task"] = {"type": "QATask", "data": sample.task}
    return {"env": record["env"]["name"], **{key: record[key] for key in ("id", "ok", "errors", "traces")}}
