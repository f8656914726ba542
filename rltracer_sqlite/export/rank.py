"""The order of the trajectories within a prompt: a seeded draw that no machine, no index and no file order changes.

The draw of a trajectory is the sha256 of seed, run, step and recorded id, as in rltracer 0.1.0, so that the same seed
picks the same trajectories of a prompt. Weighted by tool calls it is the exponential variable of Efraimidis and
Spirakis 2006 (Information Processing Letters 97:5): those with the largest u^(1/w) are a weighted sample without
replacement, here by its logarithm, with the weight w = calls ** power.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from hashlib import sha256
from itertools import groupby
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


# Candidates sort in the order in which a quota takes them: (what is first, the draw), id, then what a pair needs.
Key = tuple[float, bytes]
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
    """What the candidates of a unit share."""

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
    columns = _columns(preferences)
    cases, passes, values = staged(scratch, run, found)
    fails = f"json_group_array({cases}) filter (where not ({passes}))"
    arrays = ", ".join(f"json_group_array({column}) filter (where {passes})" for column in columns.values())
    cursor = scratch.attach(run).execute(
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
    rows: Iterable[Any] = cursor
    if progress is not None:
        total = scratch.connection.execute("select count(*) from members where run = ?", (run.number,)).fetchone()[0]
        rows = _watched(cursor, total, progress)
    stages: Counter[int] = Counter()
    calls: Counter[int] = Counter()
    for table in ("picks", "stages", "calls"):
        scratch.connection.execute(f"delete from {table} where run = ?", (run.number,))
    names = ", ".join(Pick._fields)
    scratch.insert(
        f"insert into picks ({names}) values ({', '.join('?' * len(Pick._fields))})",
        _picks(rows, run, preferences, list(columns), stages, calls),
    )
    scratch.insert("insert into stages values (?, ?, ?)", ((run.number, *counted) for counted in stages.items()))
    scratch.insert("insert into calls values (?, ?, ?)", ((run.number, *counted) for counted in calls.items()))


def _watched(rows: Iterable[Any], total: int, progress: Progress) -> Iterator[Any]:
    """Yield rows, telling now and then how far it is: a browser's export ends here when its visitor leaves."""
    for number, row in enumerate(rows, start=1):
        if number % TOLD_EVERY == 0:
            progress("Selecting", number, total)
        yield row


def _columns(preferences: ExportPreferences) -> dict[str, str]:
    """Return what is needed of each trajectory: a JSON array per prompt group costs far less than a row for each."""
    wanted = {"id": "t.id", "uid": "t.uid", "calls": "t.tool_calls"}
    if preferences.order is Order.SHORTEST:
        wanted["tokens"] = "t.completion_tokens"
    if preferences.mode is ExportMode.PREFERENCE:
        wanted |= {"reward": "t.reward", "success": "t.success"}
    return wanted


def _picks(
    rows: Iterable[Any],
    run: OpenRun,
    preferences: ExportPreferences,
    names: list[str],
    stages: Counter[int],
    calls: Counter[int],
) -> Iterator[Pick]:
    choose = _pairs if preferences.mode is ExportMode.PREFERENCE else _singles
    for _, parts in groupby(rows, key=lambda row: row[0]):
        candidates: list[Candidate] = []
        first: Any = None
        for row in parts:
            first = first or row
            if row[7] != "[]":
                stages.update(orjson.loads(row[7]))
            arrays = dict(zip(names, map(orjson.loads, row[8:]), strict=True))
            if arrays["id"]:
                calls.update(arrays["calls"])
                candidates += _candidates(run, row[6], arrays, preferences)
        if candidates:
            yield from choose(candidates, Prompt(*first[:6]), run, preferences)


def _candidates(
    run: OpenRun, step: int | None, arrays: dict[str, list[Any]], preferences: ExportPreferences
) -> Iterable[Candidate]:
    keys: Iterable[Any] = draw(preferences.seed, run.name, step, arrays["uid"])
    if preferences.tool_call_sampling_power:
        power = preferences.tool_call_sampling_power
        keys = [weighted(drawn, calls, power) for drawn, calls in zip(keys, arrays["calls"], strict=True)]
    elif preferences.order is Order.SHORTEST:
        lengths = (FAR if tokens is None else tokens for tokens in arrays["tokens"])
        keys = zip(lengths, keys, strict=True)
    if preferences.mode is ExportMode.PREFERENCE:
        accepted = (_is_accepted(success, preferences) for success in arrays["success"])
        return zip(keys, arrays["id"], arrays["reward"], accepted, strict=True)
    return zip(keys, arrays["id"], strict=True)


def _is_accepted(success: int | None, preferences: ExportPreferences) -> bool:
    acceptance = Acceptance(preferences.acceptance)
    return acceptance is Acceptance.ANY or success == int(acceptance is Acceptance.CORRECT)


def draw(seed: int, run: str, step: int | None, uids: list[str]) -> list[bytes]:
    """Return a number between 0 and 2**64, as bytes, for each recorded id of a step."""
    prefix = f"{seed}:{run}:{step}:"
    # A record without an id is known by its place; the folders above its file depend on what was indexed.
    texts = [uid.rpartition("/")[2] if "@" in uid else uid for uid in uids]
    return [sha256((prefix + text).encode()).digest()[:DRAW_BYTES] for text in texts]


def weighted(drawn: bytes, calls: int, power: float) -> Key:
    """Return the draw of a trajectory with the weight calls ** power; the smallest is taken first.

    No call weighs like one, so that a gentle power stays gentle: a weight of 0 would never be drawn at all.
    """
    uniform = (int.from_bytes(drawn, "big") + 0.5) / 2 ** (8 * DRAW_BYTES)
    # Close to 1 the double rounds to 1, whose logarithm would be that of 0.
    waited = max(-math.log(uniform), 2.0**-65)
    return math.log(waited) - power * math.log(max(calls, 1)), drawn


def _singles(
    candidates: list[Candidate], prompt: Prompt, run: OpenRun, preferences: ExportPreferences
) -> Iterator[Pick]:
    candidates.sort()
    for slot, (key, id) in enumerate(candidates[: preferences.quota], start=1):
        yield _pick(key, id, None, slot, prompt, run, preferences)


def _pairs(candidates: list[Candidate], prompt: Prompt, run: OpenRun, preferences: ExportPreferences) -> Iterator[Pick]:
    """Yield the best with the worst, the second best with the second worst, as long as the margin is wide enough.

    So the margins fall from pair to pair, and a trajectory stands in one pair at most.
    """
    candidates.sort()
    best = sorted((one for one in candidates if one[3]), key=lambda one: -one[2])
    worst = sorted(candidates, key=lambda one: one[2])
    for slot, (better, worse) in enumerate(zip(best, worst, strict=False), start=1):
        margin = better[2] - worse[2]
        too_many = preferences.quota is not None and slot > preferences.quota
        if too_many or margin <= 0 or margin < preferences.reward_margin:
            return
        yield _pick(better[0], better[1], worse[1], slot, prompt, run, preferences)


def _pick(
    key: Any, id: int, other: int | None, slot: int, prompt: Prompt, run: OpenRun, preferences: ExportPreferences
) -> Pick:
    if not preferences.is_limited:
        return Pick(run.number, prompt.unit, prompt.window, id, other, slot)
    drawn = key if isinstance(key, bytes) else key[1]
    layer = key[0] if preferences.tool_call_sampling_power else _layer(slot, prompt, run, preferences)
    identity = prompt_identity(prompt.key, prompt.task)
    return Pick(run.number, prompt.unit, prompt.window, id, other, slot, layer, drawn, identity)


def _layer(slot: int, prompt: Prompt, run: OpenRun, preferences: ExportPreferences) -> bytes:
    """Return the draw of a prompt, which orders the picks of one slot among all prompts."""
    first = run.window_bounds(prompt.window, preferences.window_size)[0]
    # An RL prompt is one unit whatever its split and env; which of them was met first must not matter.
    place = "" if preferences.mode is ExportMode.RL else f"{prompt.split}:{prompt.env}:"
    text = f"{preferences.seed}:layer:{slot - 1}:{run.name}:{first}:{place}{prompt.key}:{prompt.task}"
    return sha256(text.encode()).digest()[:DRAW_BYTES]


def prompt_identity(key: str, task: str) -> bytes:
    """Return the same few bytes for the same prompt, in whichever run and index."""
    return sha256(f"{key}:{task}".encode()).digest()[:16]
