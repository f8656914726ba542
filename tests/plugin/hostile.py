"""Texts that a page must show as text and nothing else, and a trace that has one wherever it can."""

from __future__ import annotations

from html.parser import HTMLParser

from tests.layouts.records import message, tool_call, trace

PAYLOADS = [
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>'",
    "</pre></div></template><svg onload=alert(1)>",
    "{{ 7 * 7 }}{% raw %}",
    "javascript:alert(1)",
    "\u202eevil\u2066\x1b[31m\0\x9b\r",
    "\ud800 half",
    "&lt;script&gt;&#0;",
]


class Elements(HTMLParser):
    """Collects the elements of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


def reading_part(page):
    parser = Elements()
    parser.feed(page[page.index('<div class="reading">') : page.index("</aside>")])
    return parser.found


def hostile_trace(text):
    said = [
        message(text, text, name=text),
        message(
            "user", [{"type": "image_url", "image_url": {"url": text}}, {"type": text, "text": text}, {text: text}]
        ),
        message(
            "assistant", text, reasoning_content=text, tool_calls=[tool_call(text, text, {text: text, "n": [text]})]
        ),
        message("tool", text, tool_call_id=text),
        message("assistant", None, tool_calls=[tool_call("c", text, text)], **{"extra": {text: text}}),
    ]
    return trace(
        said,
        task={"idx": 0, "answer": text},
        rewards={text: {"score": 1.0, "weight": 1.0}},
        metrics={text: 1.0},
        info={text: text, "kind": text},
        stop_condition=text,
        errors=[{"type": text, "message": text, text: text}],
        tools=[{"type": "function", "function": {"name": text, "description": text}}],
        agent=text,
    )
