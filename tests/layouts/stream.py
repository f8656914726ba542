"""Writer of prime-rl's stream layout (J3): sealed and live chunks, annotations, index files, rollouts in flight."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from . import samples as known
from .episodes import episode_of, note_episode
from .expected import Expected
from .files import Place, append, write_json
from .records import MODEL, START, Record, hex_id, paths
from .samples import Sample, trace_of
from .seekable import seal

CHUNKS: list[list[tuple[list[Sample], str, int, int]]] = [  # samples, kind, step of dispatch, step of arrival
    [
        ([known.JUDGE_FAIL, known.GRADER], "train", 1, 1),
        ([known.JUDGE_PASS, known.GRADER], "train", 1, 1),
        ([known.COMPACTED], "train", 1, 2),
        ([], "train", 1, 1),
    ],
    [([known.MATH], "eval", 1, 1), ([known.TERMINAL], "eval", 1, 1), ([known.FORKED], "train", 1, 2)],
    [([known.DELEGATED], "train", 2, 2), ([known.PICTURE], "train", 2, 3)],
]


def write_j3(folder: Path, sealed: int = 2) -> Expected:
    """Write the stream of September 2026: three chunks, the first `sealed` of them as .zst, and their annotations."""
    expected = Expected(folder)
    top = folder / "monitors" / "file"
    traces = _write_chunks(expected, top / "traces")
    _write_annotations(expected, top / "traces" / "annotations", traces)
    for chunk in range(sealed):
        seal(top / "traces" / "stream" / f"{chunk:05d}.jsonl")
    if sealed:
        seal(top / "traces" / "annotations" / "orch" / "00000.jsonl")
    _write_surroundings(folder, top)
    return expected


def _write_chunks(expected: Expected, folder: Path) -> dict[int, Record]:
    """Write the chunks and their index, and return the first trace of each episode by its line in the stream."""
    traces: dict[int, Record] = {}
    number = 0
    for chunk, plan in enumerate(CHUNKS):
        path = folder / "stream" / f"{chunk:05d}.jsonl"
        for samples, kind, dispatch, arrival in plan:
            number += 1
            record = _episode(samples, hex_id("j3", number), kind, dispatch, arrival)
            [place] = append(path, record)
            note_episode(expected, samples, record, path, place, split=kind, step=arrival)
            append(folder / "stream.index.jsonl", _index_row(record, samples, kind, number, chunk, place))
            traces |= {number: record["traces"][0]} if samples else {}
    return traces


def _episode(samples: Sequence[Sample], uid: str, kind: str, dispatch: int, arrival: int) -> Record:
    record = episode_of(samples, uid, step=dispatch, split=kind, is_timeout=False)
    times = {"dispatch": {"step": dispatch, "time": START}, "arrival": {"step": arrival, "time": START + 30}}
    for trace in record["traces"]:
        trace["info"] |= {"kind": kind, **times}
        trace["nodes"] = [{"semantic_parents": [], **one} for one in trace["nodes"]]
    if samples == [known.DELEGATED]:
        # Where the sub-agent was called from and returned to: edges between branches, which join none.
        nodes = record["traces"][0]["nodes"]
        nodes[4]["semantic_parents"] = [{"node": 1, "type": "subagent_call"}]
        nodes[6]["semantic_parents"] = [{"node": 4, "type": "subagent_return"}]
    return record


def _index_row(record: Record, samples: Sequence[Sample], kind: str, number: int, chunk: int, place: Place) -> Record:
    # The line counts through the whole stream, the offset is in the uncompressed chunk.
    row = {"cost": None, "line": number, "offset": place.offset, "chunk": chunk, "id": record["id"], "kind": kind}
    row |= {"trace_ids": [trace["id"] for trace in record["traces"]], "env": record["env"]["name"]}
    row |= {"group": record["group"]["id"], "ok": record["ok"], "num_errors": len(record["errors"])}
    rewards = [sample.reward or 0.0 for sample in samples]
    row |= {"reward": sum(rewards) / len(rewards) if rewards else None, "advantage": None, "truncated": False}
    row |= {"branches": sum(sample.branches for sample in samples), "dispatch": START, "arrival": START + 30}
    return row


def _write_annotations(expected: Expected, folder: Path, traces: dict[int, Record]) -> None:
    failing, passing, compacted, forked = (traces[number] for number in (1, 2, 3, 7))
    shipped = ((failing, 1, -0.5), (passing, 1, 0.5), (compacted, 2, 0.5))
    _annotate(folder, "orch", 0, [_orch_update(expected, *facts) for facts in shipped])
    # A later update says only what has changed, and the newest value counts.
    newer = {"version": 1, "trace_id": passing["id"], "info": {"advantage": 0.75}, "branches": []}
    expected.ship(passing["id"], advantage=0.75)
    _annotate(folder, "orch", 1, [newer, _orch_update(expected, forked, 3, 0.25)])
    _annotate(folder, "trainer", 0, [_trainer_update(expected, trace) for trace in (failing, compacted, forked)])


def _annotate(folder: Path, producer: str, chunk: int, updates: list[Record]) -> None:
    places = append(folder / producer / f"{chunk:05d}.jsonl", *updates)
    for update, place in zip(updates, places, strict=True):
        row = {"trace_id": update["trace_id"], "chunk": chunk, "offset": place.offset, "info": update["info"]}
        append(folder / f"{producer}.index.jsonl", row)


def _orch_update(expected: Expected, trace: Record, step: int, advantage: float) -> Record:
    expected.ship(trace["id"], ship_step=step, advantage=advantage)
    info = {"effective": True, "ship": {"step": step, "time": START + 99}, "advantage": advantage}
    return _update(expected, trace, info, 0.0, advantages=[advantage] * len(trace["nodes"]))


def _trainer_update(expected: Expected, trace: Record) -> Record:
    numbers = range(len(trace["nodes"]))
    streams = {"trainer_logprobs": [-0.125 * (number + 1) for number in numbers], "entropies": [0.5 for _ in numbers]}
    return _update(expected, trace, {}, None, **streams, is_masked=[number == 1 for number in numbers])


def _update(expected: Expected, trace: Record, info: Record, elsewhere: float | None, **per_node: list[Any]) -> Record:
    """Return an update whose streams are as long as each branch's tokens; a sampled token has its node's value."""
    branches = []
    for index, path in enumerate(paths(trace["nodes"])):
        sampled = [(number, bit) for number in path for bit in trace["nodes"][number]["mask"]]
        streams = {name: [values[at] if bit else elsewhere for at, bit in sampled] for name, values in per_node.items()}
        branches.append({"index": index, **streams})
        expected.by_uid[trace["id"]]["streams"].setdefault(index, {}).update(streams)
    return {"version": 1, "trace_id": trace["id"], "info": info, "branches": branches}


def _write_surroundings(folder: Path, top: Path) -> None:
    # What lies around the stream and holds no record, though one of them looks like one.
    flight = trace_of(known.MATH, hex_id("in flight"))
    append(top / "traces" / "live" / f"{flight['id']}.jsonl", flight)
    append(top / "metrics.jsonl", {"step": 1, "time": START, "train/reward/mean": 0.5, "producer": "orch"})
    pending = {"id": hex_id("pending"), "kind": "train", "env": "terminal", "step": 4, "started": START}
    write_json(top / "traces" / "live" / "pending" / f"{pending['id']}.json", pending)
    write_json(top / "plan.json", {"aime-mini": {"1": 2}})
    write_json(folder / "configs" / "resolved" / "rl.json", {"model": {"name": MODEL}})
