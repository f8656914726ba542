"""Which files of a run are read: traces before token shards, and each sample of a step once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from ..base import Shard, SourceError
from ..other_files import is_other
from .layout import TOKEN_LAYOUTS

LAYOUTS = ("traces", "tokens")
TRACES_FIRST = "packed token ids of rollouts that are read from their traces; --layout tokens reads these instead"
TOKENS_ASKED = "traces, left aside because token shards were asked for"


def choose(shards: Iterable[Shard], layout: str | None = None) -> Iterator[Shard]:
    """Mark the shards that are not read, and those that hold again what others hold.

    Without a `layout`, traces win over token shards where they hold a run's training rollouts; token shards with
    trace ids (batches/) then tell later facts about these traces. Raises SourceError for an unknown layout.
    """
    if layout not in (None, *LAYOUTS):
        raise SourceError(f"There is no layout {layout!r}; there are: {', '.join(LAYOUTS)}.")
    found = list(shards)
    holds_training = any(_is_records(shard) and shard.split != "eval" and shard.layout != "file" for shard in found)
    reads_traces = layout == "traces" or (layout is None and holds_training)
    by_step = _token_shards_by_step(found)
    for shard in found:
        if is_other(shard):
            yield shard
        elif shard.layout not in TOKEN_LAYOUTS:
            yield replace(shard, aside=TOKENS_ASKED) if layout == "tokens" else shard
        elif not reads_traces:
            yield replace(shard, split=shard.split or "train", beside=_earlier(shard, by_step))
        elif shard.layout == "batches":
            yield replace(shard, producer="batches")
        else:
            yield replace(shard, aside=TRACES_FIRST)


def _is_records(shard: Shard) -> bool:
    return shard.producer is None and shard.layout not in TOKEN_LAYOUTS and not is_other(shard)


def _token_shards_by_step(shards: Iterable[Shard]) -> dict[int | None, dict[str, list[str]]]:
    steps: dict[int | None, dict[str, list[str]]] = {}
    for shard in shards:
        if shard.layout in TOKEN_LAYOUTS:
            steps.setdefault(shard.step, {}).setdefault(shard.layout, []).append(shard.path)
    return steps


def _earlier(shard: Shard, by_step: dict[int | None, dict[str, list[str]]]) -> tuple[str, ...]:
    """Return the shards of the same step that hold the same samples and are preferred; the first kind there is."""
    kinds = by_step[shard.step]
    before = TOKEN_LAYOUTS[: TOKEN_LAYOUTS.index(shard.layout)]
    return next((tuple(kinds[kind]) for kind in before if kind in kinds), ())
