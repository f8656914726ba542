"""The names of the tools that were called: what the index keeps of them, and that a loaded trajectory says the same."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rltracer_sqlite.adapter import open_run
from rltracer_sqlite.sources.prime_rl.called import written_names
from rltracer_sqlite.sources.prime_rl.record_types import Message
from rltracer_sqlite.tool_names import LONGEST_NAME, MOST_NAMES, called_tools, kept_names, names_json, names_of
from tests.commands import inspected
from tests.indexing import index, made_before, rows
from tests.layouts import append, message, node, spaced_line, trace, v0_row

FILE = Path("rollouts") / "step_1" / "train" / "all" / "traces.jsonl"
ROWS = Path("run_default") / "rollouts" / "step_1" / "train_rollouts.jsonl"
ASKED = [message("user", "6 * 7?")]
HALF = "\ud800"

# Recorded calls, and the names that are kept of them.
CALLS: dict[str, tuple[list[Any], list[str]]] = {
    "none": ([], []),
    "flat": ([{"id": "1", "name": "bash", "arguments": "{}"}], ["bash"]),
    "nested": ([{"id": "1", "type": "function", "function": {"name": "bash", "arguments": "{}"}}], ["bash"]),
    "as JSON text": ([json.dumps({"name": "bash"}), json.dumps({"function": {"name": "edit"}})], ["bash", "edit"]),
    "a function that is a name": ([{"function": "bash"}, {"function": "edit", "name": None}], ["bash", "edit"]),
    "both": ([{"function": {"name": "inner"}, "name": "outer"}, {"function": {}, "name": "outer"}], ["inner", "outer"]),
    "a null inside": ([{"function": {"name": None}, "name": "outer"}], []),
    "in order": ([{"name": name} for name in "bacab"], ["b", "a", "c"]),
    "without a name": ([{}, {"name": None}, {"name": ""}, {"name": "bash"}, {"arguments": "x"}], ["bash"]),
    "odd": ([None, 1, 2**70, 1.5, True, [], ["x"], "x", "5", '"x"', {"function": [{"name": "x"}]}], []),
    "odd names": ([{"name": one} for one in (5, 2**70, True, ["x"], {"name": "x"}, [])], []),
    "odd names inside": ([{"function": {"name": one}, "name": "x"} for one in (5, False, ["x"], {"a": 1})], []),
    "words": ([{"name": "пошук 🔎\n\x1b[31m"}, {"name": 'a"\\</script>'}], ["пошук 🔎\n\x1b[31m", 'a"\\</script>']),
    "NUL": ([{"name": "a\0b"}], ["a\N{REPLACEMENT CHARACTER}b"]),
    "half a pair": ([{"name": f"a{HALF}"}], ["a\N{REPLACEMENT CHARACTER}"]),
    "half a pair in JSON text": ([json.dumps({"name": f"a{HALF}"})], ["a\N{REPLACEMENT CHARACTER}"]),
    "long": ([{"name": "x" * 5000}, {"name": "x" * LONGEST_NAME}], ["x" * LONGEST_NAME]),
    "many": ([{"name": str(number)} for number in range(70)], [str(number) for number in range(MOST_NAMES)]),
}


@pytest.mark.parametrize("metric", [0.5, float("nan")], ids=["strict JSON", "JSON with NaN"])
@pytest.mark.parametrize("place", [FILE, ROWS], ids=["traces", "rows of v0"])
def test_names_are_kept_as_they_are_shown(tmp_path: Path, place: Path, metric: float) -> None:
    said = [[*ASKED, message("assistant", "", tool_calls=calls)] for calls, _ in CALLS.values()]
    facts: list[Any] = [{"id": f"{n}", "rollout_id": f"{n}", "metrics": {"m": metric}} for n in range(len(said))]
    write = trace if place is FILE else v0_row
    made = [write(one, **fact) for one, fact in zip(said, facts, strict=True)]
    append(tmp_path / "run" / place, *made, dump=spaced_line)
    index(tmp_path / "x.sqlite", tmp_path / "run")
    adapter = open_run(tmp_path / "x.sqlite")
    kept = rows(tmp_path / "x.sqlite", "select id, uid, tool_calls, tools from trajectories")
    assert len(kept) == len(CALLS)
    for identity, uid, count, written in kept:
        calls, expected = list(CALLS.values())[int(uid)]
        assert (count, names_of(written)) == (len(calls), expected)
        assert written is None or expected
        shown = adapter.load_trajectory(identity)
        assert (shown.metadata["tool_calls"], shown.metadata["tools"]) == (count, expected)
        assert list(called_tools(shown.messages[-1].get("tool_calls", ()))) == expected
    adapter.close()


def calling(*names: str) -> Any:
    return message("assistant", "", tool_calls=[{"name": name} for name in names])


def test_every_branch_counts_in_the_order_of_the_record(tmp_path: Path) -> None:
    said = [*ASKED, calling("a"), calling("b", "a"), calling("c")]
    nodes = [node(one, parent) for one, parent in zip(said, (None, 0, 1, 0), strict=True)]
    append(tmp_path / "run" / FILE, trace([], nodes=nodes, id="a"))
    index(tmp_path / "x.sqlite", tmp_path / "run")
    assert rows(tmp_path / "x.sqlite", "select branches, tool_calls, tools from trajectories") == [
        (2, 4, '["a","b","c"]')
    ]


def write_run(root: Path) -> Path:
    """Write a run in which two rollouts call bash, one of them edit as well, and one calls nothing."""
    for step, outcomes in enumerate([{"bash": 1.0, "bash edit": 0.0, "": 1.0}, {"bash": None}], start=1):
        for tools, reward in outcomes.items():
            said = [*ASKED, *([calling(*tools.split())] if tools else []), message("assistant", "42")]
            rewards = {"reward": {"score": reward}}
            record = trace(said, id=f"{step} {tools}", rewards=rewards)
            append(root / "rollouts" / f"step_{step}" / "train" / "all" / "traces.jsonl", record)
    return root


def test_tool_use_counts_each_trajectory_once_for_each_tool(tmp_path: Path) -> None:
    index(tmp_path / "x.sqlite", write_run(tmp_path / "run"))
    columns = "step, tool, trajectories, scored, successes, pass_rate"
    assert rows(tmp_path / "x.sqlite", f"select {columns} from tool_use order by step, tool") == [
        (1, "bash", 2, 2, 1, 0.5), (1, "edit", 1, 1, 0, 0.0), (2, "bash", 1, 0, 0, None),
    ]  # fmt: skip


def test_tool_use_reads_one_index_and_takes_each_list_apart_once(tmp_path: Path) -> None:
    """A million trajectories are within the second that Datasette gives a page."""
    index(tmp_path / "x.sqlite", write_run(tmp_path / "run"))
    for query in ("select * from tool_use", "select * from tool_use where run_id = 1 and step = 2 and tool = 'bash'"):
        plan = [row[3] for row in rows(tmp_path / "x.sqlite", f"explain query plan {query}")]
        assert [line for line in plan if "trajectories" in line] == [
            "SCAN trajectories USING COVERING INDEX trajectories_tools"
        ]
        assert plan.count("USE TEMP B-TREE FOR GROUP BY") == 1  # of the few lines that there are left


def test_an_index_from_before_is_read_as_it_is_and_filled_by_the_next_indexing(tmp_path: Path) -> None:
    root, database = write_run(tmp_path / "run"), tmp_path / "x.sqlite"
    index(database, root)
    kept = "select id, uid, tools from trajectories order by id"
    before = rows(database, kept)
    made_before("m002_tools", database)
    assert inspected(database, "--trajectory", "1").returncode == 0
    assert index(database, root).read_shards == 2
    assert rows(database, kept) == before
    assert rows(database, "select sum(trajectories) from tool_use") == [(4,)]
    assert index(database, root).read_shards == 0


def test_an_index_from_before_the_names_of_sealed_files_gets_them_too(tmp_path: Path) -> None:
    root, database = write_run(tmp_path / "run"), tmp_path / "x.sqlite"
    index(database, root)
    before = rows(database, "select path, file from shards order by id")
    made_before("m002_tools", database)
    with sqlite3.connect(database) as connection:
        connection.execute("alter table shards drop column file")
    connection.close()
    index(database, root)
    assert rows(database, "select path, file from shards order by id") == before


@given(st.lists(st.one_of(st.text(max_size=130), st.text("ab", max_size=1), st.none(), st.integers())))
def test_what_is_kept_is_text_for_every_reader(names: list[Any]) -> None:
    written = names_json(kept_names(names))
    kept = names_of(written)
    assert kept == ([] if written is None else json.loads(written.encode()))
    assert tuple(kept) == kept_names(kept)
    with sqlite3.connect(":memory:") as connection:
        assert [one for (one,) in connection.execute("select value from json_each(?)", (written,))] == kept
    connection.close()


LEAF = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.sampled_from(["a", "b", "", '{"name":"a"}'])
)
KEYS = st.sampled_from(["name", "function", "arguments", "id"])
RECORDED = st.recursive(LEAF, lambda inner: st.lists(inner, max_size=2) | st.dictionaries(KEYS, inner, max_size=4))


@given(st.lists(RECORDED, max_size=6))
def test_scanning_finds_the_names_that_loading_finds(calls: list[Any]) -> None:
    recorded = msgspec.json.encode({"tool_calls": calls})
    scanned = msgspec.json.decode(recorded, type=Message).tool_calls or []
    assert written_names(scanned) == names_json(called_tools(msgspec.json.decode(recorded)["tool_calls"]))
