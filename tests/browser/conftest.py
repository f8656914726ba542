"""A real server and a real browser for the reading pages; both are wanted, and the tests skip where one is missing."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

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
from tests.plugin.hostile import PAYLOADS, hostile_trace
from tests.serving import launched, missing, serving, windows

HARM = '"><img src=x onerror=alert(1)>'  # a folder of this name, and a group


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs a browser where there is none."""
    reason = missing()
    for item in items:
        if reason and Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.skip(reason=reason))


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


@pytest.fixture(scope="session")
def server(folder: Path) -> Iterator[str]:
    """Serve the indexes and return the address."""
    metadata = browse_config(folder / "runs", folder / "index.sqlite")
    metadata["plugins"]["datasette-rltracer"]["roots"].append(str(folder))
    files = [folder / name for name in ("runs.sqlite", "hostile.sqlite", "index.sqlite")]
    app = Datasette([str(file) for file in files], metadata=metadata, settings={"suggest_facets": False}).app()
    with serving(app) as address:
        yield address


@pytest.fixture(scope="package")
def browser() -> Iterator[Any]:
    """Launch the browser. Not for the whole session: its event loop would run on under the other tests."""
    with launched() as browser:
        yield browser


@pytest.fixture
def open_page(browser: Any, server: str, places: dict[str, str]) -> Iterator[Any]:
    """Return a function that opens a page of ours, in a browser of its own; a complaint of any fails the test."""
    with ExitStack() as stack:

        def open_at(path: str, width: int = 1280, script: bool = True) -> Any:
            size = {"width": width, "height": 900}
            expected = "status of 404" if path == places["missing"] else None
            context = stack.enter_context(windows(browser, expected, viewport=size, java_script_enabled=script))
            context.grant_permissions(["clipboard-read", "clipboard-write"], origin=server)
            page = context.new_page()
            page.goto(f"{server}{path}")
            return page

        yield open_at


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
        "prompt": f"{base}/prompt/{sample}/14?split=train",
        "unscored prompt": f"{base}/prompt/{sample}/22",
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
        "missing": f"{base}/step/{sample}/99",
        "charts": f"{base}/run/{sample}/charts",
        "chart alone": f"{base}/run/{sample}/charts/difficulty",
        "browse": "/-/rltracer/index/browse",
        "browse run": "/-/rltracer/index/browse/sample",
    }
