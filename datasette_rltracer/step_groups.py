"""The prompt groups on the page of a step: their rows, their bins of pass rates, and the form that filters them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from rltracer_sqlite.passrates import PASS_BINS

from .addresses import group_url
from .drawings import cell, length_bar, mean_cell, rate_bar, rate_cell, reward_cell
from .queries import Answer
from .selection import Selection, at, names_among, written
from .text import visible

if TYPE_CHECKING:
    from datasette.app import Datasette

KINDS = ("env", "split")  # columns by which the groups of a step differ in kind


@dataclass(frozen=True)
class GroupRow:
    """A row of the table, its cells ready: a step can have thousands, and a template is slow at deciding."""

    url: str
    preview: Markup
    prompt: Markup  # its number and the beginning of its key, by either of which the terminal finds it
    kind: Sequence[tuple[str, Markup]]  # its env and its split, each under the name of its column
    is_silent: bool
    gone: int  # how many of its trajectories cannot be opened any more
    cells: Sequence[Markup]


def described_groups(
    datasette: Datasette, database: str, selection: Selection, rows: list[dict[str, Any]], kinds: Sequence[str]
) -> list[GroupRow]:
    """Return the rows of the table, with the columns `kinds`; each leads to its group under the same filters."""
    longest = max((row["tokens_mean"] or 0 for row in rows), default=0)
    carried = selection.pairs
    return [
        GroupRow(
            url=group_url(datasette, database, row["id"], carried),
            preview=visible(row["preview"]),
            prompt=Markup('{} <span class="mono">{}</span>').format(row["prompt_id"], visible(row["key"] or "")),
            kind=[(name, visible(str(row[name])[:40]) if row[name] else cell(None)) for name in kinds],
            is_silent=row["zero_variance"] == 1,
            gone=row["gone"] or 0,
            cells=(
                rate_bar(row["successes"], row["scored"], row["trajectories"]),
                rate_cell(row["successes"], row["scored"], row["trajectories"]),
                reward_cell(row["reward_mean"], row["rewarded"] or 0, row["scored"]),
                *(cell(row[name]) for name in ("reward_std", "reward_min", "reward_max")),
                length_bar(row["tokens_mean"], longest),
                mean_cell(row["tokens_mean"]),
                *(cell(row[name]) for name in ("truncated", "errors")),
            ),
        )
        for row in rows
    ]


def kinds_recorded(*listed: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return which of the columns env and split some of the groups record."""
    return [name for name in KINDS if any(row[name] for rows in listed for row in rows)]


def buckets_context(buckets: Answer, selection: Selection, here: Callable[[Selection], str]) -> dict[str, Any]:
    """Return the bins of pass rates, and what they add up to."""
    return {
        "buckets": _buckets(buckets.rows, selection, here),
        "buckets_list": buckets,
        "count": sum(bucket["prompt_groups"] for bucket in buckets.rows),
        "zero_signal": sum(bucket["zero_signal"] or 0 for bucket in buckets.rows),
        "judged": sum(bucket["judged"] for bucket in buckets.rows),
    }


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
            found.append({"label": label or "unscored", "count": counts[label], "url": url, "bar": bar})
    return found


def filter_form(rows: list[dict[str, Any]], selection: Selection) -> dict[str, Any]:
    """Return the fields of the form of filters; filters that it has no field for travel along hidden."""
    fields = {name: names_among(row[name] for row in rows) for name in KINDS}
    given = dict(map(written, selection.chosen))
    own: set[str] = {"zero_variance", *(name for name, values in fields.items() if len(values) > 1)}
    return {
        "fields": [(name, values, given.get(name)) for name, values in fields.items() if len(values) > 1],
        "zero_variance": given.get("zero_variance"),
        "hidden": [pair for pair in [*selection.chosen, *selection.sorting] if written(pair)[0] not in own],
    }
