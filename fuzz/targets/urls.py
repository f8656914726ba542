"""Addresses and parameters of the pages, as anybody may type them."""

from __future__ import annotations

import asyncio
import gc
import json
import traceback
import warnings
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlsplit

from datasette import hookimpl
from datasette.plugins import pm

from datasette_rltracer.export_options import OWN
from tests.indexing import index
from tests.plugin.conftest import traces, write_run

from ..scratch import scratch
from ..target import Target

BASE = "/-/rltracer/run"
RAISED: list[BaseException] = []  # what has become a page of status 500, the last behind


class Listening:
    """A plugin of Datasette's that keeps what was raised."""

    __name__ = "listening"  # Datasette asks each of its plugins

    @hookimpl  # type: ignore[untyped-decorator]
    def handle_exception(self, exception: BaseException) -> None:
        RAISED[:] = [exception]


PAGES = (
    "/", "/run/1", "/step/1/1", "/group/1", "/prompt/1/1", "/trajectory/1", "/trajectory/2", "/trajectory/1.json",
    "/trajectory/1/record",
    "/search", "/compare", "/compare/1/2", "/export", "/run/1/charts", "/run/1/charts/pass_rate",
    "/live", "/live/run/1", "/live/step/1/1", "/live/group/1", "/live/prompt/1/1",
    "/browse", "/browse/run", "/browse/run/1", "/browse/run/all?again=1",
)  # fmt: skip
QUERIES = (
    "branch=1&view=raw",
    "view=tokens&lens=logprobs&start=0",
    "find=gasket&full=1",
    "message=2&branch=1",
    "full=1&find=%22a%22",
)


@cache
def served() -> tuple[asyncio.AbstractEventLoop, Any]:
    """Return a Datasette that serves a folder of one run, all of it read, and a loop to ask it in."""
    from datasette.app import Datasette

    from rltracer_sqlite.cli.serve import browse_config, prepare_index

    runs = scratch("urls") / "runs"
    write_run(runs / "run", traces())
    database = prepare_index(runs, scratch("urls") / "run.sqlite")
    index(database, runs / "run")
    if not pm.has_plugin("fuzz"):
        pm.register(Listening(), "fuzz")
    loop = asyncio.new_event_loop()
    # No thread for SQL: handing over takes longer than most of the questions.
    settings = {"num_sql_threads": 0, "suggest_facets": False}
    datasette = Datasette([str(database)], settings=settings, metadata=browse_config(runs.resolve(), database))
    loop.run_until_complete(datasette.invoke_startup())
    return loop, datasette


def check(data: bytes) -> None:
    """Any address gives a page, a redirect or a refusal in words, and never an error of ours."""
    typed = data.decode("utf-8", "replace").replace("\0", "%00")
    path = quote(typed, safe="/?&=%:;,+!*'()[]@~$-._")
    if not path.startswith("/") or path.startswith("//") or len(path) > 2000:
        path = "/-/rltracer/run/trajectory/" + path
    try:
        urlsplit("http://localhost" + path)
    except ValueError:
        return
    loop, datasette = served()
    response = loop.run_until_complete(datasette.client.get(path))
    if response.status_code >= 500 and not path.startswith("/-/rltracer") and _is_of_datasette(RAISED[0]):
        _forget()
        return  # its own table pages answer so to much that nobody means, whichever plugins are installed
    assert response.status_code < 500, (path, response.status_code, response.text[:2000])
    if "json" in response.headers.get("content-type", "") and "ndjson" not in response.headers.get("content-type", ""):
        json.loads(response.text)


def _forget() -> None:
    """Drop what was raised here, and the questions that Datasette had begun and will not ask, of which Python warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        RAISED.clear()
        gc.collect()


def _is_of_datasette(error: BaseException) -> bool:
    frames = traceback.extract_tb(error.__traceback__)
    ours = any(Path(frame.filename).parent.name == "datasette_rltracer" for frame in frames)
    # A facet of ours asks Datasette what was asked of it, as its own do.
    return not ours or any(frame.name == "load_facet_configs" for frame in frames)


def seeds() -> list[bytes]:
    """Return every page and fragment, and pages with the parameters that they read."""
    addresses = [f"{BASE}{page}" for page in PAGES]
    addresses += [f"{BASE}/trajectory/1?{query}" for query in QUERIES]
    addresses += [
        "/-/rltracer", f"{BASE}/run/1?start=0",
        f"{BASE}/step/1/1?start=0&_size=5&sort=pass_rate", f"{BASE}/step/1/none",
        f"{BASE}/group/1?words=2&start=0", f"{BASE}/prompt/1/2?split=train&env=counting&start=0",
        f"{BASE}/run/1/charts/pass_rate.json?_window=2&split=train&env=counting&step=1",
        f"{BASE}/search?q=gasket&start=0",
        f"{BASE}/compare?a=1&b=2&a_branch=1&b_branch=1&again=1",
        f"{BASE}/step/1/1?pass_rate__gte=0.5&_sort_desc=reward_mean&env=counting",
        f"{BASE}/group/1?success=1&reward__gt=0&_sort=turns", f"{BASE}/t/run/counted", f"{BASE}/t/run/nope",
        f"{BASE}/trajectory/1/record?pretty=1",
        "/run/trajectories?_facet_outcome=success&_facet_passrate=group_pass_rate",
        "/run/trajectories.json?_facet_passrate=1&_facet=success",
        "/run/trajectories.sft?_per_prompt=2&_acceptance=any&_field=metrics.num_turns>=1&_preview=3",
        "/run/trajectories.rl?_window=2&_target=1",
        "/run/prompt_groups.preference?_margin=0.5&_min_pass_rate=0.1&_max_pass_rate=1",
        "/run/trajectories/1", "/run/prompt_groups?_where=1",
        f"{BASE}/export?_table=prompt_groups&_preview=rl&_split=train",
    ]  # fmt: skip
    return [address.encode() for address in addresses]


WORDS = (
    "__gte=", "__in=", "__contains=", "__isnull=", "__arraycontains=", "__date=", "pass_rate", "reward", "turns",
    "_sort_desc=", "id", "rowid",
    "?", "&", "=", "branch=", "view=", "from=", "to=", "find=", "message=", "sort=", "page=", "size=", "split=",
    "window=", "k=",
    "lens=", "_field=", "_per_prompt=", "_target=", "_window=", "_seed=", "_margin=", "_acceptance=", "_order=",
    "_split=", "_next=",
    "start=", "_size=", "q=", "words=", "pretty=", "again=", "waited=", "step=", "env=", "full=",
    *(f"{name}=" for name in sorted(OWN)), "_table=",
    "_sort=", "_facet=", "_where=", "-1", "0", "9999999999999999999", "1e999", "nan", "inf", "%00", "%ff", "%2F",
    "~2F", "/", "..",
    "trajectory", "group", "step", "run", "charts", ".json", ".sft", ".rl", "%F0%9F%98%80", "None", "null", "'", '"',
    "<",
)  # fmt: skip
TARGETS = {"urls": Target("urls", "addresses and parameters of the pages", check, seeds, "text", WORDS)}
