"""Rows: branches, tool calls, contents of every kind, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.export.rows import RowRejected, json_arguments, preference_row, sft_rows, training_messages
from rltracer_sqlite.trajectory import Trajectory
from tests.export_runs import export, indexed, inspect, rollout, spec, write_steps
from tests.indexing import index
from tests.layouts import LAYOUTS, message, nodes_of, tool_call, trace, v0_row
from tests.layouts.samples import COMPACTED, DELEGATED, FORKED, PICTURE, Sample, trace_of


def rows_of(tmp_path: Path, record: dict[str, Any], **preferences: Any) -> list[dict[str, Any]]:
    """Return the rows of one record."""
    database = indexed(tmp_path, {1: [record]})
    return export(spec(database), tmp_path / "out.jsonl", acceptance="any", **preferences)


@pytest.mark.parametrize(
    ("sample", "last"),
    [(COMPACTED, ["It has", "42."]), (DELEGATED, ["Hotel Foo", "Stay at Hotel Foo."]), (FORKED, ["Blue", "Orange"])],
)
def test_every_branch_is_a_row(tmp_path: Path, sample: Sample, last: list[str]) -> None:
    rows = rows_of(tmp_path, trace_of(sample, "a"), include_provenance=True)
    assert [row["messages"][-1]["content"][: len(text)] for row, text in zip(rows, last, strict=True)] == last
    assert [row["trace_provenance"]["branch"] for row in rows] == [1, 2]


def test_identical_branches_are_one_row(tmp_path: Path) -> None:
    said = [message("user", "Say hi."), message("assistant", "hi"), message("assistant", "hi")]
    assert len(rows_of(tmp_path, trace(nodes=nodes_of(said, [None, 0, 0]), id="a"))) == 1


def test_a_branch_that_the_policy_did_not_sample_is_left_out(tmp_path: Path) -> None:
    said = [
        message("user", "Say hi."),
        message("assistant", "hi"),
        message("user", "Judge."),
        message("assistant", "ok"),
    ]
    nodes = nodes_of(said, [None, 0, None, 2])
    nodes[3]["sampled"] = False
    [row] = rows_of(tmp_path, trace(nodes=nodes, id="a"))
    assert row["messages"][-1]["content"] == "hi"


def test_a_trajectory_without_an_answer_is_dropped_before_it_is_read(tmp_path: Path) -> None:
    record = rollout("empty")
    record["nodes"] = nodes_of([message("user", "6 * 7?")])
    records = [record, *(rollout(f"t{n}") for n in range(2))]
    wanted: dict[str, Any] = {"keep_generation_errors": True, "per_prompt": 3}
    run = spec(indexed(tmp_path, {1: records}))
    assert len(export(run, tmp_path / "out.jsonl", **wanted)) == 2
    told = json.loads((tmp_path / "out.jsonl.summary.json").read_text())
    assert (told["funnel"], told["rejected"]) == (inspect(run, **wanted)["funnel"], {})
    assert {"stage": "with an answer", "left": 2, "dropped": 1} in told["funnel"]


def test_a_rejected_row_is_replaced_by_another_of_its_prompt(tmp_path: Path) -> None:
    records = [rollout(f"t{n}", f"q{n % 3}") for n in range(12)]
    for record in records[:8]:
        record["nodes"][2]["message"]["tool_calls"] = [{"id": "x", "arguments": "{}"}]
    rows = export(spec(indexed(tmp_path, {1: records})), tmp_path / "out.jsonl", per_prompt=1, target_count=3)
    told = json.loads((tmp_path / "out.jsonl.summary.json").read_text())
    assert len({row["messages"][1]["content"] for row in rows}) == 3
    assert told["funnel"][6] == {"stage": "well formed", "left": 12 - told["rejected"]["tool call without a name"],
                                 "dropped": told["rejected"]["tool call without a name"]}  # fmt: skip


def test_parts_stay_parts_and_foreign_keys_are_left_out(tmp_path: Path) -> None:
    [row] = rows_of(tmp_path, trace_of(PICTURE, "a"))
    assert [part["type"] for part in row["messages"][0]["content"]] == ["text", "image_url"]
    assert set(row["messages"][1]) == {"role", "content", "tool_calls"}
    [call] = row["messages"][1]["tool_calls"]
    assert call == {"id": "c1", "type": "function", "function": {"name": "crop", "arguments": '"x=0 y=0 (not json)"'}}


def test_reasoning_is_kept_and_an_answer_without_text_is_empty() -> None:
    said = [message("assistant", reasoning_content="Hm.", tool_calls=[tool_call("c", "f", {})]), message("user", "x")]
    first, second = training_messages(said)
    assert (first["content"], first["reasoning_content"]) == ("", "Hm.")
    assert second == {"role": "user", "content": "x"}


@pytest.mark.parametrize(
    ("recorded", "expected"),
    [
        ('{"a": 1}', '{"a": 1}'),
        ("[1]", "[1]"),
        ("", "{}"),
        (" ", "{}"),
        ('{"a": ', '"{\\"a\\": "'),
        ("NaN", '"NaN"'),
        ("ls -l", '"ls -l"'),
        ("[" * 5000, json.dumps("[" * 5000)),
    ],
)
def test_arguments_are_always_json(recorded: str, expected: str) -> None:
    assert json_arguments(recorded) == expected
    json.loads(json_arguments(recorded))


def test_calls_without_an_id_get_one() -> None:
    [said] = training_messages([{"role": "assistant", "tool_calls": [{"name": "f"}, {"name": "g", "id": "mine"}]}])
    assert [call["id"] for call in said["tool_calls"]] == ["call_0_0", "mine"]


def test_an_argument_named_like_the_token_arrays_survives(tmp_path: Path) -> None:
    call = {"id": "c", "name": "f", "arguments": {"x": 1, "token_ids": [1, 2]}}
    record = rollout("a")
    record["nodes"][2]["message"]["tool_calls"] = [call]
    [row] = rows_of(tmp_path, record)
    assert json.loads(row["messages"][2]["tool_calls"][0]["function"]["arguments"]) == {"x": 1, "token_ids": [1, 2]}


def test_rows_that_call_undefined_tools_are_counted(tmp_path: Path) -> None:
    rows_of(tmp_path, rollout("a", calls=1, tools=[]))
    told = json.loads((tmp_path / "out.jsonl.summary.json").read_text())
    assert told["rows_without_tool_definitions"] == 1


def test_the_raw_trace_is_the_record(tmp_path: Path) -> None:
    record = rollout("a")
    [row] = rows_of(tmp_path, record, include_raw_trace=True)
    assert row["trace"]["nodes"] == record["nodes"]


@pytest.mark.parametrize("text", ["\u2028 \u0085 ", "\ud83d half a pair", "𝔘 \0 \x1b[31m"])
def test_any_text_becomes_one_line_of_json(tmp_path: Path, text: str) -> None:
    record = rollout("a", answer="x")
    record["nodes"][2]["message"]["content"] = text
    database = tmp_path / "x.sqlite"
    file = tmp_path / "run" / "rollouts" / "step_1" / "train" / "all" / "traces.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(record) + "\n")
    index(database, tmp_path / "run")
    export(spec(database), tmp_path / "out.jsonl")
    [line] = (tmp_path / "out.jsonl").read_bytes().splitlines()
    content = json.loads(line)["messages"][2]["content"]
    assert content == text.replace("\ud83d", "\ufffd")


@pytest.mark.parametrize("layout", sorted(LAYOUTS))
def test_every_layout_exports(tmp_path: Path, layout: str) -> None:
    LAYOUTS[layout](tmp_path / "run")
    index(tmp_path / "x.sqlite", tmp_path / "run")
    rows = export(spec(tmp_path / "x.sqlite", split=None), tmp_path / "out.jsonl", acceptance="any", per_prompt=None)
    assert rows
    assert all(any(said["role"] == "assistant" for said in row["messages"]) for row in rows)


def test_v0_rows_are_conversations(tmp_path: Path) -> None:
    said = [message("user", "6 * 7?"), message("assistant", "42")]
    write_steps(tmp_path / "run", {1: [v0_row(said)]})
    index(tmp_path / "x.sqlite", tmp_path / "run")
    assert export(spec(tmp_path / "x.sqlite"), tmp_path / "out.jsonl") == [{"messages": said}]


def said_by(*answers: str, system: str = "s") -> Trajectory:
    said = [message("system", system), message("user", "q"), *(message("assistant", text) for text in answers)]
    return Trajectory(messages=said, metadata={}, branches=[said])


def test_a_pair_shares_its_prompt() -> None:
    assert preference_row(said_by("yes"), said_by("no")).row == {
        "prompt": [{"role": "system", "content": "s"}, {"role": "user", "content": "q"}],
        "chosen": [{"role": "assistant", "content": "yes"}],
        "rejected": [{"role": "assistant", "content": "no"}],
    }


@pytest.mark.parametrize(
    ("other", "reason"),
    [(said_by("no", system="S"), "differ"), (said_by("yes"), "the same"), (said_by(), "differ")],
)
def test_a_pair_without_a_common_prompt_or_a_difference_is_rejected(other: Trajectory, reason: str) -> None:
    with pytest.raises(RowRejected, match=reason):
        preference_row(said_by("yes"), other)


def test_results_without_ids_have_those_of_the_calls_before_them(tmp_path: Path) -> None:
    calls = [tool_call("a", "ls", {}), tool_call("b", "ls", {}), tool_call("c", "ls", {})]
    said = [
        message("user", "q"),
        message("assistant", tool_calls=calls),
        *(message("tool", "b", tool_call_id="b"), message("tool", "a"), message("tool", "c", name="ls")),
        *(message("tool", "of none"), message("assistant", "Well."), message("tool", "of none")),
        *(message("assistant", tool_calls=[{"name": "ls", "arguments": "{}"}]), message("tool", "last")),
        message("assistant", "Done."),
    ]
    [row] = rows_of(tmp_path, trace(said, id="a"))
    results = [one for one in row["messages"] if one["role"] == "tool"]
    [last] = row["messages"][-3]["tool_calls"]
    assert [one.get("tool_call_id") for one in results] == ["b", "a", "c", None, None, last["id"]]
    assert list(results[2]) == ["role", "content", "tool_call_id", "name"]


def test_sft_rows_of_a_source_that_knows_no_branches() -> None:
    said = [message("user", "q"), message("assistant", "a")]
    assert sft_rows(Trajectory(messages=said, metadata={})) == [({"messages": said}, (1,))]


@pytest.mark.parametrize("identity", ["c1", 0, 7, ["x"], {"n": 1}])
def test_what_is_no_text_is_text_in_a_row_and_results_name_their_calls(tmp_path: Path, identity: Any) -> None:
    said = [
        message("user", 5),
        message("assistant", tool_calls=[tool_call(identity, "bash", {})], reasoning_content=["why"]),
        message("tool", {"lines": 2}, tool_call_id=identity),
        message("assistant", "Two."),
    ]
    [row] = rows_of(tmp_path, trace(said, id="a"))
    asked, called, result, _ = row["messages"]
    assert (asked["content"], called["reasoning_content"], result["content"]) == ("5", '["why"]', '{"lines": 2}')
    assert (
        called["tool_calls"][0]["id"]
        == result["tool_call_id"]
        == (identity if isinstance(identity, str) else json.dumps(identity))
    )


def test_an_empty_id_of_a_result_is_none_and_calls_of_one_id_are_answered_once() -> None:
    calls = [{"id": id, "type": "function", "function": {"name": "ls", "arguments": "{}"}} for id in "abcb"]
    results = [message("tool", "2", tool_call_id="b"), *(message("tool", "", tool_call_id="") for _ in range(3))]
    made = training_messages([message("user", "Go."), message("assistant", "", tool_calls=calls), *results])
    assert [one.get("tool_call_id") for one in made[2:]] == ["b", "a", "c", ""]
