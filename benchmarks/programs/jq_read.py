"""The pass rates of one file with jq."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import jq

PROGRAM = """
[first(.nodes[] | select(.message.role == "user")).message.content, .metrics.correct_final_label]
"""


def pass_rates(path: str) -> list[list[object]]:
    """Return [beginning of the prompt, scored, successes] of each prompt, sorted."""
    found: dict[str, list[int]] = {}
    for text, label in jq.compile(PROGRAM).input_text(Path(path).read_text(encoding="utf-8")):
        if label is not None:
            counts = found.setdefault(" ".join(text.split())[:100], [0, 0])
            counts[0] += 1
            counts[1] += label >= 1
    return sorted([prompt, *counts] for prompt, counts in found.items())


if __name__ == "__main__":
    print(json.dumps({"answer": pass_rates(sys.argv[1])}))
