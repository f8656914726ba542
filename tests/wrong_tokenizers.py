"""Tokenizers that are others than the policy's, and what shows that they are."""

from __future__ import annotations

import json
from pathlib import Path

from rltracer_sqlite.sources.prime_rl.token_scan import LEAST_UNMARKED
from tests.token_layouts import question, write_tokenizer

SHARD = "rollouts/step_0/rank_0.bin"
LONG = question("4" * LEAST_UNMARKED)


def wrong(folder: Path, moved: int = 300) -> Path:
    """Write a tokenizer whose special tokens have other ids: what they are in the files is plain text to it."""
    file = write_tokenizer(folder) / "tokenizer.json"
    tokenizer = json.loads(file.read_text())
    for token in tokenizer["added_tokens"]:
        tokenizer["model"]["vocab"][f"word{token['id']}"] = token["id"]
        token["id"] += moved
    file.write_text(json.dumps(tokenizer))
    return folder
