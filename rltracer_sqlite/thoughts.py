"""Reasoning that stands within the text of a message, between tags, as many models write it."""

from __future__ import annotations

THINK, END_OF_THINK = "<think>", "</think>"


def split_thoughts(text: str) -> tuple[list[str], str]:
    """Return ([the reasoning at the beginning of a text, with its tags], the rest).

    Chat templates often put the opening tag into the prompt, so that only the closing one is in the text.
    """
    end = text.find(END_OF_THINK)
    begins = text.lstrip().startswith(THINK)
    if end < 0 or not (begins or THINK not in text[:end]):
        return [], text
    end += len(END_OF_THINK)
    return [text[:end]], text[end:].lstrip("\n")
