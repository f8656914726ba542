"""The content of a message in parts that can be shown: texts, and images that are wholly in the record."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from rltracer_sqlite.thoughts import split_thoughts

from .image_size import shown_size
from .text import Text, cut, json_text

# Only these, and only from inside the record: nothing that a trajectory says may make a browser fetch anything.
IMAGE = re.compile(r"data:image/(?:png|jpeg|gif|webp);base64,[A-Za-z0-9+/\s]+={0,2}\s*", re.ASCII)
IMAGE_LIMIT = 8_000_000  # characters of the data URIs of one message
LONGEST_ADDRESS = 500
NOT_LOADED = "image not loaded: only PNG, JPEG, GIF and WebP inside the record are shown"
TOO_LARGE = "image too large to show here; the raw record has it"
MOST_PARTS = 200


@dataclass(frozen=True)
class Part:
    """One part of a content: a `text`, or an `image` as a data URI; a `label` says what is no plain text."""

    text: Text | None = None
    image: str | None = None
    label: str | None = None
    size: tuple[int, int] | None = None  # of the image on the page, in pixels, where it is known


@dataclass(frozen=True)
class Content:
    """A message's content: `characters` of all its texts, its parts, and reasoning that stood in the text."""

    characters: int
    parts: list[Part]
    thoughts: list[str] = field(default_factory=list)
    left_out: int = 0  # parts that are not shown


def read_parts(content: object, limit: int) -> Content:
    """Return what to show of a content, each text cut at `limit` characters."""
    if content is None:
        return Content(0, [])
    if isinstance(content, str):
        thoughts, rest = split_thoughts(content)
        return Content(len(content), [Part(cut(rest, limit))] if rest else [], thoughts)
    if not isinstance(content, list):
        text = json_text(content)
        return Content(len(text), [Part(cut(text, limit), label=type(content).__name__)])
    characters = sum(len(_part_text(part) or "") for part in content)
    return Content(characters, list(_listed(content[:MOST_PARTS], limit)), [], max(len(content) - MOST_PARTS, 0))


def _listed(content: list[Any], limit: int) -> Iterator[Part]:
    room = IMAGE_LIMIT
    for part in content:
        text, address = _part_text(part), _address(part)
        kind = part.get("type") if isinstance(part, Mapping) else type(part).__name__
        if text is not None:
            yield Part(cut(text, limit), label=None if kind in (None, "text", "str") else str(kind))
        elif address is not None:
            yield _image(address, room)
            room -= len(address)
        else:
            yield Part(cut(json_text(part), limit), label=str(kind or "part"))


def _part_text(part: object) -> str | None:
    text = part.get("text") if isinstance(part, Mapping) else part
    return text if isinstance(text, str) else None


def _address(part: object) -> str | None:
    """Return the address of an image part in any of the usual forms, or None for another part."""
    found = part.get("image_url") if isinstance(part, Mapping) else None
    if isinstance(found, Mapping):
        found = found.get("url")
    return found if isinstance(found, str) else None


def _image(address: str, room: int) -> Part:
    if not IMAGE.match(address[:100]) or not IMAGE.fullmatch(address):
        return Part(cut(address, LONGEST_ADDRESS), label=NOT_LOADED)
    if len(address) > room:
        return Part(cut(address, LONGEST_ADDRESS), label=TOO_LARGE)
    return Part(image=address, size=shown_size(address))
