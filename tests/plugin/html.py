"""Pages as a person sees them: tables, links and visible text, read from the HTML."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser
from urllib.parse import parse_qsl, urlsplit


class Visible(HTMLParser):
    """Collects the text of a page, without scripts and styles; `.invisible` marks become their characters again."""

    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self._silent = 0
        self._mark = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._silent += tag in ("script", "style", "title")
        if tag == "br":
            self.text.append("\n")
        found = re.match(r"U\+([0-9A-F]+)", dict(attrs).get("title") or "")
        if dict(attrs).get("class") == "invisible" and found:
            self.text.append(chr(int(found[1], 16)))
            self._mark = True

    def handle_endtag(self, tag: str) -> None:
        self._silent -= tag in ("script", "style", "title")
        self._mark = False

    def handle_data(self, data: str) -> None:
        if not self._silent and not self._mark:
            self.text.append(data)


def visible_text(page: str) -> str:
    """Return the text of some HTML, with the characters that the marks stand for."""
    parser = Visible()
    parser.feed(page)
    parser.close()
    return "".join(parser.text)


def words(page: str) -> str:
    """Return the text of a page in one line; what stands in different blocks is apart."""
    return " ".join(visible_text(re.sub(r"</(p|div|td|th|li|h\d|dt|dd)>", r"\g<0> ", page)).split())


def part(page: str, name: str) -> str:
    """Return the element of a page with this data-part, whole."""
    begin = re.search(rf'<(\w+)[^>]* data-part="{name}"', page)
    assert begin is not None
    depth = 0
    for tag in re.finditer(rf"<(/?){begin[1]}\b", page[begin.start() :]):
        depth += -1 if tag[1] else 1
        if not depth:
            return page[begin.start() : begin.start() + tag.start()]
    raise AssertionError(f"{name} has no end")


def table_rows(page: str, heading: str) -> list[list[str]]:
    """Return the cells of the rows of the table after a heading, each in one line."""
    section = page[page.index(f'id="{heading}"') :]
    body = section[section.index("<tbody>") : section.index("</tbody>")]
    rows = body.split("</tr>")[:-1]
    return [[words(cell) for cell in re.findall(r"<t[dh][^>]*>(.*?)</t[dh]>", row, re.DOTALL)] for row in rows]


def links(page: str, text: str) -> list[str]:
    """Return the addresses of the links of a page with this text."""
    found = re.findall(r'<a [^>]*?href="([^"]*)"[^>]*>(.*?)</a>', page, re.DOTALL)
    return [html.unescape(address) for address, inside in found if words(inside) == text]


def sql_link(page: str, heading: str) -> str:
    """Return the address of the SQL behind the list with a heading."""
    return links(page[page.index(f'id="{heading}"') :], "SQL")[0]


def query_of(address: str) -> dict[str, str]:
    """Return the query string of an address."""
    return dict(parse_qsl(urlsplit(address).query))
