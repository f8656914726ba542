"""Texts of prompts, and names of runs, cut to the width of a list so that one can be told from another."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from .columns import cut, ending, path_ending, width_of
from .visible import in_line

SHORT_WORD = 6  # characters; of a longer one only the part that differs is shown
SHORTEST_PREVIEW = 16  # columns, for which other columns of a list give way
SHARED = 3  # the share of the width, one in so many, that is kept of what several texts begin with


def told_apart(texts: Sequence[str], width: int) -> list[str]:
    """Return texts cut to at most `width` columns; of those that would look the same, their differing parts.

    Prompts of an environment often begin with the same instruction: what several have in common is left out behind its
    first words, "Decide…12 + 5 = 17?", as far as that tells them apart.
    """
    lines = [cut(text, sys.maxsize) for text in texts]
    return _differing(lines, [cut(line, width) for line in lines], width)


def names_apart(names: Sequence[str], width: int) -> list[str]:
    """Return names cut to at most `width` columns, each of the longer ones without its middle: "qwen3…lr1e-6-seed2".

    Of names that would look the same, as they differ there, it is their differing parts.
    """
    lines = [cut(name, sys.maxsize) for name in names]
    return _differing(lines, [_without_middle(line, width) for line in lines], width)


def paths_apart(paths: Sequence[str], width: int) -> list[str]:
    """Return paths cut to at most `width` columns, each with its name at its end: "…/step_3/traces.jsonl".

    Of those that would look the same, as they differ in a folder, it is that one: "…/step_3/…/traces.jsonl".
    """
    lines = [in_line(path) for path in paths]
    shown = [path_ending(line, width) for line in lines]
    if len(set(shown)) == 1 < len(set(lines)):
        folders = [line.split("/") for line in lines]
        differing = [place for place, names in enumerate(zip(*folders, strict=False)) if len(set(names)) > 1]
        named = [_of_folder(names, differing[0]) for names in folders] if differing else shown
        return named if all(width_of(name) <= width for name in named) else shown
    return shown


def _of_folder(names: Sequence[str], place: int) -> str:
    """Return a path of which a folder and the name of the file are kept."""
    before, between = ["…"] if place > 0 else [], ["…"] if place < len(names) - 2 else []
    return "/".join([*before, *names[place : len(names) - 1][:1], *between, names[-1]])


def _without_middle(name: str, width: int) -> str:
    if width_of(name) <= width:
        return name
    head = cut(name, max(width // SHARED, 1) + 1).removesuffix("…")
    return head + ending(name, width - width_of(head))


def _differing(lines: Sequence[str], shown: list[str], width: int) -> list[str]:
    """Return what is shown of lines, but of those that look the same what they differ by."""
    alike: dict[str, list[int]] = {}
    for place, text in enumerate(shown):
        alike.setdefault(text, []).append(place)
    for places in alike.values():
        common = _beginning_of_all([lines[place] for place in places])
        for place in places:
            if lines[place] != common:
                shown[place] = _without(lines[place], common, width)
    return shown


def _beginning_of_all(texts: Sequence[str]) -> str:
    first, last = min(texts), max(texts)
    pairs = enumerate(zip(first, last, strict=False))
    return first[: next((place for place, (one, other) in pairs if one != other), len(first))]


def _without(text: str, common: str, width: int) -> str:
    """Return a text without what it shares with others, but for its first words, from the word on that differs."""
    head = cut(common, max(width // SHARED, 1) + 1).removesuffix("…").rstrip()
    word = common.rfind(" ") + 1
    start = word if len(common) - word < SHORT_WORD and word > len(head) else len(common)
    return cut(f"{head}…{text[start:]}", width)
