"""The marks of what was found, put into the finished HTML of messages.

They go only into the elements that hold recorded text: those with a `data-copy` attribute, and the names of tools. So a
match may reach over the elements that code or an invisible character has around it, and nothing that the page itself
says is marked.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html import unescape

from markupsafe import Markup, escape

from .find import Find

MOST_MARKS = 5_000  # of one page
PIECE = re.compile(r"<(?P<close>/)?(?P<tag>[a-z][a-z0-9]*)(?P<attributes>[^>]*)>|(?P<text>[^<]+)")
ALONE = {"br", "img", "input", "hr", "wbr", "meta", "link"}
RECORDED = re.compile(r"\sdata-copy=")
MESSAGE = re.compile(r'\sid="m(\d+)"')


def found(html: str, find: Find | None) -> str:
    """Return the HTML of messages with what is looked for marked in it: a filter of the templates.

    The first match of a message has the id found-<number>.
    """
    return _mark(html, find) if find is not None else html


def _mark(html: str, find: Find) -> Markup:
    pieces = list(PIECE.finditer(html))
    if sum(len(piece[0]) for piece in pieces) != len(html):
        return Markup(html)  # not the HTML that the templates write: better unmarked than broken
    out = [piece[0] for piece in pieces]
    seen: set[str] = set()
    left = MOST_MARKS
    for region in _regions(pieces):
        texts = [unescape(out[number]) for number in region.texts]
        spans = find.spans("".join(texts), left)
        if not spans:
            continue
        left -= len(spans)
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
        marked: list[str] = []
        while span is not None and span[0] < end:
            start, stop = max(span[0] - offset, done), min(span[1], end) - offset
            marked += [escape(text[done:start]), Markup("<mark{}>{}</mark>").format(attribute, text[start:stop])]
            attribute, done = Markup(""), stop
            if span[1] > end:
                break
            span = next(following, None)
        yield "".join([*marked, escape(text[done:])])
        offset = end
