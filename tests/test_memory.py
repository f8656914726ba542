"""What indexing takes at most: 80 MiB and three times the longest record, however long the file is."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import pytest

from tests.layouts import append, line, message, trace

REPOSITORY = Path(__file__).resolve().parents[1]
LONG = 25_000_000  # bytes
INDEX_AND_MEASURE = """
from pathlib import Path
from rltracer_sqlite.cli.index import main
try:
    main()
except SystemExit as left:
    assert left.code == 0
# Not ru_maxrss, which a process takes over from the one that started it.
status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
print(int(status["VmHWM"].split()[0]))
"""


def said(question: Any = "q", answer: Any = "a") -> list[dict[str, Any]]:
    return [message("user", question), message("assistant", answer)]


def sampled(count: int) -> list[dict[str, Any]]:
    tokens = {"token_ids": [151644] * count, "mask": [True] * count, "logprobs": [-0.5] * count}
    nodes = trace(said())["nodes"]
    return [nodes[0], {**nodes[1], **tokens}]


def picture() -> list[dict[str, Any]]:
    return [{"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * LONG}}]


RECORDS: dict[str, Callable[[], Iterable[dict[str, Any]]]] = {
    "a long answer": lambda: [trace(said(answer="x" * LONG))],
    "a long prompt": lambda: [trace(said("why? " * (LONG // 5)))],
    "a large picture": lambda: [trace(said(picture()))],
    "many tokens": lambda: [trace(nodes=sampled(LONG // 18))],
    "many tokens and a NaN": lambda: [trace(nodes=sampled(LONG // 18), metrics={"m": float("nan")})],
    "many small records": lambda: (trace(said(), id=f"{number}") for number in range(9000)),
}


@pytest.mark.threat("T2")
@pytest.mark.skipif(sys.platform != "linux", reason="memory is measured in /proc")
@pytest.mark.parametrize("name", RECORDS)
def test_memory_is_bounded_by_the_longest_record(tmp_path: Path, name: str) -> None:
    path = tmp_path / "run" / "step_1" / "train" / "all" / "traces.jsonl"
    append(path)
    longest = 0
    with path.open("wb") as file:
        for record in RECORDS[name]():
            longest = max(longest, file.write(line(record)))
    command = [sys.executable, "-c", INDEX_AND_MEASURE, "--quiet", str(tmp_path / "x.sqlite"), str(tmp_path / "run")]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert int(done.stdout) * 1024 < (80 << 20) + 3 * longest
