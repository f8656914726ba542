"""What the lines of the funnel mean, in a few words each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from .preferences import Acceptance

Funnel = Sequence[Mapping[str, Any]]  # its stages in their order: "stage", "left", "dropped"

# The stage at which pairs are made, by the outcome that is asked of the chosen one of each.
PAIRED = {
    Acceptance.ANY: "in a pair",
    Acceptance.CORRECT: "in a pair (chosen passed)",
    Acceptance.INCORRECT: "in a pair (chosen failed)",
}
# The stage after it, where something is asked of the rejected one as well.
REJECTED = {
    Acceptance.CORRECT: "in a pair (rejected passed)",
    Acceptance.INCORRECT: "in a pair (rejected failed)",
}
STAGES = {
    "available": "the trajectories of the chosen runs, steps and split",
    "scored": "those that have passed or failed by the run's success rule, where an outcome is asked for",
    "accepted": "those with the outcome that is asked for, by the run's success rule",
    "reward known": "those with a finite reward; stands for *accepted* where pairs are made",
    "difficulty": "those whose prompt has a pass rate within the bounds, in its window",
    "rows of the table": "those that pass the filters of the table in Datasette, and run, steps and env of its form",
    "ids": "those that are asked for by id",
    "file present": "those whose file has not vanished since it was indexed, and can be read",
    "sampled without an error": "those with an answer, whose sampling no error ended",
    "with an answer": "those with an answer; with `--keep-errors`, where some have none",
    "scored without an error": "those during whose scoring no error came",
    "not truncated": "those that no limit cut off, or that do not record it",
    "effective": "those that were part of a training batch, or kept by their evaluation",
    "has text": "those that are not token ids alone, for want of the run's tokenizer; told where it drops some",
    "answers its prompt": "of pairs: those whose last output begins with the prompt; told where it drops some",
    "well formed": "those whose record can be made training data",
    "distinct": "those whose row does not only say what another one does; with `--distinct`",
    "per prompt": "the quota of each prompt in each window",
    "in a pair": "the two trajectories of each pair; stands for *per prompt* where pairs are made",
    "in a pair (chosen passed)": "the two of each pair whose chosen one has passed; where that is asked for",
    "in a pair (chosen failed)": "the two of each pair whose chosen one has failed; where that is asked for",
    "in a pair (rejected failed)": "those of them whose rejected one has failed; where that is asked for",
    "in a pair (rejected passed)": "those of them whose rejected one has passed; where that is asked for",
    "per prompt over all windows": "the quota of each prompt over all runs and windows",
    "unique prompts": "the first of each prompt over all runs and windows",
    "target": "exactly as many as are asked for",
}
FIELD = "those whose recorded value is within the bounds, or one of the values, that are asked for"


def meaning(stage: str) -> str:
    """Return what a line of the funnel keeps of what was left before; a name that is none of STAGES is a field's.

    When a line is there is left out.
    """
    return STAGES.get(stage, FIELD).partition("; ")[0]
