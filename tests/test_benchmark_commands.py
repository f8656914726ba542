"""The commands that the docstrings and the documentation of benchmarks give, as they are typed in the repository."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[1]
FOLDER = REPOSITORY / "benchmarks"
TYPED = re.compile(r"python\s+(-m\s+benchmarks\.\w+|benchmarks/\w+\.py)")
SAID = [path.read_text() for path in (*FOLDER.glob("*.py"), *FOLDER.glob("*.md"), *REPOSITORY.glob("docs/*.md"))]
COMMANDS = sorted({" ".join(command.split()) for text in SAID for command in TYPED.findall(text)})


def called(command: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, *command.split(), *map(str, arguments)]
    return subprocess.run(words, cwd=REPOSITORY, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_benchmark_is_called_as_is_said_and_has_help(command: str) -> None:
    done = called(command, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("usage: ")
    assert not (REPOSITORY / "--help").exists()


def test_every_benchmark_says_how_it_is_called() -> None:
    names = {re.split(r"[./]", command.removesuffix(".py"))[-1] for command in COMMANDS}
    assert names == {path.stem for path in FOLDER.glob("*.py") if "__main__" in path.read_text()}


@pytest.mark.parametrize("command", ["-m benchmarks.gen_run", "benchmarks/gen_run.py"])
def test_a_run_is_made_by_the_module_and_by_the_file(tmp_path: Path, command: str) -> None:
    small = ["--steps", "1", "--prompts", "1", "--rollouts", "1", "--turns", "1", "--eval-every", "0", "--no-tokens"]
    done = called(command, tmp_path / "run", *small)
    if missing := [name for name in ("numpy", "orjson", "msgspec") if find_spec(name) is None]:
        assert done.stderr.splitlines()[-1] in {f"ModuleNotFoundError: No module named {name!r}" for name in missing}
        return
    assert (done.returncode, done.stderr) == (0, "")
    assert len(list(tmp_path.glob("run/rollouts/step_*/train/all/traces.jsonl"))) == 1
