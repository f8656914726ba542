"""Ways to meet a target that an export falls short of: each quota lifted by itself, or as few together as it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .preferences import Acceptance, ExportMode, ExportPreferences

Change = dict[str, Any]  # preferences by their names, with other values
Tried = tuple[str, int]  # a way in words, and how many there are then


def ways_tried(preferences: ExportPreferences, count_with: Callable[[Change], int]) -> tuple[list[Tried], Tried]:
    """Return the ways to meet the target, and the one that gives most.

    They are those of one change, or else of as few as it takes. `count_with` tells how many there are with a change.
    """
    wanted, found = preferences.target_count or 0, _ways(preferences)
    alone = [(way, count_with(changed)) for way, changed in found.items()]
    if enough := [(way, count) for way, count in alone if count >= wanted]:
        return enough, enough[0]
    count = count_with(_together(found)) if len(found) > 1 else 0
    if count < wanted:
        return [], max([*alone, (" and ".join(found), count)], key=lambda one: one[1])
    for way in reversed([*found]):
        others = {one: changed for one, changed in found.items() if one != way}
        if (left := count_with(_together(others))) >= wanted:
            found, count = others, left
    return [(" and ".join(found), count)], (" and ".join(found), count)


def _ways(preferences: ExportPreferences) -> dict[str, Change]:
    """Return what lifts each of the quotas that are asked for, in words, as changes of preferences."""
    found: dict[str, Change] = {}
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


def _together(changes: dict[str, Change]) -> Change:
    return {name: value for changed in changes.values() for name, value in changed.items()}
