"""Every sample file of other systems: what the mappings find equals an independent reading of it."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.messages import prompt_context, prompt_key
from rltracer_sqlite.sources import source_named
from rltracer_sqlite.sources.base import SourceError
from rltracer_sqlite.sources.table.refused import refusal
from rltracer_sqlite.tool_names import names_of
from tests.layouts import corpora
from tests.table_decoding import READINGS, Told
from tests.table_scans import locator, read

ROOT = (corpora() or Path("absent")) / "other"
pytestmark = pytest.mark.skipif(not ROOT.is_dir(), reason="the corpora are not beside this repository")
# (files that give no row, problems) where there are any
ASIDE = {"nemo_gym": 1, "skyrl": 3, "open_instruct": 1}
PROBLEMS = {"verl/legacy_0.8": 2, "trl/grpo_out": 1, "trl/grpo_out_v1_16": 1, "ms_swift/grpo_hf": 1, "chat_jsonl": 1}
FAMILIES = {
    "deepseek_special": "rendered", "deepseek_stripped": "rendered", "glm_special": "rendered",
    "glm_stripped": "prompt_completion", "harmony_special": "rendered", "harmony_stripped": "prompt_completion",
    "mistral_special": "rendered", "mistral_stripped": "prompt_completion", "qwen_special": "rendered",
    "qwen_stripped": "stripped",
}  # fmt: skip


@pytest.fixture(params=READINGS)
def folder(request: pytest.FixtureRequest) -> str:
    if request.param.startswith("trl"):
        pytest.importorskip("pyarrow")
    return str(request.param)


def by_place(told: list[Told]) -> dict[tuple[str, int, int | None], Told]:
    return {(one.file, one.line, one.item): one for one in told}


def test_counts_rewards_steps_and_prompts(folder: str) -> None:
    name, reading = READINGS[folder]
    told = list(reading(ROOT / folder))
    entries, problems, asides = read(source_named(name), ROOT / folder)
    found = Counter((shard.path, e.line, e.item, e.reward, e.step, e.split) for shard, e in entries)
    assert found == Counter(one[:6] for one in told)
    assert (len(asides), len(problems)) == (ASIDE.get(folder, 0), PROBLEMS.get(folder, 0))
    begun = [next(iter(one.earlier), one.messages) for one in told if one.messages]
    keys = {prompt_key(prompt_context(messages)) for messages in begun}
    assert not keys or {entry.prompt_key for _, entry in entries} == keys


def test_messages_equal_an_independent_decoding(folder: str) -> None:
    name, reading = READINGS[folder]
    reader, root = source_named(name), ROOT / folder
    told = by_place(list(reading(root)))
    for shard, entry in read(reader, root)[0]:
        trajectory = reader.load(root, [locator(shard, entry)])
        one = told[shard.path, entry.line, entry.item]
        assert [_plain(message) for message in trajectory.messages] == [_plain(message) for message in one.messages]
        called = [call["function"]["name"] for message in one.messages for call in message.get("tool_calls", ())]
        is_told = bool(called) or entry.content_kind not in ("token_ids", "prompt_completion")
        assert (entry.tool_calls, names_of(entry.tools)) == (
            len(called) if is_told else None,
            list(dict.fromkeys(called)),
        )
        assert trajectory.metadata["tool_calls"] == entry.tool_calls
        assert trajectory.metadata["tools"] == names_of(entry.tools)


def _plain(message: dict[str, Any]) -> dict[str, Any]:
    # Recorded null keys say nothing; null content is content that is not there.
    return {key: value for key, value in message.items() if value is not None or key == "content"}


@pytest.mark.parametrize("family", FAMILIES)
def test_text_is_split_only_where_the_family_allows_it(family: str) -> None:
    reader, root = source_named("verl"), ROOT / "verl" / "families" / family
    for shard, entry in read(reader, root)[0]:
        trajectory = reader.load(root, [locator(shard, entry)])
        roles = [message["role"] for message in trajectory.messages]
        assert entry.content_kind == trajectory.metadata["content_kind"] == FAMILIES[family]
        assert roles[-1] == "assistant"
        assert roles == ["user", "assistant"] or FAMILIES[family] != "prompt_completion"
        assert trajectory.raw == (root / shard.path).read_bytes().splitlines()[entry.line - 1]


def test_the_same_question_has_one_prompt_key_across_systems() -> None:
    pytest.importorskip("pyarrow")
    asked = "A shop sells pens"
    keys = {}
    for folder in READINGS:
        entries = read(source_named(READINGS[folder][0]), ROOT / folder)[0]
        for _, entry in entries:
            if entry.preview.startswith(asked) and "tool" not in entry.preview:
                keys.setdefault(entry.prompt_key, set()).add(folder)
    # One key with the system prompt; another one where it was not recorded.
    assert sorted(map(len, keys.values())) == [1, 13]


def test_nothing_of_bad_lines_is_lost_silently() -> None:
    reader, root = source_named("chat"), ROOT / "chat_jsonl" / "bad_lines.jsonl"
    entries, problems, _ = read(reader, root)
    (shard,) = reader.shards(root)
    *_, last = reader.scan(root, shard)
    assert [entry.line for _, entry in entries] == [1]
    assert [(problem.line, problem.byte_length) for problem in problems] == [(3, 8)]
    assert (last.offset, last.line, last.waiting) == (67, 3, 46)


@pytest.mark.parametrize(
    ("place", "system"),
    [
        ("slime/dump_details", "slime"),
        ("harbor_atif/jobs", "Harbor"),
        ("inspect_ai/log_streaming.eval", "Inspect AI"),
        ("inspect_ai/2025-05-12T20-28-13-04-00_popularity.json", "Inspect AI"),
        ("trackio/grpo.db", "trackio"),
        ("wandb_tables", "W&B"),
        ("skyrl/exports/dumped_evals/eval_only/aggregated_results.jsonl", "SkyRL"),
        ("nemo_gym/blackjack_rollouts_materialized_inputs.jsonl", "NeMo-Gym"),
        ("open_instruct/rollouts/grpo_math__1__1767225600_metadata.jsonl", "open-instruct"),
    ],
)
def test_what_is_not_read_yet_is_refused_by_name(place: str, system: str) -> None:
    said = refusal(ROOT / place)
    assert said is not None
    assert system in said
    assert said.count("\n") == 0


def test_an_unknown_tokenizer_is_an_error_of_the_source(tmp_path: Path) -> None:
    root = ROOT / "open_instruct"
    with pytest.raises(SourceError, match=r"tokenizer\.json"):
        read(source_named("open-instruct", str(tmp_path / "none")), root)
