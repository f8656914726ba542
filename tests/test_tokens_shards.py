"""Every form of token shard: what is found in it, and what is loaded from where it was found."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from rltracer_sqlite.messages import prompt_key
from rltracer_sqlite.sources.base import Position, SourceError
from rltracer_sqlite.sources.prime_rl.generations import TRAINING_SAMPLES, micro_batch_fields
from rltracer_sqlite.sources.prime_rl.msgpack_fields import split_record
from rltracer_sqlite.sources.prime_rl.token_scan import Tally
from rltracer_sqlite.tokens import TextTokenizer, load_tokenizer
from tests.token_layouts import (
    GENERATIONS,
    Drawn,
    export_line,
    micro_batch,
    question,
    training_sample,
    write_bin,
    write_tokenizer,
    write_torch,
)  # fmt: skip
from tests.token_scans import entries, load, problems, scan

SAMPLES = [question("4"), question("5", advantage=-0.5, reward=0.0), question("6", "Why?", env="talk")]
KEY = prompt_key([{"role": "user", "content": "What is 2 + 2?"}])
WITH_REWARD = ("g13", "g14", "g15", "g16", "g17")
WITH_TRACES = ("pC", "pD", "pD'", "pE")


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> TextTokenizer:
    return load_tokenizer(write_tokenizer(tmp_path_factory.mktemp("tokenizer")))


@pytest.mark.parametrize("generation", GENERATIONS)
def test_a_micro_batch_is_told_by_its_bytes(generation: str) -> None:
    import msgpack

    value = micro_batch(generation, SAMPLES, pad=5)
    found, fields = micro_batch_fields(split_record(msgpack.packb(value)), len(value[0]))
    alike = {"g14": "g13", "pD'": "pD", "unknown": "unknown (26 fields)"}
    assert found == alike.get(generation, generation)
    assert list(fields)[:5] == ["input_ids", "loss_mask", "advantages", "inference_logprobs", "position_ids"]


@pytest.mark.parametrize("pad", [0, 1, 5])
@pytest.mark.parametrize("generation", GENERATIONS)
def test_the_sequences_of_a_micro_batch(tmp_path: Path, tokenizer: TextTokenizer, generation: str, pad: int) -> None:
    file = write_bin(tmp_path / "rank_0.bin", [micro_batch(generation, SAMPLES, pad)])
    found = scan(tmp_path, file, tokenizer)
    assert problems(found) == []
    rows = entries(found)
    assert [row.advantage for row in rows] == [0.5, -0.5, 0.5]
    assert [row.logprob_mean for row in rows] == [-0.25] * 3
    assert rows[0].prompt_key == rows[1].prompt_key == KEY
    assert [row.preview for row in rows] == ["What is 2 + 2?", "What is 2 + 2?", "Why?"]
    assert [row.reward for row in rows] == ([1.0, 0.0, 1.0] if generation in WITH_REWARD else [None] * 3)
    has_envs = generation not in ("unknown", *GENERATIONS[: GENERATIONS.index("g10")])
    assert [row.env for row in rows] == (["math", "math", "talk"] if has_envs else [None] * 3)
    for row, sample in zip(rows, SAMPLES, strict=True):
        assert row.uid == f"rank_0.bin@{row.byte_offset}.{row.item}"
        assert (row.completion_tokens, row.turns, row.content_kind) == (sum(sample.mask), 1, "rendered")
        assert row.prompt_tokens == sample.mask.index(True)
        assert load(tmp_path, file, row, tokenizer).tokens.ids == sample.ids


@pytest.mark.parametrize("generation", GENERATIONS)
def test_a_padding_copy_is_counted_and_left_out(tmp_path: Path, generation: str) -> None:
    tally = Tally()
    value = [micro_batch(generation, SAMPLES), micro_batch(generation, SAMPLES, copy=True)]
    found = scan(tmp_path, write_bin(tmp_path / "rank_0.bin", value), tally=tally)
    assert (len(entries(found)), tally.sequences, tally.copies) == (3, 3, 1)


def test_a_batch_that_only_another_loss_trains_is_no_copy(tmp_path: Path) -> None:
    value = micro_batch("g20", SAMPLES, copy=True)
    value[14] = [1.0] * len(value[0])
    assert len(entries(scan(tmp_path, write_bin(tmp_path / "rank_0.bin", [value])))) == 3


@pytest.mark.parametrize("generation", WITH_TRACES)
def test_trace_ids_make_updates_of_traces(tmp_path: Path, generation: str) -> None:
    samples = [question(trace_id="t1"), question(trace_id="t1", branch=1), question(trace_id="t2")]
    file = write_bin(tmp_path / "rank_0.bin", [micro_batch(generation, samples, 3)])
    found = [one for one in scan(tmp_path, file, traces_hold_records=True) if not isinstance(one, Position)]
    facts = [(one.uid, one.item, one.effective, one.ship_step, one.advantage) for one in found]
    assert facts == [("t1", 0, 1, 1, 0.5), ("t1", 1, 1, 1, 0.5), ("t2", 2, 1, 1, 0.5)]
    rows = entries(scan(tmp_path, file))
    assert [row.values["info.trace_id"] for row in rows] == ["t1", "t1", "t2"]
    assert load(tmp_path, file, rows[1]).metadata["branch_index"] == 1
    assert all(type(value) in (float, str) for value in rows[0].values.values())


@pytest.mark.parametrize(("fields", "style"), list(TRAINING_SAMPLES))
@pytest.mark.parametrize("ending", [[0.7, 3, 0], [3, None]])
def test_a_training_batch(tmp_path: Path, tokenizer: TextTokenizer, fields: int, style: str, ending: list[Any]) -> None:
    value = [[training_sample(fields, style, sample) for sample in SAMPLES], *ending]
    file = write_bin(tmp_path / "train_rollouts.bin", value)
    found = scan(tmp_path, file, tokenizer)
    assert problems(found) == []
    assert found[-1] == Position(file.stat().st_size, 3)
    rows = entries(found)
    assert [row.advantage for row in rows] == [0.5, -0.5, 0.5]
    has_reward = fields >= 8 and (fields, style) != (13, "new")
    assert [row.reward for row in rows] == ([1.0, 0.0, 1.0] if has_reward else [None] * 3)
    assert rows[2].env == (None if style == "old" else "talk")
    for row, sample in zip(rows, SAMPLES, strict=True):
        trajectory = load(tmp_path, file, row, tokenizer)
        assert (trajectory.tokens.ids, trajectory.tokens.mask) == (sample.ids, sample.mask)
        assert trajectory.tokens.advantages == [sample.advantage if flag else None for flag in sample.mask]


def test_a_token_export_has_the_numbers_of_the_trainer(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    file = tmp_path / "rank_0.jsonl"
    file.write_bytes(b"".join(orjson.dumps(export_line(sample)) + b"\n" for sample in SAMPLES))
    rows = entries(scan(tmp_path, file, tokenizer, Position()))
    tokens = load(tmp_path, file, rows[0], tokenizer).tokens
    assert tokens.trainer_logprobs == [-0.5 if flag else None for flag in SAMPLES[0].mask]
    assert tokens.entropies is not None
    assert tokens.mismatch_kl is not None
    assert tokens.importance_ratio is not None
    assert tokens.is_masked == [False] * len(tokens)
    assert (rows[0].env, rows[0].step, rows[0].line, rows[0].item) == ("math", 1, 1, None)


@pytest.mark.parametrize(("more", "step", "reward"), [
    ({}, 3, None),
    ({"rewards": [2.0] * len(SAMPLES[0].ids), "training_mode": "rl"}, 3, 2.0),
    ({"export_step": 7, "run_id": "run_default"}, 7, None),
    ({"env_name": None, "rewards": None}, 3, None),
])  # fmt: skip
def test_the_forms_of_token_exports(tmp_path: Path, more: dict[str, Any], step: int, reward: float | None) -> None:
    from rltracer_sqlite.sources.base import Shard
    from rltracer_sqlite.sources.prime_rl.token_scan import scan_token_shard

    (tmp_path / "rank_0.jsonl").write_bytes(orjson.dumps(export_line(SAMPLES[0], **more)) + b"\n")
    shard = Shard("rank_0.jsonl", "rank_0.jsonl", "token_exports")
    (row,) = entries(list(scan_token_shard(tmp_path, shard)))
    assert (row.step, row.reward) == (step, reward)


def test_a_torch_file_is_read_without_torch(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    file = write_torch(tmp_path / "rank_0.pt", [SAMPLES[:2], SAMPLES[2:]])
    found = scan(tmp_path, file, tokenizer)
    assert problems(found) == []
    rows = entries(found)
    assert [row.item for row in rows] == [0, 1, 2]
    assert [row.advantage for row in rows] == [0.5, -0.5, 0.5]
    for row, sample in zip(rows, SAMPLES, strict=True):
        assert load(tmp_path, file, row, tokenizer).tokens.ids == sample.ids
    assert load(tmp_path, file, rows[2], tokenizer).messages[-1]["content"] == "6"


def write_parquet(file: Path, samples: list[Drawn], with_text: bool) -> Path:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    split = [sample.mask.index(True) for sample in samples]
    columns = {
        "input_tokens": [sample.ids[:at] for sample, at in zip(samples, split, strict=True)],
        "output_tokens": [sample.ids[at:] for sample, at in zip(samples, split, strict=True)],
        "advantages": [sample.advantage for sample in samples],
        "rewards": [sample.reward for sample in samples],
        "output_logprobs": [[-0.25] * (len(sample.ids) - at) for sample, at in zip(samples, split, strict=True)],
    }
    if with_text:
        columns["prompt"] = ["".join(text for text, sampled in sample.turns if not sampled) for sample in samples]
        columns["completion"] = ["".join(text for text, sampled in sample.turns if sampled) for sample in samples]
    parquet.write_table(pyarrow.table(columns), file, row_group_size=2)
    return file


@pytest.mark.parametrize("with_text", [False, True])
def test_an_early_parquet_file(tmp_path: Path, tokenizer: TextTokenizer, with_text: bool) -> None:
    file = write_parquet(tmp_path / "uuid.parquet", SAMPLES, with_text)
    rows = entries(scan(tmp_path, file, tokenizer))
    assert [(row.item, row.reward, row.advantage) for row in rows] == [(0, 1.0, 0.5), (1, 0.0, -0.5), (2, 1.0, 0.5)]
    assert rows[0].prompt_key == KEY
    trajectory = load(tmp_path, file, rows[2], tokenizer)
    assert trajectory.messages[-1]["content"] == "6"
    assert trajectory.tokens.ids == SAMPLES[2].ids


@pytest.mark.parametrize(
    "ids",
    [{"list": [3]}, [[3]], ["a"], [1.5], [None], [-1], [2**40], "abc", [True]],
    ids=["object", "lists", "texts", "fractions", "null", "negative", "large", "text", "truth"],
)
def test_a_row_whose_ids_are_none_is_a_problem(tmp_path: Path, ids: Any) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pyarrow.table({"input_tokens": [[1, 2]], "output_tokens": [ids]}), tmp_path / "a.parquet")
    found = scan(tmp_path, tmp_path / "a.parquet")
    assert entries(found) == []
    assert problems(found) == ["row 1 is not readable: output_tokens is no list of token ids"]


def test_what_else_an_early_row_holds_may_be_anything(tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    good = {"input_tokens": [1], "output_tokens": [2]}
    row = {**good, "output_logprobs": {"a": 1}, "rewards": [1.0], "seed": {"b": b"c"}, "problem_id": b"d"}
    parquet.write_table(pyarrow.Table.from_pylist([row]), tmp_path / "a.parquet")
    found = scan(tmp_path, tmp_path / "a.parquet")
    [entry] = entries(found)
    assert (entry.reward, entry.data_idx) == (None, None)
    assert problems(found) == ["read in part: output_logprobs is no list"]
    shown = load(tmp_path, tmp_path / "a.parquet", entry)
    assert json.dumps(shown.metadata)
    assert shown.tokens.ids == [1, 2]


def test_without_pyarrow_the_sentence_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(SourceError, match=r"needs pyarrow: pip install 'datasette-rltracer\[parquet\]'"):
        scan(tmp_path, tmp_path / "a.parquet")


WRITERS: dict[str, Callable[[Path], Path]] = {
    "bin": lambda folder: write_bin(folder / "rank_0.bin", [micro_batch("g20", SAMPLES, 4)]),
    "pt": lambda folder: write_torch(folder / "rank_0.pt", [SAMPLES]),
}


@pytest.mark.parametrize("kind", list(WRITERS))
def test_without_a_tokenizer_prompts_are_told_by_their_ids(tmp_path: Path, kind: str) -> None:
    file = WRITERS[kind](tmp_path)
    rows = entries(scan(tmp_path, file))
    assert rows[0].prompt_key == rows[1].prompt_key != rows[2].prompt_key
    count = SAMPLES[0].mask.index(True)
    assert (rows[0].preview, rows[0].content_kind) == (f"no tokenizer: {count} prompt tokens", "token_ids")
    trajectory = load(tmp_path, file, rows[0])
    assert (trajectory.messages, trajectory.tokens.ids) == ([], SAMPLES[0].ids)
    assert trajectory.tokens.pieces is None
    assert trajectory.metadata["content_kind"] == "token_ids"


def test_a_conversation_with_tools_comes_back_whole(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    call = '<tool_call>\n{"name": "run", "arguments": {"n": 1}}\n</tool_call>'
    sample = Drawn([
        ("<|im_start|>user\nGo.<|im_end|>\n<|im_start|>assistant\n", False),
        (f"<think>\nHm.\n</think>\n\nI go.\n{call}\n{call}<|im_end|>", True),
        ("\n<|im_start|>user\n<tool_response>\nok\n</tool_response>\n<tool_response>\n</tool_response><|im_end|>\n"
         "<|im_start|>assistant\n", False),
        ("Done.<|im_end|>", True),
    ])  # fmt: skip
    file = write_bin(tmp_path / "rank_0.bin", [micro_batch("g20", [question(), sample], 7)])
    row = entries(scan(tmp_path, file, tokenizer))[1]
    assert (row.turns, row.tool_calls, row.completion_tokens) == (2, 2, sum(sample.mask))
    trajectory = load(tmp_path, file, row, tokenizer)
    assert [message["role"] for message in trajectory.messages] == ["user", "assistant", "tool", "tool", "assistant"]
    assert (trajectory.metadata["tool_calls"], trajectory.metadata["tools"], row.tools) == (2, ["run"], '["run"]')
    assert trajectory.metadata["completion"]["turns"] == 2
    assert "".join(trajectory.tokens.pieces or ()) == "".join(text for text, _ in sample.turns)


def test_a_sequence_without_boundaries_is_split_at_each_system_turn(tmp_path: Path, tokenizer: TextTokenizer) -> None:
    system = ("<|im_start|>system\nBe brief.<|im_end|>\n", False)
    samples = [Drawn([system, *question(answer).turns]) for answer in ("4", "5")]
    value = micro_batch("g00", samples)
    value[4] = None
    file = write_bin(tmp_path / "rank_0.bin", [value])
    rows = entries(scan(tmp_path, file, tokenizer))
    assert [load(tmp_path, file, row, tokenizer).messages[-1]["content"] for row in rows] == ["4", "5"]
    assert len(entries(scan(tmp_path, file))) == 1


def test_a_side_file_is_named_and_not_opened(tmp_path: Path) -> None:
    file = write_bin(tmp_path / "rank_0.bin", [micro_batch("pE", SAMPLES)])
    record = load(tmp_path, file, entries(scan(tmp_path, file))[0]).record
    assert record["side_files"] == ["routed_experts"]


def test_scanning_goes_on_from_a_position(tmp_path: Path) -> None:
    file = write_bin(tmp_path / "rank_0.bin", [micro_batch("g20", [sample]) for sample in SAMPLES])
    rows = entries(scan(tmp_path, file))
    after_first = Position(rows[1].byte_offset, 1)
    assert entries(scan(tmp_path, file, None, after_first)) == rows[1:]
