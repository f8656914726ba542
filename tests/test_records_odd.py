"""Every field of a record with every odd value: each line is a row or a problem, and none is lost."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from rltracer_sqlite.adapter import open_run
from rltracer_sqlite.sources.base import Entry, Position
from rltracer_sqlite.sources.prime_rl import PrimeRLSource
from tests.indexing import index, rows, value
from tests.layouts import append, episode, line, trace, v0_row
from tests.record_scans import FILE, SAID, SHARD, replaced

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
    found = list(PrimeRLSource().scan(folder / "run", SHARD))
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
    for identity in [identity for identity, uid in first if not uid.startswith("good-")]:
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
