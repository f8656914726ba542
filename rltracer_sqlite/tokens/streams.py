"""The one shape of per-token data, whether it comes from token shards, from traces or from later facts about them."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import compress
from typing import TYPE_CHECKING, Any

from ..amounts import plural

if TYPE_CHECKING:
    from .tokenizer import TextTokenizer

Numbers = list[float | None]
Mask = list[bool] | bytes
"""Per token True or 1 where it is trained."""

LARGEST = sys.float_info.max  # an integer beyond it is no number to work with, and neither is infinity
MAX_ID = 1 << 63  # a larger one is not even wrong, and Python refuses to write out the largest

RECORDED_AS = {
    "logprobs": ("logprobs", "inference_logprobs"),
    "advantages": ("advantages",),
    "trainer_logprobs": ("trainer_logprobs",),
    "entropies": ("entropies", "entropy"),
    "mismatch_kl": ("mismatch_kl",),
    "importance_ratio": ("importance_ratio",),
    "is_masked": ("is_masked",),
}
"""The streams of `Tokens` that have one value per token, and the names that writers give them."""


@dataclass(frozen=True)
class Tokens:
    """The tokens of one sequence and what is recorded about each. All lists have the length of `ids`.

    A stream that is not recorded is None; a value that is missing in a recorded stream is None, never 0.
    """

    ids: list[int]
    pieces: list[str] | None = None  # the text of each token; None without a tokenizer
    mask: list[bool] | None = None  # True: sampled by the policy and trained on
    logprobs: Numbers | None = None  # of the policy that sampled
    advantages: Numbers | None = None
    trainer_logprobs: Numbers | None = None
    entropies: Numbers | None = None  # nats, by the trainer
    mismatch_kl: Numbers | None = None  # between trainer and sampler
    importance_ratio: Numbers | None = None  # exp(trainer logprob - logprob)
    is_masked: list[bool | None] | None = None  # True: left out of the loss by the trainer

    def __len__(self) -> int:
        return len(self.ids)

    def __repr__(self) -> str:
        recorded = [one.name for one in fields(self) if one.name != "ids" and getattr(self, one.name) is not None]
        return f"<Tokens: {plural(len(self.ids), 'token')} with {', '.join(recorded) or 'their ids only'}>"

    def with_pieces(self, tokenizer: TextTokenizer | None) -> Tokens:
        """Return the same tokens with their text, if there is a tokenizer."""
        return replace(self, pieces=tokenizer.pieces(self.ids)) if tokenizer else self

    def with_streams(self, recorded: Mapping[str, Any]) -> Tokens:
        """Return the same tokens with later facts laid over them: lists by the writer's name, null = unknown.

        A list shorter than the sequence is about its first tokens; one that is longer is about something else and
        is left out. A known value takes the place of an earlier one.
        """
        changed = {}
        for name, writers in RECORDED_AS.items():
            later = next((recorded[writer] for writer in writers if isinstance(recorded.get(writer), list)), None)
            if later is not None and len(later) <= len(self.ids):
                cleaned = _without_placeholders(_cleaned(later, name), name, self.mask)
                changed[name] = _overlaid(getattr(self, name), cleaned, len(self.ids))
        return replace(self, **changed)

    def trained_logprobs(self) -> Iterable[float | None]:
        """Return the logprob of each trained token; none where they, or which tokens are trained, are not recorded."""
        return compress(self.logprobs or (), self.mask or ())


def mean_of_trained(values: Sequence[float | None] | None, mask: Mask | None) -> float | None:
    """Return the mean of the finite values at trained tokens, or None where there is none."""
    if values is None or mask is None or 1 not in mask:
        return None
    try:
        mean: float = sum(compress(values, mask)) / mask.count(1)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        mean = math.nan
    if math.isfinite(mean):
        return mean
    known = [value for value in compress(values, mask) if value is not None and -LARGEST <= value <= LARGEST]
    return math.fsum(value / len(known) for value in known) if known else None


def first_of_trained(values: Sequence[float | None] | None, mask: Mask | None) -> float | None:
    """Return the value at the first trained token, or None where it is missing or not finite."""
    if values is None or mask is None or 1 not in mask:
        return None
    value = values[bytes(mask).find(1)]
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    return float(value) if is_number and -LARGEST <= value <= LARGEST else None  # type: ignore[arg-type,operator]


def trained_runs(mask: Mask) -> list[tuple[int, int]]:
    """Return the (start, end) of each run of trained tokens: the turns of the policy."""
    runs, flags, at = [], bytes(mask), 0
    while (begin := flags.find(1, at)) >= 0:
        at = flags.find(0, begin)
        at = at if at >= 0 else len(flags)
        runs.append((begin, at))
    return runs


def shard_tokens(ids: list[int], mask: list[bool] | None, recorded: Mapping[str, Any]) -> Tokens:
    """Return tokens from the streams of a shard, given by the writer's names. Streams of other lengths are left out."""
    fitting = {
        name: values for name, values in recorded.items() if isinstance(values, list) and len(values) == len(ids)
    }
    return Tokens(ids, mask=mask).with_streams(fitting)


def branch_tokens(nodes: Sequence[Mapping[str, Any]], path: Iterable[int]) -> Tokens | None:
    """Return the tokens along one branch of a trace, or None where its nodes record no token ids.

    `path` lists the indices of its nodes from the root on. A verifiers MessageNode holds the tokens of its own
    message only, and a value of each stream for its sampled tokens only (formats: MessageNode of verifiers v1).
    """
    ids: list[int] = []
    mask: list[bool] = []
    streams: dict[str, list[Any]] = {name: [] for name in RECORDED_AS}
    seen: set[str] = set()
    for index in path:
        node = nodes[index]
        own = _node_ids(node)
        sampled = _node_mask(node, len(own))
        for name, writers in RECORDED_AS.items():
            values = next((node[writer] for writer in writers if isinstance(node.get(writer), list)), None)
            spread = _spread(values, sampled, name) if values else None
            seen.update([name] if spread else [])
            streams[name] += spread or [None] * len(own)
        ids += own
        mask += sampled
    if not ids:
        return None
    return Tokens(ids, mask=mask, **{name: values for name, values in streams.items() if name in seen})


def _node_ids(node: Mapping[str, Any]) -> list[int]:
    """Return the ids of a node; none where what is recorded as such is no list of ids."""
    ids = node.get("token_ids")
    if not isinstance(ids, list) or not all(type(token) is int and -MAX_ID <= token <= MAX_ID for token in ids):
        return []
    return ids


def _node_mask(node: Mapping[str, Any], length: int) -> list[bool]:
    mask = node.get("mask")
    if isinstance(mask, list) and len(mask) == length:
        return [bool(value) for value in mask]
    return [bool(node.get("sampled"))] * length


def _spread(values: list[Any], sampled: list[bool], name: str) -> list[Any] | None:
    """Return one value per token of a node from one value per sampled token, or per token; else None."""
    cleaned = _cleaned(values, name)
    if len(cleaned) == sum(sampled):
        each = iter(cleaned)
        return [next(each) if is_sampled else None for is_sampled in sampled]
    return cleaned if len(cleaned) == len(sampled) else None


def _cleaned(values: list[Any], name: str) -> list[Any]:
    if name == "is_masked":
        return [value if isinstance(value, bool) else None for value in values]
    return [
        value
        if isinstance(value, (int, float)) and not isinstance(value, bool) and -LARGEST <= value <= LARGEST
        else None
        for value in values
    ]


def _without_placeholders(values: list[Any], name: str, mask: list[bool] | None) -> list[Any]:
    """Take out what writers put on tokens that were not sampled: an advantage of the sequence, a logprob of 0.0."""
    if mask is None or name not in ("advantages", "logprobs"):
        return values
    keeps_others = name == "logprobs"
    return [
        value if trained or (keeps_others and value) else None for value, trained in zip(values, mask, strict=False)
    ]


def _overlaid(earlier: list[Any] | None, later: list[Any], length: int) -> list[Any]:
    later = later + [None] * (length - len(later))
    if earlier is None:
        return later
    return [old if new is None else new for old, new in zip(earlier, later, strict=True)]


def merge_tokens(first: Tokens, later: Tokens) -> Tokens:
    """Return `first` with the streams of `later` laid over it, if both are about the same ids; else `first`.

    `later` may be a shorter copy that was cut at the trainer's sequence length.
    """
    if later.ids != first.ids[: len(later.ids)]:
        return first
    streams = {field.name: getattr(later, field.name) for field in fields(later) if field.name in RECORDED_AS}
    return first.with_streams({name: values for name, values in streams.items() if values is not None})
