"""The recorded corpora: the numbers of an independent count, and messages equal to the record's along each branch."""

from __future__ import annotations

import io
import json
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.adapter import IndexedAdapter
from rltracer_sqlite.index.database import open_index
from rltracer_sqlite.loading import load_trajectory
from rltracer_sqlite.roots import Roots
from rltracer_sqlite.sources.files import read_bytes
from tests.indexing import index, rows, value
from tests.layouts import corpora, expected_sets
from tests.test_index_layouts import plain

TEXT_SETS = ("rollouts-v0", "rollouts-v1", "verifiers-evals", "verifiers-evals-v1", "primerl-evals", "edge")
SETS = {name: expected for name, expected in expected_sets().items() if name.startswith(TEXT_SETS)}

pytestmark = pytest.mark.skipif(not SETS, reason="the recorded corpora are not beside the repository")


@pytest.fixture(params=sorted(SETS))
def case(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path, dict[str, Any]]:
    root = (corpora() or Path()) / "prime-rl" / request.param
    database = tmp_path / "x.sqlite"
    index(database, root)
    return root, database, SETS[request.param]


def test_numbers(case: tuple[Path, Path, dict[str, Any]]) -> None:
    _, database, expected = case
    failed = value(database, "select count(*) from trajectories where uid = episode_id and turns = 0")
    steps = rows(database, "select distinct step from trajectories where step is not null order by step")
    splits = dict(rows(database, "select split, count(*) from trajectories where uid is not episode_id group by split"))
    assert value(database, "select count(*) from trajectories") - failed == expected["trajectories"]
    assert failed == expected["failed_episodes_without_traces"]
    assert value(database, "select count(reward) from trajectories") == expected["scored"]
    assert value(database, "select coalesce(sum(reward), 0) from trajectories") == pytest.approx(expected["reward_sum"])
    assert value(database, "select sum(branches) from trajectories") == expected["branches"]
    assert [step for (step,) in steps] == expected["steps"]
    # The count writes {"None": 0} for files whose layout has no splits.
    assert splits == ({None: expected["trajectories"]} if "None" in expected["splits"] else expected["splits"])
    assert value(database, "select count(*) from annotations where producer = 'effective'") == expected["effective"]
    assert value(database, "select count(*) from shards where state = 'waiting'") == expected["torn_tails"]
    unreadable = "select count(*) from problems where reason like 'not readable%'"
    assert value(database, unreadable) == expected["unreadable"]


def test_every_trajectory_loads_and_equals_its_record(case: tuple[Path, Path, dict[str, Any]]) -> None:
    root, database, _ = case
    connection = open_index(database)
    found = connection.execute(
        """
        select t.id, s.path, byte_offset, byte_length, item, branches
        from trajectories t join shards s on s.id = shard_id
        """
    ).fetchall()
    for identity, path, offset, length, item, branches in found:
        record = json.loads(read_bytes(root, path, offset, length))
        trace = record if item is None else record["traces"][item]
        loaded = load_trajectory(connection, identity, Roots([root]))
        assert [[plain(m) for m in branch] for branch in loaded.branches] == [
            [plain(m) for m in branch] for branch in branches_of(trace)
        ]
        assert loaded.messages == (loaded.branches[-1] if loaded.branches else [])
        assert len(loaded.branches) == branches
    connection.close()


def branches_of(trace: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """Walk a recorded graph from each leaf up to its root, without the library."""
    if "nodes" not in trace:
        parts = [trace.get("prompt") or [], trace.get("completion") or []]
        messages = [*parts[0], *parts[1]]
        return [messages] if messages else []
    nodes = trace["nodes"]
    parents = [node.get("parent") for node in nodes]
    found = []
    for leaf in sorted(set(range(len(nodes))) - set(parents)):
        path: list[int | None] = [leaf]
        while (parent := parents[path[0]]) is not None:  # type: ignore[index]
            path.insert(0, parent)
        found.append([nodes[number]["message"] for number in path])  # type: ignore[index]
    return found


def test_a_sealed_chunk_gives_the_bytes_of_its_whole_decompression() -> None:
    import zstandard

    folder = (corpora() or Path()) / "prime-rl/rollouts-v1/stream-pypi-0.4.0/monitors/file/traces/stream"
    sealed = sorted(folder.glob("*.zst"))
    assert sealed
    for file in sealed:
        with zstandard.ZstdDecompressor().stream_reader(
            io.BytesIO(file.read_bytes()), read_across_frames=True
        ) as whole:
            data = whole.read()
        path = file.name.removesuffix(".zst")
        for offset in range(0, len(data), 997):
            assert read_bytes(folder, path, offset, min(131, len(data) - offset)) == data[offset : offset + 131]


def test_a_run_opens_from_any_of_its_folders_and_files(tmp_path: Path) -> None:
    root = (corpora() or Path()) / "prime-rl/rollouts-v1/episode-2026-08-21-4bcb48e55a3"
    counts = []
    for number, place in enumerate((root, root / "rollouts", root / "rollouts/step_1/train/all/traces.jsonl")):
        database = tmp_path / f"{number}.sqlite"
        index(database, place)
        counts.append(rows(database, "select step, split, count(*) from trajectories where step = 1 group by 1, 2"))
    assert counts[0] == counts[1]
    assert counts[2][0][:2] == (1, "train")
    assert IndexedAdapter  # the same files serve the navigation API, see test_index_layouts
