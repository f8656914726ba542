"""By what the token lens colours: each kind of number, where it is read, and on which scale it stands."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from .lens_scales import ENTROPY, LOGPROB, MISMATCH, Scale, signed_scale

if TYPE_CHECKING:
    from rltracer_sqlite.tokens.streams import Tokens

Values = Sequence["float | None"]


@dataclass(frozen=True)
class Lens:
    """One way to colour tokens. `read` gives a value per token and what it is, or None where nothing is recorded."""

    name: str
    read: Callable[[Tokens], tuple[Values, str] | None]
    scale: Callable[[Values], Scale]


def chosen_lens(asked: str | None, found: Mapping[str, Any]) -> Lens:
    """Return the lens that is asked for, else the first for which anything was found; `found` is by their names."""
    by_name = {lens.name: lens for lens in LENSES}
    if asked in by_name:
        return by_name[asked]
    return by_name[next((name for name, one in found.items() if one is not None), "mask")]


def _recorded(stream: str, about: str) -> Callable[[Tokens], tuple[Values, str] | None]:
    def read(tokens: Tokens) -> tuple[Values, str] | None:
        values = getattr(tokens, stream)
        return (values, about) if values is not None and any(value is not None for value in values) else None

    return read


def _mismatch(tokens: Tokens) -> tuple[Values, str] | None:
    """Return the log of trainer over sampler for each token, recorded or worked out, else the recorded KL."""
    if tokens.importance_ratio is not None:
        ratios = [math.log(ratio) if ratio and ratio > 0 else None for ratio in tokens.importance_ratio]
        return ratios, "log of the recorded importance ratio: positive where the trainer finds a token more likely"
    if tokens.trainer_logprobs is not None and tokens.logprobs is not None:
        differences = [
            None if new is None or old is None else new - old
            for new, old in zip(tokens.trainer_logprobs, tokens.logprobs, strict=True)
        ]
        return (
            differences,
            "trainer logprob − logprob, worked out here: positive where the trainer finds it more likely",
        )
    return _recorded("mismatch_kl", "mismatch KL between trainer and sampler, as recorded")(tokens)


def _mask(tokens: Tokens) -> tuple[Values, str] | None:
    return ([], "what was trained on") if tokens.mask is not None else None


LENSES = (
    Lens("logprob", _recorded("logprobs", "logprob under the policy that sampled it, nats"), lambda _: LOGPROB),
    Lens(
        "advantage", _recorded("advantages", "advantage; the scale reaches to the largest of this branch"), signed_scale
    ),
    Lens("entropy", _recorded("entropies", "entropy of the trainer's distribution, nats"), lambda _: ENTROPY),
    Lens("mismatch", _mismatch, lambda _: MISMATCH),
    Lens("mask", _mask, lambda _: MISMATCH),
)
LENS_NAMES = tuple(lens.name for lens in LENSES)
