"""Text as a person reads it: fenced code set apart from prose, JSON on one line given line breaks."""

from __future__ import annotations

import json
import re
from dataclasses import replace

from markupsafe import Markup

from .parts import Part
from .text import Text, reindented, visible

FENCE = re.compile(r"^ {0,3}(?P<ticks>`{3,}|~{3,})(?P<info>[^`\n]*)$\n?", re.MULTILINE)
MOST_BLOCKS = 500  # of one text; what comes after stays prose
LONGEST_JSON = 200_000  # characters
SHORTEST_JSON = 60
JSON_LABEL = "JSON, with line breaks added"


def code_blocks(text: str) -> list[tuple[bool, str]]:
    """Return (is code, text) of the blocks of a text; together they are the text, with nothing added or left out.

    A block of code begins and ends with its fence; one that is never closed goes to the end, as in Markdown.
    """
    if "```" not in text and "~~~" not in text:
        return [(False, text)] if text else []
    blocks: list[tuple[bool, str]] = []
    begin, opened = 0, ""
    for fence in FENCE.finditer(text):
        if len(blocks) >= MOST_BLOCKS:
            break
        ticks = fence["ticks"]
        if not opened:
            if fence.start() > begin:
                blocks.append((False, text[begin : fence.start()]))
            begin, opened = fence.start(), ticks
        elif ticks[0] == opened[0] and len(ticks) >= len(opened) and not fence["info"].strip():
            blocks.append((True, text[begin : fence.end()]))
            begin, opened = fence.end(), ""
    if begin < len(text):
        blocks.append((bool(opened), text[begin:]))
    return blocks


def formatted(text: str) -> Markup:
    """Return a text as HTML with its code in blocks; the text of the result is the text, character for character."""
    return Markup().join(_code(block) if is_code else visible(block) for is_code, block in code_blocks(text))


def _code(block: str) -> Markup:
    opening, *rest = block.split("\n", 1)
    body = rest[0] if rest else ""
    closing = body.rstrip("\n").rfind("\n") + 1
    fence = FENCE.fullmatch(body, closing)
    body, end = (body[:closing], body[closing:]) if fence else (body, "")
    language = re.sub(r"[^A-Za-z0-9+#_.-]", "", opening.strip().strip("`~"))[:20]
    return Markup(
        '<pre class="code" data-language="{}"><span class="fence">{}</span>{}<span class="fence">{}</span></pre>'
    ).format(language, visible(opening + "\n" * bool(rest)), visible(body), visible(end))


def with_line_breaks(part: Part) -> Part:
    """Return a part whose text is one long line of JSON as the same JSON on several lines, and say so."""
    text = part.text
    if text is None or text.is_cut or part.label or not SHORTEST_JSON <= text.characters <= LONGEST_JSON:
        return part
    if text.text.lstrip()[:1] not in ("{", "[") or "\n" in text.text.strip():
        return part
    try:
        json.loads(text.text)
    except (ValueError, RecursionError):
        return part
    broken = reindented(text.text)
    return replace(part, text=Text(broken, len(broken)), label=JSON_LABEL)
