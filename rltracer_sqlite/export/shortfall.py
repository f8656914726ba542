"""Why an export has less than its target: what there is, the conditions that leave too little, and advice."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..amounts import plural
from ..unscored import another_rule
from .conditions import DISTINCT, HAS_TEXT, OWN_PROMPT, WELL_FORMED
from .emptied import with_other_prompts
from .limits import OVER_WINDOWS, TARGET, UNIQUE
from .preferences import ExportMode, ExportPreferences
from .runs import OpenRun
from .stages import PAIRED, REJECTED, Funnel
from .ways import Tried

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
NOT_COMPARED = "How many of these differ is known when they are read; without target_count all that do are written."


def counted_reasons(reasons: Mapping[str, int]) -> str:
    """Return why records cannot be rows, each with how many of them; an empty text where there are none."""
    return ", ".join(f"{reason} ({count:,})" for reason, count in sorted(reasons.items()))


def asked(preferences: ExportPreferences) -> str:
    """Return what a target asks for, and of what it is, as the beginning of a sentence."""
    counted = {ExportMode.SFT: "trajectory", ExportMode.RL: "row", ExportMode.PREFERENCE: "pair"}
    return f"{plural(preferences.target_count or 0, counted[ExportMode(preferences.mode)])} asked for"


@dataclass(frozen=True)
class Shortfall:
    """What a target lacks: what there is of it, the conditions that leave too few, and what can be done.

    `available` are the trajectories, rows or pairs that there are, of so many `prompts`. `enough` are ways to meet the
    target, each with how many there are then; `most` is the one that gives most, where any was tried, `refused` why
    records that were read cannot be rows, and `other_rule` the command that sets another rule, where any is unscored.
    `are_compared`: with distinct=True that many differ; else that is not known yet.
    """

    preferences: ExportPreferences
    available: int
    prompts: int
    funnel: Funnel
    refused: str = ""
    enough: Sequence[Tried] = ()
    most: Tried | None = None
    other_rule: str = ""
    are_compared: bool = False

    def __str__(self) -> str:
        """Return it in sentences."""
        at_most = "at most " if self.preferences.distinct and not self.are_compared else ""
        available, prompts = f"{at_most}{self.available:,} available", plural(self.prompts, "prompt")
        told = f"{asked(self.preferences)}, {available}, of {prompts}. "
        told += f"{NOT_COMPARED} " if at_most else ""
        told += f"Left out when they were read: {self.refused}. " if self.refused else ""
        told += "".join(f"{sentence} " for sentence in with_other_prompts(self.funnel))
        if not (short := self._short()):
            return f"{told}{NO_MORE}"
        first = plural(short[0]["left"] + short[0]["dropped"], "trajectory")
        left = [f"{step['stage']}{' leaves' * (not place)} {step['left']:,}" for place, step in enumerate(short)]
        stages = [step["stage"] for step in short]
        return f"{told}Of {first} the condition {', then '.join(left)}. {self._advice(stages)}{self._unscored(stages)}"

    def _short(self) -> list[Mapping[str, Any]]:
        """Return the steps of the funnel that leave fewer than the target, of more."""
        in_row = 2 if self.preferences.mode is ExportMode.PREFERENCE else 1
        wanted = in_row * (self.preferences.target_count or 0)
        return [step for step in self.funnel if step["stage"] != TARGET and step["left"] < wanted and step["dropped"]]

    def _unscored(self, stages: Sequence[str]) -> str:
        """Return how many trajectories neither pass nor fail, where that is not among the stages that were named."""
        for step in self.funnel if "scored" not in stages and not self.enough else ():
            if step["stage"] == "scored" and step["dropped"]:
                of_all = plural(step["left"] + step["dropped"], "trajectory")
                return f" Of {of_all} {step['dropped']:,} are unscored: {self.other_rule} sets another rule."
        return ""

    def _advice(self, stages: Sequence[str]) -> str:
        """Return what can be done about the stages that leave too few."""
        if self.enough:
            return f"There are enough {self._each_enough()}; or ask for fewer."
        if self.most is None:
            return _ways_out(stages, self.preferences, self.other_rule)
        # Lifting the quotas was tried, and is no advice.
        others = [stage for stage in stages if stage not in QUOTAS]
        way, count = self.most
        if count <= self.available:
            return _ways_out(others, self.preferences, self.other_rule) if others else NO_MORE
        besides = _ways_out(others, self.preferences, self.other_rule)
        if not others:
            return f"There are {count:,} {way}. {besides}"
        return f"Even {way} there are only {count:,}; besides that, {besides[0].lower()}{besides[1:]}"

    def _each_enough(self) -> str:
        each = [f"{way} ({count:,})" for way, count in self.enough]
        return " or ".join([", ".join(each[:-1]), each[-1]] if len(each) > 1 else each)


def other_rule(connection: sqlite3.Connection, run: OpenRun) -> str:
    """Return the command that sets another success rule of a run of which some trajectories are unscored."""
    asked = "select exists (select 1 from trajectories where run_id = ? and success is null and reward is not null)"
    has_rewards = bool(connection.execute(asked, (run.id,)).fetchone()[0])
    return another_rule(connection, run.id, run.spec.index_name or run.index, has_rewards)


def _ways_out(stages: Sequence[str], preferences: ExportPreferences, other_rule: str) -> str:
    quotas = dict(QUOTAS)
    if preferences.per_prompt is None or preferences.mode is ExportMode.RL:  # which takes a prompt once, whatever it is
        for stage in ("per prompt", *PAIRED.values()):
            del quotas[stage]
    ways = ["Ask for fewer", *(quotas[stage] for stage in stages if stage in quotas)]
    ways += [QUOTAS[DISTINCT]] if preferences.distinct and DISTINCT not in stages else []
    ways += ["lower reward_margin"] if {*PAIRED.values()} & {*stages} and preferences.reward_margin else []
    ways += ["index the run again with --tokenizer PATH, since token ids have no text"] if HAS_TEXT in stages else []
    ways += [f"set another rule, by which more are scored ({other_rule})"] if "scored" in stages else []
    ways += (
        ["loosen a condition"]
        if any(stage not in {*QUOTAS, HAS_TEXT, OWN_PROMPT, WELL_FORMED} for stage in stages)
        else []
    )
    return f"{', '.join(ways[:-1])}, or {ways[-1]}." if len(ways) > 1 else f"{ways[0]}."
