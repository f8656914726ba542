"""Which tools a model was offered is said in the terminal as it is on a page, of every system."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.commands import rltracer
from tests.indexing import index
from tests.layouts import append, message, trace
from tests.table_rows import CONTEXT, GOOD, TOOL, write_lines

LISTED = f"<tools>\n{json.dumps(TOOL)}\n</tools>"
SYSTEM = f"Answer.\n\n# Tools\n\nYou may call one:\n{LISTED}\n\nCall so:\n<tool_call>\n{{}}\n</tool_call>"
ANSWER = {"role": "assistant", "content": GOOD}


def prime_rl(root: Path) -> None:
    said = [message("user", "Why?"), message("assistant", "So.")]
    append(root / "rollouts/step_1/train/all/traces.jsonl", trace(said, id="a", tools=[TOOL["function"]]))


def verl(root: Path) -> None:
    asked = f"system\n{SYSTEM}\nuser\nWhy?\nassistant\n"
    write_lines(root / "1.jsonl", {"input": asked, "output": "So.", "gts": "", "score": 1.0, "step": 1})


def chat(root: Path, tools: Any = (TOOL,)) -> None:
    write_lines(root / "x.jsonl", {"messages": [*CONTEXT, ANSWER], "tools": tools, "reward": 1.0})


def shown(tmp_path: Path, *options: str) -> list[str]:
    index(tmp_path / "x.sqlite", tmp_path / "run")
    done = rltracer("inspect", tmp_path / "x.sqlite", "--trajectory", 1, *options)
    assert done.returncode == 0
    return done.stdout.split("\n")


@pytest.mark.parametrize("write", [prime_rl, verl, chat])
def test_their_names_and_with_full_their_definitions(write: Callable[[Path], None], tmp_path: Path) -> None:
    write(tmp_path / "run")
    assert "1 tool offered: multiply; --full shows the definition" in shown(tmp_path)
    full = shown(tmp_path, "--full")
    begin = full.index("1 tool offered:") + 1
    assert json.loads("\n".join(full[begin : full.index("}", begin) + 1]))["function"]["name"] == "multiply"


def test_nothing_is_said_where_none_is_recorded(tmp_path: Path) -> None:
    chat(tmp_path / "run", tools=None)
    assert not [line for line in shown(tmp_path, "--full") if "offered" in line]


def test_many_and_strange_tools(tmp_path: Path) -> None:
    deep: Any = {}
    for _ in range(300):
        deep = {"of": deep}
    named = [{"name": f"tool{number}", "parameters": {}} for number in range(12)]
    chat(tmp_path / "run", tools=[{"name": "a\x1b[31m\n" + "b" * 90, "parameters": deep}, {"name": None}, *named])
    lines = shown(tmp_path)
    said = " ".join(lines[next(n for n, line in enumerate(lines) if "offered" in line) :])
    assert said.startswith("14 tools offered: a\N{SYMBOL FOR ESCAPE}[31m " + "b" * 52 + "…, (no name), tool0,")
    assert "tool9, …; --full shows the definitions" in said
    assert max(map(len, lines)) <= 80
    assert not [line for line in shown(tmp_path, "--full") if "\x1b" in line]


def test_definitions_are_not_searched_and_the_help_says_so(tmp_path: Path) -> None:
    chat(tmp_path / "run")
    index(tmp_path / "x.sqlite", tmp_path / "run")
    rltracer("fts", tmp_path / "x.sqlite")
    assert rltracer("search", tmp_path / "x.sqlite", "multiply").stdout == "No match in 1 trajectory.\n"
    assert "The definitions of the tools that were offered are not searched." in " ".join(
        rltracer("search", "--help").stdout.split()
    )
