"""Small runs for the tests of the exporter: rollouts written down in one line, in real files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from rltracer_sqlite.export import ExportPreferences, TraceDataExporter, TraceRunSpec
from rltracer_sqlite.export.runs import OpenRun, open_runs
from rltracer_sqlite.export.selection import Selection
from tests.indexing import index
from tests.layouts import append, message, tool_call, trace

Record = dict[str, Any]
TOOLS = [{"name": "bash", "description": "Run a command.", "parameters": {"type": "object", "properties": {}}}]


def rollout(
    uid: str,
    question: str = "6 * 7?",
    passed: bool | None = True,
    calls: int = 0,
    idx: int | None = 0,
    answer: str = "42",
    **extra: Any,
) -> Record:
    """Return a trace; `passed` None leaves it unscored. Its task is that of its question."""
    said = [message("system", "Be brief."), message("user", question)]
    for number in range(calls):
        call = tool_call(f"c{number}", "bash", {"command": f"ls {number}"})
        said += [message("assistant", tool_calls=[call]), message("tool", "a b", tool_call_id=f"c{number}")]
    said.append(message("assistant", f"{answer} ({uid})"))
    score = None if passed is None else float(passed)
    facts: dict[str, Any] = {
        "task": {"idx": idx, "name": question},
        "rewards": {"reward": {"score": score, "weight": 1.0}},
        "tools": TOOLS if calls else [],
    }
    if passed is not None:
        facts["metrics"] = {"correct_final_label": score, "num_turns": calls + 1.0}
    return trace(said, id=uid, **{**facts, **extra})


def write_steps(root: Path, steps: Mapping[int, Iterable[Record]], split: str = "train") -> Path:
    """Write the rollouts of each step in prime-rl's layout of August 2026, and return the run."""
    for step, records in steps.items():
        append(root / "rollouts" / f"step_{step}" / split / "all" / "traces.jsonl", *records)
    return root


def indexed(root: Path, steps: Mapping[int, Iterable[Record]], name: str = "run", **options: Any) -> Path:
    """Write a run and index it; return the index."""
    database = root / f"{name}.sqlite"
    index(database, write_steps(root / name, steps), **options)
    return database


def export(runs: Any, output: Path, **preferences: Any) -> list[Record]:
    """Export with these preferences, and return the rows that were written."""
    specs = runs if isinstance(runs, list) else [runs]
    TraceDataExporter(specs, ExportPreferences(**preferences)).write_jsonl(output)
    return read_rows(output)


def read_rows(path: Path) -> list[Record]:
    """Return the rows of a JSONL file."""
    # Bytes are split at "\n" only; text also at U+2028, which stands inside some answers.
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def uids(rows: Iterable[Record]) -> list[str]:
    """Return the ids of exported SFT rows, which `rollout` puts at the end of the answer."""
    return [row["messages"][-1]["content"].rpartition("(")[2].rstrip(")") for row in rows]


def inspect(runs: Any, **preferences: Any) -> dict[str, Any]:
    """Return the summary of a selection."""
    specs = runs if isinstance(runs, list) else [runs]
    return TraceDataExporter(specs, ExportPreferences(**preferences)).inspect()


def chosen(runs: Any, **preferences: Any) -> list[str]:
    """Return the ids of the selected trajectories, without reading any record."""
    return chosen_of(open_runs(runs if isinstance(runs, list) else [runs]), **preferences)


def chosen_of(opened: Sequence[OpenRun], **preferences: Any) -> list[str]:
    """Return the ids of the selected trajectories of runs that have been opened."""
    with Selection(opened, ExportPreferences(**preferences)) as selection:
        selection.select()
        found = []
        for run in selection.runs:
            connection = selection.scratch.attach(run)
            found += connection.execute(
                """
                select t.uid from placed l join picks k on k.pick = l.pick join source.trajectories t on t.id = k.id
                where k.run = ? order by t.uid
                """,
                (run.number,),
            ).fetchall()
    return [uid for (uid,) in found]


def funnel(summary: Mapping[str, Any]) -> dict[str, int]:
    """Return how many are left after each stage."""
    return {step["stage"]: step["left"] for step in summary["funnel"]}


def write_data(path: Path, questions: Iterable[str]) -> Path:
    """Write datadev RL rows, one per question, whose prompts are those of `rollout`."""
    lines = []
    for number, question in enumerate(questions):
        prompt = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": question}]
        row = {
            "prompt": prompt, "answer": "42", "output": None, "feedback": "good", "record_id": f"r{number}",
            "rubric_index": number, "source": "made up", "tools": [],
        }  # fmt: skip
        lines.append(json.dumps(row) + "\n")
    path.write_text("".join(lines), encoding="utf-8")
    return path


def spec(database: Path, **options: Any) -> TraceRunSpec:
    """Return the only run of an index."""
    return TraceRunSpec.from_index(database, **options)
