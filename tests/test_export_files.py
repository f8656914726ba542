"""The files: their formats, what stays when something fails, and sources that have changed since they were indexed."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard

from rltracer_sqlite.export import ExportError, ExportPreferences, FieldFilter, TraceDataExporter
from rltracer_sqlite.export.write import refuse_target
from rltracer_sqlite.sources.base import LocatorError
from tests.export_runs import export, indexed, read_rows, rollout, spec, write_steps
from tests.indexing import index
from tests.layouts import append, seal, trace
from tests.layouts.samples import PICTURE, trace_of

TRACES = "rollouts/step_1/train/all/traces.jsonl"
READERS: dict[str, Callable[[Path], bytes]] = {
    ".jsonl": Path.read_bytes,
    ".ndjson": Path.read_bytes,
    ".jsonl.gz": lambda path: gzip.decompress(path.read_bytes()),
    ".jsonl.zst": lambda path: zstandard.ZstdDecompressor().decompressobj().decompress(path.read_bytes()),
}


def exporter(database: Path, **preferences: Any) -> TraceDataExporter:
    return TraceDataExporter([spec(database)], ExportPreferences(**preferences))


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Return the index of ten rollouts of five prompts."""
    return indexed(tmp_path, {1: [rollout(f"t{n}", f"q{n % 5}", calls=n % 3) for n in range(10)]})


@pytest.mark.parametrize("ending", READERS)
def test_every_format_holds_the_same_lines(tmp_path: Path, database: Path, ending: str) -> None:
    exporter(database).write_jsonl(tmp_path / "plain")
    result = exporter(database).write_jsonl(tmp_path / f"out{ending}")
    assert READERS[ending](result.output_path) == (tmp_path / "plain").read_bytes()
    assert result.row_count == result.selected_count == 10


@pytest.mark.parametrize("ending", [*READERS, ".parquet"])
def test_the_same_seed_gives_the_same_bytes(tmp_path: Path, database: Path, ending: str) -> None:
    if ending == ".parquet":
        pytest.importorskip("pyarrow")
    contents = [
        exporter(database, target_count=7).write(tmp_path / f"{name}{ending}").output_path.read_bytes() for name in "ab"
    ]
    assert contents[0] == contents[1]


def test_rows_stand_in_the_order_of_the_files(tmp_path: Path) -> None:
    steps = {step: [rollout(f"{step}-{n}", f"q{step}{n}") for n in range(3)] for step in (10, 2)}
    rows = export(spec(indexed(tmp_path, steps)), tmp_path / "out.jsonl")
    assert [row["messages"][1]["content"] for row in rows] == ["q20", "q21", "q22", "q100", "q101", "q102"]


def test_the_summary_tells_everything(tmp_path: Path, database: Path) -> None:
    result = exporter(database, target_count=7, seed=3).write_jsonl(tmp_path / "out.jsonl")
    told = json.loads(result.summary_path.read_text())
    assert result.summary_path == tmp_path / "out.jsonl.summary.json"
    assert told["preferences"]["seed"] == 3
    assert told["windows"] == [
        {"run": "run", "step_start": 1, "step_end": 1, "prompt_count": 5, "trace_count": 10, "scored_count": 10,
         "correct_count": 10, "eligible_count": 10, "selected_count": 7}
    ]  # fmt: skip
    assert (told["available_count"], told["selected_count"], told["row_count"]) == (10, 7, 7)


def test_the_result_has_the_funnel_and_counts_what_is_available_as_0_1_0_does(tmp_path: Path, database: Path) -> None:
    result = exporter(database, per_prompt=1, target_count=3).write_jsonl(tmp_path / "out.jsonl")
    left = {stage: (left, dropped) for stage, left, dropped in result.funnel}
    assert (left["available"], left["per prompt"], left["target"]) == ((10, 0), (5, 5), (3, 2))
    assert (result.available_count, result.selected_count) == (5, 3)
    assert [stage._asdict() for stage in result.funnel] == result.summary["funnel"]


def in_place(path: Path) -> None:
    """Change one letter in the middle of a file that keeps its size and the time of its last change."""
    status = path.stat()
    content = path.read_bytes().replace(b"Be brief", b"Be BRIEF", 1)
    path.write_bytes(content)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns + 1))


CHANGES: dict[str, Callable[[Path], Any]] = {
    "changed in place": in_place,
    "shorter": lambda path: path.write_bytes(path.read_bytes()[:-500]),
    "another file": lambda path: path.write_bytes(path.read_bytes()[::-1]),
    "lines moved": lambda path: path.write_bytes(b"".join(sorted(path.read_bytes().splitlines(True), reverse=True))),
    "grown at its beginning": lambda path: path.write_bytes(b"\n\n" + path.read_bytes()),
    "gone": Path.unlink,
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_source_that_changed_fails_and_leaves_the_old_output(
    tmp_path: Path, database: Path, change: Callable[[Path], Any]
) -> None:
    before = exporter(database).write_jsonl(tmp_path / "out.jsonl")
    contents = [before.output_path.read_bytes(), before.summary_path.read_bytes()]
    change(tmp_path / "run" / TRACES)
    with pytest.raises(LocatorError):
        exporter(database, target_count=3).write_jsonl(tmp_path / "out.jsonl")
    assert [before.output_path.read_bytes(), before.summary_path.read_bytes()] == contents
    assert not list(tmp_path.glob(".*part"))


def test_a_source_that_changes_during_the_export_fails_it(tmp_path: Path, database: Path) -> None:
    file = tmp_path / "run" / TRACES

    def change(doing: str, done: int, total: int) -> None:
        if done == 5:
            in_place(file)

    with pytest.raises(LocatorError, match="has changed since it was indexed"):
        TraceDataExporter([spec(database)], None, change).write_jsonl(tmp_path / "out.jsonl")
    assert not (tmp_path / "out.jsonl").exists()


def test_an_index_can_be_brought_up_to_date_while_an_export_reads(tmp_path: Path, database: Path) -> None:
    export(spec(database), tmp_path / "before.jsonl", field_filters=(FieldFilter("task.data.name"),))

    def refresh(doing: str, done: int, total: int) -> None:
        if (doing, done) == ("Writing rows", 3):
            append(tmp_path / "run" / TRACES, rollout("new", "q0"))
            index(database, tmp_path / "run")

    preferences = ExportPreferences(field_filters=(FieldFilter("task.data.name"),))
    TraceDataExporter([spec(database)], preferences, refresh).write_jsonl(tmp_path / "after.jsonl")
    assert (tmp_path / "after.jsonl").read_bytes() == (tmp_path / "before.jsonl").read_bytes()


def test_a_file_that_has_only_grown_is_the_same_file(tmp_path: Path, database: Path) -> None:
    before = export(spec(database), tmp_path / "a.jsonl")
    append(tmp_path / "run" / TRACES, rollout("new", "q0"))
    assert export(spec(database), tmp_path / "b.jsonl") == before


def test_a_sealed_file_is_the_same_file(tmp_path: Path, database: Path) -> None:
    before = export(spec(database), tmp_path / "a.jsonl")
    seal(tmp_path / "run" / TRACES)
    assert not (tmp_path / "run" / TRACES).exists()
    assert export(spec(database), tmp_path / "b.jsonl") == before


def test_provenance_names_the_file_that_there_is(tmp_path: Path, database: Path) -> None:
    def files() -> set[str]:
        found = exporter(database, include_provenance=True).write_jsonl(tmp_path / "out.jsonl")
        return {row["trace_provenance"]["file"] for row in read_rows(found.output_path)}

    assert files() == {TRACES}
    seal(tmp_path / "run" / TRACES)
    assert files() == {f"{TRACES}.zst"}


def test_a_vanished_file_that_the_index_knows_of_is_a_stage_of_the_funnel(tmp_path: Path) -> None:
    root = write_steps(tmp_path / "run", {1: [rollout("a", "q0")], 2: [rollout("b", "q1")]})
    index(tmp_path / "x.sqlite", root)
    (root / TRACES).unlink()
    index(tmp_path / "x.sqlite", root)
    rows = export(spec(tmp_path / "x.sqlite"), tmp_path / "out.jsonl")
    assert [row["messages"][1]["content"] for row in rows] == ["q1"]


def test_what_progress_raises_ends_the_export(tmp_path: Path, database: Path) -> None:
    def stop(doing: str, done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        TraceDataExporter([spec(database)], None, stop).write_jsonl(tmp_path / "out.jsonl")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "run.sqlite"]


def test_a_place_that_cannot_be_written_is_a_sentence(tmp_path: Path, database: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ExportError, match="cannot be written"):
        exporter(database).write_jsonl(tmp_path / "file" / "out.jsonl")


def test_folders_are_made(tmp_path: Path, database: Path) -> None:
    assert exporter(database).write_jsonl(tmp_path / "a" / "b" / "out.jsonl").output_path.exists()


def test_a_browser_gets_the_bytes_of_the_file(tmp_path: Path) -> None:
    records = [rollout(f"t{n}", f"q{n % 3}") for n in range(9)]
    records[0]["nodes"][2]["message"]["tool_calls"] = [{"id": "x"}]
    database = indexed(tmp_path, {1: records})
    result = exporter(database).write_jsonl(tmp_path / "out.jsonl")
    with exporter(database).prepared() as prepared:
        streamed = b"".join(prepared.chunks())
        assert {**prepared.summary} == result.summary
    assert streamed == result.output_path.read_bytes()


def test_nothing_is_an_empty_file(tmp_path: Path, database: Path) -> None:
    assert export(spec(database), tmp_path / "out.jsonl", acceptance="incorrect") == []


@pytest.fixture
def parquet() -> Any:
    return pytest.importorskip("pyarrow.parquet")


def test_parquet_holds_the_same_conversations(tmp_path: Path, database: Path, parquet: Any) -> None:
    exporter(database).write_jsonl(tmp_path / "out.jsonl")
    exporter(database).write(tmp_path / "out.parquet")
    found = parquet.read_table(tmp_path / "out.parquet").to_pylist()
    for row, expected in zip(found, read_rows(tmp_path / "out.jsonl"), strict=True):
        said = [{key: value for key, value in message.items() if value is not None} for message in row["messages"]]
        assert said == expected["messages"]
        assert row["tools"] == expected.get("tools")


def test_parquet_with_a_picture_has_parts_everywhere(tmp_path: Path, parquet: Any) -> None:
    database = indexed(tmp_path, {1: [rollout("a"), trace_of(PICTURE, "b")]})
    exporter(database, acceptance="any").write(tmp_path / "out.parquet")
    contents = [
        message["content"]
        for row in parquet.read_table(tmp_path / "out.parquet").to_pylist()
        for message in row["messages"]
    ]
    assert contents[0] == [{"type": "text", "text": "Be brief.", "image_url": None}]
    assert contents[3][1]["image_url"]["url"].startswith("data:image/png")


@pytest.mark.parametrize(
    ("held", "columns"),
    [
        ({"type": "text", "text": "A"}, []),
        ({"type": "image"}, []),
        ({"type": "image", "image": "/data/a.png"}, ["image"]),
        ({"type": "image_url", "image_url": {"url": "https://a"}}, ["image_url"]),
        ({"type": "image_url", "image_url": {"url": "https://a", "detail": "low"}}, ["image_url"]),
    ],
    ids=["text", "place", "path", "url", "detail"],
)
def test_parquet_has_the_images_of_parts_and_no_columns_besides(
    tmp_path: Path, parquet: Any, held: dict[str, Any], columns: list[str]
) -> None:
    said = [{"role": "user", "content": [held]}, {"role": "assistant", "content": "A"}]
    exporter(indexed(tmp_path, {1: [trace(said, id="a")]}), acceptance="any").write(tmp_path / "out.parquet")
    asked, answer = parquet.read_table(tmp_path / "out.parquet").to_pylist()[0]["messages"]
    nothing = dict.fromkeys(["text", *columns])
    assert asked["content"] == [{**nothing, **held}]
    assert answer["content"] == [{**nothing, "type": "text", "text": "A"}]


@pytest.mark.parametrize("mode", ["rl", "preference"])
def test_parquet_of_the_other_modes(tmp_path: Path, parquet: Any, mode: str) -> None:
    records = [rollout("a", task={"idx": 0, "name": "x", "rubric_index": 3}), rollout("b", passed=False)]
    for record in records:
        record["task"] = records[0]["task"]
    database = indexed(tmp_path, {1: records})
    wanted = {"mode": mode, "acceptance": "any", "rl_from_trace": True, "include_provenance": True}
    exporter(database, **wanted).write(tmp_path / "out.parquet")
    [row] = parquet.read_table(tmp_path / "out.parquet").to_pylist()
    assert row["prompt"][1]["content"] == "6 * 7?"
    assert json.loads(row["trace_provenance"])
    assert row.get("rubric_index", 3) == 3


def test_parquet_needs_its_own_method(tmp_path: Path, database: Path) -> None:
    with pytest.raises(ExportError, match=r"use write\(\)"):
        exporter(database).write_jsonl(tmp_path / "out.parquet")


def test_jsonl_loads_into_arrow(tmp_path: Path, database: Path) -> None:
    """What `datasets` does with JSONL of text conversations, of which some call tools."""
    arrow_json = pytest.importorskip("pyarrow.json")
    result = exporter(database, include_provenance=True).write_jsonl(tmp_path / "out.jsonl")
    table = arrow_json.read_json(result.output_path)
    assert table.num_rows == 10
    assert {"messages", "tools", "trace_provenance"} == set(table.column_names)
    for row in table.to_pylist():
        assert all(isinstance(said["role"], str) and isinstance(said["content"], str) for said in row["messages"])


@pytest.mark.parametrize("name", ["x.csv", "x.sqlite", "x.txt", "."])
def test_a_target_that_is_no_place_for_rows_is_refused(tmp_path: Path, database: Path, name: str) -> None:
    with pytest.raises(ExportError):
        exporter(database).write(tmp_path / name)


def test_a_run_and_a_database_are_never_written_over(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    with pytest.raises(ExportError, match="never written to"):
        refuse_target(tmp_path / "run" / "traces.jsonl", [str(tmp_path / "run")])
    (tmp_path / "x.jsonl").write_bytes(b"SQLite format 3\0" + b"\0" * 84)
    with pytest.raises(ExportError, match="is a database"):
        refuse_target(tmp_path / "x.jsonl", [])
