"""The runs that are measured: what they are made with, and where they lie."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

GENERATOR = Path(__file__).parents[1] / "gen_run.py"
WORKLOADS = {
    "S": "--steps 4 --prompts 8 --rollouts 8 --eval-every 2 --effective 0.6",
    "M": "--steps 24 --prompts 32 --rollouts 8 --eval-every 8",
    "T": "--no-tokens --steps 24 --prompts 64 --rollouts 8 --eval-every 8",
    "bin": "--format bin --steps 1 --prompts 16 --rollouts 16",
}
BIG = "big"  # one file with all of M's training records
CHUNK_BYTES = 1 << 20


def make_workload(name: str, folder: Path, python: Path, tokenizer: Path | None) -> Path:
    """Return the folder of a run, making it when it is not there or was made with other arguments."""
    run, note = folder / name, folder / f"{name}.json"
    arguments = [] if name == BIG else WORKLOADS[name].split()
    if tokenizer and name != "T":
        arguments += ["--tokenizer", str(tokenizer)]
    if run.exists() and note.exists() and json.loads(note.read_text()) == arguments:
        return run
    shutil.rmtree(run, ignore_errors=True)
    if name == BIG:
        concatenate(make_workload("M", folder, python, tokenizer), run)
    else:
        print(f"Making the run {name}", file=sys.stderr)
        subprocess.run([python, GENERATOR, run, *arguments], check=True, stdout=sys.stderr)
    note.write_text(json.dumps(arguments))
    return run


def concatenate(source: Path, run: Path) -> None:
    """Write the training records of a run as the only step of another one."""
    target = run / "rollouts" / "step_1" / "train" / "all" / "traces.jsonl"
    target.parent.mkdir(parents=True)
    with target.open("wb") as whole:
        for path in shards(source):
            if "train" in path.parts:
                with path.open("rb") as part:
                    shutil.copyfileobj(part, whole, CHUNK_BYTES)


def shards(run: Path) -> list[Path]:
    """Return the files of a run's records in the order of their steps."""
    rollouts = run / "rollouts"
    if bins := sorted(rollouts.glob("step_*/rank_*.bin")):
        return bins
    found = rollouts.glob("step_*/*/all/traces.jsonl")
    return sorted(found, key=lambda path: (int(path.parts[-4].removeprefix("step_")), path.parts))


def longest_record(run: Path) -> int:
    """Return the bytes of the longest line of a run."""
    longest = 0
    for path in shards(run):
        with path.open("rb", buffering=CHUNK_BYTES) as file:
            longest = max(longest, max(map(len, file), default=0))
    return longest


def append_lines(target: Path, source: Path, count: int) -> None:
    """Append the first lines of one file to another, as a run that goes on would."""
    with source.open("rb") as lines, target.open("ab") as file:
        for _ in range(count):
            file.write(lines.readline())


def flush(path: Path) -> None:
    """Wait until a file is on the disk, so that no program has to wait for what was written before it."""
    with path.open("rb") as file:
        os.fsync(file.fileno())


def restore(target: Path, status: os.stat_result) -> None:
    """Cut a file back to what it was, its time included."""
    os.truncate(target, status.st_size)
    os.utime(target, ns=(status.st_atime_ns, status.st_mtime_ns))
