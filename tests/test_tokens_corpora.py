"""The recorded token shards: counts, and agreement with the same scenarios recorded as text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.sources.base import Entry, Locator, Position
from rltracer_sqlite.sources.prime_rl import PrimeRLSource
from rltracer_sqlite.sources.prime_rl.token_load import load_token_trajectory
from rltracer_sqlite.sources.prime_rl.token_scan import Tally, scan_token_shard
from rltracer_sqlite.tokens import TextTokenizer, load_tokenizer
from rltracer_sqlite.tokens.streams import first_of_trained, mean_of_trained, trained_runs
from rltracer_sqlite.tool_names import names_of
from rltracer_sqlite.trajectory import Trajectory
from tests.layouts.corpora import corpora, expected_sets
from tests.token_scans import problems, shard_of

SHARED = corpora()
ROOT = SHARED / "prime-rl" if SHARED else Path()
ENDINGS = (".bin", ".jsonl", ".pt", ".parquet")
SETS = [
    f"{kind}/{folder.name}"
    for kind in ("bin", "token_exports", "pt", "parquet")
    for folder in (sorted((ROOT / kind).iterdir()) if SHARED else ())
]
pytestmark = pytest.mark.skipif(SHARED is None, reason="no corpora")


@lru_cache(maxsize=1)
def tokenizer() -> TextTokenizer:
    assert SHARED
    return load_tokenizer(SHARED.parent / "tokenizer")


def shards(name: str) -> list[Path]:
    files = [file for file in sorted((ROOT / name).rglob("*")) if file.suffix in ENDINGS]
    if any(file.suffix == ".parquet" for file in files):
        pytest.importorskip("pyarrow")
    return files


def is_training_batch(file: Path) -> bool:
    return file.name.endswith("rollouts.bin")


def trajectories(name: str) -> Iterator[tuple[Entry, Trajectory]]:
    root = ROOT / name
    for file in shards(name):
        shard = shard_of(root, file)
        for found in scan_token_shard(root, shard, Position(), tokenizer()):
            if isinstance(found, Entry):
                place = (found.byte_offset, found.byte_length, found.item, found.line)
                locators = [Locator(found.uid, shard.path, shard.layout, *place)]
                yield found, load_token_trajectory(root, locators, tokenizer())


@pytest.mark.parametrize("name", SETS)
def test_counts_are_those_of_an_independent_count(name: str) -> None:
    known = expected_sets().get(name, {})
    root, tally, batched, reasons = ROOT / name, Tally(), Tally(), []
    for file in shards(name):
        counting = batched if is_training_batch(file) else tally
        reasons += problems(list(scan_token_shard(root, shard_of(root, file), Position(), tokenizer(), tally=counting)))
    assert reasons == []
    expected = known.get("sequences", known.get("trajectories", {"pt": 12, "parquet": 16}.get(name.split("/")[0])))
    assert tally.sequences == expected
    assert tally.copies == known.get("all_masked_micro_batches", 0)
    assert batched.sequences in (0, expected)


@pytest.mark.parametrize("name", SETS)
def test_masks_mark_the_turns_of_the_policy(name: str) -> None:
    for entry, trajectory in trajectories(name):
        tokens, pieces = trajectory.tokens, trajectory.tokens.pieces
        assert "".join(pieces) == tokenizer().decode(tokens.ids)
        answers = [message for message in trajectory.messages if message["role"] == "assistant"]
        runs = trained_runs(tokens.mask)
        assert len(runs) == len(answers) == entry.turns
        for (start, end), message in zip(runs, answers, strict=True):
            assert "".join(pieces[:start]).endswith("<|im_start|>assistant\n")
            text = "".join(pieces[start:end])
            assert message["content"] in text
            assert text.endswith("<|im_end|>") or end == len(tokens)
        assert entry.tool_calls == trajectory.metadata["tool_calls"]
        assert names_of(entry.tools) == trajectory.metadata["tools"]
        assert entry.logprob_mean == pytest.approx(mean_of_trained(tokens.logprobs, tokens.mask))
        assert entry.advantage == first_of_trained(tokens.advantages, tokens.mask) == trajectory.metadata["advantage"]


# The scenarios are drawn anew in each set: what differs are the number of the attempt and the length of a log.
VARYING = re.compile(r"Attempt \d at step \d|\b4\d (?=data/log|lines)|\\boxed\{\d+\}|(?<=<verdict>)(pass|fail)")


def essence(messages: list[dict[str, Any]]) -> str:
    said = [
        (
            message["role"],
            message.get("content") or "",
            message.get("reasoning_content") or "",
            [(call["function"]["name"], as_written(call)) for call in message.get("tool_calls", ())],
        )
        for message in messages
    ]
    return VARYING.sub("…", json.dumps(said, ensure_ascii=False))


def as_written(call: dict[str, Any]) -> dict[str, str]:
    # The XML style writes every value as text; its type is known where the prompt lists the tool.
    return {name: str(value) for name, value in json.loads(call["function"]["arguments"]).items()}


@lru_cache(maxsize=1)
def structured() -> tuple[set[str], set[str]]:
    """Return what is said in the branches of all structured traces, and their prompt keys."""
    source, said, keys = PrimeRLSource(), set(), set()
    for root in sorted((ROOT / "rollouts-v1").iterdir()):
        for shard in source.shards(root):
            found = [] if shard.producer else [one for one in source.scan(root, shard) if isinstance(one, Entry)]
            for entry in found:
                place = (entry.byte_offset, entry.byte_length, entry.item, entry.line)
                trajectory = source.load(root, [Locator(entry.uid, shard.path, shard.layout, *place)])
                said.update(essence(branch) for branch in trajectory.branches)
                keys.add(entry.prompt_key)
    return said, keys


@pytest.mark.parametrize("name", SETS)
def test_conversations_agree_with_structured_traces(name: str) -> None:
    said, keys = structured()
    for entry, trajectory in trajectories(name):
        assert essence(trajectory.messages) in said
        assert entry.prompt_key in keys


def test_arguments_have_types_where_the_prompt_lists_the_tool() -> None:
    found = [trajectory for _, trajectory in trajectories("bin/22-2026-08-19-69308b88c")]
    (listing, *_) = [trajectory for trajectory in found if trajectory.tools]
    call = next(message for message in listing.messages if message.get("tool_calls"))["tool_calls"][0]
    assert json.loads(call["function"]["arguments"])["timeout"] == 10
    assert listing.tools[0]["function"]["name"] == "terminal"
    assert listing.messages[0]["role"] == "user"


@pytest.mark.parametrize("name", ["bin/post-C-trace_ids-18", "bin/post-E-payload-20"])
def test_sequences_name_their_traces(name: str) -> None:
    for entry, trajectory in trajectories(name):
        assert len(trajectory.metadata["trace_id"]) == 32
        assert entry.values["info.branch_index"] == 0
