"""The summary of an export: what was asked, what there was, and what each stage dropped."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from ..amounts import listed, plural
from ..index.states import amiss, lists_them, run_states
from ..on_demand import name_of_place
from ..passrates import unscored_words
from .conditions import DISTINCT
from .emptied import with_other_prompts, without_text
from .errors import ExportError
from .extent import MOST_COLUMNS, available_of
from .preferences import ExportMode
from .row_notes import row_notes
from .runs import OpenRun
from .selected import selected
from .selection import Selection
from .written import Written

SELECTED = "from placed l join picks k on k.pick = l.pick"


def summary(selection: Selection, written: Written | None = None, looked_into: Written | None = None) -> dict[str, Any]:
    """Return the summary of a selection; with `written`, also of what became rows of it.

    `looked_into` are rows that were made for the notes on rows alone.
    """
    preferences = selection.preferences
    # Sums of what an index holds may be beyond any number.
    with selection.scratch.index_errors(selection.runs[0]):
        amiss, chosen = _amiss(selection), selected(selection)
        on_rows = [*selection.unvalued, *row_notes(preferences, chosen, written or looked_into)]
        told: dict[str, Any] = {
            "preferences": {**preferences.as_json(), "effective_per_prompt": preferences.quota},
            "runs": _runs(selection, written),
            "unit": "pairs" if preferences.mode is ExportMode.PREFERENCE else "trajectories",
            "available_count": selection.scratch.count("picks"),
            "selected_count": selection.count(),
            "eligible_prompt_groups": selection.prompts(),
            "selected_prompt_groups": selection.value(f"select count(distinct k.unit) {SELECTED}"),
            "observed_prompt_groups": selection.scratch.count("groups"),
            "available_of": available_of(selection),
            "funnel": (funnel := selection.funnel()),
            "notes": [
                *selection.notes,
                *without_text(funnel),
                *with_other_prompts(funnel),
                *_compared(selection, funnel),
                *on_rows,
                *amiss,
            ],
            "row_notes": on_rows,
            "amiss": amiss,
            "windows": (windows := _windows(selection)),
            "success_of": _success(selection, windows),
            "available_tool_call_distribution": _available_calls(selection),
            "selected_tool_call_distribution": distribution(chosen.calls),
        }
    return told if written is None else told | _of_rows(written)


def _of_rows(written: Written) -> dict[str, Any]:
    """Return what is counted of the rows that were written."""
    return {
        "row_count": written.rows,
        "distinct_row_count": written.distinct,
        "repeated_rows_left_out": written.repeats,
        "rejected": dict(sorted(written.rejected.items())),
        "redacted": dict(sorted(written.redacted.items())),
        "rows_without_tool_definitions": written.without_tools.count,
        "rows_of_one_branch_of_several": written.of_branches,
        "rows_ending_without_answer": dict(sorted(written.unanswered.items())),
        "roles_ending_without_answer": dict(sorted(written.last_roles.items())),
        "rows_with_think_in_content": written.with_tags.count,
        "rows_with_reasoning_content": written.with_reasoning.count,
        "rows_of_odd_roles": written.of_odd_roles.count,
        "odd_roles": dict(sorted(written.odd_roles.items())),
        "pairs_with_others_than_answers": written.between.count,
        "rows_with_parts_beside_text": written.other_parts.count,
        "parts_beside_text": dict(sorted(written.kinds_of_parts.items())),
    }


def _compared(selection: Selection, funnel: list[dict[str, Any]]) -> list[str]:
    """Return how many were read to leave out repeats, where *distinct* leaves others too."""
    count = selection.value("select count(*) from (select distinct run, id, other from said)")
    what, in_row = ("pair", 2) if selection.preferences.mode is ExportMode.PREFERENCE else ("trajectory", 1)
    came = sum(step["left"] + step["dropped"] for step in funnel if step["stage"] == DISTINCT)
    if not count or came <= in_row * count:
        return []
    compared = plural(count, what)
    return [f"Read and compared were the {compared} that a quota or the target drew; the others may repeat them."]


def _amiss(selection: Selection) -> list[str]:
    """Return a sentence for each run of which something could not be read, or whose files are not all there."""
    notes = []
    for run in selection.runs:
        states = run_states(selection.scratch.attach(run), "source")
        if run.id not in states:
            raise ExportError(f"The run {run.name} is not in the index any more: it was changed meanwhile.")
        how = lists_them(name_of_place(run.index, run.known.root), run.known.name if len(states) > 1 else None)
        if said := amiss(states[run.id], how):
            notes.append(f"{run.name}: {said}")
    return list(dict.fromkeys(notes))


def to_json(told: dict[str, Any]) -> bytes:
    """Return a summary as the file beside an export holds it."""
    return (json.dumps(told, indent=2, ensure_ascii=False, default=str) + "\n").encode("utf-8", "replace")


def _runs(selection: Selection, written: Written | None) -> list[dict[str, Any]]:
    """Return the runs, each with how much of it is selected and, with `written`, how many rows that made."""
    counts = dict(selection.rows(f"select k.run, count(*) {SELECTED} group by k.run"))
    told = [_run(run) | {"selected_count": counts.get(run.number, 0)} for run in selection.runs]
    if written is not None:
        for run, one in zip(selection.runs, told, strict=True):
            one["row_count"] = written.rows_of[run.number]
    return told


def _run(run: OpenRun) -> dict[str, Any]:
    spec = run.spec
    return {
        "name": run.name, "path": run.known.root, "step_start": run.step_first, "step_end": run.step_last,
        "split": spec.split, "success": run.success,
        "reward_parts": run.parts and run.parts.paths,
        "rl_data_path": None if spec.rl_data_path is None else str(spec.rl_data_path),
    }  # fmt: skip


def _windows(selection: Selection) -> list[dict[str, Any]]:
    """Return the counts of each window of each run: of trajectories, and of what the quotas allow and take of them."""
    counted = selection.rows(
        f"""
        with selected as (
            select g.run, g.window, count(*) as n {SELECTED} join groups g on g.number = k.unit group by 1, 2
        ),
        eligible as (
            select g.run, g.window, count(*) as n from picks k join groups g on g.number = k.unit group by 1, 2
        )
        select w.run, w.window, w.prompts, w.trajectories, w.scored, w.successes, ifnull(e.n, 0), ifnull(s.n, 0)
        from (
            select run, window, count(distinct prompt_id) as prompts, sum(trajectories) as trajectories,
                sum(scored) as scored, sum(successes) as successes
            from groups group by run, window
        ) w
        left join eligible e on e.run = w.run and e.window is w.window
        left join selected s on s.run = w.run and s.window is w.window
        order by w.run, w.window
        """
    )
    size = selection.preferences.window_size
    names = ("prompt_count", "trace_count", "scored_count", "correct_count", "eligible_count", "selected_count")
    windows = []
    for number, window, *counts in counted:
        run = selection.runs[number]
        first, last = run.window_bounds(window, size)
        place = {"run": run.name, "step_start": first, "step_end": last}
        windows.append({**place, **dict(zip(names, counts, strict=True))})
    return windows


def _success(selection: Selection, windows: list[dict[str, Any]]) -> str:
    """Return by which rules trajectories pass, and how many of the available ones have neither passed nor failed."""
    rules = listed(dict.fromkeys(run.success_in_words for run in selection.runs), MOST_COLUMNS)
    of_all, scored = (sum(window[name] for window in windows) for name in ("trace_count", "scored_count"))
    return f"{rules}; {unscored_words(of_all, scored)}"


def _available_calls(selection: Selection) -> dict[str, Any]:
    known = "select tool_calls, sum(trajectories) from calls where tool_calls is not null group by 1"
    return distribution(Counter(dict(selection.rows(known))))


def distribution(counts: Counter[int]) -> dict[str, Any]:
    """Return the mean number of tool calls, and how many trajectories have how many, of those of which it is known."""
    total = sum(counts.values())
    mean = sum(calls * count for calls, count in counts.items()) / total if total else None
    return {"mean": mean, "counts": {str(calls): count for calls, count in sorted(counts.items())}}
