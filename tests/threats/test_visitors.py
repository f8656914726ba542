"""What one visitor, or a site that leads a browser here, can cost the others: bounded, turned away, or ended."""

from __future__ import annotations

import asyncio
import re
import socket
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from datasette.app import Datasette

from datasette_rltracer import bounds, edge, pages, stream
from datasette_rltracer.browser import browser_of
from datasette_rltracer.hosts import is_this_machine
from rltracer_sqlite.cli.serve import browse_config, prepare_index
from tests.export_runs import indexed, rollout
from tests.indexing import index, value
from tests.plugin.conftest import traces, write_run
from tests.plugin_export.test_stream import Server
from tests.serving import PATIENCE, serving
from tests.test_browse import write_step

OWN = "/-/rltracer/run"
FOREIGN = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}


@pytest.fixture
def datasette(tmp_path: Path) -> Datasette:
    write_run(tmp_path / "run", traces())
    index(tmp_path / "run.sqlite", tmp_path / "run")
    return Datasette([str(tmp_path / "run.sqlite")])


@pytest.mark.asyncio
async def test_t22_a_record_that_is_too_large_is_not_decoded(
    datasette: Datasette, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "LARGEST_RECORD", 500)
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
    monkeypatch.setattr(bounds, "LARGE_RECORD", 1)
    inside: list[int] = []
    load = bounds.load_trajectory

    def slowly(*arguments: Any) -> Any:
        inside.append(bounds.gates(datasette).records.line)
        time.sleep(0.05)
        return load(*arguments)

    monkeypatch.setattr(bounds, "load_trajectory", slowly)
    answers = await asyncio.gather(*(datasette.client.get(f"{OWN}/trajectory/1.json") for _ in range(12)))
    statuses = [answer.status_code for answer in answers]
    assert statuses.count(200) == 9  # one is read and eight wait
    assert statuses.count(503) == 3
    assert {answer.headers["retry-after"] for answer in answers if answer.status_code == 503} == {"20"}


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
    monkeypatch.setattr(pages, "LARGE_RECORD", 10)
    gate = bounds.gates(datasette).downloads = bounds.Gate(1, 0, "Too many.")
    for _ in range(3):
        assert (await datasette.client.get(f"{OWN}/trajectory/1/record")).status_code == 200
    await gate.enter()
    assert (await datasette.client.get(f"{OWN}/trajectory/1/record")).status_code == 503


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    records = [rollout(f"t{n}", f"q{n}", answer="x" * 1_000_000) for n in range(30)]
    database, close = indexed(tmp_path, {1: records}), stream.StreamingResponse._close

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
        monkeypatch.setattr(pages, "LARGE_RECORD", 10)
        monkeypatch.setattr(stream, "PIECE_BYTES", 1 << 14)
        monkeypatch.setattr(bounds.Gate, "leave", lambda gate: ended.set())
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", server.port))
        client.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        # It never reads: what it has asked for is closed all the same.
        assert server.closed.wait(PATIENCE)


# Other sites


@pytest.fixture
def browse(tmp_path: Path) -> Callable[..., Datasette]:
    write_step(tmp_path / "runs" / "first", 3, "a question")
    file = prepare_index(tmp_path / "runs", tmp_path / "index.sqlite")

    def make(only_here: bool = True) -> Datasette:
        return Datasette([str(file)], metadata=browse_config((tmp_path / "runs").resolve(), file, only_here=only_here))

    return make


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True), ("localhost:8001", True), ("127.0.0.1:8001", True), ("[::1]:8001", True),
        ("LOCALHOST", True), ("runs.localhost", True), ("evil.example", False), ("evil.example:8001", False),
        ("localhost.evil.example", False), ("127.0.0.1.evil.example", False), ("", False), ("[", False),
        ("127.0.0.1@evil.example", False),
    ],
)  # fmt: skip
def test_t50_names_of_this_machine(host: str, expected: bool) -> None:
    assert is_this_machine(host) is expected


@pytest.mark.asyncio
async def test_t50_another_name_gets_no_page(browse: Callable[..., Datasette]) -> None:
    for path in ("/", "/-/rltracer/index/browse", "/index.json", "/-/static/app.css"):
        for only_here, status in ((True, 421), (False, 200)):
            response = await browse(only_here).client.get(path, headers={"host": "evil.example:8001"})
            assert response.status_code == status
    assert (await browse().client.get("/", headers={"host": "127.0.0.1:8001"})).status_code == 200


@pytest.mark.asyncio
@pytest.mark.parametrize(
    "headers",
    [FOREIGN, {"sec-fetch-site": "same-site"}, {"referer": "https://evil.example/"}],
    ids=["cross-site", "another port", "without Fetch Metadata"],
)
async def test_t51_another_site_starts_nothing(
    browse: Callable[..., Datasette], tmp_path: Path, headers: dict[str, str]
) -> None:
    datasette = browse()
    for path in ("first/3", "first/all", "first/3?again=1"):
        response = await datasette.client.get(f"/-/rltracer/index/browse/{path}", headers=headers)
        assert (response.status_code, response.headers["location"]) == (302, "/-/rltracer/index/browse/first")
    assert browser_of(datasette).reader.jobs == {}
    assert value(tmp_path / "index.sqlite", "select count(*) from runs") == 0


@pytest.mark.asyncio
@pytest.mark.parametrize("headers", [{}, {"sec-fetch-site": "same-origin"}, {"sec-fetch-site": "none"}])
async def test_t51_its_own_pages_and_a_typed_address_do(
    browse: Callable[..., Datasette], headers: dict[str, str]
) -> None:
    datasette = browse()
    address = "/-/rltracer/index/browse/first/3"
    assert (await datasette.client.get(address, headers=headers)).status_code == 202
    assert browser_of(datasette).reader.wait(60)


@pytest.mark.asyncio
async def test_t52_our_pages_carry_headers(datasette: Datasette) -> None:
    for path in ("", "/run/1", "/trajectory/1", "/trajectory/1.json", "/search?q=x", "/export"):
        headers = (await datasette.client.get(OWN + path, follow_redirects=True)).headers
        assert headers["content-security-policy"] == edge.POLICY
        assert headers["referrer-policy"] == "same-origin"
        assert headers["x-content-type-options"] == "nosniff"


@pytest.mark.asyncio
async def test_t52_a_raw_record_is_locked_down(datasette: Datasette) -> None:
    headers = (await datasette.client.get(f"{OWN}/trajectory/1/record")).headers
    assert headers["content-security-policy"] == "sandbox; default-src 'none'"
    assert headers["content-type"] == "text/plain; charset=utf-8"


# Addresses

ODD_VALUES = (
    "9" * 400,
    "-1",
    "1e9",
    "%00",
    "%ff",
    "\u202e",
    "1;drop table runs",
    "' or 1=1 --",
    "%0d%0aX-Evil:%201",
    "",
)
PARAMETERS = (
    "start", "full", "message", "branch", "view", "lens", "find", "a", "b", "group", "q", "split", "env", "step__gte",
    "_window", "_sort", "_size", "words", "pretty", "_seed", "_per_prompt", "_field", "_table", "_preview", "id__in",
    "reward__gt", "success__isnull", "step__arraycontains",
)  # fmt: skip


ASKED = (
    "/", "/run/1", "/step/1/1", "/group/1", "/trajectory/1", "/trajectory/1.json", "/trajectory/1/record", "/compare",
    "/search", "/export", "/run/1/charts", "/run/1/charts/reward.json", "/live",
)  # fmt: skip


@pytest.mark.asyncio
async def test_t20_whatever_stands_in_an_address_is_answered(datasette: Datasette) -> None:
    for odd in ODD_VALUES:
        query = "&".join(f"{name}={odd}&{name}={odd}" for name in PARAMETERS)
        for path in ASKED:
            response = await datasette.client.get(f"{OWN}{path}?{query}", follow_redirects=True)
            assert response.status_code in (200, 400, 404, 413), (odd, path, response.text[-300:])
            assert "x-evil" not in response.headers


@pytest.mark.asyncio
async def test_t20_odd_numbers_and_ids_are_answered(datasette: Datasette) -> None:
    for path in (f"/run/{'9' * 30}", "/step/1/-0", "/step/1/99999999999999999999", "/trajectory/00001",
                 "/t/%00/%0d%0a", "/t/run/..%2f..%2fetc", "/group/٣"):  # fmt: skip
        response = await datasette.client.get(OWN + path, follow_redirects=True)
        assert response.status_code in (200, 400, 404), path


@pytest.mark.asyncio
async def test_t15_a_download_has_a_harmless_name(tmp_path: Path) -> None:
    write_run(tmp_path / "run", traces())
    file = tmp_path / 'a"; x=\u202e<b>.sqlite'
    index(file, tmp_path / "run")
    datasette = Datasette([str(file)])
    [name] = [name for name in datasette.databases if name not in ("_internal", "_memory")]
    response = await datasette.client.get(datasette.urls.table(name, "trajectories", format="sft"))
    assert response.status_code == 200
    assert re.fullmatch(r'attachment; filename="[A-Za-z0-9_-]+\.sft\.jsonl"', response.headers["content-disposition"])


@pytest.mark.asyncio
async def test_t15_a_column_of_any_name_is_quoted(datasette: Datasette, tmp_path: Path) -> None:
    names = ['reward_"; drop table runs; --', "reward_]<x-y>", "reward_'", "info_\u202e"]
    connection = sqlite3.connect(tmp_path / "run.sqlite")
    for number, name in enumerate(names):
        quoted = '"' + name.replace('"', '""') + '"'
        connection.execute(f"alter table trajectories add column {quoted} real")
        connection.execute(f"update trajectories set {quoted} = 1.0")
        field = (f"rewards.<x-y>{number}.score", name, "number", 4)
        connection.execute("insert into fields (path, column_name, kind, trajectories) values (?, ?, ?, ?)", field)
    connection.commit()
    connection.close()
    for path in ("/group/2", "/trajectory/1", "/compare?a=2&b=3", "/search?q=x"):
        response = await datasette.client.get(OWN + path)
        assert response.status_code == 200
        assert "<x-y>" not in response.text
    assert value(tmp_path / "run.sqlite", "select count(*) from runs") == 1
