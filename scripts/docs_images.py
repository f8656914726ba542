"""Take the pictures of docs/pages.md: every page over the demo run, wide and narrow, light and dark.

    python scripts/docs_images.py                 # writes docs/images/pages/*.webp and docs/images/trajectory.png
    python scripts/docs_images.py --look FOLDER   # whole pages as PNG, at three widths, to be looked at

It needs playwright and a Chromium. The demo is made up and always the same, and so are the pictures but for times.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import shutil
import socket
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # the pages of this checkout, whatever is installed
IMAGES = ROOT / "docs" / "images" / "pages"
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
THEMES = ("light", "dark")
# (name, width and height of the window, how many pixels of the picture a pixel of the window becomes)
WIDE, NARROW = ("wide", 2560, 1280, 0.5), ("narrow", 360, 720, 1.0)
QUALITY = 62


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--look", type=Path, metavar="FOLDER", help="write whole pages as PNG there, and nothing else")
    parser.add_argument("--only", default="", metavar="TEXT", help="only the pages with this in their name")
    chosen = parser.parse_args()
    with TemporaryDirectory() as folder, served(Path(folder)) as (address, paths), browser() as chromium:
        wanted = {name: path for name, path in paths.items() if chosen.only in name}
        for theme in THEMES:
            for name, path in wanted.items():
                if chosen.look:
                    look(chromium, f"{address}{path}", chosen.look / f"{name}-{theme}", theme)
                else:
                    keep(chromium, f"{address}{path}", name, theme)
        if not chosen.look:
            with opened(chromium, f"{address}{paths['trajectory']}", "light", 1280, 900) as page:
                page.screenshot(path=str(ROOT / "docs" / "images" / "trajectory.png"))


def demo_paths(database: Path) -> dict[str, str]:
    """Return the paths of the pages that have a picture, by the name of the picture."""
    with closing(sqlite3.connect(database)) as connection:

        def find(sql: str) -> int:
            return int(connection.execute(sql).fetchone()[0])

        branched = find("select min(id) from trajectories where branches > 1")
        failed = find(
            """
            select id from trajectories
            where step = 8 and split = 'train' and env = 'word-problems' and success = 0 order by id
            """
        )
        group = find(f"select prompt_group_id from trajectories where id = {failed}")
        prompt = find(f"select prompt_id from prompt_groups where id = {group}")
        best = find(f"select id from trajectories where prompt_group_id = {group} order by reward desc, id")
        shell = find("select min(id) from trajectories where tool_calls > 3 and success = 1")
    base = "/-/rltracer/demo"
    return {
        "overview": f"{base}/",
        "run": f"{base}/run/1",
        "charts": f"{base}/run/1/charts",
        "step": f"{base}/step/1/8",
        "prompt": f"{base}/prompt/1/{prompt}",
        "group": f"{base}/group/{group}",
        "trajectory": f"{base}/trajectory/{shell}",
        "branches": f"{base}/trajectory/{branched}",
        "raw": f"{base}/trajectory/{shell}?view=raw",
        "tokens": f"{base}/trajectory/{failed}?view=tokens",
        "compare": f"{base}/compare?a={best}&b={failed}",
        "search": f"{base}/search?q=fuser+OR+%22loose+jars%22&success=0&_sort_desc=reward",
        "export": f"{base}/export?_table=trajectories&_preview=sft&_acceptance=correct&_split=train&_per_prompt=2",
        "browse": "/-/rltracer/index/browse",
        "browse-run": "/-/rltracer/index/browse/run",
    }


@contextlib.contextmanager
def served(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Serve the demo, its full text, and the list of a folder of runs; yield the address and the paths."""
    import uvicorn
    from datasette.app import Datasette

    from rltracer_sqlite.cli.serve import browse_config, prepare_index

    database = make_demo(folder / "runs")
    index = prepare_index(folder / "runs", folder / "index.sqlite")
    metadata = browse_config(folder / "runs", index)
    app = Datasette([str(database), str(index)], metadata=metadata, settings={"suggest_facets": False}).app()
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error", lifespan="on"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{port}", demo_paths(database)
    finally:
        server.should_exit = True
        thread.join()


def make_demo(folder: Path) -> Path:
    """Write the demo with its full text and return its index."""
    from click.testing import CliRunner

    from rltracer_sqlite.cli import group

    CliRunner().invoke(group, ["demo", str(folder), "--no-serve"], catch_exceptions=False)
    return folder / "demo.sqlite"


@contextlib.contextmanager
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        launched = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


@contextlib.contextmanager
def opened(chromium: Any, address: str, theme: str, width: int, height: int, scale: float = 1.0) -> Iterator[Any]:
    """Yield a page whose pictures and charts are all drawn."""
    context = chromium.new_context(
        viewport={"width": width, "height": height}, color_scheme=theme, device_scale_factor=scale
    )
    page = context.new_page()
    page.goto(address)
    page.locator(".reading, .rltracer-charts").first.wait_for()
    page.wait_for_function("!document.querySelector('figure.rltracer-chart:not([data-state=drawn])')")
    # The demo lies in a folder of this moment; a reader's runs lie elsewhere.
    page.evaluate(
        "document.querySelectorAll('.headline .mono').forEach((one) => {"
        " if (one.textContent.startsWith('/')) one.textContent = '/data/runs'; })"
    )
    yield page
    context.close()


def look(chromium: Any, address: str, target: Path, theme: str) -> None:
    """Write the first part of a page as PNG at three widths."""
    target.parent.mkdir(parents=True, exist_ok=True)
    for width, height in ((360, 2400), (1280, 1800), (2560, 1600)):
        with opened(chromium, address, theme, width, height) as page:
            page.screenshot(path=f"{target}-{width}.png")


def keep(chromium: Any, address: str, name: str, theme: str) -> None:
    """Write the pictures of a page in one theme: what a wide and a narrow window show of it."""
    IMAGES.mkdir(parents=True, exist_ok=True)
    for size, width, height, scale in (WIDE, NARROW):
        with opened(chromium, address, theme, width, height, scale) as page:
            session = page.context.new_cdp_session(page)
            picture = session.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
            (IMAGES / f"{name}-{size}-{theme}.webp").write_bytes(base64.b64decode(picture["data"]))


if __name__ == "__main__":
    main()
