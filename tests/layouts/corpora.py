"""Find the recorded corpora beside the repository; tests that want them skip where they are absent."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any


def corpora() -> Path | None:
    """Return the folder ../shared/corpora relative to the repository, or None where there is none."""
    found = Path(__file__).resolve().parents[2].parent / "shared" / "corpora"
    return found if found.is_dir() else None


def expected_sets() -> dict[str, dict[str, Any]]:
    """Return prime-rl/expected.json: what an independent count found in each set; {} without corpora."""
    root = corpora()
    path = None if root is None else root / "prime-rl" / "expected.json"
    if path is None or not path.is_file():
        return {}
    sets: dict[str, dict[str, Any]] = json.loads(path.read_bytes())
    return sets
