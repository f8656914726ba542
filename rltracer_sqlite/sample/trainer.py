"""The trainer's side of a step: the batch that it was sent, and what it noted about the tokens in it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from ..sources.prime_rl.graph import branch_paths
from .sampling import recompute
from .task import Record

LENGTH = 4096  # tokens of a micro batch at most
MULTIPLE = 64  # of which its length is made one
PAD = 1  # the id that prime-rl fills it up with
TEMPERATURE = 1.0


@dataclass(frozen=True)
class Trained:
    """One branch of a trace as it is trained on, with a number per token; 0.0 where none was sampled."""

    trace_id: str
    branch: int
    env: str
    ids: list[int]
    mask: list[bool]
    logprobs: list[float]
    advantages: list[float]


def trained_branches(episodes: Iterable[Record]) -> Iterator[Trained]:
    """Yield the branches of the episodes' traces that have tokens."""
    for episode in episodes:
        for trace in episode["traces"]:
            for number, path in enumerate(branch_paths(trace["nodes"])):
                nodes = [trace["nodes"][place] for place in path]
                if any(node.get("token_ids") for node in nodes):
                    yield _trained(trace["id"], number, episode["env"]["name"], nodes)


def _trained(uid: str, branch: int, env: str, nodes: Sequence[Record]) -> Trained:
    ids = [token for node in nodes for token in node["token_ids"]]
    mask = [flag for node in nodes for flag in node["mask"]]
    numbers = [
        _spread(mask, [value for node in nodes for value in node.get(name, ())]) for name in ("logprobs", "advantages")
    ]
    return Trained(uid, branch, env, ids, mask, *([value or 0.0 for value in values] for values in numbers))


def _spread(mask: Sequence[bool], values: Iterable[Any]) -> list[Any]:
    """Return one value per token from one per sampled token; None for the others."""
    each = iter(values)
    return [next(each) if sampled else None for sampled in mask]


def micro_batches(trained: Iterable[Trained]) -> list[list[Any]]:
    """Return the micro batches that a packer makes of them, as prime-rl encodes its MicroBatch in MessagePack.

    Long ones first, each into the first micro batch with room. The fields are those of September 2026: the struct
    of 16 fields as of 2026-08-08, with `trace_ids` and `branch_indices` behind them.
    """
    packed: list[list[Trained]] = []
    for one in sorted(trained, key=lambda one: (-len(one.ids), one.trace_id)):
        room = (batch for batch in packed if sum(len(other.ids) for other in batch) + len(one.ids) <= LENGTH)
        batch = next(room, None)
        if batch is None:
            packed.append([one])
        else:
            batch.append(one)
    return [_micro_batch(batch) for batch in packed]


def _micro_batch(batch: Sequence[Trained]) -> list[Any]:
    lengths = [len(one.ids) for one in batch]
    tokens = sum(lengths)
    fill = -tokens % MULTIPLE
    lengths[-1] += fill  # the last sequence's recorded length includes the filling
    ids = [token for one in batch for token in one.ids] + [PAD] * fill
    mask = [flag for one in batch for flag in one.mask] + [False] * fill
    advantages = [value for one in batch for value in one.advantages] + [0.0] * fill
    logprobs = [value for one in batch for value in one.logprobs] + [0.0] * fill
    positions = [place for one in batch for place in range(len(one.ids))] + list(range(fill))
    envs = [one.env for one in batch for _ in one.ids] + [""] * fill
    unused = [None] * 7  # reference logprobs, experts, images and the weights of further losses
    named = [[one.trace_id for one in batch], [one.branch for one in batch]]
    return [
        *(ids, mask, advantages, logprobs, positions, lengths),
        *([TEMPERATURE] * (tokens + fill), envs, lengths, *unused, *named),
    ]


def trainer_notes(trained: Iterable[Trained]) -> Iterator[Record]:
    """Yield what the trainer notes about each trace: one value per token, null where it recomputed none."""
    for one in trained:
        sampled = [logprob for logprob, flag in zip(one.logprobs, one.mask, strict=True) if flag]
        numbers = recompute(sampled, Random(f"trainer {one.trace_id} {one.branch}"))
        streams = {
            "trainer_logprobs": _spread(one.mask, numbers.logprobs),
            "entropies": _spread(one.mask, numbers.entropies),
            "is_masked": _spread(one.mask, numbers.is_masked),
        }
        yield {"version": 1, "trace_id": one.trace_id, "info": {}, "branches": [{"index": one.branch, **streams}]}
