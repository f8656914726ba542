"""What a trajectory must fulfil, as SQL over its row: each condition is one stage of the funnel."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any

from ..index.columns import quoted, resolve_path
from ..sources.base import SAME_PROMPT
from .filters import FieldFilter
from .preferences import Acceptance, ExportMode, ExportPreferences
from .runs import OpenRun

LISTS = {"tools"}  # columns that hold a JSON array, of which one of the allowed values has to be one
HAS_TEXT = "has text"  # the stage at which token ids are dropped that no tokenizer makes text of
OWN_PROMPT = "answers its prompt"  # the stage at which rollouts are dropped whose last output has another prompt
WELL_FORMED = "well formed"  # the stage at which rows that cannot be training data are counted
DISTINCT = "distinct"  # the stage at which those are that only say what others do
TOLD_WHEN_READ = (WELL_FORMED, DISTINCT)  # what only reading the records can tell

# Columns that a person may filter by besides recorded values, by the path that means them.
COLUMNS = {
    "agent": "agent",
    "agent.name": "agent",
    "branches": "branches",
    "completion_tokens": "completion_tokens",
    "content_kind": "content_kind",
    "dispatch_step": "dispatch_step",
    "effective": "effective",
    "env": "env",
    "env.name": "env",
    "error_type": "error_type",
    "group.id": "group_id",
    "logprob_mean": "logprob_mean",
    "policy_version": "policy_version",
    "prompt_tokens": "prompt_tokens",
    "seconds": "seconds",
    "ship_step": "ship_step",
    "split": "split",
    "step": "step",
    "success": "success",
    "tool_calls": "tool_calls",
    "tools": "tools",
    "truncated": "truncated",
    "turns": "turns",
}
# The sign keeps the planner, which knows nothing of an index that was never analysed, from looking through all
# successes for each group.
ACCEPTED = {
    Acceptance.ANY: "1",
    Acceptance.CORRECT: "+t.success = 1",
    Acceptance.INCORRECT: "+t.success = 0",
}
# An error ended the sampling where the record says that it stopped because of one, or says nothing. One that came
# after the last answer, while it was scored, leaves the conversation whole.
AFTER_SAMPLING = "(t.stop_condition like 'scoring\\_%' escape '\\' or t.stop_condition like 'finalize\\_%' escape '\\')"
STOPPED_BY_ERROR = f"""(t.stop_condition is null or t.stop_condition in ('error', 'has_error')
    or ((t.stop_condition like '%\\_error' escape '\\' or t.stop_condition like '%\\_timeout' escape '\\')
        and not {AFTER_SAMPLING}))"""
HAS_ERROR = "(t.ok = 0 or t.error_type is not null)"


@dataclass(frozen=True)
class Condition:
    """A stage of the funnel: `sql` is true where a trajectory `t`, member `m` of a group `g`, passes."""

    stage: str
    sql: str
    parameters: dict[str, Any]
    unread: bool = False  # only reading the records can tell
    is_always_told: bool = True  # False: the funnel has a line of it only where it drops something


def unread_condition(stage: str, parameter: str) -> Condition:
    """Return a stage that only reading the record decides: what has been ruled out is in `unfit`."""
    sql = f"not exists (select 1 from unfit u where u.run = m.run and u.stage = :{parameter} and u.id = t.id)"
    return Condition(stage, sql, {parameter: stage}, unread=True)


def accepted(preferences: ExportPreferences) -> str:
    """Return SQL that is true where the outcome of a trajectory `t` is accepted."""
    if preferences.mode is ExportMode.PREFERENCE:
        # Which outcome is accepted is asked of the better one of a pair. No margin is known to infinity.
        return "abs(t.reward) < 9e999"
    return ACCEPTED[Acceptance(preferences.acceptance)]


def conditions(
    connection: sqlite3.Connection,
    run: OpenRun,
    preferences: ExportPreferences,
    some_chosen: bool = False,
    some_named: bool = False,
) -> list[Condition]:
    """Return the stages between difficulty and quotas; the same for every run, so that their counts add up.

    `some_chosen`: of some run of the export only certain rows of a table are wanted; `some_named`: only certain ids.
    """
    found = [_chosen_rows(run)] if some_chosen else []
    found += [_named_rows(run)] if some_named else []
    found.append(Condition("file present", "t.gone = 0", {}))
    found += _error_conditions(preferences)
    if preferences.drop_truncated:
        found.append(Condition("not truncated", "t.truncated is not 1", {}))
    if preferences.effective_only:
        found.append(Condition("effective", "t.effective = 1", {}))
    for number, one in enumerate(preferences.field_filters):
        column = column_of(connection, one.path)
        if column is None:
            found.append(unread_condition(str(one), f"field{number}"))
        else:
            found.append(field_condition(one, column, number))
    found.append(_text_condition(run))
    if preferences.mode is ExportMode.PREFERENCE:
        found.append(_prompt_condition(connection))
    found.append(unread_condition(WELL_FORMED, "well_formed"))
    if preferences.distinct and preferences.can_replace:  # else rows are left out when they are written
        found.append(unread_condition(DISTINCT, "distinct"))
    return found


def column_of(connection: sqlite3.Connection, path: str) -> str | None:
    """Return the column that holds the value at a path, or None where only the record does."""
    return resolve_path(connection, path) or COLUMNS.get(path)


def field_condition(one: FieldFilter, column: str, number: int) -> Condition:
    """Return a field filter as a condition on a column; text is within no bounds."""
    value = quoted(column)
    parts, parameters = [], {}
    for operator, bound in ((">=", one.minimum), ("<=", one.maximum)):
        if bound is not None:
            name = f"field{number}_{'low' if operator == '>=' else 'high'}"
            parts.append(f"typeof({value}) in ('integer', 'real') and {value} {operator} :{name}")
            parameters[name] = bound
    if one.allowed_values is not None:
        names = [f"field{number}_{place}" for place in range(len(one.allowed_values))]
        allowed = f"in ({', '.join(f':{name}' for name in names)})"
        in_list = f"exists (select 1 from json_each({value}) where value {allowed})"
        parts.append(in_list if column in LISTS else f"{value} {allowed}")
        parameters.update(zip(names, one.allowed_values, strict=True))
    passes = " and ".join(parts) or "1"
    missing = 1 if one.include_missing else 0
    return Condition(str(one), f"case when {value} is null then {missing} else ({passes}) end", parameters)


def _chosen_rows(run: OpenRun) -> Condition:
    only = run.spec.only
    if only is None:
        return Condition("rows of the table", "1", {})
    column = "t.id" if only.table == "trajectories" else "t.prompt_group_id"
    return Condition("rows of the table", f"{column} in (select id from chosen where run = :number)", {})


def _named_rows(run: OpenRun) -> Condition:
    sql = "exists (select 1 from named n where n.run = m.run and n.id = t.id)"
    return Condition("ids", "1" if run.spec.ids is None else sql, {})


def _text_condition(run: OpenRun) -> Condition:
    # With a tokenizer the record decides: it may have come after the files were indexed.
    sql = "1" if run.known.tokenizer is not None else "t.content_kind <> 'token_ids'"
    return Condition(HAS_TEXT, sql, {}, is_always_told=False)


def _prompt_condition(connection: sqlite3.Connection) -> Condition:
    # An index of before this was known lacks it, and reading the record decides.
    column = column_of(connection, SAME_PROMPT)
    sql = "1" if column is None else f"{quoted(column)} is not 0"
    return Condition(OWN_PROMPT, sql, {}, is_always_told=False)


def _error_conditions(preferences: ExportPreferences) -> list[Condition]:
    found = []
    if not preferences.keep_generation_errors:
        sql = f"t.turns > 0 and ({HAS_ERROR} and {STOPPED_BY_ERROR}) is not true"
        found.append(Condition("sampled without an error", sql, {}))
    elif preferences.mode is not ExportMode.RL:
        found.append(Condition("with an answer", "t.turns > 0", {}, is_always_told=False))
    if preferences.drop_scoring_errors:
        sql = f"({HAS_ERROR} and not {STOPPED_BY_ERROR}) is not true"
        found.append(Condition("scored without an error", sql, {}))
    return found
