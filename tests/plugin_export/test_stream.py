"""A long export on a real server: others are served meanwhile, and it ends when its visitor leaves."""

from __future__ import annotations

import http.client
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from datasette.app import Datasette

from datasette_rltracer import export_download, stream
from rltracer_sqlite.export import exporter
from tests.export_runs import indexed, rollout
from tests.serving import PATIENCE, serving

ROLLOUTS = 400


class Server:
    """The address of a Datasette, and what its exports did."""

    def __init__(self, address: str) -> None:
        self.port = urlsplit(address).port or 0
        self.chunks = 0
        self.closed = threading.Event()
        self.refused: list[BaseException] = []

    def get(self, path: str) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        connection.request("GET", path)
        return connection, connection.getresponse()


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the index of a run whose export has about 40 MB, more than any socket holds."""
    records = [rollout(f"t{n}", f"q{n}", answer="x" * 100_000) for n in range(ROLLOUTS)]
    return indexed(tmp_path_factory.mktemp("long"), {1: records})


@pytest.fixture
def server(database: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    chunks, close, refusal = exporter.PreparedExport.chunks, stream.StreamingResponse._close, export_download.refusal

    def counted(self: Any) -> Iterator[bytes]:
        for chunk in chunks(self):
            running.chunks += 1
            yield chunk

    def noted(self: Any) -> None:
        close(self)
        running.closed.set()

    def told(error: BaseException) -> Any:
        running.refused.append(error)
        return refusal(error)

    monkeypatch.setattr(exporter.PreparedExport, "chunks", counted)
    monkeypatch.setattr(stream.StreamingResponse, "_close", noted)
    monkeypatch.setattr(export_download, "refusal", told)
    with serving(Datasette([str(database)]).app(), lifespan="off", ws="none") as address:
        running = Server(address)
        yield running


def test_another_page_answers_while_an_export_waits_for_its_visitor(server: Server) -> None:
    connection, response = server.get("/run/trajectories.sft")
    begun = response.read(100_000)
    for path in ("/-/versions.json", "/run/runs.json"):
        other, answer = server.get(path)
        assert answer.status == 200
        answer.read()
        other.close()
    assert not server.closed.is_set()
    rest = response.read()
    connection.close()
    assert (begun + rest).count(b"\n") == ROLLOUTS
    assert server.closed.wait(PATIENCE)


@pytest.mark.threat("T24")
def test_an_export_ends_when_its_visitor_leaves(server: Server) -> None:
    connection, response = server.get("/run/trajectories.sft")
    response.read(100_000)
    connection.close()
    response.close()
    assert server.closed.wait(PATIENCE)
    assert 0 < server.chunks < ROLLOUTS


def test_an_export_that_is_being_prepared_ends_when_its_visitor_leaves(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, stay = threading.Event(), stream.Visitor.stay_or_raise

    def slow(self: stream.Visitor, *told: Any) -> None:
        begun.set()
        assert self.left.wait(PATIENCE)
        stay(self, *told)

    monkeypatch.setattr(stream.Visitor, "stay_or_raise", slow)
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
    connection.request("GET", "/run/trajectories.sft")
    assert begun.wait(PATIENCE)
    connection.close()
    deadline = time.monotonic() + PATIENCE
    while not server.refused and time.monotonic() < deadline:
        time.sleep(0.01)
    assert [type(error) for error in server.refused] == [stream.VisitorLeft]
    assert server.chunks == 0
