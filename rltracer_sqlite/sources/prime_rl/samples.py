"""One packed sequence as a shard holds it, whatever the shard's format: what all token readers give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from ...tokens.streams import Tokens, first_of_trained, mean_of_trained, shard_tokens
from ..base import Position, Problem
from ..values import number

Splitter = Callable[[list[int]], list[int]]
"""From the ids of a sequence without recorded boundaries to where each conversation in it starts."""


@dataclass(slots=True)
class Sample:
    """One sequence of tokens, trained on as one sample, with what is recorded about it."""

    ids: list[int]
    mask: bytes | None  # per token 1 where it is trained, else 0; None where the shard's mask cannot be used
    streams: dict[str, list[Any]]  # by the writer's names, each as long as ids
    item: int | None = None  # its number in the record; None where it is the record
    env: str | None = None
    reward: float | None = None
    advantage: float | None = None  # where it is recorded once and not per token
    trace_id: str | None = None
    branch_index: int | None = None
    facts: dict[str, Any] = field(default_factory=dict)  # other recorded scalars
    text: tuple[str, str] | None = None  # prompt and completion, where the shard has them as text

    @property
    def first_trained(self) -> int | None:
        """Return the number of the first trained token, or None where none is known to be."""
        first = -1 if self.mask is None else self.mask.find(1)
        return None if first < 0 else first

    @property
    def prompt_length(self) -> int:
        """Return the number of tokens before the first trained one; all of them where none is trained."""
        first = self.first_trained
        return len(self.ids) if first is None else first

    def first_advantage(self) -> float | None:
        """Return the recorded advantage: of the sample, else of its first trained token."""
        if self.advantage is not None:
            return finite(self.advantage)
        return first_of_trained(self.streams.get("advantages"), self.mask)

    def logprob_mean(self) -> float | None:
        """Return the mean logprob, by the policy that sampled, of the trained tokens."""
        return mean_of_trained(self.streams.get("inference_logprobs"), self.mask)

    def tokens(self) -> Tokens:
        """Return the per-token data, without text."""
        streams = self.streams
        if self.advantage is not None and "advantages" not in streams:
            streams = {**streams, "advantages": [self.advantage] * len(self.ids)}
        return shard_tokens(self.ids, None if self.mask is None else list(map(bool, self.mask)), streams)


@dataclass(slots=True)
class Batch:
    """What one record of a shard (a micro batch, a sample, a line) holds, and where it is."""

    offset: int
    length: int
    line: int  # the record's number in the shard, from 1
    samples: list[Sample]
    remarks: list[str] = field(default_factory=list)  # what could not be used, for `problems`
    is_copy: bool = False  # a padding copy without a trained token, which holds no samples


Found = Batch | Problem | Position
"""What a reader yields; a `Problem` stands for a record that could not be read at all."""


def finite(value: Any) -> float | None:
    """Return a recorded number as a finite float, or None."""
    return None if isinstance(value, bool) else number(value)
