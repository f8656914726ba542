"""The whole way for every system: inspect, pages, the pass-rate facet, and training data, from small files of each.

Nothing here knows a system: what stands in its files is told by its writer, or by an independent reading.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import pytest_asyncio
from click.testing import CliRunner
from datasette.app import Datasette

from rltracer_sqlite.cli.inspect import command as inspect
from rltracer_sqlite.index.database import finish_writing, open_for_writing
from rltracer_sqlite.index.refresh import refresh_run
from rltracer_sqlite.index.runs import ensure_run, set_success
from rltracer_sqlite.messages import content_text, prompt_context, prompt_key
from rltracer_sqlite.passrates import pass_bin
from rltracer_sqlite.roots import Roots
from rltracer_sqlite.sources import source_for
from rltracer_sqlite.sources.table.parquet import has_pyarrow
from tests import layouts
from tests.indexing import rows
from tests.layouts.records import message, trace
from tests.plugin_export.conftest import hooks  # noqa: F401  (the hooks of the exporter)
from tests.table_decoding import READINGS
from tests.table_samples import BAD, BAD_SPLIT, CONTEXT, GOOD_SPLIT, SAMPLES, said, write_lines
from tests.token_layouts import write_tokenizer

from .conftest import get, write_run
from .html import words

pytestmark = pytest.mark.asyncio(loop_scope="module")
CORPORA = (layouts.corpora() or Path("absent")) / "other"
Message = dict[str, Any]


class Written(NamedTuple):
    """One trajectory as its file has it."""

    reward: float | None
    step: int | None
    split: str | None
    messages: list[Message]


def prime_rl(root: Path) -> list[Written]:
    answers = {"42": 1.0, BAD: 0.0}
    spoken = [[message(m["role"], m["content"]) for m in said(text)] for text in answers]
    rewards = [{"right": {"score": score, "weight": 1.0}} for score in answers.values()]
    write_run(root, [trace(one, id=f"t{n}", rewards=rewards[n]) for n, one in enumerate(spoken)])
    return [Written(score, 1, "train", said(text)) for text, score in answers.items()]


def workflow(root: Path) -> list[Written]:
    answers = {"42": 1.0, BAD: 0.0}
    records = [{"final_row": {"rubric": {"messages": said(text), "score": s}}} for text, s in answers.items()]
    write_lines(root / "math_check.jsonl", *records)
    return [Written(None, None, None, said(text)) for text in answers]


def sample(name: str) -> Callable[[Path], list[Written]]:
    def write(root: Path) -> list[Written]:
        made = [Written(row.reward, row.step, row.split, row.messages) for row in SAMPLES[name][1](root)]
        if name != "open-instruct":
            return made
        # Its token ids have text when the tokenizer is given, as it is here.
        return [one._replace(messages=text) for one, text in zip(made, (GOOD_SPLIT, BAD_SPLIT), strict=True)]

    return write


def copied(folder: str) -> Callable[[Path], list[Written]]:
    def copy(root: Path) -> list[Written]:
        shutil.copytree(CORPORA / folder, root)
        return [Written(one.reward, one.step, one.split, one.messages) for one in READINGS[folder][1](root)]

    return copy


OWN = {"prime-rl": prime_rl, "workflow": workflow, **{name: sample(name) for name in SAMPLES}}
COPIED = {folder: copied(folder) for folder in READINGS}
STEP_KINDS = {
    "prime-rl": "training step", "workflow": None, "verl": "training step", "trl": "optimizer step",
    "ms-swift": "log step", "nemo-rl": "training step", "nemo-gym": None, "skyrl": "global step",
    "areal": "policy version", "roll": "global step", "open-instruct": "training step", "chat": None,
}  # fmt: skip


class Index(NamedTuple):
    """All systems in one database."""

    path: Path
    written: dict[str, list[Written]]
    runs: dict[str, int]  # by the name of the system


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Index:
    folder = tmp_path_factory.mktemp("every")
    tokenizer = str(write_tokenizer(folder / "tokenizer"))
    made = Index(folder / "every.sqlite", {}, {})
    connection = open_for_writing(made.path)
    try:
        for name, write in {**OWN, **(COPIED if CORPORA.is_dir() else {})}.items():
            if name.startswith("trl") and not has_pyarrow():
                continue
            root = folder / name.replace("/", "-")
            made.written[name] = write(root)
            source = source_for(root, tokenizer if name in OWN else None)
            made.runs[name] = ensure_run(connection, source, root, name)
            if source.name == "workflow":
                set_success(connection, made.runs[name], "final_row.rubric.score", 1.0)
            refresh_run(connection, source, root, made.runs[name])
    finally:
        finish_writing(connection)
    return made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def datasette(index: Index) -> Datasette:
    return Datasette([str(index.path)], settings={"suggest_facets": False})


@pytest.fixture(params=[*OWN, *COPIED])
def system(request: pytest.FixtureRequest, index: Index) -> str:
    if request.param in COPIED and not CORPORA.is_dir():
        pytest.skip("the corpora are not beside this repository")
    if request.param not in index.runs:
        pytest.importorskip("pyarrow")
    return str(request.param)


def ids_of(index: Index, system: str) -> list[int]:
    return [i for (i,) in rows(index.path, "select id from trajectories where run_id = ?", (index.runs[system],))]


def plain(messages: list[Message]) -> list[Message]:
    """Return messages without what says nothing: null keys, and the null content of a call."""
    return [{key: value for key, value in m.items() if value is not None} for m in messages]


def same(one: list[Message], other: list[Message]) -> bool:
    return json.dumps(plain(one), sort_keys=True) == json.dumps(plain(other), sort_keys=True)


async def test_inspect_shows_what_the_files_hold(index: Index, system: str) -> None:
    command = ["--run", str(index.path), "--name", system, "--json"]
    steps = CliRunner().invoke(inspect, command, catch_exceptions=False).output.splitlines()
    assert {json.loads(line)["step"] for line in steps} == {one.step for one in index.written[system]}
    shown = [CliRunner().invoke(inspect, [*command, "--trajectory", str(i)]).output for i in ids_of(index, system)]
    left = list(index.written[system])
    for output in map(json.loads, shown):
        left.remove(next(w for w in left if same(w.messages, output["messages"]) and w.reward == output["metadata"]["reward"]))
    assert left == []
