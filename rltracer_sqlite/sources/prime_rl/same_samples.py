"""The same sample in several files of a step: in the TrainingBatch, in a rank's micro batches, in its token exports.

They share no id. What they share are the token ids, of which a trainer's copy may be cut at its sequence length, and
the logprobs of the policy that sampled, by which two samples of the same ids are told apart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import compress, islice

from .samples import Sample
from .token_prompts import ids_digest

COMPARED = 8  # logprobs
MAX_LENGTHS = 4  # how many lengths are tried as the one at which copies are cut: the longest, so a few do


@dataclass(frozen=True)
class Candidate:
    """A sample that is known, and the first logprobs that its policy gave to it."""

    uid: str
    logprobs: tuple[float, ...]


class KnownSamples:
    """The samples of the files that come first, by their ids.

    `read` yields (uid, sample) of each, and is called again where copies turn out to be cut: holding the ids
    themselves would take as much memory as the files.
    """

    def __init__(self, read: Callable[[], Iterable[tuple[str, Sample]]]) -> None:
        self.read = read
        self.longest = 0
        self.by_ids = self._table(None)
        self.by_cut_ids: dict[int, dict[bytes, list[Candidate]]] = {}

    def match(self, sample: Sample) -> str | None:
        """Return the uid of the known sample that this is a copy of, or None."""
        digest = ids_digest(sample.ids)
        candidates = self.by_ids.get(digest) or self._cut_at(len(sample.ids)).get(digest)
        if not candidates:
            return None
        logprobs = _first_logprobs(sample)
        return min(candidates, key=lambda candidate: _distance(candidate.logprobs, logprobs)).uid

    def _cut_at(self, length: int) -> dict[bytes, list[Candidate]]:
        tried = self.by_cut_ids
        if length not in tried:
            if len(tried) >= MAX_LENGTHS or length < max(tried, default=0) or length >= self.longest:
                return {}
            tried[length] = self._table(length)
        return tried[length]

    def _table(self, length: int | None) -> dict[bytes, list[Candidate]]:
        table: dict[bytes, list[Candidate]] = {}
        for uid, sample in self.read():
            self.longest = max(self.longest, len(sample.ids))
            if length is None or len(sample.ids) > length:
                ids = sample.ids if length is None else sample.ids[:length]
                table.setdefault(ids_digest(ids), []).append(Candidate(uid, _first_logprobs(sample)))
        return table


def _first_logprobs(sample: Sample) -> tuple[float, ...]:
    values = sample.streams.get("inference_logprobs") or []
    return tuple(islice((value or 0.0 for value in compress(values, sample.mask or ())), COMPARED))


def _distance(known: tuple[float, ...], found: tuple[float, ...]) -> float:
    return sum(abs(one - other) for one, other in zip(known, found, strict=False))
