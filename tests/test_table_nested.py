"""Columns inside columns: nested messages, answers with their own rewards, and values that are taken once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.sources.base import LocatorError
from rltracer_sqlite.sources.table import mapping_source_from_text
from rltracer_sqlite.sources.table.rows import Row
from tests.table_rows import write_lines
from tests.table_scans import locator, read

NESTED = """
name = "nested"
[content]
messages = "talk.turns"
role = "author.role"
text = "body.text"
reasoning = "body.thought"
roles = { bot = "assistant" }
[columns]
stop = "end.why"
[rewards]
inside = "end.rewards"
"""
TRIES = """
name = "tries"
explode = ["tries"]
[content]
prompt = "ask.text"
completion = "tries.text"
[columns]
advantage = "tries.A"
[rewards]
inside = "tries.rewards"
"""
TRIES_OF_TURNS = """
name = "tries"
explode = ["tries"]
[content]
messages = "tries.turns"
[columns]
reward = "tries.rewards.right"
"""


def loaded(toml: str, root: Path) -> list[tuple[Any, Any]]:
    """Return each entry and its trajectory."""
    reader = mapping_source_from_text(toml)
    entries, problems, _ = read(reader, root)
    assert problems == []
    return [(entry, reader.load(root, [locator(shard, entry)])) for shard, entry in entries]


def test_keys_inside_the_keys_of_a_message(tmp_path: Path) -> None:
    turns = [
        {"author": {"role": "user"}, "body": {"text": "1 + 1?"}},
        {"author": {"role": "bot"}, "body": {"text": "2", "thought": "easy"}},
    ]
    end = {"why": "eos", "rewards": {"right": 1.0, "short": 0.5}, "late": True}
    write_lines(tmp_path / "a.jsonl", {"talk": {"turns": turns}, "end": end})
    [(entry, trajectory)] = loaded(NESTED, tmp_path)
    said = [(m["role"], m["content"], m.get("reasoning_content")) for m in trajectory.messages]
    assert said == [("user", "1 + 1?", None), ("assistant", "2", "easy")]
    # What a role or a named reward has taken is no value of its own as well.
    assert entry.values == {"rewards.right.score": 1.0, "rewards.short.score": 0.5, "end.late": 1.0}
    assert (entry.reward, entry.stop_condition) == (1.5, "eos")


def test_answers_that_are_objects(tmp_path: Path) -> None:
    tries = [
        {"text": "2", "rewards": {"right": 1.0, "short": 0.5}, "A": 0.5},
        {"text": "3", "rewards": {"right": 0.0, "short": None}, "A": -0.5},
    ]
    write_lines(tmp_path / "a.jsonl", {"ask": {"text": "1 + 1?"}, "tries": tries})
    found = loaded(TRIES, tmp_path)
    assert [(entry.item, entry.reward, entry.advantage) for entry, _ in found] == [(0, 1.5, 0.5), (1, None, -0.5)]
    assert [[m["content"] for m in one.messages] for _, one in found] == [["1 + 1?", "2"], ["1 + 1?", "3"]]


@pytest.mark.parametrize("tries", [[], [{"turns": [{"role": "user", "content": "q"}], "rewards": {"right": 1}}]])
def test_answers_that_are_conversations(tries: list[Any], tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", {"tries": [{"turns": [{"role": "user", "content": "q"}]}]}, {"tries": tries})
    assert [(entry.line, entry.reward) for entry, _ in loaded(TRIES_OF_TURNS, tmp_path)] == [
        (1, None),
        *((2, 1.0) for _ in tries),
    ]


def test_answers_in_lists_inside_an_object(tmp_path: Path) -> None:
    inside = """
    name = "inside"
    explode = ["out.answers", "out.rewards"]
    [content]
    prompt = "ask"
    completion = "out.answers.text"
    [columns]
    reward = "out.rewards"
    """
    out = {"answers": [{"text": "2"}, {"text": "3"}], "rewards": [1, 0]}
    write_lines(tmp_path / "a.jsonl", {"ask": "1 + 1?", "out": out})
    found = loaded(inside, tmp_path)
    assert [(entry.item, entry.reward) for entry, _ in found] == [(0, 1.0), (1, 0.0)]
    assert [one.messages[-1]["content"] for _, one in found] == ["2", "3"]


def test_a_list_that_is_nested_too_deeply_is_a_problem(tmp_path: Path) -> None:
    """Finding the end of a record may go deeper than decoding what is in it."""
    tries = {"ask": {"text": "1 + 1?"}, "tries": [{"text": "2", "rewards": {"right": 1}}]}
    good = json.dumps(tries).encode()
    for levels in range(960, 1000):
        deep = good.replace(b'[{"text": "2"', b'[{"x": ' + b"[" * levels + b"]" * levels + b', "text": "2"')
        (tmp_path / "a.jsonl").write_bytes(deep + b"\n" + good + b"\n")
        entries, problems, _ = read(mapping_source_from_text(TRIES), tmp_path)
        assert len(entries) + len(problems) >= 2
        assert [entry.line for _, entry in entries][-1] == 2
        assert all("nested too deeply" in problem.reason for problem in problems)


def test_what_is_too_deep_to_be_written_again_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_deep(*_: object, **__: object) -> None:
        raise RecursionError

    write_lines(tmp_path / "a.jsonl", {"ask": {"text": "q"}, "tries": [{"text": "2"}]})
    reader = mapping_source_from_text(TRIES)
    [(shard, entry)], _, _ = read(reader, tmp_path)
    monkeypatch.setattr("rltracer_sqlite.sources.table.load.trajectory_of", too_deep)
    with pytest.raises(LocatorError, match=r"a\.jsonl is nested too deeply"):
        reader.load(tmp_path, [locator(shard, entry)])
    monkeypatch.setattr("rltracer_sqlite.sources.table.entries.conversation_of", too_deep)
    _, problems, _ = read(reader, tmp_path)
    assert [problem.reason for problem in problems] == ["item 0: not readable: nested too deeply"]


def test_the_longest_name_leads_on() -> None:
    row = Row({"a": {"b": {"c": 1}}, "a.b": {"c": 2}, "": {"d": 3}})
    assert [row.get(path) for path in ("a.b.c", "a.b", "a", "a.x", ".d", "b", "", "x.y")] == [
        2, {"c": 2}, {"b": {"c": 1}}, None, 3, None, {"d": 3}, None,
    ]  # fmt: skip
