"""The workbench of a prompt group: the prompt once, its trajectories as rows, and the same prompt elsewhere."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from datasette.utils.asgi import NotFound, Response

from rltracer_sqlite.adapter import load_trajectory
from rltracer_sqlite.messages import content_text, prompt_context
from rltracer_sqlite.roots import Roots
from rltracer_sqlite.sources.base import SourceError

from . import compat
from .access import DATABASE, PLUGIN, integer, permitted_index, place
from .addresses import compare_url, group_url, row_url, step_url, table_url, trajectory_url
from .conversation import Page, read_page
from .elsewhere import elsewhere_queries, other_runs, this_run
from .frame import render, trail
from .group_rows import (
    MOST_REWARDS,
    ROWS_ON_A_PAGE,
    SORTED_BY,
    described_rows,
    reward_columns,
    rows_query,
    shown_rewards,
)
from .lists import Query, answers
from .selection import NO_NEIGHBOURS, Pair, Selection, at, in_words, neighbours, read_selection
from .text import Text, first_words

LAST_WORDS_LIMIT = 3_000_000  # bytes of all records of a group that are read for their last words unasked
MOST_LAST_WORDS = 64_000_000  # and when asked
LONGEST_LAST_WORDS = 200

GROUP = """
select g.*, p.preview, p.key, p.task, r.name as run
from prompt_groups g join prompts p on p.id = g.prompt_id join runs r on r.id = g.run_id where g.id = :group
"""

# The first, the best and the worst of the whole group, whatever is filtered; rewards that are equal have neither.
ENDS = """
select
    count(*) as trajectories, sum(byte_length) as bytes, min(id) as first,
    (select id from trajectories where prompt_group_id = :group and reward is not null order by reward desc, id limit 1)
        as best,
    (select id from trajectories where prompt_group_id = :group and reward is not null order by reward, id limit 1)
        as worst,
    count(distinct reward) as rewards, count(advantage) as recorded
from trajectories where prompt_group_id = :group
"""


def routes() -> list[tuple[str, Any]]:
    """Return the addresses of this page and what answers them."""
    return [(DATABASE + r"/group/(?P<id>\d+)$", group_page)]


async def group_page(datasette: Any, request: Any) -> Response:
    """Answer with a prompt group."""
    database = await permitted_index(datasette, request, "runs", "prompts", "prompt_groups")
    identity = integer(request.url_vars["id"])
    [found] = await answers(datasette, request, database, Query(GROUP, {"group": identity}))
    if not found.rows:
        raise NotFound("This index has no prompt group of this number.")
    group = found.rows[0]
    groups, rows = await selections(datasette, database, request, group)
    start = place(request.args.get("start")) or 0
    rewards = await datasette.databases[database].execute_fn(reward_columns)
    listed, count, ends, beside, *others = await answers(
        datasette,
        request,
        database,
        rows_query(identity, rows, rewards, start),
        _count_query(identity, rows),
        Query(ENDS, {"group": identity}),
        neighbours(groups, identity),
        *elsewhere_queries(group),
    )
    end = ends.first(trajectories=0, bytes=None, first=None, best=None, worst=None, rewards=0, recorded=0)
    near = beside.first(**NO_NEIGHBOURS)
    wants_words = request.args.get("words") == "1"
    reads_words = end["bytes"] is not None and end["bytes"] <= (MOST_LAST_WORDS if wants_words else LAST_WORDS_LIMIT)
    prompt, words = await _read(datasette, database, end["first"], [row["id"] for row in listed.rows], reads_words)
    pairs = [*groups.pairs, *rows.pairs]

    def here(selected: Selection, first: int | None = None) -> str:
        return group_url(datasette, database, identity, [*groups.pairs, *selected.pairs, ("start", first)])

    shown = shown_rewards(rewards, listed.rows)
    context = {
        "title": f"prompt group {identity}",
        "trail": trail(datasette, database, (group["run_id"], group["run"]), (group["step"],), identity),
        "group": group,
        "ends": end,
        "prompt": prompt,
        "preview": group["preview"],
        "rows": [
            {
                **row,
                "url": trajectory_url(datasette, database, row["id"], pairs=pairs),
                "last_words": words.get(row["id"]),
            }
            for row in described_rows(listed.rows, group)
        ],
        "rewards": shown[:MOST_REWARDS],
        "reward_count": len(shown),
        "has_words": reads_words and any(words.values()),
        "words_url": group_url(datasette, database, identity, [*pairs, ("words", "1")]),
        "can_read_words": not reads_words and (end["bytes"] or 0) <= MOST_LAST_WORDS,
        "list": listed,
        "count": count.first(trajectories=len(listed.rows))["trajectories"],
        "start": start,
        "following": here(rows, start + ROWS_ON_A_PAGE),
        "preceding": here(rows, max(start - ROWS_ON_A_PAGE, 0) or None),
        "selection": rows,
        "sorted_url": here,
        "chips": [(in_words(pair), here(rows.without(pair))) for pair in rows.chosen],
        "all_url": group_url(datasette, database, identity, [*groups.pairs, *rows.sorting]),
        "choices": _choices(rows, here),
        "beside": near,
        "previous_url": _beside(datasette, database, near["previous"], groups),
        "next_url": _beside(datasette, database, near["next"], groups),
        "scope": scope_words(groups, group),
        "beside_url": beside.sql_url,
        "step_url": _step_url(datasette, database, group, groups),
        "read_url": trajectory_url(datasette, database, listed.rows[0]["id"], pairs=pairs) if listed.rows else None,
        "compare_url": _compare_url(datasette, database, end),
        "table_url": table_url(datasette, database, "trajectories", rows.pairs, prompt_group_id=identity),
        "row_url": row_url(datasette, database, "prompt_groups", identity),
        "prompt_url": row_url(datasette, database, "prompts", group["prompt_id"]),
        "this_run": this_run(datasette, database, group, others[0], others[1]),
        "other_runs": other_runs(datasette, database, group["prompt_id"], others[2]),
        "other_runs_list": others[2],
        "first_words": first_words,
        "here": lambda **query: trajectory_url(datasette, database, end["first"], pairs=pairs, **query),
        "record_url": trajectory_url(datasette, database, end["first"], "/record") if end["first"] else None,
    }
    return await render(datasette, request, database, "group.html", context)


async def selections(
    datasette: Any, database: str, request: Any, group: Mapping[str, Any] | None
) -> tuple[Selection, Selection]:
    """Return the selection of groups and that of trajectories in the address of a group's or a trajectory's page.

    A filter belongs to the groups where they have such a column. Where the address has no filter of groups, the
    neighbours of a group are those of its step.
    """
    attached = datasette.databases[database]
    group_columns, columns = await asyncio.gather(
        attached.table_columns("prompt_groups"), attached.table_columns("trajectories")
    )
    groups = read_selection(request, "prompt_groups", group_columns)
    rows = read_selection(request, "trajectories", columns, others=group_columns)
    if not groups.chosen and group is not None:
        usual: list[Pair] = [("run_id", str(group["run_id"])), at("step", group["step"])]
        groups = replace(groups, fixed=usual)
    return groups, replace(rows, values=SORTED_BY)


def scope_words(groups: Selection, group: Mapping[str, Any]) -> str:
    """Return in words among which groups this one has its neighbours."""
    run, step = ("run_id", str(group["run_id"])), at("step", group["step"])
    within = "this index" if run not in groups.filters else "this run" if step not in groups.filters else "this step"
    others = [in_words(pair) for pair in groups.filters if pair not in (run, step)]
    where = f" where {' and '.join(others)}" if others else ""
    order = f", by {groups.order[0]}{' from the highest' if groups.order[1] else ''}" if groups.order else ""
    return f"{within}{where}{order}"


def _count_query(group: int, selection: Selection) -> Query:
    where, parameters = selection.where()
    sql = f"select count(*) as trajectories from trajectories where prompt_group_id = :group and {where}"
    return Query(sql, {**parameters, "group": group})


async def _read(
    datasette: Any, database: str, first: int | None, identities: Sequence[int], reads_words: bool
) -> tuple[Page | None, dict[int, Text | None]]:
    """Return the messages of the prompt, from the first record that can be read, and the last words of each row."""
    attached = datasette.databases[database]
    configured = compat.plugin_config(datasette, PLUGIN, database).get("roots")

    def read(connection: sqlite3.Connection) -> tuple[Page | None, dict[int, Text | None]]:
        roots = Roots.for_database(attached.path, configured)
        prompt: Page | None = None
        words: dict[int, Text | None] = {}
        for identity in dict.fromkeys([first, *identities] if first is not None else identities):
            if prompt is not None and not reads_words:
                break
            try:
                messages = load_trajectory(connection, identity, roots).messages
            except (SourceError, OSError, RecursionError):
                words[identity] = None
                continue
            if prompt is None:
                prompt = read_page(prompt_context(messages))
            words[identity] = last_words(messages)
        return prompt, words

    return await attached.execute_fn(read)  # type: ignore[no-any-return]


def last_words(messages: Sequence[Mapping[str, Any]]) -> Text | None:
    """Return the end of what the assistant said last, or None where it said nothing."""
    for message in reversed(messages):
        text = content_text(message.get("content")).strip() if message.get("role") == "assistant" else ""
        if text:
            return Text(text[-LONGEST_LAST_WORDS:], len(text))
    return None


def _choices(rows: Selection, here: Any) -> list[tuple[str, str, bool]]:
    """Return (words, address, whether chosen) of the usual filters of a group's trajectories."""
    usual = {
        "all": None,
        "passed": ("success", "1"),
        "failed": ("success", "0"),
        "not scored": ("success__isnull", "1"),
        "truncated": ("truncated", "1"),
        "with an error": ("error_type__notnull", "1"),
    }
    found = []
    for words, pair in usual.items():
        chosen = [pair] if pair else []
        found.append((words, here(replace(rows, chosen=chosen)), list(rows.chosen) == chosen))
    return found


def _beside(datasette: Any, database: str, group: int | None, groups: Selection) -> str | None:
    return None if group is None else group_url(datasette, database, group, groups.pairs)


def _step_url(datasette: Any, database: str, group: Mapping[str, Any], groups: Selection) -> str:
    """Return the address of the group's step, with those of its filters that are not the step itself."""
    own = {"run_id", "step", "step__isnull"}
    pairs = [pair for pair in groups.pairs if pair[0] not in own]
    return step_url(datasette, database, group["run_id"], group["step"], pairs)


def _compare_url(datasette: Any, database: str, ends: Mapping[str, Any]) -> str | None:
    if ends["rewards"] < 2:
        return None
    return compare_url(datasette, database, ends["best"], ends["worst"])
