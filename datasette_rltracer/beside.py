"""Which turns of two conversations stand beside one another."""

from __future__ import annotations

from collections.abc import Sequence

from rltracer_sqlite.comparison import Signature

# What it is worth that the same stands beside the same, and that a turn stands beside nothing.
SAME, ALONE = 2, -1
NEVER = -(10**9)

Pair = tuple["int | None", "int | None"]


def beside(left: Sequence[Signature], right: Sequence[Signature]) -> list[Pair]:
    """Return the pairs of places that stand beside one another, None where only the other side has a turn.

    The turns are given by what they say, with the role first; only those of one role stand beside one another. This is
    the alignment of Needleman and Wunsch (1970). The longest common subsequence would not do: two rollouts that do the
    same in another order have a short one, for whose sake most turns would stand beside nothing.
    """
    known: dict[Signature, int] = {}
    ours, theirs = ([known.setdefault(key, len(known)) for key in keys] for keys in (left, right))

    def worth(a: int, b: int) -> int:
        return SAME if ours[a] == theirs[b] else 0 if left[a][0] == right[b][0] else NEVER

    best = [[ALONE * (len(left) - a + len(right) - b) for b in range(len(right) + 1)] for a in range(len(left) + 1)]
    for a in reversed(range(len(left))):
        for b in reversed(range(len(right))):
            best[a][b] = max(worth(a, b) + best[a + 1][b + 1], best[a + 1][b] + ALONE, best[a][b + 1] + ALONE)
    pairs: list[Pair] = []
    a = b = 0
    while a < len(left) or b < len(right):
        if a < len(left) and b < len(right) and best[a][b] == worth(a, b) + best[a + 1][b + 1]:
            pairs.append((a, b))
            a, b = a + 1, b + 1
        elif a < len(left) and best[a][b] == best[a + 1][b] + ALONE:
            pairs.append((a, None))
            a += 1
        else:
            pairs.append((None, b))
            b += 1
    return pairs
