"""The tokens of a message and the numbers beside them, made up so that they mean something.

What continues a word is nearly certain, what begins one is less so, and the least likely token of a rollout that
goes wrong is the one where it does. The trainer's numbers differ from the sampler's by a little noise, and at few
tokens by so much that they are left out of the loss.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from .rendering import Rendered, render_nodes
from .task import Draft, Record, Task
from .vocabulary import Vocabulary

LIKELY = -2.5  # no token is less likely than this, but the one at a mistake
LARGEST_DIFFERENCE = 0.4  # between the two logprobs; beyond it the trainer masks a token


@dataclass(frozen=True)
class NodeTokens:
    """The tokens of one node: those of the template, and behind them the ones that the policy sampled."""

    context: list[int]
    sampled: list[int]
    thinking: int  # how many of the sampled ones are reasoning
    logprobs: list[float]  # of the sampled ones, in nats

    def record(self) -> Record:
        """Return the arrays that verifiers' MessageNode has for them."""
        before, behind = len(self.context), len(self.sampled)
        return {
            "token_ids": self.context + self.sampled,
            "mask": [False] * before + [True] * behind,
            # Of an answer only what was sampled counts as content; a message of others counts as a whole.
            "is_content": [not behind] * before + [True] * behind,
            "logprobs": self.logprobs,
        }


def tokenise(task: Task, draft: Draft, vocabulary: Vocabulary, rng: Random) -> list[NodeTokens]:
    """Return the tokens of each node of a draft."""
    found = []
    for number, text in enumerate(render_nodes(draft.nodes, task.tools, draft.cut)):
        sampled = vocabulary.encode(text.sampled)
        mistakes = [_place(text, words) for node, words in draft.slips if node == number]
        logprobs = list(_logprobs(vocabulary.pieces(sampled), mistakes, rng))
        thinking = len(vocabulary.encode(text.thinking))
        found.append(NodeTokens(vocabulary.encode(text.context), sampled, thinking, logprobs))
    return found


def _place(text: Rendered, words: str) -> int:
    return len(text.sampled[: text.sampled.rindex(words)].encode())


def _logprobs(pieces: Sequence[bytes], mistakes: Sequence[int], rng: Random) -> Iterator[float]:
    end, before = 0, b"\n"
    for piece in pieces:
        begin, end = end, end + len(piece)
        usual = max(-rng.expovariate(1 / _surprise(piece, before)), LIKELY)
        before = piece
        if any(begin <= place < end for place in mistakes):
            usual = LIKELY - 0.5 - rng.random() * 2
        yield round(usual, 4)


def _surprise(piece: bytes, before: bytes) -> float:
    """Return the mean surprise in nats of a token behind another."""
    if piece.startswith(b"<") and piece.endswith(b">"):
        return 0.004
    if before.endswith(b"\n"):
        return 0.5
    begins_word = piece[:1].isspace() and len(piece) > 1
    return 0.15 if begins_word else 0.06 if piece.isdigit() else 0.02


@dataclass(frozen=True)
class TrainerNumbers:
    """What the trainer recomputes for the sampled tokens of a branch."""

    logprobs: list[float]
    entropies: list[float]  # nats
    is_masked: list[bool]


def recompute(logprobs: Sequence[float], rng: Random) -> TrainerNumbers:
    """Return the trainer's numbers for tokens that were sampled with these logprobs."""
    later, entropies = [], []
    for logprob in logprobs:
        spread = 0.3 if rng.random() < 0.01 else 0.004 - 0.03 * logprob
        later.append(round(min(logprob + rng.gauss(0, spread), 0.0), 4))
        entropies.append(round(-0.5 * logprob + rng.expovariate(25), 4))
    masked = [abs(new - old) > LARGEST_DIFFERENCE for new, old in zip(later, logprobs, strict=True)]
    return TrainerNumbers(later, entropies, masked)
