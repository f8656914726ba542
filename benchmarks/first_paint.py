"""Measure how soon the reading pages are painted: a Datasette of its own process, and a real Chromium.

    python -m benchmarks.first_paint [FOLDER] [--repeats N]

uses the index and the runs of benchmarks.reading, which are made in FOLDER where they are missing. Every time is from
the start of the navigation, in a context without a cache, as the browser's own performance entries have it. What a page
weighs is said too: bytes, nodes, the heap of JavaScript, and the memory of its process. It needs playwright, Chromium
and Linux. A first paint beyond a second is an error.
"""

from __future__ import annotations

import argparse
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import datasette as installed

from benchmarks.reading import make
from tests.indexing import value

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
LIMIT = 1000.0  # milliseconds to the first paint of a page
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
WAIT = 60.0  # seconds for the server to answer

# The first paint is known to the page a moment after it happened, and may come before or after the load event.
TIMES = """() => new Promise((found) => {
    const said = () => {
        const [whole] = performance.getEntriesByType("navigation");
        const paint = performance.getEntriesByName("first-contentful-paint")[0];
        if (!paint || !whole.loadEventEnd) return setTimeout(said, 20);
        found({
            first_byte: whole.responseStart, paint: paint.startTime, ready: whole.domContentLoadedEventEnd,
            bytes: whole.decodedBodySize, nodes: document.querySelectorAll("*").length,
        });
    };
    said();
})"""


@dataclass(frozen=True)
class Opened:
    """One opening of a page: milliseconds from the start of the navigation, and what the page weighs."""

    first_byte: float
    paint: float
    ready: float  # the page is read to its end, and its keys work
    bytes: int
    nodes: int  # elements
    heap: int  # bytes of JavaScript's heap
    memory: int  # bytes of the process that shows the page


def pages(path: Path) -> dict[str, str]:
    """Return the paths of the pages that are measured, by what they are."""
    base = f"/-/rltracer/{path.stem}"
    large = value(path, "select max(id) from trajectories")
    found = {
        "trajectory, 50 MB": f"{base}/trajectory/{large}",
        "trajectory, 50 MB, raw": f"{base}/trajectory/{large}?view=raw",
        "step of 1,500 groups": f"{base}/step/1/1",
    }
    for name in ("text", "tokens"):
        run = value(path, "select id from runs where name = ?", (name,))
        first = value(path, "select min(id) from trajectories where run_id = ?", (run,))
        group = value(path, "select prompt_group_id from trajectories where id = ?", (first,))
        found[f"trajectory, 1 MB, mostly {name}"] = f"{base}/trajectory/{first}"
        found[f"group of 16 x 1 MB, mostly {name}"] = f"{base}/group/{group}"
    return found


@contextmanager
def served(path: Path) -> Iterator[str]:
    """Serve an index by a process of its own and yield its address."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-m", "datasette", "serve", str(path), "--port", str(port)]
    with subprocess.Popen(
        [*command, "--setting", "suggest_facets", "off"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as server:
        try:
            _wait_for(f"http://127.0.0.1:{port}/-/versions.json")
            yield f"http://127.0.0.1:{port}"
        finally:
            server.terminate()


def _wait_for(address: str) -> None:
    end = time.monotonic() + WAIT
    while True:
        try:
            with urlopen(address, timeout=WAIT):
                return
        except OSError:
            if time.monotonic() > end:
                raise SystemExit("the server does not answer") from None
            time.sleep(0.1)


def opened(browser: Any, address: str) -> Opened:
    """Open a page in a new context and return what it took."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    try:
        page = context.new_page()
        answer = page.goto(address)
        if answer.status != 200:
            raise SystemExit(f"{address}: {answer.status}")
        times = page.evaluate(TIMES)
        session = context.new_cdp_session(page)
        session.send("Performance.enable")
        metrics = {one["name"]: one["value"] for one in session.send("Performance.getMetrics")["metrics"]}
        return Opened(**times, heap=int(metrics["JSHeapUsedSize"]), memory=_largest_renderer(browser))
    finally:
        context.close()


def _largest_renderer(browser: Any) -> int:
    """Return the resident bytes of the browser's largest process that shows pages."""
    found = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    statuses = [Path(f"/proc/{one['id']}/status").read_text() for one in found if one["type"] == "renderer"]
    lines = [line for status in statuses for line in status.splitlines() if line.startswith("VmRSS:")]
    return max(int(line.split()[1]) << 10 for line in lines)


def measure(address: str, paths: dict[str, str], repeats: int) -> bool:
    """Print what each page takes and return whether each is painted in time."""
    from playwright.sync_api import sync_playwright

    print(f"Datasette {installed.__version__}, {repeats} times each; milliseconds, median (most)")
    print("  first byte  first paint        ready      bytes  nodes    heap process  page")
    late = []
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        for name, path in paths.items():
            opened(browser, f"{address}{path}")  # compiles templates
            taken = [opened(browser, f"{address}{path}") for _ in range(repeats)]
            if max(one.paint for one in taken) > LIMIT:
                late.append(name)
            print(f"{_said(taken)}  {name}{' TOO LATE' * (name in late)}")
        browser.close()
    return not late


def _said(taken: list[Opened]) -> str:
    times = ([getattr(one, of) for one in taken] for of in ("first_byte", "paint", "ready"))
    spreads = " ".join(f"{f'{statistics.median(some):.0f} ({max(some):.0f})':>12}" for some in times)
    last = taken[-1]
    weight = f"{last.bytes:>10,} {last.nodes:>6,} {last.heap / 1e6:>4.1f} MB {last.memory / 1e6:>4.0f} MB"
    return f"{spreads} {weight}"


def main() -> None:
    """Make the index where it is missing, serve it, measure, and fail where a page is painted too late."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--only", default="", metavar="TEXT", help="only the pages with this in what they are")
    chosen = parser.parse_args()
    folder = chosen.folder or Path(tempfile.mkdtemp())
    folder.mkdir(parents=True, exist_ok=True)
    path = make(folder)
    with served(path) as address:
        wanted = {name: found for name, found in pages(path).items() if chosen.only in name}
        if not measure(address, wanted, chosen.repeats):
            raise SystemExit("a page is painted later than its limit")


if __name__ == "__main__":
    main()
