"""What pages, commands and Python show of records with any values: never an error, and nothing that steers or hides."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import tempfile
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any
from unittest.mock import patch

from rltracer_sqlite.adapter import IndexedAdapter
from rltracer_sqlite.cli.visible import UNSEEN
from rltracer_sqlite.index import migrations
from rltracer_sqlite.index.database import open_index
from rltracer_sqlite.index.derived import MAX_REWARDS
from rltracer_sqlite.index.episodes import episode_traces
from rltracer_sqlite.index.without_text import count_without_text, models_named
from rltracer_sqlite.model import RLTracer
from rltracer_sqlite.recorded_values import flat, value_text
from rltracer_sqlite.reward_parts import reward_parts, rule_in_words
from rltracer_sqlite.sources import source_named
from rltracer_sqlite.sources.base import LocatorError, SourceError
from rltracer_sqlite.sources.table.mapping import LONGEST_MODEL
from rltracer_sqlite.truth import truth_text
from rltracer_sqlite.unseen import INVISIBLE
from tests.commands import indexed, rltracer
from tests.indexing import index, rows
from tests.layouts.records import episode, message, tool_call, trace
from tests.table_samples import SAMPLES

from ..invariants import patched
from ..scratch import scratch
from ..target import Target
from .index import statements

SOURCES = {
    "prime-rl": "step_1/train/all/traces.jsonl",
    "verl": "1.jsonl",
    "nemo-gym": "x_rollouts.jsonl",
    "skyrl": "dumped_evals/global_step_8_evals/d.jsonl",
    "open-instruct": "run_rollouts_000000.jsonl",
}
ASIDE = {"skyrl": "aggregated_results.jsonl", "open-instruct": "run_metadata.jsonl"}  # beside it, with its first line
MARK = "<i>rl"  # which no page says by itself
VALUE = re.compile(r' value="[^"]*"')
DEEP = 600  # levels of an expected answer
BASE = "/-/rltracer/run"
FOUND = """
    select t.id, prompt_group_id, prompt_id
    from trajectories t left join prompt_groups g on g.id = prompt_group_id order by t.id limit 2
"""


def check(data: bytes) -> None:
    """Index records of a system, and look at all that is shown of them in one of the ways."""
    head, folder = data[0] if data else 0, scratch("shown")
    name = list(SOURCES)[head % len(SOURCES)]
    shutil.rmtree(folder / "runs", ignore_errors=True)
    for old in folder.glob("run.sqlite*"):
        old.unlink()
    file = folder / "runs" / "run" / SOURCES[name]
    file.parent.mkdir(parents=True)
    file.write_bytes(data[1:])
    if name in ASIDE:
        (file.parent / ASIDE[name]).write_bytes(data[1:].partition(b"\n")[0])
    try:
        with patched(migrations, statements=statements):
            index(folder / "run.sqlite", folder / "runs" / "run", source=source_named(name))
    except SourceError as error:
        assert str(error)
        return
    found = rows(folder / "run.sqlite", FOUND)
    WAYS[head // len(SOURCES) % len(WAYS)](folder, name, found)


@cache
def served() -> tuple[asyncio.AbstractEventLoop, Any]:
    """Return a Datasette, and a loop to ask it in; each input gives it another database."""
    from datasette.app import Datasette

    from rltracer_sqlite.cli.serve import browse_config

    folder, loop = scratch("shown"), asyncio.new_event_loop()
    settings = {"num_sql_threads": 0, "suggest_facets": False}
    config = browse_config((folder / "runs").resolve(), folder / "run.sqlite")
    datasette = Datasette([], settings=settings, metadata=config)
    loop.run_until_complete(datasette.invoke_startup())
    return loop, datasette


def _check_pages(folder: Path, source: str, found: list[tuple[Any, ...]]) -> None:
    from datasette.database import Database

    loop, datasette = served()
    datasette.add_database(Database(datasette, path=str(folder / "run.sqlite"), is_mutable=True), name="run")
    try:
        for path in _addresses(found):
            response = loop.run_until_complete(datasette.client.get(path))
            assert response.status_code < 500, (path, response.status_code, response.text[:2000])
            if "json" in response.headers.get("content-type", ""):
                _check_json(response.text)
            elif "html" in response.headers.get("content-type", ""):
                assert MARK not in response.text, f"{path} shows mark-up"
                # What a form sends back is what is recorded; nobody reads it.
                assert not (hidden := INVISIBLE.search(VALUE.sub("", response.text))), f"{path} shows {hidden}"
    finally:
        datasette.remove_database("run")


def _addresses(found: list[tuple[Any, ...]]) -> list[str]:
    numbers = [trajectory for trajectory, _, _ in found]
    pages = [
        "/",
        "/run/1",
        "/step/1/1",
        "/step/1/none",
        "/run/1/charts",
        "/run/1/charts/pass_rate.json",
        "/search?q=rl",
    ]
    for trajectory, group, prompt in found:
        pages += [
            f"/trajectory/{trajectory}",
            f"/trajectory/{trajectory}.json",
            f"/group/{group}",
            f"/prompt/1/{prompt}",
        ]
        pages += [f"/trajectory/{trajectory}?view=raw", f"/trajectory/{trajectory}/record?pretty=1"]
    if len(numbers) > 1:
        pages.append(f"/compare?a={numbers[0]}&b={numbers[1]}")
    return [f"{BASE}{page}" for page in dict.fromkeys(pages)]


def _check_json(text: str) -> None:
    json.loads(text, parse_constant=_refuse)


def _refuse(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def _check_terminal(folder: Path, source: str, found: list[tuple[Any, ...]]) -> None:
    database = folder / "run.sqlite"
    output = ("--acceptance", "any", "-o", folder / "rows.jsonl", "--dry-run")
    with patch.dict(os.environ, RLTRACER_HOME=str(folder / "home")):  # which keeps the folders that were indexed
        done = indexed(database, folder / "runs" / "run")
    _check_printed(done, "index")
    for command in [*_asked(database, found), ("plot", database, "pass-rate"), ("export", database, *output)]:
        _check_printed(rltracer(*command, is_terminal=len(command) % 2 == 0), command)


def _check_json_lines(folder: Path, source: str, found: list[tuple[Any, ...]]) -> None:
    for command in _asked(folder / "run.sqlite", found):
        done = rltracer(*command, "--json")
        _check_printed(done, command)
        for line in done.stdout.splitlines() if done.returncode == 0 else ():
            _check_json(line)


def _asked(database: Path, found: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Return the commands that look at an index, with the trajectories and prompts that it has."""
    looks: list[tuple[Any, ...]] = [(), ("--step", "1"), ("--step", "not recorded"), ("--hardest", 2), ("--problems",)]
    for trajectory, _, prompt in found:
        looks += [("--trajectory", trajectory), ("--prompt", prompt)]
    if len(found) > 1:
        looks.append(("--trajectory", found[0][0], "--with", found[1][0]))
    return [*(("inspect", database, *options) for options in looks), ("success", database), ("runs", database)]


def _check_printed(done: Any, command: Any) -> None:
    assert done.returncode in (0, 1), (command, done)
    for text in (done.stdout, done.stderr):
        hidden = [one for one in UNSEEN.findall(text) if one not in "\n\t"]
        assert not hidden, (command, hidden)
    assert not done.returncode or (done.stderr or done.stdout).strip(), command


def _check_python(folder: Path, source: str, found: list[tuple[Any, ...]]) -> None:
    with IndexedAdapter(source_named(source), folder / "runs" / "run", folder / "run.sqlite") as adapter:
        tracer = RLTracer(adapter)
        for step in tracer.steps():
            for group in step.prompts():
                repr([step, group, group.pass_rate, group.best, group.worst]).encode()
                assert sum(1 for _ in group.trajectories()) == group.count
        for prompt in [*tracer.hardest_prompts(2), *tracer.easiest_prompts(2)]:
            assert repr([prompt, prompt.best, prompt.worst, prompt.groups()]).encode()
        for trajectory, _, _ in found:
            _check_values(tracer, trajectory)
    with closing(open_index(folder / "run.sqlite")) as connection:
        parts = reward_parts(connection, 1, "reward")
        rule_in_words("reward >= 1", parts).encode()
        assert parts is None or len(parts.paths) > 1
        assert count_without_text(connection, 1) >= 0
        assert all(0 < len(name) <= LONGEST_MODEL for name in models_named(connection, 1))
        connection.row_factory = None
        for run, episode_id in connection.execute("select run_id, episode_id from trajectories").fetchall():
            traces = episode_traces(connection, {"run_id": run, "episode_id": episode_id})
            assert traces is None or traces.trajectories >= len(traces.traces) > 1


def _check_values(tracer: RLTracer, number: int) -> None:
    try:
        shown = tracer.trajectory(number).load()
    except LocatorError as error:
        assert str(error)
        return
    text = truth_text(shown.metadata["truth"])
    assert text is None or isinstance(text, str)
    for path, value in flat(shown.metadata):
        assert isinstance(value_text(value), str), path
    repr(shown)


WAYS = (_check_pages, _check_terminal, _check_json_lines, _check_python)


def _records() -> list[dict[str, Any]]:
    said = [message("user", f"6*7? {MARK}"), message("assistant", "42", tool_calls=[tool_call("c", "sh", {"a": 1})])]
    nested: Any = 1
    for _ in range(DEEP):
        nested = [nested, 0]
    truths: list[Any] = ["42", ["42"], 42, {"a": [1, {"b": None}]}, "", [[]], MARK, "\u202e", True, 1e308]
    parts = {"accuracy": {"score": 1.0, "weight": 1.0}, MARK: {"score": 0.5, "weight": -1e308}, "c": {"score": None}}
    made = [
        trace(said, id=f"t{n}", task={"type": "T", "data": {"idx": n % 2, "answer": truth}}, rewards=parts,
              metrics={"m": float(n), MARK: 1e308, "": 1, "correct_final_label": n % 2},
              info={"a": {"b": {"c": {"d": [1]}}}, "empty": {}, "list": [], "text": MARK})
        for n, truth in enumerate(truths)
    ]  # fmt: skip
    many = {f"r{n}": {"score": n / 8, "weight": 1.0} for n in range(MAX_REWARDS + 5)}
    made += [trace(said, id="deep", task={"type": "T", "data": {"answer": nested}}, rewards=many)]
    return [*made, episode(made[:2], env=MARK, step=1, group="g"), episode([], env="e", error={"type": MARK})]


def seeds() -> list[bytes]:
    """Return records with expected answers of every kind, several rewards, nested facts and episodes, for each way."""
    made = [json.dumps(record).encode() + b"\n" for record in _records()]
    other = json.dumps(trace([message("user", "6*7?"), message("assistant", "41")], id="other", rewards={"a": 0.5}))
    found = [bytes([len(SOURCES) * way]) + one + other.encode() for one in made for way in range(len(WAYS))]
    facts = b'{"run_name":"r","git_commit":"c","model_name":"m"}\n'
    with tempfile.TemporaryDirectory() as name:
        for number, source in enumerate(SOURCES):
            if source in SAMPLES:
                SAMPLES[source][1](Path(name) / source)
                files = sorted((Path(name) / source).rglob("*.jsonl"), key=lambda file: file.stat().st_size)
                content = facts * (source == "open-instruct") + files[-1].read_bytes()
                found += [bytes([number + len(SOURCES) * way]) + content for way in range(len(WAYS))]
    return found


WORDS = (
    "rewards", "score", "weight", "metrics", "info", "task", "data", "answer", "ground_truth", "solution", "target",
    "expected_answer", "idx", "env", "split", "agent", "errors", "error", "type", "message", "traceback", "step",
    "input", "output", "gts", "correct_final_label", "advantage", "stop_condition", "timing", "usage", "group",
    "model_name", "git_commit", "run_name",
    MARK, "\u202e", "\x1b[2J", "\r", "\u2028", "\x00", "nan",
)  # fmt: skip
SAYS = "pages, commands and Python over records with any values"
TARGETS = {"shown": Target("shown", SAYS, check, seeds, "json", WORDS)}
