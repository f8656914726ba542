"""What one visitor can cost the others: it is bounded, turned away, or ended."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from datasette.app import Datasette

from datasette_rltracer import bounds, records, stream, trajectory_page
from tests.export_runs import indexed, rollout
from tests.plugin_export.test_stream import Server
from tests.serving import PATIENCE, serving

OWN = "/-/rltracer/run"


@pytest.mark.asyncio
async def test_t22_a_record_that_is_too_large_is_not_decoded(
    datasette: Datasette, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "LARGEST_RECORD", 500)
    for path, status in (("/trajectory/1", 413), ("/trajectory/1.json", 413), ("/trajectory/1/record", 413),
                         ("/compare?a=1&b=2", 404), ("/group/1", 200)):  # fmt: skip
        response = await datasette.client.get(OWN + path)
        assert response.status_code == status
        assert "stock.csv" not in response.text
    assert "rltracer inspect --trajectory 1" in (await datasette.client.get(f"{OWN}/trajectory/1.json")).text


@pytest.mark.asyncio
async def test_t22_large_records_are_read_one_after_the_other(
    datasette: Datasette, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(records, "LARGE_RECORD", 1)
    load, others_are_told = records.load_trajectory, threading.Event()

    def slowly(*arguments: Any) -> Any:
        assert others_are_told.wait(PATIENCE)
        return load(*arguments)

    monkeypatch.setattr(records, "load_trajectory", slowly)
    asked = [datasette.client.get(f"{OWN}/trajectory/1.json") for _ in range(12)]
    answers = []
    for answered in asyncio.as_completed(asked):
        answers.append(await answered)
        if len(answers) == 3:
            others_are_told.set()
    assert [answer.status_code for answer in answers] == [503] * 3 + [200] * 9  # one is read and eight wait
    assert {answer.headers["retry-after"] for answer in answers[:3]} == {"20"}


@pytest.mark.asyncio
async def test_t23_who_comes_too_many_is_told_to_come_again(datasette: Datasette) -> None:
    gates = bounds.gates(datasette)
    for _ in range(4):
        await gates.downloads.enter()
    for path in ("/run/trajectories.sft", f"{OWN}/export?_preview=sft"):
        response = await datasette.client.get(path)
        assert (response.status_code, response.headers["retry-after"]) == (503, "20")
    assert (await datasette.client.get(f"{OWN}/export")).status_code == 200
    gates.downloads.leave()
    for _ in range(3):  # a place that was taken is given back, whatever comes of it
        assert (await datasette.client.get("/run/trajectories.sft")).status_code == 200
        assert (await datasette.client.get("/run/trajectories.sft?_seed=x")).status_code == 400
        assert (await datasette.client.get("/run/trajectories.sft?id=99")).status_code == 400


@pytest.mark.asyncio
async def test_t23_pages_wait_for_one_another(datasette: Datasette) -> None:
    gate = bounds.gates(datasette).pages = bounds.Gate(1, 2, "Too many.")
    answers = await asyncio.gather(*(datasette.client.get(f"{OWN}/run/1") for _ in range(6)))
    assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 503, 503, 503]
    assert not gate.places.locked()
    assert gate.line == 0


@pytest.mark.asyncio
async def test_t23_a_large_raw_record_is_a_download(datasette: Datasette, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trajectory_page, "LARGE_RECORD", 10)
    gate = bounds.gates(datasette).downloads = bounds.Gate(1, 0, "Too many.")
    for _ in range(3):
        assert (await datasette.client.get(f"{OWN}/trajectory/1/record")).status_code == 200
    await gate.enter()
    assert (await datasette.client.get(f"{OWN}/trajectory/1/record")).status_code == 503


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    rollouts = [rollout(f"t{n}", f"q{n}", answer="x" * 1_000_000) for n in range(30)]
    database, close = indexed(tmp_path, {1: rollouts}), stream.StreamingResponse._close

    def noted(self: Any) -> None:
        close(self)
        running.closed.set()

    monkeypatch.setattr(stream.StreamingResponse, "_close", noted)
    monkeypatch.setattr(stream, "STALL_SECONDS", 0.3)
    with serving(Datasette([str(database)]).app(), lifespan="off", ws="none") as address:
        running = Server(address)
        yield running


@pytest.mark.parametrize("path", ["/run/trajectories.sft", "/-/rltracer/run/trajectory/1/record"])
def test_t24_a_visitor_who_takes_nothing_is_let_go(server: Server, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = server.closed
    if path.endswith("record"):
        monkeypatch.setattr(trajectory_page, "LARGE_RECORD", 10)
        monkeypatch.setattr(stream, "PIECE_BYTES", 1 << 14)
        monkeypatch.setattr(bounds.Gate, "leave", lambda gate: ended.set())
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", server.port))
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        # It never reads: what it has asked for is closed all the same.
        assert server.closed.wait(PATIENCE)
