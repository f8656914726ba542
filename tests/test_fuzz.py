"""Every input that once failed, and a short run of every fuzz target: by hypothesis, and from a fixed seed."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from datasette.app import Datasette
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import datasette_rltracer
from fuzz.engines import run_random
from fuzz.target import MODULES, target_named
from fuzz.targets import urls
from rltracer_sqlite.cli.serve import browse_config

REGRESSIONS = sorted((Path(__file__).parents[1] / "fuzz" / "regressions").glob("*/*"))
SLOW = {
    "index": 4,
    "urls": 10,
    "preferences": 20,
    "rollouts": 14,
    "shown": 8,
}  # executions; an index is written, or a page is served
EDITS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 6), st.binary(max_size=6)), max_size=4)
QUICK = settings(
    deadline=None, derandomize=True, database=None, max_examples=10,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)  # fmt: skip


@pytest.fixture(autouse=True)
def needs(request: pytest.FixtureRequest) -> None:
    if "parquet" in request.node.name:
        pytest.importorskip("pyarrow")


@pytest.mark.parametrize("file", REGRESSIONS, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_what_failed_once_does_not_fail_again(file: Path) -> None:
    assert file.stat().st_size < 10_000
    target_named(file.parent.name).check(file.read_bytes())


@pytest.mark.parametrize("name", MODULES)
def test_a_short_run_of_each_target(name: str) -> None:
    ran = run_random(target_named(name), seconds=None, executions=SLOW.get(name, 60), seed=1)
    if ran.error is not None:
        raise ran.error
    assert ran.executions


def test_every_page_has_an_address_to_begin_with(tmp_path: Path) -> None:
    datasette = Datasette([], metadata=browse_config(tmp_path, tmp_path / "run.sqlite"))
    paths = [urlsplit(seed.decode()).path for seed in urls.seeds()]
    routes = [route for route, _ in datasette_rltracer.register_routes(datasette)]
    assert len(routes) > 15
    assert [route for route in routes if not any(re.match(route, path) for path in paths)] == []


@pytest.mark.parametrize("name", [name for name in MODULES if name not in SLOW])
@QUICK
@given(data=st.data())
def test_edited_inputs(name: str, data: st.DataObject) -> None:
    """A well-formed input with a few pieces cut out and put in; hypothesis makes one that fails as short as it can."""
    target = target_named(name)
    edited = data.draw(st.sampled_from(target.seeds()))
    for place, cut, piece in data.draw(EDITS):
        at = int(place * len(edited))
        edited = edited[:at] + piece + edited[at + cut :]
    target.check(edited)
