"""Why an export has nothing to write, or less than its target: the conditions that leave too little, and advice."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import takewhile
from typing import Any

from ..amounts import listed, plural
from ..index.columns import quoted
from .conditions import DISTINCT, HAS_TEXT, LISTS, WELL_FORMED, column_of
from .filters import FieldFilter
from .limits import OVER_WINDOWS, TARGET, UNIQUE
from .preferences import Acceptance, ExportMode, ExportPreferences
from .runs import OpenRun
from .scope import CANDIDATES
from .scratch import Scratch
from .stages import PAIRED, REJECTED

Funnel = Sequence[Mapping[str, Any]]  # its stages in their order: "stage", "left", "dropped"

NEEDS_TOKENIZER = "token ids need their tokenizer; index the run again with --tokenizer PATH"
# What can be done about a condition that leaves nothing, where it follows from no value that a field has.
ADVICE = {
    "reward known": "Without rewards there are no pairs.",
    "difficulty": "Their prompts have other pass rates, or none: change the bounds, or the window.",
    "file present": "Their files have vanished since they were indexed: bring them back, and index the run again.",
    "sampled without an error": "An error ended each of them: keep_generation_errors keeps them.",
    "scored without an error": "An error came while each of them was scored: drop_scoring_errors drops them.",
    "not truncated": "A limit cut off each of them: drop_truncated drops them.",
    "effective": "None of them is known to have been part of a training batch: effective_only drops them.",
    HAS_TEXT: f"{NEEDS_TOKENIZER[0].upper()}{NEEDS_TOKENIZER[1:]}.",
}
# What can be done about the quotas that leave too few.
QUOTAS = {
    DISTINCT: "leave out distinct=True",
    "per prompt": "raise per_prompt",
    **dict.fromkeys(PAIRED.values(), "raise per_prompt"),
    **dict.fromkeys(REJECTED.values(), "take rejected_outcome='any'"),
    OVER_WINDOWS: "raise global_per_prompt",
    UNIQUE: "leave out unique_prompts",
}
NO_MORE = "There are no more: ask for fewer."
MOST_VALUES = 1000  # of a field; a sentence names the first few
MOST_NUMBERS = 8  # that are named; of more numbers the least and the greatest are
LONGEST_VALUE = 60  # characters


def why_empty(funnel: Funnel, scratch: Scratch, runs: Sequence[OpenRun], preferences: ExportPreferences) -> list[str]:
    """Return a sentence on the condition that left none of what was available, if there is one."""
    # From there on records were read, and each has its own reason.
    conditions = takewhile(lambda step: step["stage"] != WELL_FORMED, funnel)
    emptied = next((step for step in conditions if not step["left"]), None)
    if emptied is None or not emptied["dropped"]:
        return []
    stage, count = emptied["stage"], plural(emptied["dropped"], "trajectory")
    told = f"Nothing is left: the condition {stage} is met by 0 of {count}."
    for one in preferences.field_filters:
        if str(one) == stage:
            return [told + _instead(scratch, runs, one)]
    if stage in ("scored", "accepted"):
        rules = listed(dict.fromkeys(run.success_in_words for run in runs))
        told += f" What counts as a success: {rules}."
    return [f"{told} {ADVICE[stage]}" if stage in ADVICE else told]


def without_text(funnel: Funnel) -> list[str]:
    """Return a sentence on the trajectories without text, where others have one."""
    dropped = next((step["dropped"] for step in funnel if step["stage"] == HAS_TEXT and step["left"]), 0)
    verb = "has" if dropped == 1 else "have"
    return [f"{plural(dropped, 'trajectory')} {verb} no text: {NEEDS_TOKENIZER}."] if dropped else []


def counted_reasons(reasons: Mapping[str, int]) -> str:
    """Return why records cannot be rows, each with how many of them; an empty text where there are none."""
    return ", ".join(f"{reason} ({count:,})" for reason, count in sorted(reasons.items()))


def asked(preferences: ExportPreferences) -> str:
    """Return how many rows or pairs a target asks for, as the beginning of a sentence."""
    what = "pair" if preferences.mode is ExportMode.PREFERENCE else "row"
    return f"{plural(preferences.target_count or 0, what)} asked for"


def ways(preferences: ExportPreferences) -> dict[str, dict[str, Any]]:
    """Return what lifts each of the quotas that are asked for, in words, as changes of preferences."""
    found: dict[str, dict[str, Any]] = {}
    if preferences.quota is not None and preferences.mode is not ExportMode.RL:
        found["with per_prompt=None"] = {"per_prompt": None}
    if preferences.global_per_prompt is not None:
        found["without global_per_prompt"] = {"global_per_prompt": None}
    if preferences.unique_prompts:
        found["without unique_prompts"] = {"unique_prompts": False}
    # Windows have pass rates of their own, and bounds of these would mean something else.
    if preferences.window_size != 1 and preferences.difficulty.bounds == (None, None):
        found["with window_size=1"] = {"window_size": 1}
    if preferences.mode is ExportMode.PREFERENCE and preferences.rejected_outcome != Acceptance.ANY:
        found["with rejected_outcome='any'"] = {"rejected_outcome": Acceptance.ANY}
    if preferences.reward_margin:
        found["without reward_margin"] = {"reward_margin": 0.0}
    return found


def _short(funnel: Funnel, preferences: ExportPreferences) -> list[Mapping[str, Any]]:
    """Return the steps of a funnel that leave fewer than the target, of more."""
    in_row = 2 if preferences.mode is ExportMode.PREFERENCE else 1
    wanted = in_row * (preferences.target_count or 0)
    return [step for step in funnel if step["stage"] != TARGET and step["left"] < wanted and step["dropped"]]


def why_short(
    funnel: Funnel,
    scratch: Scratch,
    preferences: ExportPreferences,
    enough: Sequence[tuple[str, int]] = (),
    most: tuple[str, int] | None = None,
    refused: str = "",
) -> str:
    """Return sentences on a target that cannot be met: what there is, the conditions that leave too few, and advice.

    `enough` are ways to meet it, each with how many there are then; `most` is the one that gives most, where any was
    tried, and `refused` why records that were read cannot be rows.
    """
    prompts = scratch.connection.execute("select count(distinct unit) from picks").fetchone()[0]
    available = scratch.count("placed")
    told = f"{asked(preferences)}, {available:,} available, of {plural(prompts, 'prompt')}. "
    told += f"Left out when they were read: {refused}. " if refused else ""
    short = _short(funnel, preferences)
    if not short:
        return f"{told}{NO_MORE}"
    first = plural(short[0]["left"] + short[0]["dropped"], "trajectory")
    left = [f"{step['stage']}{' leaves' * (not place)} {step['left']:,}" for place, step in enumerate(short)]
    stages = [step["stage"] for step in short]
    advice = _advice(stages, preferences)
    if most is not None:  # lifting the quotas was tried
        others = [stage for stage in stages if stage not in QUOTAS]
        lifted = f"There are {most[1]:,} {most[0]}. " if most[1] > available else ""
        advice = f"{lifted}{_advice(others, preferences)}" if lifted or others else NO_MORE
    if enough:
        each = [f"{way} ({count:,})" for way, count in enough]
        with_each = " or ".join([", ".join(each[:-1]), each[-1]] if len(each) > 1 else each)
        advice = f"There are enough {with_each}; or ask for fewer."
    return f"{told}Of {first} the condition {', then '.join(left)}. {advice}"


def _advice(stages: Sequence[str], preferences: ExportPreferences) -> str:
    quotas = dict(QUOTAS)
    if preferences.per_prompt is None or preferences.mode is ExportMode.RL:  # which takes a prompt once, whatever it is
        for stage in ("per prompt", *PAIRED.values()):
            del quotas[stage]
    ways = ["Ask for fewer", *(quotas[stage] for stage in stages if stage in quotas)]
    ways += [QUOTAS[DISTINCT]] if preferences.distinct and DISTINCT not in stages else []
    ways += ["lower reward_margin"] if {*PAIRED.values()} & {*stages} and preferences.reward_margin else []
    ways += ["index the run again with --tokenizer PATH, since token ids have no text"] if HAS_TEXT in stages else []
    ways += ["set another rule with rltracer success, by which more are scored"] if "scored" in stages else []
    ways += ["loosen a condition"] if any(stage not in {*QUOTAS, HAS_TEXT, WELL_FORMED} for stage in stages) else []
    return f"{', '.join(ways[:-1])}, or {ways[-1]}." if len(ways) > 1 else f"{ways[0]}."


def _instead(scratch: Scratch, runs: Sequence[OpenRun], one: FieldFilter) -> str:
    """Return a sentence on the values that a field has in the asked steps, where the index holds them."""
    found: dict[Any, None] = {}
    for run in runs:
        connection = scratch.attach(run)
        if (column := column_of(connection, one.path)) is None:
            return ""
        rows, value = CANDIDATES, quoted(column)
        if column in LISTS:
            rows, value = f"{CANDIDATES}, json_each({value}) e", "e.value"
        question = f"select distinct {value} {rows} where m.run = ? and {value} is not null limit {MOST_VALUES}"
        found |= dict.fromkeys(value for (value,) in connection.execute(question, (run.number,)))
    if not found:
        return f" None of them records {one.path}."
    return f" {one.path} is there: {_named(list(found))}."


def _named(values: list[Any]) -> str:
    numbers = sorted(value for value in values if isinstance(value, (int, float)))
    if len(numbers) == len(values) > MOST_NUMBERS:
        return f"{numbers[0]:g} to {numbers[-1]:g}"
    texts = sorted(str(value)[:LONGEST_VALUE] for value in values if not isinstance(value, (int, float)))
    return listed([*(f"{number:g}" for number in numbers), *texts])
