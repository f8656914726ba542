"""A server and a browser for tests: Datasette on a real port in a thread of this process, and Chromium to read it."""

from __future__ import annotations

import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

PATIENCE = 90.0  # seconds, for a machine that is busy with other things
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
# A list of features replaces that of Playwright, so these are both its own and what costs more than a page does: the
# suggestions of the address bar are pages too, made anew with every window.
LEFT_OUT = [
    *("AvoidUnnecessaryBeforeUnloadCheckSync", "DestroyProfileOnBrowserClose", "HttpsUpgrades", "LensOverlay"),
    *("MediaRouter", "NetworkTimeServiceQuerying", "OptimizationHints", "PaintHolding", "PreconnectToSearch"),
    *("ThirdPartyStoragePartitioning", "Translate"),
    *("AimEnabled", "WebUIOmniboxAimPopup", "WebUIOmniboxFullPopup", "WebUIOmniboxPopup"),
]
QUIET = [
    # Every window is a process of its own otherwise, and another is started in advance: most of its time goes there.
    *("--renderer-process-limit=1", "--in-process-gpu"),
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-dev-shm-usage"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
    f"--disable-features={','.join(LEFT_OUT)}",
]


@contextmanager
def serving(app: Any, **options: Any) -> Iterator[str]:
    """Serve an application and give its address, on a port that no other process can take in between."""
    import uvicorn

    with socket.create_server(("127.0.0.1", 0)) as listening:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error", **options))
        thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
        thread.start()
        while not server.started:
            assert thread.is_alive(), "the server did not start"
            time.sleep(0.01)
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(PATIENCE)


def missing() -> str | None:
    """Return what keeps the tests in a browser from running, or None."""
    try:
        import playwright  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        return f"{error.name} is not installed"
    return None if CHROMIUM else "no Chromium is installed"


@contextmanager
def launched() -> Iterator[Any]:
    """Launch a browser and give it."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=CHROMIUM, args=QUIET, timeout=PATIENCE * 1000)
        yield browser
        browser.close()


@contextmanager
def windows(browser: Any, expected: str | None = None, **options: Any) -> Iterator[Any]:
    """Give a context for pages; a complaint of any of them fails the test in the end.

    A complaint is a message on the console, a dialog, an error nobody caught, or a request that leaves the machine.
    What has `expected` in it is none.
    """
    complaints: list[str] = []
    context = browser.new_context(**options)
    context.set_default_timeout(PATIENCE * 1000)
    context.on("console", lambda said: complaints.append(f"{said.type}: {said.text}"))
    context.on("weberror", lambda raised: complaints.append(f"error: {raised.error}"))
    context.on("dialog", lambda dialog: (complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    context.on("request", lambda request: None if is_local(request.url) else complaints.append(request.url))
    try:
        yield context
    finally:
        context.close()
    assert [said for said in complaints if expected is None or expected not in said] == []


def is_local(url: str) -> bool:
    """Say whether a request stays on this machine."""
    return urlsplit(url).scheme in ("data", "blob", "file") or urlsplit(url).hostname == "127.0.0.1"
