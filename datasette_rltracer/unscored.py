"""What the success rule of a run does not score: its environments, its prompts and why, and what sets another rule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rltracer_sqlite.amounts import listed, shortened
from rltracer_sqlite.index.ranked import Unscored, unscored_query
from rltracer_sqlite.unscored import another_rule, lack, of_environments

from . import compat
from .bounds import ask
from .indexes import file_name
from .queries import Query, answers
from .success_rules import LONGEST_NAME, LONGEST_PATH

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request

    from .queries import Answer

# The index of the pass rates answers both halves, of a million trajectories in some milliseconds.
ENVIRONMENTS = """
select run_id, env from prompt_groups where pass_rate is null
except select run_id, env from prompt_groups where pass_rate >= 0
order by run_id, env
"""


async def unscored_environments(
    datasette: Datasette, request: Request, database: str, runs: Sequence[dict[str, Any]]
) -> list[tuple[str, str]]:
    """Return ' of a, b' for the environments of which nothing is scored, each with the names of its runs in words.

    Left out are runs of which nothing is scored at all. [] for a visitor who may not see prompt groups.
    """
    if await compat.first_hidden(datasette, request.actor, database, "prompt_groups") is not None:
        return []
    [found] = await answers(datasette, request, database, Query(ENVIRONMENTS))
    envs: dict[int, list[str | None]] = {}
    for row in found.rows:
        envs.setdefault(row["run_id"], []).append(row["env"])
    names: dict[str, list[str]] = {}
    for run in runs:
        is_scored = run["scored"] or any(split.scored for split in run["others"])
        if is_scored and (where := of_environments(envs.get(run["id"], []))):
            names.setdefault(where, []).append(shortened(run["name"], LONGEST_NAME))
    return [(where, listed(of_runs)) for where, of_runs in names.items()]


async def unscored_prompts(
    datasette: Datasette, request: Request, database: str, run: dict[str, Any], lists: dict[str, Answer]
) -> dict[str, Any]:
    """Return what the prompts without a score lack, and the command for another rule, as the terminal has them.

    `run` is a row of `runs`, and `lists` has its hardest and its easiest prompts, which count the others. {} where each
    has a score; the command is None where some have, and no other has a reward that a rule could be on.
    """
    ranked = [lists[name] for name in ("hardest", "easiest")]
    ends = next((one.rows[0] for one in ranked if one.rows), None)
    if any(one.interrupted for one in ranked) or (ends and ends["prompts"] == ends["listed"]):
        return {}
    [found] = await answers(datasette, request, database, Query(*unscored_query(run["id"])))
    count = Unscored(**found.first(prompts=0, rewarded=0))
    if not count.prompts:
        return {}
    one, several = ("it", "they") if ends else ("the only prompt", f"the {count.prompts:,} prompts")
    path, index = shortened(run["success_path"], LONGEST_PATH), file_name(datasette, database)
    asked = run["id"], index, count.rewarded > 0
    command = await ask(datasette, database, lambda connection: another_rule(connection, *asked))
    return {
        "lacks": lack(count, one if count.prompts == 1 else several, path),
        "command": command if count.rewarded or not ends else None,
    }
