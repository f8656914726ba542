"""Which name was meant by one that is not there."""

from __future__ import annotations

from collections.abc import Iterable

LONGEST_COMPARED = 200  # characters of a name
LEAST = 0.6  # share of two names that is the same where one may be a slip of the other


def did_you_mean(asked: Iterable[str], known: Iterable[str]) -> str:
    """Return " Did you mean math, code?" with the known name that is most like each asked one; "" where none is."""
    from difflib import get_close_matches  # only a slip pays for it

    names = {name[:LONGEST_COMPARED]: None for name in known}
    close = [get_close_matches(one[:LONGEST_COMPARED], names, 1, LEAST) for one in asked]
    meant = dict.fromkeys(name for found in close for name in found)
    return f" Did you mean {', '.join(meant)}?" if meant else ""
