"""Export the same runs with rltracer 0.1.0 and with this project, and say what is equal and what is not, and why.

    python -m benchmarks.parity_export --peer PYTHON RUN...

PYTHON is the interpreter of an environment with `rltracer==0.1.0`; RUN is a run of benchmarks/gen_run.py. The run is
copied first, with each trace id once: 0.1.0 counts a record twice that stands twice, and this project once. Both
sides get the same name for the run, and so draw the same trajectories of a prompt. It ends with exit code 1 where
something differs that should be equal; after that it shows, on small runs, where 0.1.0 differs because it is wrong.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from rltracer_sqlite.export import DifficultyFilter, ExportPreferences, FieldFilter, TraceDataExporter, TraceRunSpec

Row = dict[str, Any]
NAME = "run"
# Only what 0.1.0 knows; it keeps what an error ended, and never says so.
SHARED: dict[str, Row] = {
    "all trajectories": {"acceptance": "any", "per_prompt": 10**6},
    "correct": {"per_prompt": 10**6},
    "incorrect": {"acceptance": "incorrect", "per_prompt": 10**6},
    "pass rate 0.25 to 0.75, windows of 8 steps": {"difficulty": (0.25, 0.75), "window_size": 8, "per_prompt": 10**6},
    "two per prompt": {},
    "two per prompt and step, seed 3": {"window_size": 1, "seed": 3},
    "at most 4 turns, recorded reward": {
        "fields": [("metrics.num_turns", None, 4.0), ("rewards.correct.score", 0.0, None)]
    },
    "steps 2 to 4": {"step_start": 2, "step_end": 4, "window_size": 2},
    "one per prompt, weighted by tool calls": {"tool_call_sampling_power": 1.0, "per_prompt": 1, "acceptance": "any"},
    "unique prompts": {"unique_prompts": True, "window_size": 4, "only_counts": True},
    "a target of 15": {"target_count": 15, "only_counts": True},
    "RL prompts": {"mode": "rl", "acceptance": "any", "window_size": 4},
}  # fmt: skip

PEER = """
import json, sys
from rltracer.export import DifficultyFilter, ExportPreferences, FieldFilter, TraceDataExporter, TraceRunSpec
asked = json.loads(sys.argv[1])
low, high = asked.pop("difficulty", (None, None))
fields = tuple(FieldFilter(path, minimum, maximum) for path, minimum, maximum in asked.pop("fields", []))
places = {key: asked.pop(key) for key in ("step_start", "step_end", "rl_data_path") if key in asked}
spec = TraceRunSpec(asked.pop("path"), name=asked.pop("name"), **places)
output = asked.pop("output")
difficulty = DifficultyFilter(low, high)
chosen = ExportPreferences(difficulty=difficulty, field_filters=fields, include_provenance=True, **asked)
TraceDataExporter([spec], chosen).write_jsonl(output)
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peer", required=True, help="the Python of an environment with rltracer==0.1.0")
    parser.add_argument("--only", default="", help="only comparisons whose title holds this text")
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN")
    options = parser.parse_args()
    equal = True
    with tempfile.TemporaryDirectory() as name:
        for run in options.runs:
            copy = Path(name) / run.resolve().name
            kept, repeated = copy_distinct(run, copy)
            data = write_data(copy, copy / "rl_data.jsonl")
            print(f"{run}: {kept:,} trajectories, {repeated:,} repeated records left out")
            for title, asked in SHARED.items():
                if options.only not in title:
                    continue
                equal &= compare(options.peer, copy, data, title, dict(asked))
        explain(options.peer, Path(name))
    sys.exit(0 if equal else 1)


def records(run: Path) -> Iterator[tuple[Path, bytes, Row]]:
    """Yield (file below the run, line, record) of the files that 0.1.0 reads."""
    for file in sorted(run.glob("**/rollouts/step_*/*/all/traces.jsonl")):
        with file.open("rb") as lines:
            for line in lines:
                yield file.relative_to(run), line, json.loads(line)


def copy_distinct(run: Path, copy: Path) -> tuple[int, int]:
    """Copy a run with every trace id once, the last of its records; return how many were kept and left out."""
    last: dict[str, tuple[Path, int]] = {}
    places: list[tuple[Path, int, str]] = []
    for number, (file, _, record) in enumerate(records(run)):
        places.append((file, number, record["id"]))
        last[record["id"]] = (file, number)
    for number, (file, line, record) in enumerate(records(run)):
        if last[record["id"]] == (file, number):
            target = copy / file
            target.parent.mkdir(parents=True, exist_ok=True)
            with target.open("ab") as output:
                output.write(line)
    return len(last), len(places) - len(last)


def write_data(run: Path, path: Path) -> Path:
    """Write the RL data that a generated run came from: one row per task, whose prompt is that of its traces."""
    rows: dict[int, Row] = {}
    for _, _, record in records(run):
        said = [node["message"] for node in record["nodes"]]
        prompt = [{"content": m["content"], "role": m["role"]} for m in said if m["role"] in ("system", "user")][:2]
        rows[record["task"]["data"]["idx"]] = {
            "prompt": prompt, "answer": record["task"]["data"]["answer"], "output": "", "feedback": "", "record_id": "",
            "rubric_index": 0, "source": "", "tools": [],
        }  # fmt: skip
    missing = {"prompt": [], "answer": "", "output": "", "feedback": "", "record_id": "", "rubric_index": 0}
    filler = {**missing, "source": "", "tools": []}
    lines = [json.dumps(rows.get(number, filler)) + "\n" for number in range(max(rows) + 1)]
    path.write_text("".join(lines), encoding="utf-8")
    return path


def compare(peer: str, run: Path, data: Path, title: str, asked: Row) -> bool:
    """Export with both, print what is equal, and say whether everything is."""
    only_counts = asked.pop("only_counts", False)
    if asked.get("mode") == "rl":
        asked["rl_data_path"] = str(data)
    theirs, their_summary = export_peer(peer, run, asked)
    ours, our_summary = export_ours(run, asked)
    checks = {
        "windows": [window_counts(summary) for summary in (their_summary, our_summary)],
        "counts": [[summary[name] for name in COUNTS] for summary in (their_summary, our_summary)],
    }
    if not only_counts:
        first, second = by_id(theirs, "trace_id"), by_id(ours, "uid")
        checks["trajectories"] = [sorted(first), sorted(second)]
        checks["rows"] = [[plain(one[key]) for key in sorted(one)] for one in (first, second)]
        checks["pass rates"] = [[rate(one[key]) for key in sorted(one)] for one in (first, second)]
    same = {name: pair[0] == pair[1] for name, pair in checks.items()}
    told = ", ".join(name if equal else f"{name.upper()} DIFFER" for name, equal in same.items())
    print(f"  {'equal' if all(same.values()) else 'NOT EQUAL':9}  {title}: {told}; {len(ours):,} rows")
    return all(same.values())


COUNTS = ("available_count", "selected_count", "eligible_prompt_groups", "observed_prompt_groups")


def window_counts(summary: Row) -> list[list[Any]]:
    """Return the counts of the windows that hold anything."""
    names = ("step_start", "trace_count", "scored_count", "correct_count", "eligible_count")
    return [[window[name] for name in names] for window in summary["windows"] if window["trace_count"]]


def by_id(rows: Iterable[Row], name: str) -> dict[str, Row]:
    return {row["trace_provenance"][name]: row for row in rows}


def rate(row: Row) -> float | None:
    return row["trace_provenance"]["prompt_pass_rate"]  # type: ignore[no-any-return]


def plain(row: Row) -> Any:
    """Return a row without its provenance, without nulls, and with JSON inside strings as values.

    0.1.0 writes null for what a message lacks, gives tools the keys that they had in the record, and sorts the keys
    of arguments that it writes; none of that means anything.
    """
    kept = {key: value for key, value in row.items() if key != "trace_provenance"}
    if isinstance(kept.get("tools"), str):
        kept["tools"] = json.loads(kept["tools"])
    return without_nulls(kept)


def without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
    return [without_nulls(inner) for inner in value] if isinstance(value, list) else value


def export_peer(peer: str, run: Path, asked: Row) -> tuple[list[Row], Row]:
    output = run / "peer.jsonl"
    given = {**asked, "path": str(run), "name": NAME, "output": str(output)}
    subprocess.run([peer, "-c", PEER, json.dumps(given)], check=True)
    return read(output), json.loads(Path(f"{output}.summary.json").read_text())


def export_ours(run: Path, asked: Row) -> tuple[list[Row], Row]:
    asked = dict(asked)
    low, high = asked.pop("difficulty", (None, None))
    fields = tuple(FieldFilter(*one) for one in asked.pop("fields", []))
    places = {
        "step_start": 1,
        **{key: asked.pop(key) for key in ("step_start", "step_end", "rl_data_path") if key in asked},
    }
    chosen = ExportPreferences(
        difficulty=DifficultyFilter(low, high), field_filters=fields, include_provenance=True,
        keep_generation_errors=True, **asked,
    )  # fmt: skip
    result = TraceDataExporter([TraceRunSpec(run, name=NAME, **places)], chosen).write_jsonl(beside(run))
    return read(result.output_path), result.summary


def beside(run: Path) -> Path:
    """Return the file for our rows: a run is never written to."""
    return run.with_name(f"{run.name}-ours.jsonl")


def read(path: Path) -> list[Row]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]


def trace(uid: str, said: list[tuple[str, Any]], parents: list[int | None] | None = None) -> Row:
    chain = parents or [None, *range(len(said) - 1)]
    nodes = [
        {"message": {"role": role, "content": content}, "parent": parent, "sampled": role == "assistant"}
        for (role, content), parent in zip(said, chain, strict=True)
    ]
    return {
        "id": uid,
        "task": {"data": {"idx": 0}},
        "nodes": nodes,
        "metrics": {"correct_final_label": 1.0},
        "ok": True,
    }


ASKED = ("user", "Say hi.")
ODD: dict[str, tuple[int, list[Row], str]] = {
    "branches": (
        1,
        [trace("a", [ASKED, ("assistant", "hi"), ("assistant", "hello")], [None, 0, 0])],
        "a row holds one branch; 0.1.0 puts all messages of the graph into one row, one after the other",
    ),
    "prompts that differ in the system turn only": (
        1,
        [trace(uid, [("system", uid), ASKED, ("assistant", "hi")]) for uid in ("a", "b", "c")],
        "they are three prompts; 0.1.0 looks at the first user message only, and takes two of three as of one prompt",
    ),
    "step 0": (
        0,
        [trace("a", [ASKED, ("assistant", "hi")])],
        "it counts unless it is excluded; 0.1.0 begins at step 1 unless told otherwise",
    ),
    "one Episode a line": (
        1,
        [{"id": "e", "env": {"id": "x"}, "ok": True, "traces": [trace("a", [ASKED, ("assistant", "hi")])]}],
        "prime-rl writes that since 2026-08-21; 0.1.0 finds nothing in it and says nothing",
    ),
    "content in parts": (
        1,
        [trace("a", [("user", [{"type": "text", "text": "Say hi."}]), ("assistant", "hi")])],
        "parts stay parts; 0.1.0 writes how Python shows the list",
    ),
    "a record that stands twice": (
        1,
        [trace("a", [ASKED, ("assistant", "hi")])] * 2,
        "a trace id is one trajectory; 0.1.0 writes it twice",
    ),
}


def explain(peer: str, folder: Path) -> None:
    """Print what both sides make of small runs on which they differ, and which of them is right."""
    print("where 0.1.0 differs because it is wrong:")
    for number, (title, (step, lines, reason)) in enumerate(ODD.items()):
        run = folder / f"odd{number}"
        file = run / "rollouts" / f"step_{step}" / "train" / "all" / "traces.jsonl"
        file.parent.mkdir(parents=True)
        file.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
        given = {"acceptance": "any", "path": str(run), "name": NAME, "output": str(run / "peer.jsonl")}
        subprocess.run([peer, "-c", PEER, json.dumps(given)], check=False, capture_output=True)
        theirs = read(run / "peer.jsonl") if (run / "peer.jsonl").exists() else []
        preferences = ExportPreferences(acceptance="any")
        result = TraceDataExporter([TraceRunSpec(run, name=NAME)], preferences).write_jsonl(beside(run))
        print(f"  {title}: {reason} (rows: {len(theirs)} and {result.row_count})")


if __name__ == "__main__":
    main()
