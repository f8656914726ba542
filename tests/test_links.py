"""Every link of the documentation leads to a page, a heading or a file that is there."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

from scripts import docs_index

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "benchmarks/README.md"])
LINK = re.compile(r"!?\[[^\]\n]*\]\(([^()\s]+)\)")
CODE = re.compile(r"^```.*?^```$|<!--.*?-->|`[^`\n]+`", re.MULTILINE | re.DOTALL)


@cache
def anchors(page: Path) -> set[str]:
    """Return the anchors that the headings of a page have on GitHub."""
    headings = re.findall(r"^#+ (.+)$", CODE.sub("", page.read_text(encoding="utf-8")), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_lead_somewhere(page: Path) -> None:
    missing = []
    for link in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        place, _, anchor = link.partition("#")
        target = (page.parent / place) if place else page
        if re.match(r"https?://|mailto:", link):
            continue
        if "images" in target.parts and not (ROOT / "docs/images").exists():
            continue  # a source distribution comes without pictures
        if not target.exists() or (anchor and anchor not in anchors(target.resolve())):
            missing.append(link)
    assert missing == []


def test_the_index_leads_to_every_page() -> None:
    text = (ROOT / "docs/index.md").read_text(encoding="utf-8")
    linked = set(LINK.findall(text))
    assert {path.name for path in (ROOT / "docs").glob("*.md")} - {"index.md"} <= linked
    assert "docs/index.md" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_a_page_that_no_group_names_is_listed_too(tmp_path: Path) -> None:
    (tmp_path / "schema.md").write_text("# The schema\n\nText.\n")
    (tmp_path / "other.md").write_text("# Another page\n")
    assert docs_index.contents(tmp_path) == (
        "## Look up\n\n* [The schema](schema.md): every table and column, and why they are as they are\n\n"
        "## More\n\n* [Another page](other.md)\n\n"
    )


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# One\n\n[a](#one) [b](#two) [c](gone.md)\n")
    with pytest.raises(AssertionError, match=r"#two.*gone\.md"):
        test_links_lead_somewhere(page)
