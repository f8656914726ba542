"""A small run in real files or made-up trajectories, their index, and Datasette serving it, whichever line it is."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from datasette.app import Datasette

from rltracer_sqlite.cli.serve import browse_config, prepare_index
from tests.index_factory import make_index
from tests.indexing import copied, index
from tests.layouts.records import Record, episode, message, nodes_of, tool_call, trace
from tests.small_runs import touch, write_step
from tests.token_layouts import write_tokenizer


def png(width: int, height: int) -> bytes:
    """Return a black picture of this size."""
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(bytes(1 + width) * height)),
        (b"IEND", b""),
    ]
    chunks = (
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in parts
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


PIXEL = "data:image/png;base64," + base64.b64encode(png(40, 30)).decode()
BROWSE = "/-/rltracer/index/browse"
TRACES = Path("rollouts/step_1/train/all/traces.jsonl")


def tool_conversation() -> list[Record]:
    """Return a conversation with reasoning, an image, and tool calls of which one has broken arguments."""
    picture = {"type": "image_url", "image_url": {"url": PIXEL}}
    return [
        message("system", "You count things."),
        message("user", [{"type": "text", "text": "How many gaskets?"}, picture]),
        message(
            "assistant",
            reasoning_content="Sum first, then compare.",
            tool_calls=[tool_call("c1", "shell", {"command": "wc -l\nstock.csv", "limit": 5})],
        ),
        message("tool", "14 stock.csv", tool_call_id="c1"),
        message("assistant", "Once more.", tool_calls=[tool_call("c2", "shell", '{"command": ')]),
        message("tool", "bad call", tool_call_id="c2"),
        message("assistant", "14"),
    ]


def write_run(root: Path, traces: Sequence[Record]) -> Path:
    """Write one step of a run whose episodes hold one trace each, and return the file."""
    file = root / TRACES
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(episode([one], env="counting", step=1, group="g1")) for one in traces]
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return file


def forked_trace() -> Record:
    """Return a trace whose second message was answered twice: two branches."""
    said = [message("user", "Pick one."), message("assistant", "left"), message("assistant", "right")]
    return trace(nodes=nodes_of(said, [None, 0, 0]), id="forked", rewards={"right": {"score": 0.5, "weight": 1.0}})


def failed_trace() -> Record:
    """Return a trace that ended with an error and was never scored."""
    error = {"type": "SandboxError", "message": "The sandbox did not start.", "traceback": "line 1"}
    return trace([message("user", "Pick one.")], id="failed", ok=False, errors=[error], stop_condition="error")


def traces() -> list[Record]:
    """Return the traces of the usual run; all but the first have one prompt."""
    rewards = {"correct": {"score": 1.0, "weight": 1.0}, "format": {"score": 0.5, "weight": 0.25}}
    passed = [message("user", "Pick one."), message("assistant", "right")]
    return [
        trace(tool_conversation(), id="counted", rewards=rewards, metrics={"num_turns": 3}, info={"advantage": 0.25}),
        forked_trace(),
        trace(passed, id="passed", rewards={"right": {"score": 1.0, "weight": 1.0}}),
        failed_trace(),
    ]


@pytest.fixture(scope="session")
def usual(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return what `folder` is a copy of."""
    made = tmp_path_factory.mktemp("usual")
    write_run(made / "run", traces())
    index(made / "run.sqlite", made / "run")
    return made


@pytest.fixture
def folder(usual: Path, tmp_path: Path) -> Path:
    """Return a folder with the usual run and its index, run.sqlite."""
    return copied(usual, tmp_path)


@pytest.fixture
def serve(folder: Path) -> Callable[..., Datasette]:
    """Return a function that makes a Datasette for the index of the usual run."""
    return lambda **options: Datasette([str(folder / "run.sqlite")], **options)


@pytest.fixture
def serve_traces(tmp_path: Path) -> Callable[..., Datasette]:
    """Return a function that makes a Datasette for the index, made now, of a run of these traces."""

    def make(traces: Sequence[Record], folder: str = "run", **options: Any) -> Datasette:
        write_run(tmp_path / folder, traces)
        index(tmp_path / "run.sqlite", tmp_path / folder)
        return Datasette([str(tmp_path / "run.sqlite")], **options)

    return make


@pytest.fixture(scope="module")
def made(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the index of what `trajectories` of the tests' module yields."""
    return make_index(tmp_path_factory.mktemp("made") / "index.sqlite", request.module.trajectories())


@pytest.fixture
def datasette(request: pytest.FixtureRequest) -> Datasette:
    """Return a Datasette for the trajectories of the tests' module, where it has any, or else for the usual run."""
    if hasattr(request.module, "trajectories"):
        return Datasette([str(request.getfixturevalue("made"))])
    serve: Callable[..., Datasette] = request.getfixturevalue("serve")
    return serve()


async def get(datasette: Datasette, path: str, status: int = 200, **options: Any) -> str:
    """Return the text of a page, which must have this status."""
    response = await datasette.client.get(path, **options)
    assert response.status_code == status, response.text[:500]
    return str(response.text)


async def read(datasette: Datasette, number: int, query: str = "", status: int = 200) -> str:
    """Return the page of the trajectory of this number."""
    return await get(datasette, f"/-/rltracer/run/trajectory/{number}{query}", status)


@pytest.fixture
def tokenizer(tmp_path: Path) -> Path:
    """Return the folder of a small tokenizer."""
    return write_tokenizer(tmp_path / "small")


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Return a folder of two runs, and one that can only be told by its content."""
    root = tmp_path / "runs"
    for step in (1, 2):
        write_step(root / "team/first", step, f"question of step {step}", "another")
    write_step(root / "second", 7, "a third")
    touch(root, "notes/log.jsonl")
    return root


@pytest.fixture
def browse(runs: Path, tmp_path: Path) -> Callable[..., Datasette]:
    """Return a function that makes a Datasette which offers the runs."""

    def make(root: Path = runs, fts: bool = False, **options: Any) -> Datasette:
        file = prepare_index(root, tmp_path / "index.sqlite")
        config = browse_config(root.resolve(), file, fts=fts)
        return Datasette([str(file)], metadata={**config, **options.pop("metadata", {})}, **options)

    return make
