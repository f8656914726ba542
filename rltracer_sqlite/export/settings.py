"""How sentences of the exporter name its preferences, for the command line and the pages, which call them otherwise."""

from __future__ import annotations

import re
from collections.abc import Callable

# A name of several words, or any name with what it is set to, as in Python: drop_truncated, acceptance='passed'.
NAMED = re.compile(
    r"(?<![\w/.])(?:([a-z]+(?:_[a-z]+)*)=(?:'([a-z]+)'|(\d+)|(None)|True)|([a-z]+(?:_[a-z]+)+))(?![\w/])"
)
NO_LIMIT = "all"  # what None is called elsewhere


def renamed(sentence: str, called: Callable[[str, str], str | None]) -> str:
    """Return a sentence with other names; `called` has for a name, and the text that it is set to or "", what to say.

    What it has None for stays as it is.
    """

    def said(found: re.Match[str]) -> str:
        value = NO_LIMIT if found[4] else found[2] or found[3] or ""
        named = called(found[1] or found[5], value)
        return found[0] if named is None else named

    return NAMED.sub(said, sentence)
