"""The documentation of the pages: its pictures are there, of both themes and widths, and small."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
IMAGES = DOCS / "images"
with_pictures = pytest.mark.skipif(not IMAGES.exists(), reason="a source distribution has no pictures")
PAGES = (DOCS / "pages.md").read_text(encoding="utf-8")


@with_pictures
def test_every_picture_is_shown_and_every_shown_one_is_there() -> None:
    shown = set(re.findall(r'(?:srcset|src)="([^"]+)"', PAGES))
    kept = {str(path.relative_to(DOCS)) for path in (IMAGES / "pages").iterdir()}
    assert shown == kept


@with_pictures
def test_each_page_has_both_widths_in_both_themes() -> None:
    names = [path.stem.rsplit("-", 2) for path in (IMAGES / "pages").iterdir()]
    for page in {name for name, _, _ in names}:
        kinds = {(width, theme) for name, width, theme in names if name == page}
        assert kinds == {(width, theme) for width in ("wide", "narrow") for theme in ("light", "dark")}


@with_pictures
def test_pictures_are_small() -> None:
    sizes = [path.stat().st_size for path in IMAGES.rglob("*") if path.is_file()]
    assert max(sizes) < 300_000
    assert sum(sizes) < 3_000_000


def test_every_key_is_documented() -> None:
    script = (DOCS.parent / "datasette_rltracer/static/reading.js").read_text(encoding="utf-8")
    keys = re.findall(r'^  "?([^\s":]+)"?: "', script[script.index("const KEYS") : script.index("};")], re.M)
    assert len(keys) == 14
    assert all(f"`{key}`" in PAGES for key in keys)
