"""Whether what an open page shows has changed since: a small question that the page asks while it is looked at."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from datasette.utils.asgi import Request, Response

from .access import permitted_index
from .addresses import DATABASE, NO_STEP, STEP_PATH, integer, own_url, step_of
from .edge import Route
from .queries import Query, answers

if TYPE_CHECKING:
    from datasette.app import Datasette

# Each gives one row that differs whenever the page does; `trajectories` is what a person is told of it.
RUNS = """
select
    sum(trajectories) as trajectories, count(*) as steps, max(indexed_at) as indexed_at,
    (select count(*) from runs) as runs, (select max(indexed_at) from runs) as run_indexed_at,
    (select count(*) from shards where state in ('gone', 'unread', 'waiting')) as amiss
from steps
"""
RUN = """
select
    sum(trajectories) as trajectories, count(*) as steps, max(indexed_at) as indexed_at,
    (select json_array(name, indexed_at, success_path, success_threshold) from runs where id = :run) as run,
    (select count(*) from shards where run_id = :run and state in ('gone', 'unread', 'waiting')) as amiss
from steps where run_id = :run
"""
# The last step is in it, since the page leads to the step after its own.
STEP = """
select
    sum(trajectories) as trajectories, count(*) as splits, max(indexed_at) as indexed_at,
    (select max(step) from steps where run_id = :run) as last_step,
    (select sum(gone) from trajectories where run_id = :run and step is {step}) as gone
from steps where run_id = :run and step is {step}
"""
GROUP = """
select
    count(*) as trajectories, count(reward) as scored, sum(reward) as reward, sum(success) as successes,
    sum(effective) as effective, count(advantage) as advantages, sum(gone) as gone
from trajectories where prompt_group_id = :group
"""

PROMPT = """
select
    count(*) as trajectories, count(t.reward) as scored, sum(t.reward) as reward, sum(t.success) as successes,
    sum(t.gone) as gone
from prompt_groups g join trajectories t on t.prompt_group_id = g.id where g.prompt_id = :prompt and g.run_id = :run
"""


def routes() -> list[Route]:
    """Return the addresses of these answers and what gives them."""
    return [
        (DATABASE + r"/live$", overview_state),
        (DATABASE + r"/live/run/(?P<run>\d+)$", run_state),
        (f"{DATABASE}/live{STEP_PATH}$", step_state),
        (DATABASE + r"/live/group/(?P<group>\d+)$", group_state),
        (DATABASE + r"/live/prompt/(?P<run>\d+)/(?P<prompt>\d+)$", prompt_state),
    ]


async def overview_state(datasette: Datasette, request: Request) -> Response:
    """Answer with the state of an index."""
    database = await permitted_index(datasette, request, "runs", "steps", "shards")
    return _answer(await live_overview(datasette, request, database))


async def run_state(datasette: Datasette, request: Request) -> Response:
    """Answer with the state of a run."""
    database = await permitted_index(datasette, request, "runs", "steps", "shards")
    return _answer(await live_run(datasette, request, database, integer(request.url_vars["run"])))


async def step_state(datasette: Datasette, request: Request) -> Response:
    """Answer with the state of a step."""
    database = await permitted_index(datasette, request, "steps")
    step = step_of(request.url_vars["step"])
    return _answer(await live_step(datasette, request, database, integer(request.url_vars["run"]), step))


async def group_state(datasette: Datasette, request: Request) -> Response:
    """Answer with the state of a prompt group."""
    database = await permitted_index(datasette, request, "prompt_groups")
    return _answer(await live_group(datasette, request, database, integer(request.url_vars["group"])))


async def prompt_state(datasette: Datasette, request: Request) -> Response:
    """Answer with the state of a prompt over all steps of a run."""
    database = await permitted_index(datasette, request, "prompt_groups")
    run, prompt = (integer(request.url_vars[name]) for name in ("run", "prompt"))
    return _answer(await live_prompt(datasette, request, database, run, prompt))


async def live_overview(datasette: Datasette, request: Request, database: str) -> dict[str, Any]:
    """Return the state of an index: `version`, `trajectories` and the `url` to ask again."""
    return await _state(datasette, request, database, "live", Query(RUNS))


async def live_run(datasette: Datasette, request: Request, database: str, run: int) -> dict[str, Any]:
    """Return the state of a run, as `live_overview` does."""
    return await _state(datasette, request, database, f"live/run/{run}", Query(RUN, {"run": run}))


async def live_step(
    datasette: Datasette, request: Request, database: str, run: int, step: int | None
) -> dict[str, Any]:
    """Return the state of a step, as `live_overview` does."""
    query = Query(STEP.format(step="null" if step is None else int(step)), {"run": run})
    return await _state(datasette, request, database, f"live/step/{run}/{NO_STEP if step is None else step}", query)


async def live_group(datasette: Datasette, request: Request, database: str, group: int) -> dict[str, Any]:
    """Return the state of a prompt group, as `live_overview` does."""
    return await _state(datasette, request, database, f"live/group/{group}", Query(GROUP, {"group": group}))


async def live_prompt(datasette: Datasette, request: Request, database: str, run: int, prompt: int) -> dict[str, Any]:
    """Return the state of a prompt over all steps of a run, as `live_overview` does."""
    query = Query(PROMPT, {"run": run, "prompt": prompt})
    return await _state(datasette, request, database, f"live/prompt/{run}/{prompt}", query)


async def _state(datasette: Datasette, request: Request, database: str, path: str, query: Query) -> dict[str, Any]:
    """Return the state that a query gives; its version is None where the query took too long: then nothing is told."""
    [found] = await answers(datasette, request, database, query)
    row = found.first()
    version = sha256(json.dumps(list(row.values())).encode()).hexdigest()[:16] if row else None
    url = own_url(datasette, database, path)
    return {"url": url, "version": version, "trajectories": row.get("trajectories") or 0}


def _answer(state: dict[str, Any]) -> Response:
    shown = {name: state[name] for name in ("version", "trajectories")}
    return Response.json(shown, headers={"cache-control": "no-store"})
