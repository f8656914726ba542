"""What is taken from a record with odd values, and what is said where something is left out."""

from __future__ import annotations

from pathlib import Path

import pytest

from rltracer_sqlite.adapter import open_run
from rltracer_sqlite.sources import source_for
from rltracer_sqlite.sources.base import Entry, Problem, Shard
from rltracer_sqlite.sources.values import logprob_summary
from rltracer_sqlite.tool_names import names_json
from tests.indexing import index, rows
from tests.layouts import LAYOUTS, Expected, episode, line, message, node, trace, v0_row
from tests.record_scans import SAID, loaded, only_entry, replaced, scanned


@pytest.mark.parametrize(
    ("rewards", "reward"),
    [
        (b'{"a":{"score":1,"weight":0.5},"b":0.25}', 0.75),
        (b'{"a":{"score":NaN}}', None),
        (b'{"a":{"score":1},"b":null}', None),
        (b'{"a":{"score":1},"b":{"weight":2}}', None),
        (b'{"a":{"score":1e308,"weight":10}}', None),
        (b'{"a":"high"}', None),
        (b'{"a":{"score":1,"weight":null}}', 1.0),
        (b'{"a":{"score":1,"weight":0}}', 0.0),
        (b"{}", None),
        (b"[]", None),
    ],
)
def test_the_total_reward_is_known_or_missing(tmp_path: Path, rewards: bytes, reward: float | None) -> None:
    data = replaced(trace(SAID), "rewards", rewards)
    assert only_entry(tmp_path, data)[0].reward == reward
    [trajectory] = loaded(tmp_path, data)
    assert trajectory.metadata["reward"] == reward


@pytest.mark.parametrize(("recorded", "reward"), [(0.25, 0.25), (None, 1.0), (float("nan"), 1.0)])
def test_a_recorded_total_counts_before_the_sum(tmp_path: Path, recorded: float | None, reward: float) -> None:
    data = line(trace(SAID, rewards={"r": 1.0}, reward=recorded))
    assert only_entry(tmp_path, data)[0].reward == reward
    assert loaded(tmp_path, data)[0].metadata["reward"] == reward


@pytest.mark.parametrize(
    ("name", "odd", "remark"),
    [
        ("metrics", b'{"m":NaN}', "not finite"),
        ("metrics", b'{"m":1e999}', "not finite"),
        ("reward", b"1" + b"0" * 5000, "not finite"),
        ("reward", b"1" + b"0" * 310, "not finite"),
        ("stop_condition", b'"\\ud800"', "surrogate"),
        ("stop_condition", b'"\xff"', "invalid UTF-8"),
        ("policy_version", b"18446744073709551616", "left out"),
        ("errors", b'{"type":"x"}', "left out"),
        ("calls", b'[{"usage":{"completion_tokens":"many"}}]', "left out"),
    ],
)
def test_what_is_left_out_is_told(tmp_path: Path, name: str, odd: bytes, remark: str) -> None:
    entry, remarks = only_entry(tmp_path, replaced(trace(SAID), name, odd))
    assert (entry.turns, entry.prompt_key) == (1, only_entry(tmp_path, line(trace(SAID)))[0].prompt_key)
    [said] = remarks
    assert remark in said


@pytest.mark.parametrize("odd", [b"null", b'"x"', b"{}", b"7", b'{"message":null}', b'{"message":[]}'])
def test_an_odd_node_is_an_empty_message_among_the_others(tmp_path: Path, odd: bytes) -> None:
    nodes = trace(SAID)["nodes"]
    data = line(trace(nodes=[*nodes, {"@": 0}, node(message("assistant", "b"), 3)])).replace(b'{"@":0}', odd)
    entry, _ = only_entry(tmp_path, data)
    [trajectory] = loaded(tmp_path, data)
    assert (entry.turns, entry.branches) == (2, len(trajectory.branches)) == (2, 2)
    assert [said["role"] for said in trajectory.messages] == ["", "assistant"]


def test_an_odd_trace_leaves_its_siblings_alone(tmp_path: Path) -> None:
    data = line(episode([trace(SAID, id="a"), {}, trace(SAID, id="b")])).replace(b",{},", b",null,")
    found = scanned(tmp_path, data)
    assert [(part.uid, part.item) for part in found if isinstance(part, Entry)] == [("a", 0), ("b", 2)]
    assert len([part for part in found if isinstance(part, Problem)]) == 2
    assert [trajectory.metadata["uid"] for trajectory in loaded(tmp_path, data)] == ["a", "b"]


def test_long_texts_keep_their_words(tmp_path: Path) -> None:
    long = [message("user", "why? " * 200_000), message("assistant", "so. " * 250_000)]
    entry, _ = only_entry(tmp_path, line(trace(long)))
    assert len(entry.preview) <= 300
    [trajectory] = loaded(tmp_path, line(trace(long)))
    assert [said["content"] for said in trajectory.messages] == [said["content"] for said in long]


def test_a_negative_step_is_no_step(tmp_path: Path) -> None:
    shard = Shard("traces/stream/0.jsonl", "traces/stream/0.jsonl", "stream")
    data = [line(trace(SAID, info={"arrival": {"step": step}})) for step in (-1, None, 0)]
    found = scanned(tmp_path, *data, shard=shard)
    assert [part.step for part in found if isinstance(part, Entry)] == [None, None, 0]


def test_sums_beyond_what_a_database_holds_are_missing(tmp_path: Path) -> None:
    usage = [{"usage": {"prompt_tokens": 2**63 - 1, "completion_tokens": 2**62}} for _ in range(2)]
    [trajectory] = loaded(tmp_path, line(trace(SAID, calls=usage)))
    assert rows(tmp_path / "x.sqlite", "select prompt_tokens, completion_tokens from trajectories") == [
        (2**63 - 1, None)
    ]
    assert trajectory.metadata["completion"]["completion_tokens"] is None


def test_a_row_that_also_names_a_trace_is_a_rollout(tmp_path: Path) -> None:
    assert only_entry(tmp_path, line(v0_row(SAID, trace_id="x")))[0].turns == 1


def test_a_source_is_recognised_by_a_record_in_any_file(tmp_path: Path) -> None:
    (tmp_path / "anything.jsonl").write_bytes(line(trace(SAID)))
    assert source_for(tmp_path).name == source_for(tmp_path / "anything.jsonl").name == "prime-rl"


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_index_and_the_record_agree(tmp_path: Path, layout: str) -> None:
    expected: Expected = LAYOUTS[layout](tmp_path / "run")
    index(tmp_path / "x.sqlite", expected.root)
    names = "reward, advantage, turns, tool_calls, tools, stop_condition, truncated, prompt_tokens, completion_tokens"
    sql = f"select id, {names}, branches from trajectories where turns > 0"
    adapter = open_run(tmp_path / "x.sqlite")
    for identity, *row in rows(tmp_path / "x.sqlite", sql):
        found = adapter.load_trajectory(identity)
        facts, done = found.metadata, found.metadata["completion"]
        called = [facts["tool_calls"], names_json(tuple(facts["tools"]))]
        counts = [done["turns"], *called, done["stop_condition"], done["truncated"]]
        tokens = [done["prompt_tokens"], done["completion_tokens"], len(found.branches)]
        assert row == [pytest.approx(facts["reward"]), facts["advantage"], *counts, *tokens]
    adapter.close()


@pytest.mark.parametrize(
    ("recorded", "summary"),
    [
        ([[-1.0, -3.0], [-5.0]], (-3.0, -5.0, 3)),
        ([[-1.0, None, "x", [], float("nan"), float("-inf"), 10**400], [-3]], (-2.0, -3.0, 2)),
        ([[-1e308, -1e308], [], {}], (-1e308, -1e308, 2)),
        ([[True, -2.0]], (-0.5, -2.0, 2)),
        ([[], [None]], None),
    ],
)
def test_logprobs_are_summed_up_without_what_is_no_number(recorded, summary):
    found = logprob_summary(*recorded)
    assert found == (summary and dict(zip(("mean", "min", "count"), summary, strict=True)))
