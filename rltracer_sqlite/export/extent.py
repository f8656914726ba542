"""Of what an export is, in words: the split, steps and runs of its first count, and what lies beside."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from ..amounts import listed, shortened_name
from ..index.elsewhere import steps_in_words

if TYPE_CHECKING:
    from .runs import OpenRun
    from .selection import Selection

LONGEST_NAME, MOST_COLUMNS = 60, 200  # of the name of a run, and of all of them
BESIDE = """
select split, sum(trajectories) from source.prompt_groups
where run_id = :run and (:first is null or step >= :first) and (:last is null or step <= :last)
    and split is not :split and not (:split = 'train' and split is null)
group by split
"""
WITHOUT_SPLIT = """
select 1 from source.prompt_groups
where run_id = :run and split is null and (:first is null or step >= :first) and (:last is null or step <= :last)
limit 1
"""


def available_of(selection: Selection) -> str:
    """Return what was asked for: "split train, steps 2 to 3 of the run demo; split eval has 32 more".

    The trajectories that lie beside are those of the same steps and of another split.
    """
    names: dict[str, list[str]] = {}  # of the runs, by what is asked of them
    for run in selection.runs:
        names.setdefault(_asked(selection, run), []).append(run.name)
    return "; ".join([*(f"{asked} of {_runs(of)}" for asked, of in names.items()), *beside(selection)])


def beside(selection: Selection) -> list[str]:
    """Return how much the other splits of the asked steps have, such as "split eval has 32 more", if they have any."""
    counts: Counter[str] = Counter()
    for run in selection.runs:
        if run.spec.split is not None:
            asked = {"run": run.id, "split": run.spec.split, "first": run.spec.step_start, "last": run.spec.step_end}
            found = selection.scratch.attach(run).execute(BESIDE, asked)
            counts.update({"no known split" if split is None else f"split {split}": count for split, count in found})
    return [f"{split} has {count:,} more" for split, count in sorted(counts.items())]


def _asked(selection: Selection, run: OpenRun) -> str:
    spec = run.spec
    split = "any split" if spec.split is None else f"split {spec.split}"
    if spec.split == "train" and _has_none(selection, run):
        split += " or none recorded"
    is_all = spec.step_start is None and spec.step_end is None
    return f"{split}, {'all steps' if is_all else steps_in_words(spec.step_start, spec.step_end)}"


def _has_none(selection: Selection, run: OpenRun) -> bool:
    """Return whether the asked steps of a run have trajectories without a split, which count as train."""
    asked = {"run": run.id, "first": run.spec.step_start, "last": run.spec.step_end}
    return selection.scratch.attach(run).execute(WITHOUT_SPLIT, asked).fetchone() is not None


def _runs(names: list[str]) -> str:
    shown = [shortened_name(name, LONGEST_NAME) for name in names]
    return f"the run{'s' if len(names) > 1 else ''} {listed(shown, MOST_COLUMNS)}"
