"""The order of the trajectories within a prompt: a seeded draw that no machine, no index and no file order changes.

The draw of a trajectory is the sha256 of seed, run, step and recorded id, as in rltracer 0.1.0, so that the same seed
picks the same trajectories of a prompt. Weighted by tool calls it is the exponential variable of Efraimidis and
Spirakis 2006 (Information Processing Letters 97:5): those with the largest u^(1/w) are a weighted sample without
replacement, here by its logarithm, with the weight w = calls ** power.
"""

from __future__ import annotations

import math
import struct
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from itertools import groupby
from operator import itemgetter
from typing import Any, NamedTuple

import orjson

from .conditions import Condition, accepted
from .preferences import Acceptance, ExportMode, ExportPreferences, Order
from .runs import OpenRun, Progress
from .scope import parameters, staged
from .scratch import Scratch

DRAW_BYTES = 8
TOLD_EVERY = 1000  # prompt groups
FAR = math.inf  # the length of what has no known one: behind everything that has

# Candidates sort in the order in which a quota takes them: by their key, which is a draw or begins with what comes
# before it. Behind key and id stands what a pair needs: the reward, and whether it may be the better one.
Candidate = tuple[Any, ...]


class Pick(NamedTuple):
    """What a quota allows; columns of `picks`."""

    run: int
    unit: int
    window: int | None
    id: int
    other: int | None
    slot: int
    layer: float | bytes = b""
    draw: bytes = b""
    prompt: bytes = b""


class Prompt(NamedTuple):
    """What the candidates of a unit share; its first fields are the first columns of the question to the index."""

    unit: int
    window: int | None
    key: str
    task: str
    split: str | None
    env: str | None


def rank_candidates(
    scratch: Scratch,
    run: OpenRun,
    preferences: ExportPreferences,
    found: list[Condition],
    progress: Progress | None = None,
) -> None:
    """Fill `picks` for one run with what the quota of each unit allows, and `stages` with what each stage drops.

    One pass over the trajectories does both, since passing over them is most of the work.
    """
    ranking = Ranking(run, preferences)
    cases, passes, values = staged(scratch, run, found)
    fails = f"json_group_array({cases}) filter (where not ({passes}))"
    arrays = ", ".join(f"json_group_array({column}) filter (where {passes})" for column in ranking.columns.values())
    rows: Iterable[Any] = scratch.attach(run).execute(
        f"""
        select m.unit, g.window, p.key, p.task, b.split, b.env, b.step, {fails}, {arrays}
        from members m
        cross join groups g on g.run = m.run and g.number = m.grp
        cross join source.prompt_groups b on b.id = m.prompt_group_id
        cross join source.prompts p on p.id = b.prompt_id
        cross join source.trajectories t on t.prompt_group_id = m.prompt_group_id
        where m.run = :number and g.fits and {accepted(preferences)}
        group by m.unit, m.prompt_group_id
        order by m.unit, m.prompt_group_id
        """,
        {**parameters(run, preferences), **values},
    )
    if progress is not None:
        total = scratch.connection.execute("select count(*) from members where run = ?", (run.number,)).fetchone()[0]
        rows = _watched(rows, total, progress)
    for table in ("picks", "stages", "calls"):
        scratch.connection.execute(f"delete from {table} where run = ?", (run.number,))
    names = ", ".join(Pick._fields)
    marks = ", ".join("?" * len(Pick._fields))
    scratch.insert(f"insert into picks ({names}) values ({marks})", ranking.picks(rows))
    scratch.insert("insert into stages values (?, ?, ?)", ((run.number, *one) for one in ranking.stages.items()))
    scratch.insert("insert into calls values (?, ?, ?)", ((run.number, *one) for one in ranking.calls.items()))


def _watched(rows: Iterable[Any], total: int, progress: Progress) -> Iterator[Any]:
    """Yield rows, telling now and then how far it is: a browser's export ends here when its visitor leaves."""
    for number, row in enumerate(rows, start=1):
        if number % TOLD_EVERY == 0:
            progress("Selecting", number, total)
        yield row


class Ranking:
    """Ranks the candidates of one run, unit by unit, and counts on the way."""

    def __init__(self, run: OpenRun, preferences: ExportPreferences) -> None:
        self.run, self.preferences = run, preferences
        self.in_pairs = preferences.mode is ExportMode.PREFERENCE
        self.stages: Counter[int] = Counter()  # trajectories that fail a stage, and none before it
        self.calls: Counter[int] = Counter()  # tool calls of those that fail none
        # A JSON array per prompt group costs far less than a row per trajectory.
        self.columns = {"id": "t.id", "uid": "t.uid", "calls": "t.tool_calls"}
        if preferences.order is Order.SHORTEST:
            self.columns["tokens"] = "t.completion_tokens"
        if self.in_pairs:
            self.columns |= {"reward": "t.reward", "success": "t.success"}

    def picks(self, rows: Iterable[Any]) -> Iterator[Pick]:
        """Yield what the quota of each unit allows, from rows that hold a prompt group each, units together."""
        for _, parts in groupby(rows, key=itemgetter(0)):
            groups: list[tuple[int | None, dict[str, list[Any]]]] = []
            prompt: Prompt | None = None
            for row in parts:
                prompt = prompt or Prompt(*row[:6])
                if row[7] != "[]":
                    self.stages.update(orjson.loads(row[7]))
                if row[8] != "[]":
                    arrays = dict(zip(self.columns, map(orjson.loads, row[8:]), strict=True))
                    self.calls.update(arrays["calls"])
                    groups.append((row[6], arrays))
            if groups and prompt is not None:
                yield from self._pairs(groups, prompt) if self.in_pairs else self._singles(groups, prompt)

    def _singles(self, groups: list[tuple[int | None, dict[str, list[Any]]]], prompt: Prompt) -> Iterator[Pick]:
        count, quota = sum(len(arrays["id"]) for _, arrays in groups), self.preferences.quota
        if self._is_any_order_fine(count):
            ids = (id for _, arrays in groups for id in arrays["id"])
            yield from (self._pick(b"", id, None, slot, prompt) for slot, id in enumerate(ids, start=1))
            return
        candidates = [one for step, arrays in groups for one in self._candidates(step, arrays)]
        candidates.sort()
        for slot, (key, id) in enumerate(candidates[:quota], start=1):
            yield self._pick(key, id, None, slot, prompt)

    def _is_any_order_fine(self, count: int) -> bool:
        """Say whether all candidates are taken and nothing tells their order: then drawing them is in vain."""
        wanted = self.preferences
        return not wanted.is_limited and not wanted.include_provenance and (not wanted.quota or count <= wanted.quota)

    def _pairs(self, groups: list[tuple[int | None, dict[str, list[Any]]]], prompt: Prompt) -> Iterator[Pick]:
        """Yield the best with the worst, the second best with the second worst, as long as the margin is wide enough.

        So the margins fall from pair to pair, and a trajectory stands in one pair at most.
        """
        quota, least = self.preferences.quota, self.preferences.reward_margin
        rewards = [reward for _, arrays in groups for reward in arrays["reward"]]
        if not _is_wide(max(rewards) - min(rewards), least):
            return
        candidates = [one for step, arrays in groups for one in self._candidates(step, arrays)]
        candidates.sort()
        # Sorting is stable, so that equal rewards stay in the order of the draw.
        best = sorted((one for one in candidates if one[3]), key=itemgetter(2), reverse=True)
        worst = sorted(candidates, key=itemgetter(2))
        for slot, (better, worse) in enumerate(zip(best, worst, strict=False), start=1):
            if (quota is not None and slot > quota) or not _is_wide(better[2] - worse[2], least):
                return
            yield self._pick(better[0], better[1], worse[1], slot, prompt)

    def _candidates(self, step: int | None, arrays: dict[str, list[Any]]) -> Iterable[Candidate]:
        keys: Iterable[Any] = draw(self.preferences.seed, self.run.name, step, arrays["uid"])
        if self.preferences.tool_call_sampling_power:
            keys = weighted(list(keys), arrays["calls"], self.preferences.tool_call_sampling_power)
        elif self.preferences.order is Order.SHORTEST:
            lengths = (FAR if tokens is None else tokens for tokens in arrays["tokens"])
            keys = zip(lengths, keys, strict=True)
        if not self.in_pairs:
            return zip(keys, arrays["id"], strict=True)
        acceptance = Acceptance(self.preferences.acceptance)
        wanted = int(acceptance is Acceptance.CORRECT)
        fits = [acceptance is Acceptance.ANY or success == wanted for success in arrays["success"]]
        return zip(keys, arrays["id"], arrays["reward"], fits, strict=True)

    def _pick(self, key: Any, id: int, other: int | None, slot: int, prompt: Prompt) -> Pick:
        if not self.preferences.is_limited:
            return Pick(self.run.number, prompt.unit, prompt.window, id, other, slot)
        drawn = key if isinstance(key, bytes) else key[1]
        layer = key[0] if self.preferences.tool_call_sampling_power else self._layer(slot, prompt)
        identity = prompt_identity(prompt.key, prompt.task)
        return Pick(self.run.number, prompt.unit, prompt.window, id, other, slot, layer, drawn, identity)

    def _layer(self, slot: int, prompt: Prompt) -> bytes:
        """Return the draw of a prompt, which orders the picks of one slot among all prompts."""
        first = self.run.window_bounds(prompt.window, self.preferences.window_size)[0]
        # An RL prompt is one unit whatever its split and env; which of them was met first must not matter.
        place = "" if self.preferences.mode is ExportMode.RL else f"{prompt.split}:{prompt.env}:"
        text = f"{self.preferences.seed}:layer:{slot - 1}:{self.run.name}:{first}:{place}{prompt.key}:{prompt.task}"
        return sha256(text.encode()).digest()[:DRAW_BYTES]


def _is_wide(margin: float, least: float) -> bool:
    return margin > 0 and margin >= least


def draw(seed: int, run: str, step: int | None, uids: Sequence[str]) -> list[bytes]:
    """Return a number between 0 and 2**64, as bytes, for each recorded id of a step."""
    prefix = f"{seed}:{run}:{step}:"
    # A record without an id is known by its place; the folders above its file depend on what was indexed.
    texts = [uid.rpartition("/")[2] if "@" in uid else uid for uid in uids]
    return [sha256((prefix + text).encode()).digest()[:DRAW_BYTES] for text in texts]


def weighted(draws: Sequence[bytes], calls: Sequence[int], power: float) -> list[tuple[float, bytes]]:
    """Return draws with the weight calls ** power; the smallest is taken first.

    No call weighs like one, so that a gentle power stays gentle: a weight of 0 would never be drawn at all.
    """
    numbers = struct.unpack(f">{len(draws)}Q", b"".join(draws))
    weights = {count: power * math.log(max(count, 1)) for count in set(calls)}
    return [
        # Close to 1 the double rounds to 1, whose logarithm would be that of 0.
        (math.log(max(-math.log((number + 0.5) / 2**64), 2.0**-65)) - weights[count], drawn)
        for number, count, drawn in zip(numbers, calls, draws, strict=True)
    ]


def prompt_identity(key: str, task: str) -> bytes:
    """Return the same few bytes for the same prompt, in whichever run and index."""
    return sha256(f"{key}:{task}".encode()).digest()[:16]
