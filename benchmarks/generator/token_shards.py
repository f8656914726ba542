"""Token shards: what prime-rl's trainer reads (rank_R.bin) and what it exports (token_exports)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from .rollouts import Node, Rollout, RolloutMaker

UNUSED_WEIGHTS = ("rl_weights", "ce_weights", "ref_kl_weights")


class Sample(NamedTuple):
    """One training sequence: a rollout's tokens, cut at the sequence length."""

    rollout: Rollout
    ids: NDArray[np.int32]
    mask: NDArray[np.bool_]
    logprobs: NDArray[np.float64]

    @property
    def advantages(self) -> list[float]:
        """The rollout's advantage on every sampled token."""
        return np.where(self.mask, self.rollout.advantage, 0.0).tolist()  # type: ignore[no-any-return]


class MicroBatch(msgspec.Struct, array_like=True, gc=False, omit_defaults=True):
    """prime-rl's MicroBatch of 2026-08, encoded as an array of its fields."""

    input_ids: list[int]
    loss_mask: list[bool]
    advantages: list[float]
    inference_logprobs: list[float]
    position_ids: list[int]
    sequence_lengths: list[int]
    temperatures: list[float]
    env_names: list[str]  # one per token
    seq_lens: list[int]
    ref_logprobs: list[float] | None = None
    routed_experts: list[Any] | None = None
    mm_kwargs: dict[str, Any] | None = None
    mm_token_type_ids: list[int] | None = None
    rl_weights: list[float] | None = None
    ce_weights: list[float] | None = None
    ref_kl_weights: list[float] | None = None


def samples(maker: RolloutMaker, step: int) -> Iterator[Sample]:
    """Yield the training sequences of a step; failed rollouts are not trained on."""
    length = maker.options.seq_len
    for prompt in maker.step_prompts(step).tolist():
        for number in range(maker.options.rollouts):
            rollout = maker.rollout(step, prompt, number, "train")
            if rollout.failed:
                continue
            ids = np.concatenate([node.ids for node in rollout.nodes])
            mask = np.concatenate([_mask(node) for node in rollout.nodes])
            logprobs = np.where(mask, maker.logprobs(rollout.rng, len(ids)), np.float32(0)).astype(np.float64)
            yield Sample(rollout, ids[:length], mask[:length], logprobs[:length])


def _mask(node: Node) -> NDArray[np.bool_]:
    return np.arange(len(node.ids)) >= (node.head if node.sampled else len(node.ids))


def write_bins(maker: RolloutMaker, out: Path) -> str:
    """Write rollouts/step_N/rank_R.bin and return a line on their size."""
    options, total = maker.options, 0
    for step in range(1, options.steps + 1):
        batches = [_micro_batch(packed) for packed in _packed(maker, step)]
        folder = out / "rollouts" / f"step_{step}"
        folder.mkdir(parents=True, exist_ok=True)
        for rank in range(options.ranks):
            data = msgspec.msgpack.encode(batches[rank :: options.ranks])
            (folder / f"rank_{rank}.bin").write_bytes(data)
            total += len(data)
    return f"{out}: {total / 1e6:.1f} MB of micro batches"


def _packed(maker: RolloutMaker, step: int) -> list[list[Sample]]:
    """Put each sequence into the first micro batch that has room for it."""
    batches: list[list[Sample]] = []
    for sample in samples(maker, step):
        for batch in batches:
            if sum(len(other.ids) for other in batch) + len(sample.ids) <= maker.options.seq_len:
                batch.append(sample)
                break
        else:
            batches.append([sample])
    return batches


def _micro_batch(packed: list[Sample]) -> MicroBatch:
    lengths = [len(sample.ids) for sample in packed]
    return MicroBatch(
        input_ids=np.concatenate([sample.ids for sample in packed]).tolist(),
        loss_mask=np.concatenate([sample.mask for sample in packed]).tolist(),
        advantages=[value for sample in packed for value in sample.advantages],
        inference_logprobs=np.concatenate([sample.logprobs for sample in packed]).tolist(),
        position_ids=[position for length in lengths for position in range(length)],
        sequence_lengths=lengths,
        temperatures=[1.0] * sum(lengths),
        env_names=[sample.rollout.env for sample in packed for _ in sample.ids],
        seq_lens=lengths,
    )


def write_token_exports(maker: RolloutMaker, out: Path) -> str:
    """Write token_exports/step_N/rank_R.jsonl with STABLE beside them, and return a line on their size."""
    options, total = maker.options, 0
    for step in range(1, options.steps + 1):
        folder = out / "token_exports" / f"step_{step}"
        folder.mkdir(parents=True, exist_ok=True)
        ranks: list[list[str]] = [[] for _ in range(options.ranks)]
        for place, sample in enumerate(samples(maker, step)):
            rank = place % options.ranks
            row = _exported(sample, step, rank, len(ranks[rank]))
            ranks[rank].append(json.dumps(row, separators=(",", ":"), allow_nan=False) + "\n")
        for rank, lines in enumerate(ranks):
            total += (folder / f"rank_{rank}.jsonl").write_text("".join(lines), encoding="utf-8")
        (folder / "STABLE").touch()
    return f"{out}: {total / 1e6:.1f} MB of token exports"


def _exported(sample: Sample, step: int, rank: int, place: int) -> dict[str, Any]:
    count, rng = len(sample.ids), sample.rollout.rng
    drift = np.where(sample.mask, rng.normal(0, 0.01, count), 0)
    trainer = _single(sample.logprobs + drift)
    entropy = _single(np.abs(rng.normal(0, 0.5, count)))
    ratio = _single(trainer - sample.logprobs)
    return {
        "schema_version": 1,
        "step": step,
        "rank": rank,
        "micro_step": place // 4,
        "micro_sequence_idx": place % 4,
        "export_sequence_idx": place,
        "env_name": sample.rollout.env,
        "token_ids": sample.ids.tolist(),
        "position_ids": list(range(count)),
        "loss_mask": sample.mask.tolist(),
        "advantages": sample.advantages,
        "inference_logprobs": sample.logprobs.tolist(),
        "trainer_logprobs": trainer.tolist(),
        "entropy": entropy.tolist(),
        "mismatch_kl": (np.exp(ratio) - ratio - 1).tolist(),
        "log_importance_ratio": ratio.tolist(),
        "importance_ratio": np.exp(ratio).tolist(),
        "prob_delta": (np.exp(trainer) - np.exp(sample.logprobs)).tolist(),
        **{name: [False] * count for name in ("is_masked", "is_masked_high", "is_masked_low")},
        **{name: [None] * count for name in UNUSED_WEIGHTS},
    }


def _single(values: NDArray[Any]) -> NDArray[np.float64]:
    """Round to what a float32 holds, since the trainer computes in it."""
    return values.astype(np.float32).astype(np.float64)
