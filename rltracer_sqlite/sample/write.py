"""Write the sample run: the rollouts of every step, what was trained on, metrics and configuration.

The last step also holds tokens, as after a resume with a newer prime-rl that keeps them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from statistics import fmean

import msgpack

from . import explained, policy
from .episodes import MODELS, RUN, dumps, episode_record, group_identifier, identifier, trace_record, with_totals
from .policy import Group
from .rendering import render_nodes
from .sampling import NodeTokens, tokenise
from .task import Draft, Record, Task
from .trainer import micro_batches, trained_branches, trainer_notes
from .vocabulary import Vocabulary, learn

START = 1788250000.0  # Unix time, seconds
STEP_SECONDS = 420
TOKEN_STEP = policy.STEPS[-1]
TOKEN_ENVS = ("word-problems", "shell-jobs")
MERGES = 900
LOST = {"type": "SandboxError", "message": "No sandbox could be created: the cluster has no free memory."}


def write_sample(folder: Path) -> None:
    """Write the run to `folder`, over an earlier copy of it; the same bytes each time.

    The layout is prime-rl's of August 2026: rollouts/step_N/{train,eval}/{all,effective}/traces.jsonl with one
    Episode a line, metrics.jsonl and configs/resolved/orchestrator.json. The last step's word problems and shell jobs
    hold token arrays; tokenizer/tokenizer.json is what they were encoded with, batches/step_8/rank_0.bin what the
    trainer was sent of them, and monitors/file/traces/annotations/trainer what it noted about them, the two of
    September 2026. Raises OSError where it cannot write.
    """
    metrics: list[Record] = []
    late: list[Record] = []
    texts: dict[str, None] = {}
    for step in policy.STEPS:
        place = folder / "rollouts" / f"step_{step}"
        shipped, late = late, []
        vocabulary = learn(texts, MERGES) if step == TOKEN_STEP else None
        sampled = [(group, _sample_group(group, vocabulary)) for group in policy.plan_groups(step, "train")]
        texts |= dict.fromkeys(_texts(episode for _, episodes in sampled for episode in episodes))
        for group, episodes in sampled:
            (late if (step, group.task.name) == policy.LATE else shipped).extend(_trained(episodes))
        _write_step(place / "train", sampled, shipped)
        if vocabulary:
            _write(folder / "tokenizer" / "tokenizer.json", [vocabulary.record()])
            _write_trainer(folder, step, shipped)
        metrics.append(_metrics(step, "train", sampled))
        if step in policy.EVAL_STEPS:
            evaluated = [(group, _sample_group(group)) for group in policy.plan_groups(step, "eval")]
            _write_step(place / "eval", evaluated, [episode for _, episodes in evaluated for episode in episodes])
            metrics.append(_metrics(step, "eval", evaluated))
    _write(folder / "metrics.jsonl", metrics)
    _write(folder / "configs" / "resolved" / "orchestrator.json", [_configuration()])


def _sample_group(group: Group, vocabulary: Vocabulary | None = None) -> list[Record]:
    task, step, split = group.task, group.step, group.split
    ends = step if (step, task.name) == policy.LATE else step - 1
    work = {"type": split, "step": step, "policy": {"start": step - 1, "end": ends}}
    episodes = []
    for number, (attempt, passed) in enumerate(group.rollouts):
        name = (split, step, task.name, number)
        rng = Random(f"rollout {name}")
        began = START + step * STEP_SECONDS + (210 if split == "eval" else 0) + rng.randrange(1200) / 10
        judged = task.env == "code-explained"
        traces = []
        if attempt is not None:
            draft = task.start()
            attempt(draft, passed, rng)
            agent = "solver" if judged else "agent"
            tokens = _tokens(task, draft, vocabulary, name)
            traces.append(trace_record(task, draft, identifier(agent, *name), agent, began, tokens))
            if judged:
                verdict, now = explained.judge(draft), traces[0]["timing"]["scoring"]["end"]
                traces.append(trace_record(task, verdict, identifier("judge", *name), "judge", now))
        error = LOST if attempt is None else None
        uid = identifier("episode", *name)
        episodes.append(episode_record(task, uid, group_identifier(split, step, task.name), work, traces, error))
    return episodes


def _tokens(task: Task, draft: Draft, vocabulary: Vocabulary | None, name: tuple[object, ...]) -> list[NodeTokens]:
    if vocabulary is None or task.env not in TOKEN_ENVS:
        return []
    return tokenise(task, draft, vocabulary, Random(f"tokens {name}"))


def _texts(episodes: Iterable[Record]) -> Iterator[str]:
    """Yield what the policy read and wrote in the environments that have tokens in the last step."""
    for episode in episodes:
        if episode["env"]["name"] in TOKEN_ENVS:
            for trace in episode["traces"]:
                for text in render_nodes(trace["nodes"], trace["tools"]):
                    yield text.context + text.sampled


def _reward(trace: Record) -> float | None:
    """Return the sum of score × weight; None where there is no score."""
    scores = [(reward["score"], reward["weight"]) for reward in trace["rewards"].values()]
    if not scores or any(score is None for score, _ in scores):
        return None
    return float(sum(score * weight for score, weight in scores))


def _trained(episodes: Iterable[Record]) -> list[Record]:
    """Return the episodes of a group with advantages, and only with what the policy was trained on.

    The advantage is GRPO's without the division by the spread: reward − mean of the group. A group whose rewards
    are all equal teaches nothing and is dropped.
    """
    kept = []
    for episode in episodes:
        for trace in episode["traces"]:
            reward = _reward(trace)
            if reward is not None and trace["ok"] and trace["agent"]["trainable"]:
                kept.append((episode, trace, reward))
    mean = fmean(reward for _, _, reward in kept)
    advantages = [round(reward - mean, 6) for _, _, reward in kept]
    if not any(advantages):
        return []
    return [
        with_totals({**episode, "traces": [_with_advantage(trace, advantage)]})
        for (episode, trace, _), advantage in zip(kept, advantages, strict=True)
    ]


def _with_advantage(trace: Record, advantage: float) -> Record:
    nodes = [
        {**node, "advantages": [advantage] * len(node["logprobs"])} if node.get("logprobs") else node
        for node in trace["nodes"]
    ]
    return {**trace, "nodes": nodes, "info": {**trace["info"], "advantage": advantage}}


def _write_step(folder: Path, sampled: list[tuple[Group, list[Record]]], effective: list[Record]) -> None:
    arrived = [episode for _, episodes in sampled for episode in episodes]
    _write(folder / "all" / "traces.jsonl", sorted(arrived, key=_end))
    _write(folder / "effective" / "traces.jsonl", effective)


def _write_trainer(folder: Path, step: int, shipped: Iterable[Record]) -> None:
    trained = list(trained_branches(shipped))
    batch = folder / "batches" / f"step_{step}" / "rank_0.bin"
    _write_bytes(batch, msgpack.packb(micro_batches(trained)))
    _write(folder / "monitors/file/traces/annotations/trainer/00000.jsonl", trainer_notes(trained))


def _end(episode: Record) -> float:
    # Episodes are written as they end, so that those of a group are scattered; one that never ran comes first.
    return max((trace["timing"]["scoring"]["end"] for trace in episode["traces"]), default=0.0)


def _write(path: Path, records: Iterable[Record]) -> None:
    _write_bytes(path, b"".join(map(dumps, records)))


def _write_bytes(path: Path, content: bytes) -> None:
    # A file that is written again counts as changed, and an earlier index of the run would have to be made anew.
    if path.is_file() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _metrics(step: int, split: str, sampled: list[tuple[Group, list[Record]]]) -> Record:
    row: Record = {"step": step, "time": START + (step + 1) * STEP_SECONDS}
    rewards: dict[str, list[float]] = {"agg": []}
    for group, episodes in sampled:
        for episode in episodes:
            for trace in episode["traces"]:
                if (reward := _reward(trace)) is not None:
                    rewards["agg"].append(reward)
                    rewards.setdefault(group.task.env, []).append(reward)
    row |= {f"{split}/{env}/all/agent/reward/mean": round(fmean(values), 6) for env, values in rewards.items()}
    return {**row, "producer": "orch"}


def _configuration() -> Record:
    environments = sorted({(task.env, task.rollouts) for task in policy.TASKS.values() if task.name in policy.TRAIN})
    return {
        "run": RUN,
        "model": {"name": MODELS["agent"]},
        "max_steps": policy.STEPS[-1],
        "algorithm": {"type": "grpo"},
        "train": {"env": [{"id": env, "name": env, "group_size": size} for env, size in environments]},
        "eval": {"interval": policy.EVAL_STEPS[0], "group_size": 4},
    }
