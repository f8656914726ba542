"""The public names of the library: how their objects print themselves, and what an editor says of them."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest

import rltracer_sqlite
from rltracer_sqlite import (
    DifficultyFilter,
    ExportPreferences,
    FieldFilter,
    IndexedRun,
    Matches,
    PrimeRLAdapter,
    PromptGroup,
    RLTracer,
    TraceDataExporter,
    TraceRunSpec,
    Trajectory,
    analysis,
    browse,
    export,
    search_text,
)
from rltracer_sqlite.analysis import Selection, UnscoredTrajectory, analyse_run
from rltracer_sqlite.index.database import open_index
from rltracer_sqlite.passrates import SuccessRule
from rltracer_sqlite.search.document import document
from rltracer_sqlite.tokens.streams import Tokens
from tests.commands import rltracer
from tests.gasket_run import gaskets


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return gaskets(tmp_path_factory.mktemp("names"))


def shown_objects(database: Path) -> Iterator[object]:
    """Yield an object of every public kind whose text a model or a file has made long."""
    long = "x\x1b[2J" * 100_000
    tracer = RLTracer(database)
    yield from (tracer, tracer.adapter, tracer.step(1), tracer.step(1).prompts()[0], tracer.trajectory(1))
    yield from (tracer.hardest_prompts()[0], replace(tracer.hardest_prompts()[0], preview=long, split=long, key=long))
    yield Trajectory([{"role": "user", "content": long}] * 99, {"env": long, "uid": long}, raw=long.encode())
    yield Tokens(list(range(100_000)), [long] * 100_000)
    yield PromptGroup(tracer.adapter, 1, long, 3, long)
    match = search_text(database, "gasket")[0]
    yield from (match, replace(match, run=long, snippet=long, uid=long), Matches([match] * 99, 1000, 3))
    yield IndexedRun(1, long, long, long, long, list(range(0, 10**6, 2)), 1, 1, 1, 1, 1, 1.0, 1, 1.0)
    filters = [FieldFilter(long, allowed_values=[long] * 100)] * 100
    preferences = ExportPreferences(field_filters=filters)  # type: ignore[arg-type]
    yield from (filters[0], preferences, DifficultyFilter(0.1), ExportPreferences())
    yield from (TraceRunSpec(database, name=long), TraceDataExporter([database] * 99, preferences))
    yield TraceDataExporter(database).write(database.parent / "rows.jsonl")
    with closing(open_index(database)) as connection:
        run = analyse_run(connection, 1, Selection())
    count = run.metrics[0].count._replace(preview=long, env=long)
    yield from (run, replace(run, run=long, rule=long), run.windows[0], replace(run.windows[0], run=long, env=long))
    yield from (count, replace(run.metrics[0], count=count, run=long), Selection(env=long), SuccessRule(long, 1))
    yield from (browse.find_runs(database.parent), *browse.find_runs(database.parent).runs)
    yield browse.RunFolder(long, steps=set(range(0, 10**6, 2)), unread="files")
    yield UnscoredTrajectory(1, long, 1, long, long, long, long, 1, long)
    yield document(Trajectory([{"role": "user", "content": long}], {}))


def test_every_object_prints_itself_in_a_short_line(database: Path) -> None:
    for one in [*shown_objects(database), RLTracer(PrimeRLAdapter("x" * 3000)), PrimeRLAdapter("x" * 3000)]:
        assert len(repr(one)) <= 500, type(one)
        assert repr(one).isprintable(), type(one)
        assert type(one).__name__ in repr(one)


def test_what_differs_from_the_defaults_is_printed() -> None:
    assert repr(ExportPreferences()) == "ExportPreferences()"
    asked = ExportPreferences("rl", difficulty=DifficultyFilter(max_pass_rate=0.5), target_count=5)
    assert repr(asked) == "ExportPreferences(mode='rl', difficulty=DifficultyFilter(max_pass_rate=0.5), target_count=5)"
    assert eval(repr(asked)) == asked


def public_objects() -> Iterator[tuple[str, Any]]:
    for module in (rltracer_sqlite, analysis, browse, export):
        for name in module.__all__:
            if not callable(found := getattr(module, name)):
                continue
            yield name, found
            if inspect.isclass(found):
                own = [one for one in vars(found).items() if not one[0].startswith("_")]
                yield from ((f"{name}.{part}", getattr(found, part)) for part, value in own if is_code(value))


def is_code(value: object) -> bool:
    return inspect.isfunction(value) or isinstance(value, (property, cached_property, classmethod))


def test_every_public_name_says_what_it_is() -> None:
    for name, found in public_objects():
        said = (found.__doc__ or "").splitlines()
        assert said, name
        assert not said[0].startswith(f"{name}("), f"{name} has only what dataclass writes"
        assert said[0].endswith((".", ":")), name


def test_type_checkers_see_every_public_name() -> None:
    tree = ast.parse(inspect.getsource(rltracer_sqlite))
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    seen = {alias.asname: node.module for node in imports for alias in node.names}
    assert sorted(map(str, seen)) == rltracer_sqlite.__all__ == dir(rltracer_sqlite)
    assert seen == rltracer_sqlite._PLACES


def test_a_search_says_how_many_there_are(database: Path) -> None:
    found = search_text(database, "gasket", limit=2)
    assert (len(found), found.total, found.unsearched) == (2, 6, 0)
    assert repr(found) == "<Matches: 2 of 6 trajectories; limit=None lists all>"
    assert (search_text(database, "gasket", limit=0).total, search_text(database, "gasket", step=1).total) == (6, 3)
    everything = search_text(database, "gasket", limit=None)
    assert (len(everything), everything.total, everything[0].id) == (6, 6, 6)
    assert found == everything[:2]
    assert rltracer("search", database, "gasket", "--limit", 2).stdout.splitlines()[-1] == "2 of 6 trajectories"
