"""Measure how long it takes to select among a million indexed trajectories, and how much memory.

    python -m benchmarks.export_scale [INDEX]

makes the index first where it does not exist (about 20 s, 400 MB). Each selection is a process of its own; its time
is that of the selection, without the start of Python, and its memory the peak of the whole process (on Linux as the
kernel keeps it for the program; elsewhere what the process was started by may be counted in).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.index_factory import make_large_index

SECONDS, MIB = 3.0, 200.0
REPEATS = 3
SELECTIONS = {
    "correct, two per prompt": "per_prompt=2",
    "the example: difficulty 0.25–0.75, filters, windows of 100 steps, target 4,000": """
        difficulty=DifficultyFilter(0.25, 0.75), window_size=100, per_prompt=2, target_count=4_000,
        field_filters=(FieldFilter("completion_tokens", maximum=1500), FieldFilter("rewards.answer.score", minimum=0))
    """,
    "RL prompts, unique, target 2,000": """
        mode="rl", acceptance="any", rl_from_trace=True, unique_prompts=True, target_count=2_000,
        difficulty=DifficultyFilter(min_difficulty=0.25)
    """,
    "weighted by tool calls, windows of 40 steps": "tool_call_sampling_power=1.0, window_size=40, target_count=10_000",
    "pairs in windows of 40 steps": 'mode="preference", window_size=40, per_prompt=1',
    "everything, windows of 40 steps, no target (no demand)": 'acceptance="any", window_size=40, per_prompt=None',
}
PROGRAM = """
import json, pathlib, re, resource, sys, time
from rltracer_sqlite.export import DifficultyFilter, ExportPreferences, FieldFilter, TraceDataExporter, TraceRunSpec
wanted = eval(f"ExportPreferences({sys.argv[2]})")
began, used = time.perf_counter(), time.process_time()
told = TraceDataExporter([TraceRunSpec.from_index(sys.argv[1])], wanted).inspect()
took = [time.perf_counter() - began, time.process_time() - used]
status = pathlib.Path("/proc/self/status")
# ru_maxrss outlives exec, so it would be that of whoever made the index.
peak = int(re.search(r"VmHWM:\\s+(\\d+)", status.read_text())[1]) if status.exists() else (
    resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
print(json.dumps([*took, peak / 1024, told["selected_count"]]))
"""


def measure(index: Path, only: str = "") -> bool:
    """Print a line for each selection, and say whether every demand is met."""
    met = True
    for title, wanted in SELECTIONS.items():
        if only not in title:
            continue
        runs = [_run(index, " ".join(wanted.split())) for _ in range(REPEATS)]
        seconds, processor = (sorted(run[place] for run in runs)[REPEATS // 2] for place in (0, 1))
        peak, selected = max(run[2] for run in runs), int(runs[0][3])
        fine = "no demand" in title or (seconds <= SECONDS and peak <= MIB)
        met &= fine
        mark = "" if fine else "  MISSED"
        print(f"{seconds:5.2f} s ({processor:.2f} s of processor)  {peak:4.0f} MiB  {selected:>9,}  {title}{mark}")
    return met


def _run(index: Path, wanted: str) -> list[float]:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    call = [sys.executable, "-c", PROGRAM, str(index), wanted]
    done = subprocess.run(call, check=True, capture_output=True, text=True, env=environment)
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("index", nargs="?", type=Path, metavar="INDEX", help="made where it does not exist")
    parser.add_argument("--only", default="", metavar="TEXT", help="only selections whose title holds this text")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        index = options.index or Path(folder) / "large.sqlite"
        if not index.exists():
            make_large_index(index)
        sys.exit(0 if measure(index, options.only) else 1)


if __name__ == "__main__":
    main()
