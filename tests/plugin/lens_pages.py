"""Runs with recorded tokens, their index behind a Datasette, and the tokens of a page of the lens."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from datasette.app import Datasette

from rltracer_sqlite.index.database import finish_writing, open_for_writing
from rltracer_sqlite.index.refresh import refresh_run
from rltracer_sqlite.index.runs import ensure_run
from rltracer_sqlite.sources import source_for
from tests.layouts.records import ABSENT, message, node, trace
from tests.token_layouts import encode

from .conftest import read
from .html import visible_text

ASKED, HEAD = "<|im_start|>user\nwie groß?\t<|im_end|>\n", "<|im_start|>assistant\n"
SAID = "<think>\nhm\n</think>\n\n1 cm <|im_end|>"
SAMPLED = 14  # tokens of SAID


def tokenised(said: dict[str, Any], text: str, sampled: str = "", parent: int | None = None, **streams: Any) -> Any:
    """Return a node with the tokens of a template's text and of a sampled one behind it."""
    before, behind = encode(text), encode(sampled)
    mask = [False] * len(before) + [True] * len(behind)
    logprobs = [-0.01 * place for place in range(len(behind))]
    arrays = {"token_ids": before + behind, "mask": mask, "is_content": mask, "logprobs": logprobs, **streams}
    return {**node(said, parent), **{name: values for name, values in arrays.items() if values is not ABSENT}}


def conversation(**streams: Any) -> dict[str, Any]:
    user = tokenised(message("user", "wie groß?"), ASKED)
    return trace(nodes=[user, tokenised(message("assistant", "1 cm"), HEAD, SAID, 0, **streams)], id="asked")


def serve(folder: Path, tokenizer: Path | None = None, **options: Any) -> Datasette:
    """Return a Datasette for an index, made now, of the run in a folder."""
    database, source = folder / "run.sqlite", source_for(folder / "run", str(tokenizer) if tokenizer else None)
    connection = open_for_writing(database)
    refresh_run(connection, source, folder / "run", ensure_run(connection, source, folder / "run"))
    finish_writing(connection)
    return Datasette([str(database)], **options)


class Spans(HTMLParser):
    """Collects the tokens of a page: (classes, title, text with the real characters for their symbols)."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[list[str]] = []
        self.depth = 0
        self.inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag == "div":
            self.inside = "tokens" in (given.get("class") or "").split()
        elif self.inside and (given.get("class") or "").split()[:1] == ["k"]:
            self.found.append([given["class"] or "", given["title"] or "", ""])

    def handle_data(self, data: str) -> None:
        if self.inside and self.found:
            self.found[-1][2] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "div":
            self.inside = False


def spans(page: str) -> list[list[str]]:
    parser = Spans()
    parser.feed(page)
    return parser.found


def looks(page: str) -> list[set[str]]:
    return [set(classes.split()) for classes, _, _ in spans(page)]


async def tokens_page(datasette: Datasette, query: str = "", number: int = 1) -> str:
    return await read(datasette, number, f"?view=tokens{query}")


def text_of(page: str) -> str:
    begin = page.index('<div class="tokens')
    return visible_text(page[begin : page.index("</div>", begin)])
