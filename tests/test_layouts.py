"""The writers of test runs, checked with plain json and zstandard: what they say is there is there."""

from __future__ import annotations

import io
import json
import struct
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from tests import layouts
from tests.layouts import ABSENT, LAYOUTS, Expected, message

Record = dict[str, Any]
STREAM = "monitors/file/traces"


@pytest.fixture(params=LAYOUTS)
def written(request: pytest.FixtureRequest, tmp_path: Path) -> Expected:
    return LAYOUTS[request.param](tmp_path)


def plain_bytes(path: Path) -> bytes:
    if path.suffix != ".zst":
        return path.read_bytes()
    with path.open("rb") as file:
        return zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True).read()


def record_files(root: Path) -> list[Path]:
    names = ("results.jsonl", "traces.jsonl", "train_rollouts.jsonl", "eval_rollouts*.jsonl")
    return [*(path for name in names for path in root.rglob(name)), *root.glob(f"{STREAM}/stream/*")]


def whole_lines(path: Path) -> list[Record]:
    return [json.loads(data) for data in plain_bytes(path).split(b"\n")[:-1]]


def traces_and_rows(root: Path) -> Iterator[tuple[str, Record, Path]]:
    """Yield (uid, trace or row, file) for every one in the files, copies under effective/ included."""
    for path in record_files(root):
        offset = 0
        for data in plain_bytes(path).split(b"\n")[:-1]:
            record = json.loads(data)
            place = f"{path.relative_to(root).as_posix()}@{offset}"
            for one in record.get("traces", [record]):
                yield one["id"] if "nodes" in one else one.get("rollout_id", place), one, path
            offset += len(data) + 1


def total_reward(record: Record) -> float:
    """Return the total reward, NaN where it was not given."""
    if "nodes" not in record:
        return float("nan") if record["reward"] is None else record["reward"]
    parts = [part if isinstance(part, dict) else {"score": part, "weight": 1.0} for part in record["rewards"].values()]
    given = [part["score"] * part["weight"] for part in parts if part["score"] is not None]
    return sum(given) if given else float("nan")


def split_and_step(record: Record, path: Path) -> tuple[str | None, int]:
    if "stream" in path.parts:
        return record["info"]["kind"], record["info"]["arrival"]["step"]
    step = next((int(part[5:]) for part in path.parts if part.startswith("step_")), -1)
    if "rollouts" not in path.parts:
        return (None if step == -1 else "eval"), step
    return ("train" if "train" in path.parts or path.name.startswith("train") else "eval"), step


def test_counts_equal_an_independent_recount(written: Expected) -> None:
    found = {uid: (one, path) for uid, one, path in traces_and_rows(written.root) if "effective" not in path.parts}
    rewards = [reward for one, _ in found.values() if (reward := total_reward(one)) == reward]
    places = [split_and_step(one, path) for one, path in found.values()]
    assert (written.trajectories, written.scored) == (len(found), len(rewards))
    assert written.reward_sum == pytest.approx(sum(rewards))
    assert written.splits == Counter(split for split, _ in places)
    assert written.steps == sorted({step for _, step in places} - {-1})


def test_branches_are_the_nodes_that_are_no_parent(written: Expected) -> None:
    leaves = {}
    for uid, one, _ in traces_and_rows(written.root):
        nodes = one.get("nodes", [{}])
        leaves[uid] = len(set(range(len(nodes))) - {each.get("parent") for each in nodes})
    assert {uid: found["branches"] for uid, found in written.by_uid.items()} == leaves


def test_effective_and_failed(written: Expected) -> None:
    shipped = {uid for uid, _, path in traces_and_rows(written.root) if "effective" in path.parts}
    for path in written.root.glob(f"{STREAM}/annotations/orch/*"):
        shipped |= {update["trace_id"] for update in whole_lines(path) if update["info"].get("effective")}
    failed = {one["id"] for path in record_files(written.root) for one in whole_lines(path) if one.get("traces") == []}
    assert {uid for uid, found in written.by_uid.items() if found["effective"]} == shipped
    assert set(written.failed) == failed


def test_each_trajectory_is_where_it_is_said_to_be(written: Expected) -> None:
    for uid, found in written.by_uid.items():
        path = written.root / found["file"]
        data = plain_bytes(path if path.exists() else path.with_name(path.name + ".zst"))
        piece = data[found["offset"] : found["offset"] + found["length"]]
        assert data.split(b"\n")[found["line"] - 1] == piece
        record = json.loads(piece)
        one = record if found["item"] is None else record["traces"][found["item"]]
        assert uid in (one.get("id"), one.get("rollout_id"), f"{found['file']}@{found['offset']}")
        spoken = [each["message"] for each in one["nodes"]] if "nodes" in one else one["prompt"] + one["completion"]
        assert spoken[-1] == found["messages"][-1]
        assert all(said in spoken for said in found["messages"])


def test_torn_tails_can_be_completed(written: Expected) -> None:
    tails = {path: plain_bytes(path).split(b"\n")[-1] for path in record_files(written.root)}
    torn = {path.relative_to(written.root).as_posix(): half for path, half in tails.items() if half}
    assert torn.keys() == written.torn.keys()
    for file, half in torn.items():
        assert isinstance(json.loads(half + written.torn[file]), dict)
        with pytest.raises(json.JSONDecodeError):
            json.loads(half)


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_layout_is_the_same_every_time(name: str, tmp_path: Path) -> None:
    copies = []
    for folder in (tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
        LAYOUTS[name](folder)
        copies.append({path.relative_to(folder): path.read_bytes() for path in folder.rglob("*") if path.is_file()})
    assert copies[0] == copies[1]


@pytest.mark.parametrize("size", [1, 4096, 4097, 20_000])
def test_a_sealed_chunk_is_seekable(tmp_path: Path, size: int) -> None:
    path = tmp_path / "00000.jsonl"
    data = bytes(index % 251 for index in range(size))
    path.write_bytes(data)
    packed = layouts.seal(path).read_bytes()
    frames, descriptor, magic = struct.unpack("<IBI", packed[-9:])
    table = len(packed) - 9 - 8 * frames - 8
    sizes = list(struct.iter_unpack("<II", packed[table + 8 : -9]))
    assert (frames, descriptor, magic, path.exists()) == (-(-size // 4096), 0, 0x8F92EAB1, False)
    assert struct.unpack_from("<II", packed, table) == (0x184D2A5E, 8 * frames + 9)
    assert [sum(column) for column in zip(*sizes, strict=True)] == [table, size]
    assert plain_bytes(tmp_path / "00000.jsonl.zst") == data
    last = io.BytesIO(packed[table - sizes[-1][0] : table])
    assert zstandard.ZstdDecompressor().stream_reader(last).read() == data[-sizes[-1][1] :]


def test_sealing_may_leave_both_and_changes_no_byte(tmp_path: Path) -> None:
    path = layouts.write_j3(tmp_path, sealed=0).root / STREAM / "stream" / "00000.jsonl"
    sealed = layouts.seal(path, keep=True)
    assert plain_bytes(sealed) == path.read_bytes()
    assert struct.unpack("<I", sealed.read_bytes()[-9:-5])[0] >= 3


def test_stream_index_points_at_episodes(tmp_path: Path) -> None:
    traces = layouts.write_j3(tmp_path).root / STREAM
    chunks = [plain_bytes(path) for path in sorted((traces / "stream").iterdir())]
    rows = whole_lines(traces / "stream.index.jsonl")
    pointed = [json.loads(chunks[row["chunk"]][row["offset"] :].split(b"\n")[0]) for row in rows]
    assert [one["id"] for one in pointed] == [row["id"] for row in rows]
    assert [row["line"] for row in rows] == list(range(1, 1 + sum(chunk.count(b"\n") for chunk in chunks)))


def test_annotated_streams_are_as_long_as_their_branch(tmp_path: Path) -> None:
    written = layouts.write_j3(tmp_path)
    traces = {uid: one for uid, one, _ in traces_and_rows(written.root)}
    annotated = {uid: found for uid, found in written.by_uid.items() if found["streams"]}
    assert sorted(len(found["streams"]) for found in annotated.values()) == [1, 1, 2, 2]
    for uid, found in annotated.items():
        last = [one for one in traces[uid]["nodes"] if one["message"] in found["messages"]]
        mask = [bit for one in last for bit in one["mask"]]
        streams = found["streams"][found["branches"] - 1]
        assert {len(values) for values in streams.values()} == {len(mask)}
        assert [value != 0.0 for value in streams["advantages"]] == mask
        assert [value is not None for value in streams.get("entropies", [])] in (mask, [])


def test_a_trace_takes_overrides() -> None:
    said = [message("user", "hi\u2028"), message("assistant", "yes")]
    one = layouts.trace(said, rewards={"r": 1.0}, task={"idx": 3}, group="g", token_ids=True, ok=False, errors=ABSENT)
    assert (one["rewards"], one["task"]["data"], one["info"]) == ({"r": 1.0}, {"idx": 3}, {"group_id": "g"})
    assert (one["ok"], "errors" in one) == (False, False)
    assert [(len(each["logprobs"]), sum(each["mask"]) > 0) for each in one["nodes"]] == [(0, False), (14, True)]
    assert layouts.line(one).count(b"\n") == 1
    assert "\u2028".encode() in layouts.line(one)


def test_an_episode_and_a_row_take_overrides(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "records.jsonl"
    failed = layouts.episode(errors=[{"type": "E"}], step=4, split="eval")
    row = layouts.v0_row([message("user", "q"), message("assistant", "a")], reward=None, metrics={"m": 1}, info=ABSENT)
    places = layouts.append(path, failed, row) + layouts.append(path, layouts.node(message("user")))
    assert (failed["ok"], failed["run"]["work"]["step"], failed["traces"]) == (False, 4, [])
    assert ("info" in row, row["m"], row["completion"]) == (False, 1, [message("assistant", "a")])
    assert [place.line for place in places] == [1, 2, 3]
    assert places[2].offset + places[2].length + 1 == path.stat().st_size


def test_expected_sets_name_folders_of_the_corpora() -> None:
    root = layouts.corpora()
    if root is None:
        pytest.skip("the corpora are not beside this repository")
    sets = layouts.expected_sets()
    assert sets
    assert [name for name in sets if not (root / "prime-rl" / name).is_dir()] == []
