"""What the functions of the library are given: odd values are refused in a sentence, and what is like one is taken."""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite import (
    DifficultyFilter,
    ExportPreferences,
    FieldFilter,
    IndexedAdapter,
    IndexFileError,
    PrimeRLAdapter,
    RLTracer,
    TraceDataExporter,
    TraceRunSpec,
    browse,
    list_runs,
    open_run,
    search_text,
)
from rltracer_sqlite.analysis import Selection, analyse_run
from rltracer_sqlite.index.database import open_index
from rltracer_sqlite.passrates import SuccessRule, SuccessRuleError, parse_rule
from rltracer_sqlite.roots import Roots
from rltracer_sqlite.sources.prime_rl import PrimeRLSource
from tests.gasket_run import gaskets
from tests.index_factory import make_index


class Whole:
    """An integer of another library, as those of numpy are."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __index__(self) -> int:
        return self.number


ODD: dict[str, Any] = {
    "none": None,
    "true": True,
    "huge": 10**30,
    "beyond printing": 10**5000,
    "negative": -1,
    "zero": 0,
    "half": 1.5,
    "fraction": Fraction(10**400, 3),
    "nan": math.nan,
    "infinity": math.inf,
    "empty": "",
    "text": "no such thing",
    "surrogate": "\ud800",
    "null": "\0",
    "long": "x" * 5000,
    "bytes": b"run",
    "path": Path("no such file"),
    "list": [1],
    "nothing": [],
    "dict": {"a": 1},
    "object": object(),
    "class": RLTracer,
    "integer": Whole(1),
}
Call = Callable[[Any, Path], object]


def exported(index: Path, **preferences: Any) -> object:
    if preferences.get("mode") in ("rl", "preference"):
        return None
    return TraceDataExporter(index, ExportPreferences(**preferences)).inspect()


def bounded(index: Path, **bounds: Any) -> object:
    return exported(index, difficulty=DifficultyFilter(**bounds))


def filtered(index: Path, **bounds: Any) -> object:
    return exported(index, field_filters=[FieldFilter("reward", **bounds)])


def analysed(index: Path, **given: Any) -> object:
    with closing(open_index(index)) as connection:
        return analyse_run(connection, **{"run_id": 1, "selection": Selection(), **given})


def selected(index: Path, **given: Any) -> object:
    return analysed(index, selection=Selection(**given))


def in_folder(value: Any, index: Path) -> Any:
    """Return a name below a folder that a test may write to; what is no name as it is."""
    return index.parent / value if isinstance(value, (str, Path)) and str(value) else value


CALLS: dict[str, Call] = {
    "RLTracer": lambda value, index: RLTracer(value),
    "RLTracer.step": lambda value, index: RLTracer(index).step(value).prompts(),
    "RLTracer.trajectory": lambda value, index: RLTracer(index).trajectory(value).load(),
    "RolloutStep.prompt": lambda value, index: RLTracer(index).step(1).prompt(value),
    "PromptGroup.trajectory": lambda value, index: RLTracer(index).step(1).prompts()[0].trajectory(value),
    "RLTracer.hardest_prompts": lambda value, index: RLTracer(index).hardest_prompts(value),
    "RLTracer.hardest_prompts split": lambda value, index: RLTracer(index).hardest_prompts(split=value),
    "RLTracer.easiest_prompts env": lambda value, index: RLTracer(index).easiest_prompts(env=value),
    "adapter ends": lambda value, index: open_run(index).group_ends(value, "key"),
    "adapter prompt": lambda value, index: open_run(index).prompt_over_steps(value),
    "adapter prompt split": lambda value, index: open_run(index).prompt_over_steps(1, value),
    "open_run": lambda value, index: open_run(value),
    "list_runs": lambda value, index: list_runs(value),
    "adapter step": lambda value, index: open_run(index).ensure_step_indexed(value),
    "adapter prompts": lambda value, index: open_run(index).list_prompts(value),
    "adapter ids": lambda value, index: open_run(index).list_trajectory_ids(value, "key"),
    "adapter key": lambda value, index: open_run(index).list_trajectory_ids(1, value),
    "adapter load": lambda value, index: open_run(index).load_trajectory(value),
    "IndexedAdapter source": lambda value, index: IndexedAdapter(value, index),
    "IndexedAdapter root": lambda value, index: IndexedAdapter(PrimeRLSource(), value, index),
    "IndexedAdapter index": lambda value, index: IndexedAdapter(PrimeRLSource(), index.parent / "run", value),
    "PrimeRLAdapter": lambda value, index: PrimeRLAdapter(value),
    "search_text": lambda value, index: search_text(value, "gasket"),
    "search_text words": lambda value, index: search_text(index, value),
    "FieldFilter": lambda value, index: FieldFilter(value),
    "TraceRunSpec": lambda value, index: TraceRunSpec(value),
    "TraceDataExporter": lambda value, index: TraceDataExporter(value),
    "TraceDataExporter list": lambda value, index: TraceDataExporter([value]),
    "preview": lambda value, index: TraceDataExporter(index).preview(value),
    "write": lambda value, index: TraceDataExporter(index).write(in_folder(value, index)),
    "write_jsonl": lambda value, index: TraceDataExporter(index).write_jsonl(in_folder(value, index)),
    "analyse_run": lambda value, index: analyse_run(value, 1, Selection()),
    "SuccessRule": lambda value, index: SuccessRule(value, 1),
    "SuccessRule threshold": lambda value, index: SuccessRule("reward", value),
    "parse_rule": lambda value, index: parse_rule(value),
    "find_runs": lambda value, index: browse.find_runs(value),
    "run_folder_path": lambda value, index: browse.run_folder_path(index.parent, value),
    "parse_step": lambda value, index: browse.parse_step(value),
}
# Functions of an index, and those of their arguments that are given by name.
NAMED: dict[Callable[..., object], tuple[str, ...]] = {
    RLTracer: ("prompt_parser", "run"),
    open_run: ("run",),
    partial(search_text, words="gasket"): ("run", "step", "step_start", "step_end", "split", "env", "outcome", "limit"),
    partial(PrimeRLAdapter): ("tokenizer_name", "index_path"),
    TraceRunSpec: ("step_start", "step_end", "split", "name", "rl_data_path", "run"),
    TraceDataExporter: ("preferences", "progress"),
    exported: tuple(inspect.signature(ExportPreferences).parameters),
    bounded: tuple(inspect.signature(DifficultyFilter).parameters),
    filtered: ("minimum", "maximum", "allowed_values", "include_missing"),
    analysed: ("run_id", "selection", "ks"),
    selected: tuple(inspect.signature(Selection).parameters),
}
for function, names in NAMED.items():
    for name in names:
        title = f"{getattr(function, 'func', function).__name__} {name}"
        CALLS[title] = lambda value, index, function=function, name=name: function(index, **{name: value})


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return gaskets(tmp_path_factory.mktemp("names"))


@pytest.mark.parametrize("call", sorted(CALLS))
def test_odd_arguments_are_refused_in_a_sentence(database: Path, call: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    refusals: dict[str, Exception] = {}
    for name, value in ODD.items():
        # Whatever else is raised, such as OverflowError and sqlite3.Error, fails the test.
        try:
            CALLS[call](value, database)
        except (ValueError, TypeError, LookupError) as error:
            refusals[name] = error
    assert refusals
    assert not [one for one in refusals.items() if not is_sentence(one[1])]
    assert not [name for name, error in refusals.items() if len(str(error)) > 600 and name != "long"]


def is_sentence(error: Exception) -> bool:
    """Say whether an error tells something in words of the library: those of Python have no full stop."""
    if isinstance(error, (KeyError, IndexError, IndexFileError, SuccessRuleError)):
        return " " in str(error)
    return not isinstance(error, UnicodeError) and str(error).endswith(".")


def test_integers_of_other_libraries_and_any_path_are_taken(database: Path) -> None:
    tracer = RLTracer(str(database), run=Whole(1))  # type: ignore[arg-type]
    one: Any = Whole(1)
    assert tracer.step(one).number == 1
    assert tracer.trajectory(one).load().metadata["id"] == 1
    assert tracer.step(1).prompts()[0].trajectory(Whole(0)).id == 1  # type: ignore[arg-type]
    found = search_text(Path(database), "gasket", step_start=one, limit=one)
    assert (len(found), found.total) == (1, 6)
    spec = TraceRunSpec.from_index(database, one, step_start=one, step_end=one)
    asked = ExportPreferences(per_prompt=one, target_count=one, seed=one, window_size=one, reward_margin=Fraction(1, 2))  # type: ignore[arg-type]
    told = TraceDataExporter(spec, asked).inspect()
    assert told["preferences"]["reward_margin"] == 0.5
    assert (told["selected_count"], json.loads(json.dumps(told["preferences"]))["seed"]) == (1, 1)
    assert len(analysed(database, run_id=one, selection=Selection(window=one), ks=[one]).windows) == 2  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda index: RLTracer(index).step("1"), "step is '1': it is a whole number."),
        (lambda index: RLTracer(None), "RLTracer takes an adapter, or the path of a run or an index, and no None."),
        (lambda index: RLTracer(open_run(index), run="run"), "an adapter is of one run already"),
        (lambda index: RLTracer(index.parent / "run", run="run"), "is a run itself, and no index"),
        (
            lambda index: RLTracer(index).step(1).prompts()[0].trajectory(7),
            "the group has 1 trajectory, counted from 0",
        ),
        (lambda index: search_text(index, "gasket", step=1, step_end=2), "give one of them"),
        (lambda index: search_text(index, "gasket", step_start=2, step_end=1), "end before they begin"),
        (lambda index: search_text(index, "gasket", limit=-1), "limit is -1: it is a whole number from 0 on."),
        (lambda index: list_runs(b"x.sqlite"), "index is b'x.sqlite': it is a path, as text or as a Path."),
        (lambda index: ExportPreferences(target_count=True), "target_count is True"),
        (lambda index: TraceDataExporter(index, {"mode": "rl"}), "it is a ExportPreferences."),
    ],
)
def test_an_error_says_what_is_taken(database: Path, call: Callable[[Path], object], said: str) -> None:
    with pytest.raises((ValueError, TypeError, IndexError), match=re.escape(said)):
        call(database)


@pytest.fixture(scope="module")
def several(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an index of a dozen runs, the last of which has a long name."""
    names = [*(f"run{number}" for number in range(11)), "x" * 500]
    return make_index(tmp_path_factory.mktemp("several") / "x.sqlite", [{"run": name, "reward": 1.0} for name in names])


def test_the_runs_of_an_index_are_listed_and_chosen(several: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = list_runs(several)
    assert [run.id for run in listed] == list(range(1, 13))
    assert (listed[1].name, listed[1].steps, listed[1].trajectories, listed[1].pass_rate) == ("run1", [1], 1, 1.0)
    assert repr(listed[1]) == "<IndexedRun 2 'run1': 1 trajectory, steps 1, pass rate 1.000 of 'train'>"
    for chosen in (listed[1].name, listed[1].id):
        monkeypatch.setattr(Roots, "check", lambda self, root: Path(root))
        assert RLTracer(several, run=chosen).adapter.run_id == 2  # type: ignore[attr-defined]
        assert open_run(several, run=chosen).run_id == 2


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (
            lambda index: RLTracer(index),
            "Which run of {index}? It holds:\n   1  run0\n{most}\n  12  xxxxxxxxxxxxxxxxxxxx…xxx",
        ),
        (
            lambda index: open_run(index, "other"),
            "The index {index} has no run 'other'. It holds:\n   1  run0\n{most}\n  12  xxxxxxxxxxxxxxxxxxxx…xxx",
        ),
        (lambda index: open_run(index, 99), "The index {index} has no run '99'."),
        (
            lambda index: TraceDataExporter(TraceRunSpec(index, name="x")).inspect(),
            "Give one with TraceRunSpec(path, run=NAME).",
        ),
    ],
    ids=["RLTracer", "open_run", "a number", "export"],
)
def test_an_index_of_several_runs_names_them(several: Path, call: Callable[[Path], object], said: str) -> None:
    most = "\n".join(f"  {number + 1:2}  run{number}" for number in range(1, 11))
    with pytest.raises(ValueError, match=re.escape(said.format(index=several, most=most))):
        call(several)
