"""What a wheel has to do in a new environment: start, make the demo, index, query, export and show a page."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

QUESTION = "select count(*) > 100 as many from trajectories"
PAGE = "/-/rltracer/run/trajectory/1"


def faults_on(python: str, wheel: Path, folder: Path) -> list[str]:
    """Install a wheel into a new environment of a Python at `folder`, and return what its commands get wrong."""
    subprocess.run([python, "-m", "venv", folder], check=True)
    programs = folder / ("Scripts" if os.name == "nt" else "bin")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"RLTRACER_HOME": str(folder / "home"), "PYTHONUTF8": "1"}
    for (program, *arguments), expected in commands(wheel):
        done = subprocess.run(
            [programs / program, *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            encoding="utf-8",
        )
        if done.returncode or expected not in done.stdout:
            said = f"ended with {done.returncode} and printed {done.stdout}{done.stderr}"
            return [f"{python}: {program} {' '.join(arguments)} {said}"]
    return []


def commands(wheel: Path) -> list[tuple[list[str], str]]:
    """Return the commands of an environment to run in turn, each with what it has to print."""
    return [
        (["python", "-m", "pip", "install", "--quiet", str(wheel)], ""),
        (["python", "-m", "pip", "check", "--quiet"], ""),
        (["rltracer-viz", "--help"], "Usage"),
        (["rltracer", "demo", "demo", "--no-serve"], "demo.sqlite"),
        (["rltracer-index", "run.sqlite", "demo/run"], " 0 problems"),
        (["sqlite-utils", "query", "run.sqlite", QUESTION, "--csv", "--no-headers"], "1\n"),
        (["rltracer", "export", "run.sqlite", "--target", "10", "-o", "sft.jsonl"], "Wrote 10 rows"),
        (["datasette", "plugins"], '"name": "datasette-rltracer"'),
        (["datasette", "run.sqlite", "--get", PAGE], "<article"),
    ]
