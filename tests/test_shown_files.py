"""A file of a run goes by the name that it has, wherever a person is shown it: plain, sealed, and sealed meanwhile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from datasette.app import Datasette

from rltracer_sqlite import RLTracer, open_run
from tests.commands import indexed, rltracer, sentence_beside
from tests.indexing import rows, value
from tests.layouts import append, message, seal, trace

CHUNK = "monitors/file/traces/stream/00000.jsonl"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return a run of one chunk, whose second line is no record."""
    chunk = tmp_path / "run" / CHUNK
    append(chunk, trace([message("user", "?"), message("assistant", "!")], id="a"))
    with chunk.open("ab") as file:
        file.write(b"no record\n")
    return tmp_path / "run"


def shown_in_terminal(database: Path) -> set[str]:
    """Return the names of the file in the lists of problems, in a trajectory and in Python."""
    told = json.loads(rltracer("inspect", database, "--problems", "--json").stdout)["path"]
    printed = rltracer("inspect", database, "--problems").stdout.split(" line ")[0]
    line = next(line for line in rltracer("inspect", database, "--trajectory", 1).stdout.splitlines() if CHUNK in line)
    metadata = RLTracer(open_run(database)).trajectory(1).load().metadata
    return {told, printed, line.split(" line ")[0], metadata["locator"]["path"]}


async def shown_on_pages(database: Path) -> list[str]:
    datasette = Datasette([str(database)])
    pages = ["/-/rltracer/x/trajectory/1", "/-/rltracer/x/run/1", "/x/trajectories", "/x/problems"]
    return [(await datasette.client.get(page)).text for page in pages]


@pytest.mark.asyncio
@pytest.mark.parametrize("packed", [False, True], ids=["plain", "sealed"])
async def test_a_file_goes_by_the_name_that_it_has(run: Path, tmp_path: Path, packed: bool) -> None:
    database, name = tmp_path / "x.sqlite", f"{CHUNK}.zst" if packed else CHUNK
    if packed:
        seal(run / CHUNK)
    done = indexed(database, run)
    assert (run / name).is_file()
    assert shown_in_terminal(database) == {name}
    for page in await shown_on_pages(database):
        assert f"{CHUNK}.zst" in page if packed else CHUNK in page and f"{CHUNK}.zst" not in page
    (run / name).unlink()
    append(run / "rollouts/step_1/train_rollouts.jsonl", trace([message("user", "?")], id="b"))
    done = indexed(database, run)
    assert f"gone: {name} has vanished" in done.stdout


@pytest.mark.asyncio
async def test_a_chunk_that_was_sealed_since_goes_by_its_new_name(run: Path, tmp_path: Path) -> None:
    database = tmp_path / "x.sqlite"
    indexed(database, run)
    before = rows(database, "select id, uid, shard_id, byte_offset from trajectories")
    seal(run / CHUNK)
    assert RLTracer(open_run(database)).trajectory(1).load().metadata["locator"]["path"] == f"{CHUNK}.zst"
    assert f"{CHUNK}.zst" in (await shown_on_pages(database))[0]
    indexed(database, run)
    assert shown_in_terminal(database) == {f"{CHUNK}.zst"}
    assert rows(database, "select path, file from shards") == [(CHUNK, f"{CHUNK}.zst")]
    assert rows(database, "select id, uid, shard_id, byte_offset from trajectories") == before


@pytest.mark.parametrize(
    ("length", "said"), [(10_000, f"of {CHUNK}.zst cannot be decoded"), (10, f"{CHUNK}.zst ends before byte")]
)
def test_a_record_that_has_changed_is_told_with_the_name_of_its_file(
    run: Path, tmp_path: Path, length: int, said: str
) -> None:
    indexed(tmp_path / "x.sqlite", run)
    (run / CHUNK).write_bytes(b"x" * length)
    seal(run / CHUNK)
    assert said in sentence_beside(rltracer("inspect", tmp_path / "x.sqlite", "--trajectory", 1))


def test_a_file_that_cannot_be_read_and_one_that_waits_go_by_their_names(tmp_path: Path) -> None:
    chunk = tmp_path / "run" / CHUNK
    append(chunk.with_name("00002.jsonl"), trace([message("user", "?")], id="a"))
    for name in ("00000.jsonl.zst", "00001.jsonl"):
        chunk.with_name(name).write_bytes(b"this is neither zstd nor a line")
    done = indexed(tmp_path / "x.sqlite", tmp_path / "run")
    told = done.stdout + done.stderr
    assert "00000.jsonl.zst is damaged" in told
    assert "waiting: monitors/file/traces/stream/00001.jsonl has an unfinished last line" in " ".join(told.split())
    assert value(tmp_path / "x.sqlite", "select file from shards where state = 'unread'") == f"{CHUNK}.zst"


def test_a_problem_of_a_file_that_was_sealed_meanwhile_goes_by_its_new_name(run: Path, tmp_path: Path) -> None:
    database = tmp_path / "x.sqlite"
    indexed(database, run)
    seal(run / CHUNK)
    assert rltracer("inspect", database, "--problems").stdout.startswith(f"{CHUNK}.zst line 2")
