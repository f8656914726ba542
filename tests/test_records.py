"""Records with odd values: each gives a row, with a remark where something was left out, or a problem. None is lost."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.adapter import open_run
from rltracer_sqlite.model import Trajectory
from rltracer_sqlite.sources import source_for
from rltracer_sqlite.sources.base import Entry, LocatorError, NotRollouts, Position, Problem, Scanned, Shard
from rltracer_sqlite.sources.prime_rl.scan import scan_lines
from rltracer_sqlite.sources.values import logprob_summary
from tests.indexing import index, rows, value
from tests.layouts import LAYOUTS, Expected, append, episode, line, message, node, spaced_line, trace, v0_row

FILE = "rollouts/step_1/train/all/traces.jsonl"
SHARD = Shard(FILE, FILE, "traces", 1, "train")
SAID = [message("system", "be brief"), message("user", "6 * 7?"), message("assistant", "42")]

ODD = {
    "null": b"null", "true": b"true", "integer": b"5", "negative": b"-1", "2**64": b"18446744073709551616",
    "5000 digits": b"1" + b"0" * 5000, "fraction": b"1.5", "NaN": b"NaN", "infinity": b"-Infinity", "1e400": b"1e400",
    "text": b'"x"', "no text": b'""', "half a pair": b'"\\ud800"', "NUL": b'"a\\u0000b"', "raw control": b'"\x00\x1b"',
    "invalid UTF-8": b'"\xff\xfe"', "separators": '"x\u2028\u2029\u0085y"'.encode(),
    "1 MB": b'"' + b"x" * 1_000_000 + b'"',
    "list": b"[]", "numbers": b"[1]", "nulls": b"[null]", "texts": b'["x"]', "object": b"{}", "value": b'{"a":1}',
    "role": b'{"role":5,"type":{},"score":"high","id":[],"message":7}', "deep": b"[" * 900 + b"]" * 900,
    "deeper": b'{"a":' * 5000 + b"1" + b"}" * 5000,
}  # fmt: skip
TRACE_FIELDS = [
    "id", "task", "agent", "nodes", "calls", "rewards", "metrics", "info", "is_completed", "ok", "stop_condition",
    "errors", "error", "timing", "run", "group_id", "env_name", "kind", "policy_version", "eval_step", "tools",
    "traces", "reward", "advantage", "trace_id", "branches", "rollout_id", "token_usage", "num_input_tokens",
    "verifiers",
]  # fmt: skip
EPISODE_FIELDS = ["id", "env", "task", "group", "run", "ok", "errors", "traces"]
V0_FIELDS = [
    "example_id", "prompt", "completion", "answer", "info", "reward", "error", "timing", "is_completed", "is_truncated",
    "stop_condition", "metrics", "tool_defs", "token_usage", "task", "advantage", "is_filtered", "total_ms",
    "rollout_id",
]  # fmt: skip
NODE_FIELDS = ["parent", "message", "sampled", "finish_reason", "usage", "token_ids", "mask", "logprobs"]
MESSAGE_FIELDS = ["role", "content", "tool_calls", "reasoning_content", "tool_call_id", "name"]


def replaced(record: dict[str, Any], name: str, odd: bytes) -> bytes:
    """Return the line of a record in which one value is other bytes."""
    return line({**record, name: "@odd@"}).replace(b'"@odd@"', odd)


def odd_lines() -> Iterator[bytes]:
    for odd in ODD.values():
        yield odd + b"\n"
        yield from (replaced(trace(SAID, rewards={"r": 1.0}), name, odd) for name in TRACE_FIELDS)
        yield from (replaced(episode([trace(SAID)]), name, odd) for name in EPISODE_FIELDS)
        yield from (replaced(v0_row(SAID), name, odd) for name in V0_FIELDS)
        for number in range(3):
            nodes = trace(SAID)["nodes"]
            parts = [replaced(nodes[number], name, odd)[:-1] for name in NODE_FIELDS]
            said = [replaced(nodes[number]["message"], name, odd)[:-1] for name in MESSAGE_FIELDS]
            parts += [line({**nodes[number], "message": "@"})[:-1].replace(b'"@"', part) for part in said]
            nodes[number] = {"@": 0}
            yield from (line(trace(nodes=nodes, calls=[])).replace(b'{"@":0}', part) for part in parts)


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[bytes]]:
    """A run of odd lines, each behind a good one; the texts of 1 MB and deep nests once only."""
    lines = [data for data in odd_lines() if len(data) < 20_000]
    path = tmp_path_factory.mktemp("odd") / "run" / FILE
    append(path)
    path.write_bytes(b"".join(line(trace(SAID, id=f"good-{n}")) + data for n, data in enumerate(lines)))
    return path.parents[5], lines


@pytest.mark.threat("T2")
def test_every_odd_line_is_a_row_or_a_problem(odd: tuple[Path, list[bytes]]) -> None:
    folder, lines = odd
    found = list(scan_lines(folder / "run", SHARD, Position()))
    told = {part.line for part in found if not isinstance(part, Position)}
    good = {part.uid for part in found if isinstance(part, Entry)}
    assert told == set(range(1, 2 * len(lines) + 1))
    assert good >= {f"good-{number}" for number in range(len(lines))}


def test_every_row_of_an_odd_line_can_be_indexed_twice_and_loaded(odd: tuple[Path, list[bytes]]) -> None:
    folder, lines = odd
    index(folder / "x.sqlite", folder / "run")
    first = rows(folder / "x.sqlite", "select id, uid from trajectories order by id")
    assert len(first) > 1.9 * len(lines)  # nearly every odd line is still a trajectory
    adapter = open_run(folder / "x.sqlite")
    for identity, _ in first:
        loaded = adapter.load_trajectory(identity)
        json.dumps([loaded.messages, loaded.metadata, loaded.branches, loaded.tools], ensure_ascii=False).encode()
    adapter.close()
    os.utime(folder / "run" / FILE, ns=(1, 1))
    index(folder / "x.sqlite", folder / "run")
    assert rows(folder / "x.sqlite", "select id, uid from trajectories order by id") == first


@pytest.mark.parametrize("name", ["1 MB", "deep", "deeper"])
@pytest.mark.parametrize("field", ["info", "task", "id", "group_id", "env_name", "stop_condition", "metrics", "error"])
def test_long_and_deep_values_are_cut_or_told(tmp_path: Path, field: str, name: str) -> None:
    append(tmp_path / "run" / FILE)
    (tmp_path / "run" / FILE).write_bytes(replaced(trace(SAID), field, ODD[name]) + line(trace(SAID)))
    index(tmp_path / "x.sqlite", tmp_path / "run")
    found = value(tmp_path / "x.sqlite", "select count(*) from trajectories")
    assert found == 2 or value(tmp_path / "x.sqlite", "select count(*) from problems where line = 1") == 1
    assert (tmp_path / "x.sqlite").stat().st_size < 500_000


def scanned(tmp_path: Path, *lines: bytes, shard: Shard = SHARD) -> list[Scanned]:
    append(tmp_path / shard.file)
    (tmp_path / shard.file).write_bytes(b"".join(lines))
    return list(scan_lines(tmp_path, shard, Position()))


def only_entry(tmp_path: Path, data: bytes) -> tuple[Entry, list[str]]:
    found = scanned(tmp_path, data)
    [entry] = [part for part in found if isinstance(part, Entry)]
    return entry, [part.reason for part in found if isinstance(part, Problem)]


def loaded(tmp_path: Path, *lines: bytes) -> list[Trajectory]:
    append(tmp_path / "run" / FILE)
    (tmp_path / "run" / FILE).write_bytes(b"".join(lines))
    index(tmp_path / "x.sqlite", tmp_path / "run")
    adapter = open_run(tmp_path / "x.sqlite")
    try:
        ids = rows(tmp_path / "x.sqlite", "select id from trajectories order by byte_offset, item")
        return [adapter.load_trajectory(identity) for (identity,) in ids]
    finally:
        adapter.close()


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


# The graph


@pytest.mark.parametrize(
    ("parents", "branches", "bad"),
    [
        ([None, 0, 1], [[0, 1, 2]], 0),
        ([0, 0, 1], [[0, 1, 2]], 1),  # its own parent
        ([2, 0, 1], [[0, 1, 2]], 1),  # a circle
        ([None, 2, 1], [[0], [1, 2]], 1),
        ([None, -1, 1], [[0], [1, 2]], 1),
        ([None, 99, 0], [[1], [0, 2]], 1),
        ([None, 2**70, -(2**70)], [[0], [1], [2]], 2),
        ([None, 0, 0], [[0, 1], [0, 2]], 0),
    ],
)
def test_parents_that_cannot_be_begin_a_branch(
    tmp_path: Path, parents: list[int | None], branches: list[list[int]], bad: int
) -> None:
    data = line(trace(nodes=[node(said, parent) for said, parent in zip(SAID, parents, strict=True)]))
    entry, remarks = only_entry(tmp_path, data)
    [trajectory] = loaded(tmp_path, data)
    assert trajectory.branch_nodes == branches
    assert entry.branches == len(branches)
    assert len(remarks) == min(bad, 1)
    assert all("parent" in remark for remark in remarks)


def test_a_prompt_does_not_lead_to_what_comes_after_the_answer(tmp_path: Path) -> None:
    wrong = [node(message("user", "6 * 7?")), node(message("assistant", "42"), 2), node(message("user", "secret"), 0)]
    entry, _ = only_entry(tmp_path, line(trace(nodes=wrong)))
    assert entry.preview == "(empty prompt)"


def test_a_record_of_100_000_nodes(tmp_path: Path) -> None:
    chain = [{"message": message("user", "q")}, *({"parent": n, "message": SAID[2]} for n in range(99_999))]
    data = line(trace(nodes=chain, calls=[]))
    assert (only_entry(tmp_path, data)[0].turns, only_entry(tmp_path, data)[0].branches) == (99_999, 1)
    [trajectory] = loaded(tmp_path, data)
    assert len(trajectory.messages) == 100_000


def test_branches_beyond_any_memory_are_counted_and_not_shown(tmp_path: Path) -> None:
    comb = [{"message": SAID[1]}, *({"parent": n // 2 * 2, "message": SAID[2]} for n in range(99_999))]
    data = line(trace(nodes=comb, calls=[]))
    assert only_entry(tmp_path, data)[0].branches == 50_000
    with pytest.raises(LocatorError, match="50,000 branches"):
        loaded(tmp_path, data)


def test_long_texts_keep_their_words(tmp_path: Path) -> None:
    long = [message("user", "why? " * 200_000), message("assistant", "so. " * 250_000)]
    entry, _ = only_entry(tmp_path, line(trace(long)))
    assert len(entry.preview) <= 300
    [trajectory] = loaded(tmp_path, line(trace(long)))
    assert [said["content"] for said in trajectory.messages] == [said["content"] for said in long]


# Identity


@pytest.mark.parametrize(
    "odd", ["a\0b", "x" * 201, "x" * 100_000, "é" * 300, "../../x", "'; drop table runs; --", "\u2028"]
)
def test_odd_ids_identify(tmp_path: Path, odd: str) -> None:
    lines = [line(trace(SAID, id=odd)), line(trace(SAID, id=odd + "y")), line(v0_row(SAID, rollout_id=odd + "z"))]
    loaded(tmp_path, *lines)
    os.utime(tmp_path / "run" / FILE, ns=(1, 1))
    assert len(loaded(tmp_path, *lines)) == 3
    assert value(tmp_path / "x.sqlite", "select max(length(uid)) from trajectories") <= 200


@pytest.mark.parametrize("recorded", [None, "", [], {}])
def test_a_record_without_an_id_is_known_by_its_place(tmp_path: Path, recorded: Any) -> None:
    assert len(loaded(tmp_path, line(trace(SAID, id=recorded)), line(trace(SAID, id=recorded)))) == 2


def test_an_id_that_stands_twice_is_counted_once_and_told(tmp_path: Path) -> None:
    same = [line(trace([message("user", text)], id="same")) for text in ("first", "second")]
    [trajectory] = loaded(tmp_path, *same)
    assert trajectory.messages[0]["content"] == "second"
    [(number, reason)] = rows(tmp_path / "x.sqlite", "select line, reason from problems")
    assert number == 1
    assert "stands again in a later line" in reason


@pytest.mark.parametrize("answer", ["é", {"a": [1, 2.5, None]}, ["x", "y"], 7])
def test_the_writing_of_a_ground_truth_does_not_tell_prompts_apart(tmp_path: Path, answer: Any) -> None:
    asked = {"answer": answer, "prompt": [message("user", "q")]}
    plain, noted = v0_row(SAID, **asked), v0_row(SAID, metrics={"m": float("nan")}, **asked)
    found = scanned(tmp_path, line(plain), spaced_line(plain), line(noted), spaced_line(noted))
    assert len({(part.prompt_key, part.task) for part in found if isinstance(part, Entry)}) == 1


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


# Lines that are no records

UNKNOWN = Shard("notes.jsonl", "notes.jsonl", "file")


def test_lines_that_are_no_records_are_told_once(tmp_path: Path) -> None:
    notes = [line({"note": number}) for number in range(3)]
    found = scanned(tmp_path, line(trace(SAID)), *notes, b"\n", line(trace(SAID)))
    [problem] = [part for part in found if isinstance(part, Problem)]
    assert (problem.line, problem.reason) == (2, "3 lines that are no rollout records (the first: keys: note)")
    assert len([part for part in found if isinstance(part, Entry)]) == 2


@pytest.mark.parametrize("header", [{"version": 1}, {"name": "x", "value": 5}])
def test_a_header_does_not_hide_the_records_behind_it(tmp_path: Path, header: Any) -> None:
    found = scanned(tmp_path, line(header), line(trace(SAID)), shard=UNKNOWN)
    assert [type(part) for part in found] == [Problem, Entry, Position]


@pytest.mark.parametrize("count", [1, 99, 100, 5000])
def test_a_file_of_other_lines_is_put_aside_after_its_first_lines(tmp_path: Path, count: int) -> None:
    with pytest.raises(NotRollouts, match="keys: text"):
        scanned(tmp_path, *[line({"text": "x"})] * count, shard=UNKNOWN)


@pytest.mark.parametrize("blank", [b"\n", b"\r\n", b"  \t\n", b"\n\n\n"])
def test_blank_lines_count_as_lines_only(tmp_path: Path, blank: bytes) -> None:
    found = scanned(tmp_path, blank, line(trace(SAID)).rstrip(b"\n") + b"\r\n")
    assert [part.line for part in found if isinstance(part, Entry)] == [blank.count(b"\n") + 1]


# What the index says and what loading says


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_index_and_the_record_agree(tmp_path: Path, layout: str) -> None:
    expected: Expected = LAYOUTS[layout](tmp_path / "run")
    index(tmp_path / "x.sqlite", expected.root)
    names = "reward, advantage, turns, tool_calls, stop_condition, truncated, prompt_tokens, completion_tokens"
    sql = f"select id, {names}, branches from trajectories where turns > 0"
    adapter = open_run(tmp_path / "x.sqlite")
    for identity, *row in rows(tmp_path / "x.sqlite", sql):
        found = adapter.load_trajectory(identity)
        facts, done = found.metadata, found.metadata["completion"]
        counts = [done["turns"], facts["tool_calls"], done["stop_condition"], done["truncated"]]
        tokens = [done["prompt_tokens"], done["completion_tokens"], len(found.branches)]
        assert row == [pytest.approx(facts["reward"]), facts["advantage"], *counts, *tokens]
    adapter.close()


def test_a_source_is_recognised_by_a_record_in_any_file(tmp_path: Path) -> None:
    (tmp_path / "anything.jsonl").write_bytes(line(trace(SAID)))
    assert source_for(tmp_path).name == source_for(tmp_path / "anything.jsonl").name == "prime-rl"


@pytest.mark.parametrize(
    ("recorded", "summary"),
    [
        ([[-1.0, -3.0], [-5.0]], (-3.0, -5.0, 3)),
        ([[-1.0, None, "x", [], float("nan"), float("-inf"), 10**400], [-3]], (-2.0, -3.0, 2)),
        ([[-1e308, -1e308], [], {}], (float("-inf"), -1e308, 2)),
        ([[True, -2.0]], (-0.5, -2.0, 2)),
        ([[], [None]], None),
    ],
)
def test_logprobs_are_summed_up_without_what_is_no_number(recorded, summary):
    found = logprob_summary(*recorded)
    assert found == (summary and dict(zip(("mean", "min", "count"), summary, strict=True)))
