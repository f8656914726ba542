"""The rows of the lists on the page of a run, with their addresses, their drawings and what of them was not read."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rltracer_sqlite.amounts import few, in_ranges
from rltracer_sqlite.browse.outcome import trouble
from rltracer_sqlite.index.problems import why_amiss
from rltracer_sqlite.index.ranked import Ends
from rltracer_sqlite.index.states import by_step, step_amiss, step_marks
from rltracer_sqlite.index.totals import main_split

from .addresses import errors_url, prompt_url, row_url, step_url, table_url
from .drawings import rate_bar
from .queries import Answer
from .run_queries import MOST_FILES

if TYPE_CHECKING:
    from datasette.app import Datasette


def list_rows(datasette: Datasette, database: str, about: dict[str, Any], lists: dict[str, Answer]) -> dict[str, Any]:
    """Return the rows of the lists of the run that a row is `about`, with their addresses and drawings."""
    where, run, envs = (datasette, database), about["id"], lists["envs"]
    return {
        "steps": _steps(*where, about, lists),
        "envs": [_env(*where, run, row) for row in envs.rows],
        "prompts_found": {name: _prompts(*where, run, lists[name]) for name in ("hardest", "easiest")},
        "errors": [_error(*where, run, row) for row in lists["errors"].rows],
        "problems": (problems := [_problem(*where, row) for row in lists["problems"].rows]),
        "problems_shown": sum(row["problems"] for row in problems),
        "files_amiss": [_file(*where, row) for row in lists["files"].rows],
        "signal": _signal(*where, run, lists["signals"]),
        "has_tools": envs.first(has_tools=0)["has_tools"],
        "ends": (lists["hardest"] if lists["hardest"].rows else lists["easiest"]).first(**Ends()._asdict()),
    }


def _signal(datasette: Datasette, database: str, run: int, found: Answer) -> dict[str, Any] | None:
    """Return how many groups of the run's main split give no signal, with the address of these."""
    rows = {row["split"] or "": row for row in found.rows}
    if (split := main_split(rows)) is None:
        return None
    row = rows[split]
    silent = table_url(datasette, database, "prompt_groups", run_id=run, split=row["split"], zero_variance=1)
    return {**row, "url": silent}


def _of_files(files: list[int]) -> list[tuple[str, str]]:
    return [("shard_id__in", ",".join(map(str, files)))]


def _marks_url(
    datasette: Datasette, database: str, run: dict[str, Any], row: dict[str, Any], of_step: list[dict[str, Any]]
) -> str:
    """Return the address of the problems of a step's files, or of the files where none has one, or too many have."""
    listed = json.loads(run["files_with_problems"])
    files = [one for one, step, split in listed if step == row["step"] and split in (None, row["split"])]
    if files and len(listed) <= MOST_FILES:
        return table_url(datasette, database, "problems", _of_files(files))
    # A file whose place tells no split may hold any.
    is_told = all(one["split"] is not None for one in of_step)
    split = {"split": row["split"]} if is_told else {}
    return table_url(datasette, database, "shards", run_id=run["id"], step=row["step"], **split)


def _steps(datasette: Datasette, database: str, run: dict[str, Any], lists: dict[str, Answer]) -> list[dict[str, Any]]:
    """Return the rows of the steps, with why one has no trajectory, and what of one was not read."""
    why = {(file["step"], file["split"]): trouble(file) for file in lists["empty"].rows}
    files = by_step(lists["files_of_steps"].rows)
    return [
        {
            **_step(datasette, database, run["id"], row, lists["steps"].sql_url is not None),
            "marks_url": _marks_url(datasette, database, run, row, files.get(row["step"], [])),
            "why": why.get((row["step"], row["split"])),
            "marks": step_marks(step_amiss(files.get(row["step"], []), row["split"]), row["gone"], row["trajectories"]),
        }
        for row in lists["steps"].rows
    ]


def _step(datasette: Datasette, database: str, run: int, row: dict[str, Any], may_ask_in_sql: bool) -> dict[str, Any]:
    split = [] if row["split"] is None else [("split", row["split"])]
    return {
        **row,
        "url": step_url(datasette, database, run, row["step"], split),
        "truncated_url": table_url(
            datasette, database, "trajectories", run_id=run, step=row["step"], split=row["split"], truncated=1
        ),
        "errors_url": errors_url(datasette, database, run, row["step"], split=row["split"]) if may_ask_in_sql else None,
        "bar": rate_bar(row["successes"], row["scored"], row["trajectories"]),
    }


def _env(datasette: Datasette, database: str, run: int, row: dict[str, Any]) -> dict[str, Any]:
    place = {"run_id": run, "env": row["env"], "split": row["split"]}
    return {
        **row,
        "url": table_url(datasette, database, "prompt_groups", **place),
        "trajectories_url": table_url(datasette, database, "trajectories", **place),
        "bar": rate_bar(row["successes"], row["scored"], row["trajectories"]),
    }


def _prompts(datasette: Datasette, database: str, run: int, found: Answer) -> list[dict[str, Any]]:
    return [
        {
            **row,
            "url": prompt_url(
                datasette,
                database,
                run,
                row["prompt_id"],
                [("split", row["split"]), ("env", row["env"])],
            ),
            "bar": rate_bar(row["successes"], row["scored"], row["trajectories"]),
        }
        for row in found.rows
    ]


def _error(datasette: Datasette, database: str, run: int, row: dict[str, Any]) -> dict[str, Any]:
    return {
        **row,
        "url": table_url(datasette, database, "trajectories", run_id=run, error_type=row["error_type"]),
        "ranges": few(in_ranges(step for step in json.loads(row["error_steps"]) if step is not None)),
        "first_url": step_url(datasette, database, run, row["first_step"]),
        "last_url": step_url(datasette, database, run, row["last_step"]),
    }


def _problem(datasette: Datasette, database: str, row: dict[str, Any]) -> dict[str, Any]:
    return {
        **row,
        "url": row_url(datasette, database, "shards", row["shard_id"]),
        "all_url": table_url(datasette, database, "problems", shard_id=row["shard_id"]),
    }


def _file(datasette: Datasette, database: str, row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "url": row_url(datasette, database, "shards", row["shard_id"]), "reason": why_amiss(row)}
