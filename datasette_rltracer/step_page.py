"""The page of a step: its prompt groups, filtered and sorted as a table of Datasette's would be."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from datasette.utils.asgi import Response
from markupsafe import Markup

from rltracer_sqlite.browse.outcome import FILES, MOST_TOLD, files_in_words
from rltracer_sqlite.passrates import PASS_BINS

from .access import DATABASE, integer, permitted_index, place
from .addresses import NO_STEP, group_url, run_url, step_url, table_url
from .export import export_url
from .filter_names import refuse_unknown_filters
from .frame import render, step_words, trail
from .lists import Answer, Query, answers
from .live import live_step, step_of
from .marks import cell, length_bar, rate_bar, rate_cell
from .missing import no_step
from .selection import Selection, at, in_words, read_selection
from .text import visible

GROUPS_ON_A_PAGE = 200
MOST_ON_A_PAGE = 2_000
MOST_CHOICES = 100
OWN = ("start", "_size")  # what an address can ask for besides filters and an order

# One row per split: training and evaluation are never counted together.
HEAD = """
select
    r.name as run, r.step_kind, s.split, s.trajectories, s.scored, s.successes, s.pass_rate, s.reward_mean,
    s.truncated, s.errors, s.indexed_at,
    (select max(step) from steps where run_id = r.id and step < {step}) as previous,
    (select min(step) from steps where run_id = r.id and step > {step}) as next
from runs r join steps s on s.run_id = r.id where r.id = :run_id and s.step is {step}
order by s.split = 'train' desc, s.split limit {most}
"""

# What cannot be opened any more, by the trajectories of the step, and by its files where they hold none.
GONE = """
select
    count(*) as trajectories,
    (select count(*) from (
        select id from shards where run_id = :run_id and step = {step} and state = 'gone'
        union select shard_id from trajectories where run_id = :run_id and step is {step} and gone = 1
    )) as files
from trajectories where run_id = :run_id and step is {step} and gone = 1
"""

# The trajectories of a group are only counted for the groups of one page.
GROUPS = """
with listed as (
    select *, row_number() over (order by {order}) as place
    from prompt_groups where {where} order by {order} limit {size} offset {start}
),
counted as (
    select
        prompt_group_id, sum(truncated) as truncated, sum(ok = 0 or error_type is not null) as errors,
        sum(gone) as gone, avg(completion_tokens) as tokens_mean
    from trajectories where prompt_group_id in (select id from listed) group by prompt_group_id
)
select
    id, prompt_id, (select substr(preview, 1, 400) from prompts p where p.id = prompt_id) as preview,
    (select substr(key, 1, 12) from prompts p where p.id = prompt_id) as key, env, split, group_id, trajectories,
    scored, successes, pass_rate, reward_mean, reward_std, reward_min, reward_max, zero_variance, truncated, errors,
    tokens_mean, gone
from listed left join counted on prompt_group_id = id order by place
"""

BUCKETS = """
select pass_bucket, count(*) as prompt_groups, sum(zero_variance) as zero_signal, count(zero_variance) as judged
from prompt_groups where {where} group by pass_bucket
"""

CHOICES = """
select distinct env, split from prompt_groups where run_id = :run_id and step is {step} order by env, split limit {most}
"""


def routes() -> list[tuple[str, Any]]:
    """Return the addresses of this page and what answers them."""
    return [(DATABASE + rf"/step/(?P<run>\d+)/(?P<step>-?\d+|{NO_STEP})$", step_page)]


def groups_query(selection: Selection, start: int = 0, size: int = GROUPS_ON_A_PAGE) -> Query:
    """Return the query for the prompt groups of a selection, from place `start` on."""
    where, parameters = selection.where()
    return Query(GROUPS.format(where=where, order=selection.ordering(), size=size, start=start), parameters)


def buckets_query(selection: Selection) -> Query:
    """Return the query for how many groups of a selection are in each bin of pass rates."""
    where, parameters = selection.where()
    return Query(BUCKETS.format(where=where), parameters)


async def step_page(datasette: Any, request: Any) -> Response:
    """Answer with the prompt groups of a step."""
    database = await permitted_index(
        datasette, request, "runs", "steps", "shards", "prompts", "prompt_groups", "problems"
    )
    run, step = integer(request.url_vars["run"]), step_of(request.url_vars["step"])
    start, size = place(request.args.get("start")) or 0, _size(request.args.get("_size"))
    selection = await _selection(datasette, database, request, run, step)
    live = await live_step(datasette, request, database, run, step)
    literal = "null" if step is None else str(step)
    head, groups, buckets, choices, troubled, gone = await answers(
        datasette,
        request,
        database,
        Query(HEAD.format(step=literal, most=MOST_CHOICES), {"run_id": run}),
        groups_query(selection, start, size),
        buckets_query(selection),
        Query(CHOICES.format(step=literal, most=MOST_CHOICES), {"run_id": run}),
        Query(FILES.format(of_step=f"s.step is {literal}", most=MOST_TOLD), {"run_id": run}),
        Query(GONE.format(step=literal), {"run_id": run}),
    )
    if not head.rows:
        raise await no_step(datasette, database, run, step)

    def here(selected: Selection, first: int | None = None) -> str:
        own = [*selected.chosen, *selected.sorting, *([("_size", str(size))] if size != GROUPS_ON_A_PAGE else [])]
        return step_url(datasette, database, run, step, [*own, ("start", first)])

    context = {
        **_step_context(datasette, database, (run, step), head.rows, selection),
        **_buckets_context(buckets, selection, here),
        "live": live,
        **_files_context(datasette, database, run, troubled.rows),
        "gone": gone.first(trajectories=0, files=0),
        "groups": _rows(datasette, database, selection, groups.rows),
        "list": groups,
        "start": start,
        "following": here(selection, start + size),
        "preceding": here(selection, max(start - size, 0) or None),
        "selection": selection,
        "sorted_url": here,
        "chips": [(in_words(pair), here(selection.without(pair))) for pair in selection.chosen],
        "all_url": here(replace(selection, chosen=())),
        "form": _form(choices.rows, selection),
    }
    return await render(datasette, request, database, "step.html", context)


def _step_context(
    datasette: Any, database: str, where: tuple[int, int | None], rows: list[dict[str, Any]], selection: Selection
) -> dict[str, Any]:
    """Return what is said of the whole step, or of the split that is chosen, and the addresses beside it."""
    (run, step), row = where, rows[0]
    split = dict(selection.chosen).get("split")
    splits = [one for one in rows if one["split"] == split] or rows
    chosen = {"split": split} if len(splits) < len(rows) else {}
    pairs = [*selection.chosen, *selection.sorting]
    beside = {
        f"{name}_url": None if row[name] is None else step_url(datasette, database, run, row[name], pairs)
        for name in ("previous", "next")
    }
    return {
        "title": f"{row['run']}, {step_words(step)}",
        "trail": trail(datasette, database, (run, row["run"]), (step,)),
        "step_words": step_words(step),
        "run": row["run"],
        "run_url": run_url(datasette, database, run),
        "splits": splits,
        "step_kind": row["step_kind"],
        **{name: sum(one[name] or 0 for one in splits) for name in ("trajectories", "truncated", "errors")},
        "all_trajectories": sum(one["trajectories"] or 0 for one in rows),
        "unread": any(one["indexed_at"] is None for one in splits),
        **beside,
        "form_url": step_url(datasette, database, run, step),
        "table_url": table_url(datasette, database, "prompt_groups", selection.pairs),
        "rows_url": export_url(datasette, database, "prompt_groups", selection.filters),
        "trajectories_url": table_url(datasette, database, "trajectories", run_id=run, step=step, **chosen),
    }


def _files_context(datasette: Any, database: str, run: int, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return what is said of the files of the step that gave no trajectory: those that could not be read, else all."""
    unread = [row for row in rows if row["state"] == "unread"]
    return {
        "troubles": files_in_words(rows),
        "could_not_be_read": bool(unread),
        "problems_url": f"{run_url(datasette, database, run)}#problems",
    }


def _buckets_context(buckets: Answer, selection: Selection, here: Callable[[Selection], str]) -> dict[str, Any]:
    """Return the bins of pass rates, and what they add up to."""
    return {
        "buckets": _buckets(buckets.rows, selection, here),
        "buckets_list": buckets,
        "count": sum(bucket["prompt_groups"] for bucket in buckets.rows),
        "zero_signal": sum(bucket["zero_signal"] or 0 for bucket in buckets.rows),
        "judged": sum(bucket["judged"] for bucket in buckets.rows),
    }


async def _selection(datasette: Any, database: str, request: Any, run: int, step: int | None) -> Selection:
    columns = await datasette.databases[database].table_columns("prompt_groups")
    refuse_unknown_filters(request, "prompt_groups", columns, OWN)
    asked = read_selection(request, "prompt_groups", columns, others=("run_id", "step"))
    return replace(asked, fixed=[("run_id", str(run)), at("step", step)])


@dataclass(frozen=True)
class GroupRow:
    """A row of the table, its cells ready: a step can have thousands, and a template is slow at deciding."""

    url: str
    preview: Markup
    prompt: Markup  # its number and the beginning of its key, by either of which the terminal finds it
    env: Markup
    is_silent: bool
    is_gone: bool  # some of its trajectories cannot be opened any more
    cells: Sequence[Markup]


def _rows(datasette: Any, database: str, selection: Selection, rows: list[dict[str, Any]]) -> list[GroupRow]:
    longest = max((row["tokens_mean"] or 0 for row in rows), default=0)
    carried = selection.pairs
    return [
        GroupRow(
            url=group_url(datasette, database, row["id"], carried),
            preview=visible(row["preview"]),
            prompt=Markup('{} <span class="mono">{}</span>').format(row["prompt_id"], visible(row["key"] or "")),
            env=visible(_env_words(row)),
            is_silent=row["zero_variance"] == 1,
            is_gone=bool(row["gone"]),
            cells=(
                rate_bar(row["successes"], row["scored"], row["trajectories"]),
                rate_cell(row["successes"], row["scored"], row["trajectories"]),
                *(cell(row[name]) for name in ("reward_mean", "reward_std", "reward_min", "reward_max")),
                length_bar(row["tokens_mean"], longest),
                *(cell(row[name]) for name in ("tokens_mean", "truncated", "errors")),
            ),
        )
        for row in rows
    ]


def _env_words(row: dict[str, Any]) -> str:
    """Return the env of a group, and its split where that is not the usual one."""
    split = None if row["split"] == "train" else row["split"]
    return " · ".join(str(value)[:40] for value in (row["env"], split) if value)


def _buckets(
    rows: list[dict[str, Any]], selection: Selection, here: Callable[[Selection], str]
) -> list[dict[str, Any]]:
    """Return the bins of pass rates in their order, with how many groups and the link to only those."""
    counts = {row["pass_bucket"]: row["prompt_groups"] for row in rows}
    most = max(counts.values(), default=0)
    found = []
    for label in [*(bin.label for bin in PASS_BINS), None]:
        pair = at("pass_bucket", label)
        if counts.get(label):
            others = [kept for kept in selection.chosen if not kept[0].startswith("pass_bucket")]
            url, bar = here(replace(selection, chosen=[*others, pair])), length_bar(counts[label], most)
            found.append({"label": label or "not scored", "count": counts[label], "url": url, "bar": bar})
    return found


def _form(rows: list[dict[str, Any]], selection: Selection) -> dict[str, Any]:
    """Return the fields of the form of filters; filters that it has no field for travel along hidden."""
    fields = {
        "env": sorted({row["env"] for row in rows if row["env"] is not None}),
        "split": sorted({row["split"] for row in rows if row["split"] is not None}),
    }
    given = dict(selection.chosen)
    own: set[str] = {"zero_variance", *(name for name, values in fields.items() if len(values) > 1)}
    return {
        "fields": [(name, values, given.get(name)) for name, values in fields.items() if len(values) > 1],
        "zero_variance": given.get("zero_variance"),
        "hidden": [pair for pair in [*selection.chosen, *selection.sorting] if pair[0] not in own],
    }


def _size(text: str | None) -> int:
    asked = place(text)
    return GROUPS_ON_A_PAGE if not asked else min(asked, MOST_ON_A_PAGE)
