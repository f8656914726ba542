"""Seeded draws: the numbers that decide what a quota takes, the same on every machine and for every index.

The draw of a trajectory is the sha256 of seed, run, step and recorded id, as in rltracer 0.1.0, so that the same seed
picks the same trajectories of a prompt. Weighted by tool calls it is the exponential variable of Efraimidis and
Spirakis 2006 (Information Processing Letters 97:5): those with the largest u^(1/w) are a weighted sample without
replacement, here by its logarithm, with the weight w = calls ** power.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256

DRAW_BYTES = 8
IDENTITY_BYTES = 16
UNIT = 2.0**-64
SMALLEST = 2.0**-65


def draw(seed: int, run: str, step: int | None, uids: Sequence[str]) -> list[bytes]:
    """Return a number between 0 and 2**64, as bytes, for each recorded id of a step."""
    prefix = f"{seed}:{run}:{step}:"
    # A record without an id is known by its place; the folders above its file depend on what was indexed.
    texts = [uid.rpartition("/")[2] if "@" in uid else uid for uid in uids]
    return [sha256((prefix + text).encode()).digest()[:DRAW_BYTES] for text in texts]


def weighted(draws: Sequence[bytes], calls: Sequence[int], power: float) -> list[tuple[float, bytes]]:
    """Return draws with the weight calls ** power; the smallest is taken first.

    No call weighs like one, so that a gentle power stays gentle: a weight of 0 would never be drawn at all.
    """
    log, numbers = math.log, struct.unpack(f">{len(draws)}Q", b"".join(draws))
    # Close to 1 the double rounds to 1, whose logarithm would be that of 0.
    return [
        (log(-log((number + 0.5) * UNIT) or SMALLEST) - _log_weight(count, power), drawn)
        for number, count, drawn in zip(numbers, calls, draws, strict=True)
    ]


@lru_cache
def _log_weight(calls: int, power: float) -> float:
    return power * math.log(max(calls, 1))


def layer(seed: int, slot: int, run: str, first_step: int | None, place: str, key: str, task: str) -> bytes:
    """Return the draw of a prompt, which orders the picks of one slot (counted from 1) among all prompts."""
    return sha256(f"{seed}:layer:{slot - 1}:{run}:{first_step}:{place}{key}:{task}".encode()).digest()[:DRAW_BYTES]


def prompt_identity(key: str, task: str) -> bytes:
    """Return the same few bytes for the same prompt, in whichever run and index."""
    return sha256(f"{key}:{task}".encode()).digest()[:IDENTITY_BYTES]
