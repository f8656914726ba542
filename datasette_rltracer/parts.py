"""The content of a message in parts that can be shown: texts, and images that are wholly in the record."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .text import Text, cut, json_text

# Only these, and only from inside the record: nothing that a trajectory says may make a browser fetch anything.
IMAGE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/\s]+={0,2}\s*", re.ASCII)
IMAGE_LIMIT = 8_000_000  # characters of a data URI

THINK, END_OF_THINK = "<think>", "</think>"


@dataclass(frozen=True)
class Part:
    """One part of a content: a `text`, or an `image` as a data URI; `label` says what it is where it is no plain text."""

    text: Text | None = None
    image: str | None = None
    label: str | None = None


def read_parts(content: Any, limit: int) -> tuple[int, list[Part], list[str]]:
    """Return (characters of all texts, parts, reasoning that stood in the text between think tags)."""
    if content is None:
        return 0, [], []
    if isinstance(content, str):
        thoughts, rest = split_thoughts(content)
        return len(content), [Part(cut(rest, limit))] if rest else [], thoughts
    if not isinstance(content, list):
        text = json_text(content)
        return len(text), [Part(cut(text, limit), label=type(content).__name__)], []
    characters, parts = 0, []
    for part, length in _listed(content, limit):
        characters += length
        parts.append(part)
    return characters, parts, []


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


def _listed(content: list[Any], limit: int) -> Iterator[tuple[Part, int]]:
    for part in content:
        if isinstance(part, str):
            yield Part(cut(part, limit)), len(part)
        elif isinstance(part, Mapping) and isinstance(part.get("text"), str):
            kind = part.get("type")
            yield Part(cut(part["text"], limit), label=None if kind in (None, "text") else str(kind)), len(part["text"])
        elif isinstance(part, Mapping) and _address(part) is not None:
            yield _image(str(_address(part)), limit), 0
        else:
            kind = str(part.get("type") or "part") if isinstance(part, Mapping) else type(part).__name__
            yield Part(cut(json_text(part), limit), label=kind), 0


def _address(part: Mapping[str, Any]) -> str | None:
    """Return the address of an image part in any of the usual forms, or None for another part."""
    found = part.get("image_url")
    if isinstance(found, Mapping):
        found = found.get("url")
    return found if isinstance(found, str) else None


def _image(address: str, limit: int) -> Part:
    if len(address) > IMAGE_LIMIT:
        return Part(cut(address, 200), label="image too large to show here")
    if IMAGE.fullmatch(address):
        return Part(image=address)
    return Part(cut(address, min(limit, 2000)), label="image not loaded: only PNG, JPEG, GIF and WebP inside the record are shown")
