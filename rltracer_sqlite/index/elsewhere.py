"""Where there is what a run has not with the filters that are asked for: which of them leave it out."""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

from ..amounts import listed, ranges
from ..unrecorded import NOT_RECORDED, chosen

MOST_READ = 1000  # names of splits or environments, of which a sentence lists the first few
# The filters of the commands, each as a condition on prompt groups, and what is asked for where none is given.
FILTERS = {
    "step": "(:first is null or step >= :first) and (:last is null or step <= :last)",
    "split": f"""(:split is null or {chosen("split", "split")}
        or (:split = 'train' and split is null and :unknown_is_train))""",
    "env": f"(:env is null or {chosen('env', 'env')})",
}
UNASKED = {"split": None, "env": None, "first": None, "last": None, "unknown_is_train": False}
# What is looked for: any trajectory, one with a score, or one of the prompts whose numbers are a list of JSON.
ANY, SCORED, OF_PROMPTS = "1", "scored > 0", "prompt_id in (select value from json_each(:prompts))"


@dataclass(frozen=True)
class Groups:
    """Prompt groups of some runs: `which` of them, and among these what the filters that are `asked` keep."""

    connection: sqlite3.Connection
    run_ids: Sequence[int]
    asked: dict[str, Any] = field(default_factory=dict)
    which: str = ANY
    schema: str = "main"

    def any(self, left_out: Collection[str] = ()) -> bool:
        """Whether there is one, without the filters that are left out."""
        return next(self._select("1", left_out, "limit 1"), None) is not None

    def elsewhere(self) -> list[str]:
        """Return where there is one that the filters do not keep: ["steps 4, 8 with split eval"].

        As few filters are left out as can be, in each way by which there is one; [] where there is none at all.
        """
        narrowing = [what for what in FILTERS if is_asked(self.asked, what)]
        for count in range(1, len(narrowing) + 1):
            if ways := [self._words(out) for out in combinations(narrowing, count) if self.any(out)]:
                return ways
        return []

    def names(self, what: str, left_out: Collection[str] = ()) -> list[str | None]:
        """Return the splits ("split") or the environments ("env") by name; None where none is recorded."""
        return [name for (name,) in self._select(f"distinct {what}", left_out, f"order by 1 limit {MOST_READ}")]

    def _words(self, left_out: Collection[str]) -> str:
        kept = {name: None if _filter_of(name) in left_out else value for name, value in self.asked.items()}
        return f"{'; '.join(self._values(what, left_out) for what in left_out)}{asked_for(kept)}"

    def _values(self, what: str, left_out: Collection[str]) -> str:
        if what != "step":
            return f"{what} {listed(str(name or NOT_RECORDED) for name in self.names(what, left_out))}"
        steps = ranges(step for (step,) in self._select("distinct step", left_out) if step is not None)
        return f"step{'' if steps.isdecimal() else 's'} {steps}" if steps else "no steps"

    def _select(self, columns: str, left_out: Collection[str], rest: str = "") -> Iterator[tuple[Any, ...]]:
        # Ids are whole numbers of our own, and there may be more of them than a statement takes parameters.
        groups = f"{self.schema}.prompt_groups where run_id in ({', '.join(map(str, self.run_ids))})"
        kept = " and ".join([groups, self.which, *(sql for what, sql in FILTERS.items() if what not in left_out)])
        return self.connection.execute(f"select {columns} from {kept} {rest}", {**UNASKED, **self.asked})


def _filter_of(name: str) -> str:
    return "step" if name in ("first", "last") else name


def is_asked(asked: dict[str, Any], what: str) -> bool:
    """Say whether a filter is asked for."""
    return any(asked.get(name) is not None for name in (("first", "last") if what == "step" else (what,)))


def asked_for(asked: dict[str, Any]) -> str:
    """Return the filters that are asked for as the end of a noun: " with split eval, step 5"; "" for none."""
    wanted = [f"{what} {asked[what]}" for what in ("split", "env") if is_asked(asked, what)]
    wanted += [steps_in_words(asked.get("first"), asked.get("last"))] if is_asked(asked, "step") else []
    return f" with {', '.join(wanted)}" if wanted else ""


def steps_in_words(first: int | None, last: int | None) -> str:
    """Return a range of steps of which one end may be open: "steps 1 to 8", "step 3", "steps from 5 on"."""
    if first is None or last is None:
        return f"steps from {first} on" if last is None else f"steps up to {last}"
    return f"step {first}" if first == last else f"steps {first} to {last}"
