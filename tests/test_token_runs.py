"""Runs of token shards through the index: what is used, what is left aside, and nothing counted twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite import PrimeRLAdapter, RLTracer, SourceError
from rltracer_sqlite.amounts import plural
from rltracer_sqlite.index.database import finish_writing, open_for_writing, open_index
from rltracer_sqlite.index.refresh import Refreshed, refresh_run
from rltracer_sqlite.index.runs import ensure_run
from rltracer_sqlite.loading import load_trajectory
from rltracer_sqlite.roots import Roots
from rltracer_sqlite.sources import source_for
from rltracer_sqlite.sources.prime_rl import PrimeRLSource
from tests.indexing import rows, value
from tests.layouts import append, corpora, expected_sets, message, trace
from tests.token_layouts import Drawn, export_line, micro_batch, question, training_sample, write_bin, write_tokenizer

SETS = {name: found for name, found in expected_sets().items() if name.startswith(("bin", "token_exports"))}


def index(database: Path, root: Path, tokenizer: Path | None = None, layout: str | None = None) -> Refreshed:
    source = PrimeRLSource(str(tokenizer) if tokenizer else None, layout)
    connection = open_for_writing(database)
    try:
        run_id = ensure_run(connection, source, root)
        return refresh_run(connection, source, root, run_id)
    finally:
        finish_writing(connection)


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    return write_tokenizer(tmp_path / "tokenizer")


@pytest.mark.skipif(not SETS, reason="the recorded corpora are not beside the repository")
@pytest.mark.parametrize("name", sorted(SETS))
def test_recorded_sets_give_the_counts_of_an_independent_reading(name: str, tmp_path: Path) -> None:
    shared, expected, database = corpora() or Path(), SETS[name], tmp_path / "x.sqlite"
    done = index(database, shared / "prime-rl" / name, shared.parent / "tokenizer")
    assert value(database, "select count(*) from trajectories") == expected.get(
        "sequences", expected.get("trajectories")
    )
    copies = expected.get("all_masked_micro_batches", 0)
    assert done.notes == ([f"{plural(copies, 'padding copy')} of micro batches skipped"] if copies else [])
    assert value(database, "select count(*) from problems") == 0
    adapter = PrimeRLAdapter(shared / "prime-rl" / name, str(shared.parent / "tokenizer"), database)
    for step in RLTracer(adapter).steps():
        for group in step.prompts():
            for reference in group.trajectories():
                loaded = reference.load()
                assert loaded.messages[-1]["role"] == "assistant"
                assert loaded.tokens is not None
                assert len(loaded.tokens.ids) == len(loaded.tokens.mask or [])
    adapter.close()


def test_a_sample_in_three_files_is_one_row(tmp_path: Path, tokenizer: Path) -> None:
    samples = [question(answer, reward=1.0) for answer in ("4", "five", "22")]
    folder = tmp_path / "run"
    batch = [training_sample(12, "new", sample) for sample in samples]
    write_bin(folder / "run_default/rollouts/step_1/train_rollouts.bin", [batch, 1, 0])
    write_bin(folder / "rollouts/step_1/rank_0.bin", [micro_batch("g17", samples)])
    append(folder / "token_exports/step_1/rank_0.jsonl", *[export_line(sample) for sample in samples])
    database = tmp_path / "x.sqlite"
    index(database, folder, tokenizer)
    assert rows(database, "select count(*), count(reward) from trajectories") == [(3, 3)]
    assert rows(
        database, "select producer, count(*) from annotations where producer <> 'record' group by 1 order by 1"
    ) == [
        ("micro_batches", 3),
        ("token_exports", 3),
    ]
    assert value(database, "select count(*) from annotations where trajectory_id is null") == 0
    assert rows(database, "select distinct split from trajectories") == [("train",)]


def traces_and_shards(folder: Path) -> list[dict[str, Any]]:
    asked = [message("user", "What is 2 + 2?"), message("assistant", "4")]
    records = [trace(id=uid, messages=asked, rewards={"r": 1.0}, token_ids=True) for uid in ("t1", "t2")]
    append(folder / "rollouts/step_1/train/all/traces.jsonl", *records)
    write_bin(folder / "rollouts/step_1/rank_0.bin", [micro_batch("g20", [question()])])
    return records


def test_traces_win_and_the_summary_says_what_is_left_aside(tmp_path: Path) -> None:
    traces_and_shards(tmp_path / "run")
    done = index(tmp_path / "x.sqlite", tmp_path / "run")
    assert rows(tmp_path / "x.sqlite", "select uid from trajectories order by 1") == [("t1",), ("t2",)]
    [(reason, left)] = done.others.items()
    assert (left, "--layout tokens" in reason) == ((1, ["rollouts/step_1/rank_0.bin"]), True)


def test_token_shards_are_read_when_asked_for(tmp_path: Path, tokenizer: Path) -> None:
    traces_and_shards(tmp_path / "run")
    index(tmp_path / "x.sqlite", tmp_path / "run", tokenizer, "tokens")
    assert rows(
        tmp_path / "x.sqlite", "select distinct s.layout from trajectories t join shards s on s.id = shard_id"
    ) == [("micro_batches",)]
    with pytest.raises(SourceError, match="already indexed"):
        index(tmp_path / "x.sqlite", tmp_path / "run", tokenizer)


def test_batches_annotate_the_traces_that_they_name(tmp_path: Path) -> None:
    folder, database = tmp_path / "run", tmp_path / "x.sqlite"
    records = traces_and_shards(folder)
    nodes = records[0]["nodes"]
    ids = [token for node in nodes for token in node["token_ids"]]
    mask = [bit for node in nodes for bit in node["mask"]]
    sample = Drawn([], ids=ids, mask=mask, advantage=0.5, trace_id="t1")
    write_bin(folder / "batches/step_1/rank_0.bin", [micro_batch("pC", [sample])])
    index(database, folder)
    assert rows(database, "select uid, effective, advantage, ship_step from trajectories order by uid") == [
        ("t1", 1, 0.5, 1),
        ("t2", None, None, None),
    ]
    connection = open_index(database)
    loaded = load_trajectory(connection, 1, Roots([folder]))
    connection.close()
    tokens = loaded.tokens
    assert tokens is not None
    assert tokens.ids == ids
    assert {value for value, bit in zip(tokens.advantages or [], mask, strict=True) if bit} == {0.5}
    assert {value for value, bit in zip(tokens.advantages or [], mask, strict=True) if not bit} == {None}


def test_an_evaluation_beside_token_shards_does_not_hide_them(tmp_path: Path, tokenizer: Path) -> None:
    asked = [message("user", "6 * 7?"), message("assistant", "42")]
    append(tmp_path / "run/rollouts/step_1/eval/all/traces.jsonl", trace(id="e", messages=asked))
    write_bin(tmp_path / "run/rollouts/step_1/rank_0.bin", [micro_batch("g20", [question()])])
    index(tmp_path / "x.sqlite", tmp_path / "run", tokenizer)
    assert rows(tmp_path / "x.sqlite", "select split, count(*) from trajectories group by 1 order by 1") == [
        ("eval", 1),
        ("train", 1),
    ]


def test_without_a_tokenizer_the_ids_are_grouped_and_said(tmp_path: Path) -> None:
    samples = [question("4"), question("5"), question("6", prompt="What is 3 + 3?")]
    write_bin(tmp_path / "run/rollouts/step_0/rank_0.bin", [micro_batch("g20", samples)])
    index(tmp_path / "x.sqlite", tmp_path / "run")
    assert rows(tmp_path / "x.sqlite", "select trajectories from prompt_groups order by 1") == [(1,), (2,)]
    assert "no tokenizer" in value(
        tmp_path / "x.sqlite", "select distinct content_kind || preview from trajectories limit 1"
    )
    adapter = PrimeRLAdapter(tmp_path / "run", index_path=tmp_path / "x.sqlite")
    loaded = RLTracer(adapter).step(0).prompts()[0].trajectory(0).load()
    adapter.close()
    assert loaded.messages == []
    assert loaded.tokens is not None
    assert loaded.tokens.pieces is None


def test_weights_with_the_same_endings_are_no_shards(tmp_path: Path) -> None:
    for name in ("pytorch_model.bin", "step_1/optimizer.pt", "data/train.parquet"):
        (tmp_path / "run" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "run" / name).write_bytes(b"weights")
    assert [shard.path for shard in PrimeRLSource().shards(tmp_path / "run") if not shard.aside] == []


def test_a_missing_tokenizer_is_one_sentence(tmp_path: Path) -> None:
    write_bin(tmp_path / "run/rollouts/step_0/rank_0.bin", [micro_batch("g20", [question()])])
    with pytest.raises(SourceError, match=r"no tokenizer\.json at"):
        source_for(tmp_path / "run", tokenizer=str(tmp_path / "nowhere"))


def test_a_tokenizer_that_has_gone_still_shows_the_ids(tmp_path: Path, tokenizer: Path) -> None:
    write_bin(tmp_path / "run/rollouts/step_0/rank_0.bin", [micro_batch("g20", [question()])])
    index(tmp_path / "x.sqlite", tmp_path / "run", tokenizer)
    (tokenizer / "tokenizer.json").unlink()
    connection = open_index(tmp_path / "x.sqlite")
    loaded = load_trajectory(connection, 1, Roots([tmp_path]))
    connection.close()
    assert loaded.tokens is not None
    assert any("no tokenizer.json" in remark for remark in loaded.metadata["remarks"])
