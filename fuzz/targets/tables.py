"""Tables of other systems in JSON and JSONL, and verifier workflows."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

from rltracer_sqlite.sources import lines, source_named
from rltracer_sqlite.sources.base import Entry, LocatorError, Position, Shard, Source, SourceError
from rltracer_sqlite.sources.table import joined
from rltracer_sqlite.sources.table.built_in import PRESETS, preset
from rltracer_sqlite.sources.workflow import WorkflowSource
from rltracer_sqlite.tool_names import names_of
from tests.table_samples import SAMPLES

from ..invariants import check_nothing_lost, entries, patched, place_of, scanned
from ..scratch import scratch
from ..target import Target

EMPTY_GROUPS = (b"[]", b"[ ]")  # a group of no answers is a record without trajectories


def check_table(data: bytes) -> None:
    """Every byte is told, pieces and restarts change nothing, and each entry loads as what was counted."""
    head, content = data[0] if data else 0, data[1:]
    source = source_named(PRESETS[head % len(PRESETS)])
    is_json = head >= 128
    name = "a.json" if is_json else "a.jsonl"
    check_file(source, content, Shard(name, name, "json" if is_json else "lines"))


def check_workflow(data: bytes) -> None:
    """The same of the files of a workflow."""
    check_file(WorkflowSource(), data[1:], Shard("a.jsonl", "a.jsonl", "lines"))


def check_file(source: Source, content: bytes, shard: Shard) -> None:
    """Check one file of records, whichever source reads it."""
    root = scratch("tables")
    (root / shard.file).write_bytes(content)
    found = scanned(source, root, shard)
    with patched(lines, CHUNK_BYTES=1 + len(content) % 53), patched(joined, COMMIT_RECORDS=2):
        pieces = scanned(source, root, shard)
        if found is None or pieces is None:
            assert found is pieces
            return
        assert entries(pieces) == entries(found)
        assert pieces[-1] == found[-1]
        if shard.layout == "lines":
            check_resumed_entries(source, root, shard, pieces)
    if shard.layout == "lines" and not any(group in content for group in EMPTY_GROUPS):
        check_nothing_lost(content.replace(b"\xef\xbb\xbf", b"   "), found)
    for entry in entries(found)[:20]:
        check_load(source, root, shard, entry)


def check_resumed_entries(source: Source, root: Path, shard: Shard, found: list[Any]) -> None:
    """Check that a scan goes on from each of its positions with the entries that came after it."""
    for at, one in enumerate(found):
        if isinstance(one, Position):
            assert entries(source.scan(root, shard, one)) == entries(found[at + 1 :])


def check_load(source: Source, root: Path, shard: Shard, entry: Entry) -> None:
    """What is shown of a trajectory is what the index counted."""
    try:
        shown = source.load(root, [place_of(entry, shard)])
    except LocatorError as error:
        if shard.layout == "sqlite" and "has no row" in str(error):
            return  # in a damaged tree of pages a row may be met on the way and still not be found
        raise AssertionError(f"an entry that cannot be loaded: {error}") from error
    metadata = shown.metadata
    assert (metadata["uid"], metadata["reward"], metadata["env"]) == (entry.uid, entry.reward, entry.env)
    completion = metadata["completion"]
    told = [completion["prompt_tokens"], completion["completion_tokens"], completion["stop_condition"]]
    assert told == [entry.prompt_tokens, entry.completion_tokens, entry.stop_condition]
    assert (metadata["tool_calls"], metadata["tools"]) == (entry.tool_calls, names_of(entry.tools))
    said = [message["role"] for branch in shown.branches for message in branch]
    assert said.count("assistant") in (entry.turns, 0)
    try:
        _ = shown.tokens
    except SourceError as error:
        assert str(error)


@cache
def table_seeds() -> list[bytes]:
    """Return the small files of the tests for every system, as lines and as an array."""
    seeds = []
    with tempfile.TemporaryDirectory() as name:
        for sample, (source, write) in SAMPLES.items():
            if sample.startswith("trl"):
                continue  # Parquet
            folder = Path(name) / sample
            write(folder)
            number = PRESETS.index(source)
            for file in sorted([*folder.rglob("*.jsonl"), *folder.rglob("*.json")]):
                content = file.read_bytes()[:8000]
                seeds.append(bytes([number]) + content)
                seeds.append(
                    bytes([130 + (number - 130) % len(PRESETS)]) + b"[" + b",".join(content.split(b"\n")[:2]) + b"]"
                )
    return list(dict.fromkeys(seeds))


def words() -> tuple[str, ...]:
    """Return the columns that the built-in mappings speak of."""
    found = set()
    for name in PRESETS:
        for shape in preset(name).shapes:
            columns = {column for role in shape.roles.values() for column in role.columns}
            found |= {part for path in columns | shape.used | set(shape.test.has) for part in path.split(".")}
    return (*sorted(found), "role", "content", "assistant", "user", "<|im_start|>user\n", "[{", "tool_calls")


def workflow_seeds() -> list[bytes]:
    said = b'[{"role":"user","content":"q"},{"role":"assistant","content":"a"}]'
    plain = b'{"id":"a","final_row":{"rubric":{"messages":' + said + b'}},"score":0.5}\n'
    text = b'{"rubric":{"messages":"' + said.replace(b'"', b'\\"') + b'"},"x":{"y":1}}\n'
    return [b"\0" + plain + text, b"\0" + plain * 3, b"\0" + text + plain[:40]]


TARGETS = {
    "tables": Target("tables", "JSON and JSONL of other systems", check_table, table_seeds, "json", words()),
    "workflow": Target(
        "workflow", "JSONL of verifier workflows", check_workflow, workflow_seeds, "json",
        ("final_row", "rubric", "messages", "role", "content", "id"),
    ),
}  # fmt: skip
