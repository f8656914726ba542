"""A Datasette over an index made from rows, on whichever line is installed."""

from __future__ import annotations

import pytest
from datasette import hookimpl
from datasette.app import Datasette
from datasette.plugins import pm

from datasette_rltracer import charts
from datasette_rltracer.facets import PassRateFacet
from rltracer_sqlite.charts.data import provide_square_root

from ..index_factory import make_index


class Hooks:
    """The hooks that these tests need, where the plugin's own module does not carry them yet."""

    __name__ = "rltracer_charts_tests"

    @hookimpl
    def register_facet_classes(self):
        return [PassRateFacet]

    @hookimpl
    def register_routes(self):
        return charts.routes()

    @hookimpl
    def prepare_connection(self, conn):
        provide_square_root(conn)


@pytest.fixture(scope="session", autouse=True)
def hooks():
    registered = [found for classes in pm.hook.register_facet_classes() for found in classes]
    if PassRateFacet in registered:
        yield
        return
    plugin = Hooks()
    pm.register(plugin, "rltracer-charts-tests")
    yield
    pm.unregister(plugin)


def rollouts(successes: int, scored: int, **columns):
    """Return the rows of one group with this many successes."""
    return [{"reward": float(number < successes), **columns} for number in range(scored)]


SMALL = [
    row
    for step in range(1, 7)
    for number, env in enumerate(("math", "code", "math", "wordle"))
    for row in rollouts((number * 3 + step) % 5, 4, step=step, env=env, prompt=f"prompt {number}")
] + rollouts(1, 2, step=3, split="eval", prompt="held out")


@pytest.fixture(scope="session")
def index_path(tmp_path_factory):
    rows = [{**row, "rewards.format.score": 0.5, "completion_tokens": 100 + 10 * row["step"]} for row in SMALL]
    return make_index(tmp_path_factory.mktemp("index") / "run.sqlite", rows)


@pytest.fixture
def datasette(index_path):
    return Datasette([str(index_path)], settings={"suggest_facets": False})
