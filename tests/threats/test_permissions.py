"""Permissions of Datasette hold on every address of ours: a table of route x actor, made from the registered routes."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from datasette.app import Datasette

import datasette_rltracer
from datasette_rltracer import compat
from datasette_rltracer.charts import DRAWN_FROM
from datasette_rltracer.export_rows import MADE_OF
from rltracer_sqlite.cli.serve import browse_config
from rltracer_sqlite.index.database import finish_writing, open_for_writing
from rltracer_sqlite.roots import Roots
from rltracer_sqlite.search import refresh_text
from tests.indexing import index
from tests.layouts.records import message, trace
from tests.plugin.conftest import traces, write_run

pytestmark = pytest.mark.asyncio
OWN = "/-/rltracer/run"
READ = ("trajectories", "runs", "shards", "prompt_groups", "annotations")
LISTED = ("trajectories", "runs", "steps", "shards")
TABLES = (
    "runs", "steps", "shards", "prompts", "prompt_groups", "trajectories", "annotations", "fields", "step_values",
    "problems", "prompt_windows", "trajectories_text",
)  # fmt: skip

# Of each registered address: an example, and the tables that a visitor has to be allowed to see.
ROUTES: dict[str, tuple[str, tuple[str, ...]]] = {
    "/?": (f"{OWN}/", LISTED),
    "/run/(?P<run>)": (f"{OWN}/run/1", (*LISTED, "prompts", "prompt_groups", "problems")),
    "/step/(?P<run>)/(?P<step>)": (
        f"{OWN}/step/1/1", (*LISTED, "prompts", "prompt_groups", "problems")
    ),
    "/group/(?P<id>)": (f"{OWN}/group/1", ("trajectories", "runs", "shards", "prompts", "prompt_groups")),
    "/prompt/(?P<run>)/(?P<prompt>)": (f"{OWN}/prompt/1/1", (*LISTED, "prompts", "prompt_groups")),
    "/trajectory/(?P<id>)": (f"{OWN}/trajectory/1", READ),
    "/trajectory/(?P<id>).json": (f"{OWN}/trajectory/1.json", READ),
    "/trajectory/(?P<id>)/record": (f"{OWN}/trajectory/1/record", READ),
    "/t/(?P<run>)/(?P<uid>)": (f"{OWN}/t/run/counted", READ),
    "/run/(?P<run>)/charts": (f"{OWN}/run/1/charts", DRAWN_FROM),
    "/run/(?P<run>)/charts/(?P<chart>)": (f"{OWN}/run/1/charts/reward", DRAWN_FROM),
    "/run/(?P<run>)/charts/(?P<chart>).json": (f"{OWN}/run/1/charts/reward.json", DRAWN_FROM),
    "/export": (f"{OWN}/export?_preview=sft", MADE_OF),
    "/search": (f"{OWN}/search?q=pick", (*LISTED, "trajectories_text")),
    "/compare": (f"{OWN}/compare?a=2&b=3", ("trajectories", "runs", "shards", "prompt_groups")),
    "/compare/(?P<a>)/(?P<b>)": (f"{OWN}/compare/2/3", ("trajectories", "runs", "shards", "prompt_groups")),
    "/live": (f"{OWN}/live", LISTED),
    "/live/run/(?P<run>)": (f"{OWN}/live/run/1", LISTED),
    "/live/step/(?P<run>)/(?P<step>)": (f"{OWN}/live/step/1/1", LISTED),
    "/live/group/(?P<group>)": (f"{OWN}/live/group/1", ("trajectories", "runs", "prompts", "prompt_groups")),
    "/live/prompt/(?P<run>)/(?P<prompt>)": (f"{OWN}/live/prompt/1/1", (*LISTED, "prompt_groups")),
    "": ("/-/rltracer", (*LISTED, "problems")),
    "/browse": (f"{OWN}/browse", (*LISTED, "problems")),
    "/browse/(?P<run>)": (f"{OWN}/browse/~2E", (*LISTED, "problems")),
    "/browse/(?P<run>)/(?P<step>)": (f"{OWN}/browse/~2E/1", (*LISTED, "problems")),
    # The output renderers, which hang on Datasette's own page of a table.
    "trajectories.sft": ("/run/trajectories.sft?success=1", MADE_OF),
    "trajectories.rl": ("/run/trajectories.rl", MADE_OF),
    "trajectories.preference": ("/run/trajectories.preference?step=1", MADE_OF),
    "prompt_groups.sft": ("/run/prompt_groups.sft", MADE_OF),
    "prompt_groups.rl": ("/run/prompt_groups.rl?step=1", MADE_OF),
    "prompt_groups.preference": ("/run/prompt_groups.preference", MADE_OF),
}  # fmt: skip


def registered(datasette: Datasette) -> set[str]:
    """Return the addresses of ours as `ROUTES` has them: without the database, and variables without their form."""
    found = set()
    for pattern, _ in datasette_rltracer.register_routes(datasette):
        path = pattern.removeprefix("^/-/rltracer").removeprefix("/(?P<database>[^/]+)").removesuffix("$")
        path = re.sub(r"(\(\?P<\w+>)[^()]*\)", r"\1)", path).replace("\\.", ".")
        found.add("" if pattern == r"^/-/rltracer/?$" else path)
    for renderer in datasette_rltracer.register_output_renderer(datasette):
        found |= {f"{table}.{renderer['extension']}" for table in ("trajectories", "prompt_groups")}
    return found


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a run, its index with full text, and the index of a run that is nobody's business."""
    folder = tmp_path_factory.mktemp("permissions")
    wrong = [message("user", "Pick one."), message("assistant", "wrong")]
    lost = trace(wrong, id="lost", rewards={"right": {"score": 0.0, "weight": 1.0}})
    write_run(folder / "run", [*traces(), lost])
    hidden = trace(
        [message("user", "Whisper."), message("assistant", "psst")], id="unheard", metrics={"confidential": 1}
    )
    write_run(folder / "concealed", [hidden])
    for name in ("run", "concealed"):
        index(folder / f"{name}.sqlite", folder / name)
    connection = open_for_writing(folder / "run.sqlite")
    refresh_text(connection, Roots([folder]))
    finish_writing(connection)
    return folder


@pytest.fixture
def serve(place: Path) -> Callable[..., Datasette]:
    """Return a function that makes a Datasette with these permissions, which offers the runs of the folder too."""

    def make(databases: Any = None, *more: str, **top: Any) -> Datasette:
        config = browse_config(place / "run", place / "run.sqlite")
        config["plugins"]["datasette-rltracer"].pop("roots")
        files = [str(place / f"{name}.sqlite") for name in ("run", *more)]
        return Datasette(files, metadata={**config, **top, "databases": databases or {}})

    return make


async def asked(datasette: Datasette, path: str, actor: str | None = None) -> Any:
    cookies = {"ds_actor": datasette.sign({"a": {"id": actor}}, "actor")} if actor else {}
    return await datasette.client.get(path, cookies=cookies)


ONLY_ROOT = {"id": "root"}
ELSEWHERE = (
    "/", "/.json", "/run", "/run.json", "/run/trajectories?_facet_passrate=group_pass_rate", "/-/jump?q=rollouts",
    "/-/metadata.json", "/-/databases.json", f"{OWN}/search?q=p*", f"{OWN}/compare?a=1&b=999", f"{OWN}/group/99",
    "/run/trajectories.json?_extra=metadata", f"{OWN}/t/concealed/x",
)  # fmt: skip


async def test_t40_every_route_stands_in_the_table(serve):
    assert registered(serve()) == set(ROUTES)


def denied(what: str) -> dict[str, Any]:
    """Return the options that let nobody but root see the instance, the database or one table."""
    only = {"allow": ONLY_ROOT}
    if what == "the instance":
        return only
    return {"databases": {"run": only if what == "the database" else {"tables": {what: only}}}}


async def statuses(datasette: Datasette, actor: str | None = None) -> dict[str, int]:
    return {route: (await asked(datasette, path, actor)).status_code for route, (path, _) in ROUTES.items()}


def needs(route: str, what: str) -> bool:
    return what in ("the instance", "the database", *ROUTES[route][1])


@pytest.mark.parametrize("what", ["the instance", "the database", *TABLES])
async def test_t40_a_route_is_closed_to_who_may_not_see_what_it_shows(serve, what):
    found = await statuses(serve(**denied(what)))
    assert {route for route, status in found.items() if status == 403} == {r for r in ROUTES if needs(r, what)}
    assert set(found.values()) <= {200, 202, 302, 403}


@pytest.mark.parametrize("what", ["the instance", "the database", "trajectories"])
async def test_t40_a_route_is_open_to_an_actor_who_is_allowed_and_to_no_other(serve, what):
    datasette = serve(**denied(what))
    assert set((await statuses(datasette, "root")).values()) <= {200, 202, 302}
    assert set((await statuses(datasette, "visitor")).values()) == {403}


async def test_t40_who_may_not_write_queries_is_offered_none(place):
    files = [str(place / "run.sqlite")]
    for may_query in (True, False):
        datasette = Datasette(files, settings={"default_allow_sql": may_query})
        said = {path: "?sql=" in (await asked(datasette, path)).text for path, _ in ROUTES.values()}
        assert any(said.values()) == may_query, said


BLOCKS = {
    "the instance": {"permissions": {"view-instance": ONLY_ROOT}},
    "the database": {"databases": {"run": {"permissions": {"view-database": ONLY_ROOT}}}},
    "trajectories": {"databases": {"run": {"tables": {"trajectories": {"permissions": {"view-table": ONLY_ROOT}}}}}},
}


@pytest.mark.skipif(not compat.IS_1, reason="permission blocks came with Datasette 1.0")
@pytest.mark.parametrize("what", BLOCKS)
async def test_t40_permission_blocks_hold_too(place, what):
    plugins = browse_config(place / "run", place / "run.sqlite")["plugins"]
    datasette = Datasette([str(place / "run.sqlite")], config={"plugins": plugins, **BLOCKS[what]})
    assert set((await statuses(datasette)).values()) == {403}
    assert set((await statuses(datasette, "root")).values()) <= {200, 202, 302}


async def test_t41_nothing_of_a_private_index_shows_elsewhere(serve):
    datasette = serve({"concealed": {"allow": ONLY_ROOT}}, "concealed")
    for path in ("/-/rltracer/concealed/", "/concealed"):
        assert (await asked(datasette, path, "root")).status_code == 200  # so that it has been met
    for path in [*(path for path, _ in ROUTES.values()), *ELSEWHERE]:
        said = (await asked(datasette, path)).text
        assert not re.search("whisper|psst|unheard|confidential", said, re.I), path
        assert "/-/rltracer/concealed" not in said, path


async def test_t41_a_private_database_answers_the_same_whatever_it_holds(serve):
    datasette = serve({"concealed": {"allow": ONLY_ROOT}}, "concealed")
    for path in (
        "/",
        "/run/1",
        "/run/99",
        "/trajectory/1",
        "/trajectory/99",
        "/search?q=x",
        "/export",
        "/group/1",
        "/prompt/1/1",
    ):
        assert (await asked(datasette, f"/-/rltracer/concealed{path}")).status_code == 403


async def test_t41_a_menu_does_not_count_private_indexes(serve):
    datasette = serve({"concealed": {"allow": ONLY_ROOT}}, "concealed")
    for name in ("run", "concealed"):
        await asked(datasette, f"/-/rltracer/{name}/", "root")
    assert "Rollouts: run" not in (await asked(datasette, "/")).text
    assert "Rollouts: concealed" in (await asked(datasette, "/", "root")).text
