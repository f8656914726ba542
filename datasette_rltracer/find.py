"""Finding a text within one trajectory: how often it stands in which message, and its marks on the page.

The marks are put into the finished HTML of a message, and only into the elements that hold recorded text: those with
a `data-copy` attribute, and the names of tools. So a match may reach over the elements that code or an invisible
character has around it, and nothing that the page itself says is marked or counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import unescape
from typing import Any
from urllib.parse import parse_qsl

from markupsafe import Markup

from .conversation import TEXT_LIMIT, read_page
from .raw_text import raw_message

LONGEST_FIND = 200  # characters
MOST_CHARACTERS = 20_000_000  # that are looked through
MOST_LISTED = 200  # messages with a match that are listed
PIECE = re.compile(r"<(?P<close>/)?(?P<tag>[a-z][a-z0-9]*)(?P<attributes>[^>]*)>|(?P<text>[^<]+)")
ALONE = {"br", "img", "input", "hr", "wbr", "meta", "link"}
RECORDED = re.compile(r"\sdata-copy=")
MESSAGE = re.compile(r'\sid="m(\d+)"')


@dataclass(frozen=True)
class FoundIn:
    """How often a text stands in a message; `beyond`: the first time behind what is shown of the message."""

    message: int
    count: int
    beyond: bool


@dataclass(frozen=True)
class Find:
    """What is looked for, and where it stands. `searched` messages were looked through."""

    text: str
    pattern: re.Pattern[str]
    listed: list[FoundIn] = field(default_factory=list)
    count: int = 0
    messages: int = 0  # with a match
    searched: int = 0

    def mark(self, html: str) -> Markup:
        """Return the HTML of messages with every match marked; the first one of a message has the id found-<number>."""
        return _mark(html, self.pattern)


def find_in(messages: Sequence[Mapping[str, Any]], text: str | None, view: str = "conversation") -> Find | None:
    """Return where a text stands in the messages of a branch, or None where nothing is looked for.

    Upper and lower case are the same, and so are all stretches of white space.
    """
    wanted = " ".join((text or "").split())[:LONGEST_FIND]
    if not wanted:
        return None
    pattern = re.compile(r"\s+".join(re.escape(word) for word in wanted.split(" ")), re.IGNORECASE)
    listed: list[FoundIn] = []
    count = found = searched = 0
    room = MOST_CHARACTERS
    for number, message in enumerate(messages):
        if room <= 0:
            break
        here, beyond = 0, False
        for shown in _texts(message, number, view):
            places = [match.end() for match in pattern.finditer(shown)]
            beyond = beyond or (not here and bool(places) and places[0] > TEXT_LIMIT)
            here += len(places)
            room -= len(shown)
        searched += 1
        if here:
            found += 1
            count += here
            if len(listed) < MOST_LISTED:
                listed.append(FoundIn(number, here, beyond))
    return Find(wanted, pattern, listed, count, found, searched)


def _texts(message: Mapping[str, Any], number: int, view: str) -> Iterator[str]:
    """Yield the texts of a message as the page shows them, uncut."""
    if view == "raw":
        yield from (piece.text.text for piece in raw_message(message, number, True).pieces)
        return
    for turn in read_page([message], 0, 0).turns:
        yield from (text.text for text in turn.reasoning)
        yield from (part.text.text for part in turn.parts if part.text is not None)
        for call in turn.calls:
            yield call.name or ""
            yield from (argument.text.text for argument in call.arguments.named)
            if call.arguments.text:
                yield call.arguments.text.text


def _mark(html: str, pattern: re.Pattern[str]) -> Markup:
    pieces = list(PIECE.finditer(html))
    if sum(len(piece[0]) for piece in pieces) != len(html):
        return Markup(html)  # not the HTML that the templates write: better unmarked than broken
    out = [piece[0] for piece in pieces]
    seen: set[str] = set()
    for region in _regions(pieces):
        texts = [unescape(out[number]) for number in region.texts]
        spans = [match.span() for match in pattern.finditer("".join(texts))]
        if not spans:
            continue
        name = f"found-{region.message}" if region.message not in seen else None
        seen.add(region.message)
        for number, marked in zip(region.texts, _marked(texts, spans, name), strict=True):
            out[number] = marked
        for number in region.folds:
            out[number] = (
                out[number].replace("<details", "<details open", 1) if " open" not in out[number] else out[number]
            )
    return Markup("".join(out))


@dataclass(frozen=True)
class _Region:
    """An element of recorded text: its texts and the folded elements around it, as places among the pieces."""

    message: str
    folds: list[int]
    texts: list[int] = field(default_factory=list)


def _regions(pieces: Sequence[re.Match[str]]) -> Iterator[_Region]:
    """Yield the elements of recorded text."""
    opened: list[tuple[int, str]] = []  # place among the pieces, message
    region: _Region | None = None
    depth, in_head = 0, False
    for number, piece in enumerate(pieces):
        tag = piece["tag"]
        if tag is None:
            if region is not None:
                region.texts.append(number)
        elif piece["close"]:
            if opened:
                opened.pop()
            if region is not None and len(opened) < depth:
                yield region
                region = None
        elif tag not in ALONE:
            named = MESSAGE.search(piece["attributes"])
            message = named[1] if named else opened[-1][1] if opened else ""
            opened.append((number, message))
            if region is None and (RECORDED.search(piece["attributes"]) or (in_head and tag == "b")):
                folds = [place for place, _ in opened if pieces[place]["tag"] == "details"]
                region, depth = _Region(message, folds), len(opened)
            in_head = 'class="call-head"' in piece["attributes"]


def _marked(texts: Sequence[str], spans: Sequence[tuple[int, int]], name: str | None) -> Iterator[str]:
    """Yield each text as HTML with the parts of the spans that lie in it marked; spans are over all texts together."""
    offset = 0
    attribute = Markup(' id="{}"').format(name) if name else Markup("")
    following = iter(spans)
    span = next(following, None)
    for text in texts:
        done, end = 0, offset + len(text)
        marked = Markup("")
        while span is not None and span[0] < end:
            start, stop = max(span[0] - offset, done), min(span[1], end) - offset
            marked += text[done:start] + Markup("<mark{}>{}</mark>").format(attribute, text[start:stop])
            attribute, done = Markup(""), stop
            if span[1] > end:
                break
            span = next(following, None)
        yield str(marked + text[done:])
        offset = end


def find_context(find: Find | None, address: str) -> dict[str, Any]:
    """Return what the form of a page needs: what is looked for, and the address of the page in parts."""
    url, _, query = address.partition("?")
    return {"find": find, "find_url": url, "find_hidden": parse_qsl(query, keep_blank_values=True)}


def found(html: str, find: Find | None) -> str:
    """Return the HTML of messages with what is looked for marked in it: a filter of the templates."""
    return find.mark(html) if find is not None else html
