"""Why an export has nothing to write: the condition that leaves nothing, and what can be done about it."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from ..amounts import listed, plural
from ..index.columns import quoted
from .conditions import HAS_TEXT, LISTS, OWN_PROMPT, WELL_FORMED, column_of
from .filters import FieldFilter
from .preferences import Acceptance, ExportMode, ExportPreferences
from .runs import OpenRun
from .scope import CANDIDATES
from .scratch import Scratch
from .stages import Funnel

NEEDS_TOKENIZER = "token ids need their tokenizer; index the run again with --tokenizer PATH"
# What can be done about a condition that leaves nothing, where it follows from no value that a field has.
ADVICE = {
    "reward known": "Without rewards there are no pairs.",
    "difficulty": "Their prompts have other pass rates, or none: change the bounds, or the window.",
    "file present": "Their files have vanished since they were indexed: bring them back, and index the run again.",
    "sampled without an error": (
        "An error ended each of them, or it has no answer: keep_generation_errors keeps those with an answer."
    ),
    "with an answer": "None of them has an answer.",
    "scored without an error": "An error came while each of them was scored: drop_scoring_errors drops them.",
    "not truncated": "A limit cut off each of them: drop_truncated drops them.",
    "effective": "None of them is known to have been part of a training batch: effective_only drops them.",
    OWN_PROMPT: "The last output of each of them begins with another prompt, and a pair has one prompt.",
    HAS_TEXT: f"{NEEDS_TOKENIZER[0].upper()}{NEEDS_TOKENIZER[1:]}.",
}
# What the better one of two trajectories has to be as well, and the worse one.
OUTCOMES = {
    Acceptance.ANY: "",
    Acceptance.CORRECT: ", the {} of them passed",
    Acceptance.INCORRECT: ", the {} of them failed",
}
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


def none_left(funnel: Funnel, preferences: ExportPreferences, refused: str) -> str:
    """Return sentences on a selection that no one condition has emptied; `refused`: why records cannot be rows."""
    is_pair = preferences.mode is ExportMode.PREFERENCE
    told = f"There is no {'pair' if is_pair else 'row'}"
    if refused:
        told += f". What could be one was left out when it was read: {refused}"
    elif is_pair:
        told += f": {_no_such_pair(preferences)}"
    told = " ".join([f"{told}.", *with_other_prompts(funnel)])
    left = ", ".join(f"{step['stage']} {step['left']:,}" for step in funnel)
    return f"{told} Left after each step: {left}."


def without_text(funnel: Funnel) -> list[str]:
    """Return a sentence on the trajectories without text, where others have one."""
    count = _dropped(funnel, HAS_TEXT)
    return [f"{plural(count, 'trajectory')} {'has' if count == 1 else 'have'} no text: {NEEDS_TOKENIZER}."] * bool(
        count
    )


def with_other_prompts(funnel: Funnel) -> list[str]:
    """Return a sentence on the rollouts that are no side of a pair, since they do not end behind its prompt."""
    count = _dropped(funnel, OWN_PROMPT)
    told = f"{plural(count, 'rollout')} of several outputs {'is' if count == 1 else 'are'} in no pair: the last output"
    return [f"{told} begins with another prompt."] * bool(count)


def _no_such_pair(preferences: ExportPreferences) -> str:
    least = f" by {preferences.reward_margin:g} or more" if preferences.reward_margin else ""
    asked = {"better": preferences.acceptance, "worse": preferences.rejected_outcome}
    outcome = "".join(OUTCOMES[Acceptance(one)].format(which) for which, one in asked.items())
    return f"no prompt has two trajectories whose rewards differ{least}{outcome}"


def _dropped(funnel: Funnel, stage: str) -> int:
    """Return how many a stage has dropped, where it has left others."""
    return next((step["dropped"] for step in funnel if step["stage"] == stage and step["left"]), 0)


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
