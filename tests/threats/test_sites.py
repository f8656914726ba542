"""What another site can do that leads a browser here: it reads no page, starts no work and frames nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from datasette.app import Datasette

from datasette_rltracer import edge
from datasette_rltracer.browse_folder import browser_of
from datasette_rltracer.hosts import is_this_machine
from rltracer_sqlite.cli.serve import browse_config, prepare_index
from tests.indexing import value
from tests.small_runs import write_step

OWN = "/-/rltracer/run"
FOREIGN = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}


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
