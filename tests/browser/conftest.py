"""A real server and a real browser for the reading pages; both are wanted, and the tests skip where one is missing."""

from __future__ import annotations

import json
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from datasette.app import Datasette

from rltracer_sqlite.cli.serve import browse_config, prepare_index
from rltracer_sqlite.index.database import finish_writing, open_for_writing
from rltracer_sqlite.roots import Roots
from rltracer_sqlite.sample import write_sample
from rltracer_sqlite.search import refresh_text
from tests.indexing import index
from tests.layouts.records import episode, message, nodes_of, tool_call, trace
from tests.plugin.conftest import TRACES, tool_conversation
from tests.plugin.test_hostile import PAYLOADS, hostile_trace

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DARK, LIGHT = "dark", "light"
QUIET = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update"]
HARM = '"><img src=x onerror=alert(1)>'  # a folder of this name, and a group


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a browser where there is none."""
    reason = missing()
    for item in items:
        if reason and Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=reason))


def missing() -> str | None:
    """Return what keeps the tests of this folder from running, or None."""
    try:
        import playwright  # noqa: F401
        import uvicorn  # noqa: F401
    except ImportError as error:
        return f"{error.name} is not installed"
    return None if CHROMIUM else "no Chromium is installed"


def traces_by_group() -> dict[str, list[dict[str, Any]]]:
    """Return the traces of the small run: branches, tools, code, long texts, an error."""
    pick = message("user", "Pick one.")
    said = [pick, *(message("assistant", text) for text in ("left", "right", "left"))]
    branched = nodes_of(said, [None, 0, 0, 0], token_ids=True)
    branched[2]["sampled"] = False
    code = (
        "Like this:\n\n```python\nprint('\u202egasket\\r')\n```\n\nand no other way. " + "Words follow words. " * 1500
    )
    error = {"type": "SandboxError", "message": "The sandbox did not start."}
    right = {"right": {"score": 1.0, "weight": 1.0}}
    wrong = {"right": {"score": 0.0, "weight": 1.0}}
    thinking = message("assistant", code, reasoning_content="First the code, then the words.")
    return {
        "pick": [
            trace(nodes=branched, id="branched", rewards=right),
            trace([pick, thinking], id="thought", rewards=wrong, advantage=-0.5),
            trace([pick], id="failed", ok=False, errors=[error], stop_condition="error"),
        ],
        "count": [trace(tool_conversation(), id="counted", rewards=right)],
        "long": [trace([message("user", f"line {number}.") for number in range(450)], id="long", rewards=wrong)],
    }


def hostile_traces() -> Iterator[dict[str, Any]]:
    """Return traces that mean harm: payloads everywhere, a very long line, very many messages."""
    for number, text in enumerate(PAYLOADS):
        yield {**hostile_trace(text), "id": f"hostile{number}"}
    yield trace([message("user", "x" * 1_000_000), message("assistant", "done")], id="line")
    yield trace([message("user", str(number)) for number in range(100_000)], id="messages")
    calls = [tool_call(f"c{number}", "t", "{") for number in range(300)]
    yield trace([message("user", "hi"), message("assistant", "", tool_calls=calls)], id="calls")


def write(folder: Path, groups: dict[str, list[dict[str, Any]]]) -> None:
    """Write a run of one episode per trace, those of a key as one group."""
    file = folder / TRACES
    file.parent.mkdir(parents=True)
    with file.open("w", encoding="utf-8") as stream:
        for group, found in groups.items():
            for one in found:
                stream.write(f"{json.dumps(episode([one], env='counting', step=1, group=group))}\n")


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with three runs and their indexes: the sample, a small one, and one that means harm.

    The first two can be searched, and are offered by the list of runs below a folder too.
    """
    base = tmp_path_factory.mktemp("reading")
    write_sample(base / "runs/sample")
    write(base / "runs/small", traces_by_group())
    write(base / HARM, {HARM: list(hostile_traces())})
    for name in ("sample", "small"):
        index(base / "runs.sqlite", base / "runs" / name)
    index(base / "hostile.sqlite", base / HARM)
    for name in ("runs.sqlite", "hostile.sqlite"):
        connection = open_for_writing(base / name)
        refresh_text(connection, Roots([base]))
        finish_writing(connection)
    prepare_index(base / "runs", base / "index.sqlite")
    return base


@contextmanager
def serving(*databases: Path, metadata: Any = None, **settings: Any) -> Iterator[str]:
    """Serve indexes on a free port of the loopback address; the value is the address."""
    import uvicorn

    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options: dict[str, Any] = {"metadata": metadata, "settings": {"suggest_facets": False, **settings}}
    app = Datasette([str(file) for file in databases], **options).app()
    running = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error", lifespan="on"))
    thread = threading.Thread(target=running.run, daemon=True)
    thread.start()
    while not running.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{port}"
    running.should_exit = True
    thread.join()


@pytest.fixture(scope="session")
def server(folder: Path) -> Iterator[str]:
    """Serve the indexes and return the address."""
    metadata = browse_config(folder / "runs", folder / "index.sqlite")
    metadata["plugins"]["datasette-rltracer"]["roots"].append(str(folder))
    files = [folder / name for name in ("runs.sqlite", "hostile.sqlite", "index.sqlite")]
    with serving(*files, metadata=metadata) as address:
        yield address


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """Launch the browser. Not for the whole session: its event loop would run on under the other tests."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as started:
        launched = started.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield launched
        launched.close()


@pytest.fixture
def open_page(browser: Any, server: str) -> Iterator[Any]:
    """Return a function that opens a page of ours; a complaint of any of them fails the test.

    A complaint is a message on the console, a dialog, a failure, or a request that leaves the machine.
    """
    contexts: list[Any] = []
    complaints: list[str] = []

    def open_at(path: str, width: int = 1280, height: int = 900, theme: str = LIGHT, script: bool = True) -> Any:
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=theme, java_script_enabled=script
        )
        context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: complaints.append(f"{said.type}: {said.text}"))
        page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.on("request", lambda request: None if is_local(request.url) else complaints.append(request.url))
        page.goto(f"{server}{path}")
        return page

    yield open_at
    for context in contexts:
        context.close()
    assert complaints == []


def is_local(url: str) -> bool:
    """Say whether a request stays on this machine."""
    return urlsplit(url).scheme in ("data", "blob") or urlsplit(url).hostname == "127.0.0.1"


@pytest.fixture(scope="session")
def places(folder: Path) -> dict[str, str]:
    """Return the paths of the pages by name."""
    from tests.indexing import value

    def find(sql: str) -> Any:
        return value(folder / "runs.sqlite", sql)

    base = "/-/rltracer/runs"
    small = find("select id from runs where name = 'small'")
    sample = find("select id from runs where name = 'sample'")
    group = find(f"select min(prompt_group_id) from trajectories where run_id = {small} and uid = 'branched'")
    identities = {
        uid: find(f"select id from trajectories where run_id = {small} and uid = '{uid}'")
        for uid in ("branched", "thought", "failed", "counted", "long")
    }
    shell = find(f"select min(id) from trajectories where run_id = {sample} and tool_calls > 3")
    solved = find(f"select max(prompt_group_id) from trajectories where run_id = {sample} and agent = 'solver'")
    best, worst = (
        find(f"select id from trajectories where prompt_group_id = {solved} order by reward {order}, id limit 1")
        for order in ("desc", "asc")
    )
    tokens = find(f"select max(id) from trajectories where run_id = {sample} and step = 8 and env = 'word-problems'")
    return {
        "overview": f"{base}/",
        "run": f"{base}/run/{sample}",
        "small run": f"{base}/run/{small}",
        "step": f"{base}/step/{sample}/4",
        "filtered step": f"{base}/step/{sample}/4?pass_rate__gte=0.25&_sort_desc=pass_rate",
        "group": f"{base}/group/{solved}",
        "small group": f"{base}/group/{group}",
        "tools": f"{base}/trajectory/{shell}",
        **{uid: f"{base}/trajectory/{identity}" for uid, identity in identities.items()},
        "raw": f"{base}/trajectory/{identities['counted']}?view=raw",
        "later": f"{base}/trajectory/{identities['long']}?start=200",
        "found": f"{base}/trajectory/{identities['counted']}?find=count",
        "tokens": f"{base}/trajectory/{tokens}?view=tokens",
        "compare": f"{base}/compare?a={best}&b={worst}",
        "search": f"{base}/search?q=port*&success=0",
        "empty search": f"{base}/search",
        "export": f"{base}/export?_table=trajectories&success=1&_preview=sft",
        "charts": f"{base}/run/{sample}/charts",
        "browse": "/-/rltracer/index/browse",
        "browse run": "/-/rltracer/index/browse/sample",
    }
