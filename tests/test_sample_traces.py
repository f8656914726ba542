"""What single traces of the sample run hold: sound graphs, true labels, valid pictures, and one case of every kind."""

from __future__ import annotations

import json
import re
import struct
import zlib
from base64 import b64decode
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.sample_run import Record, episodes, final, traces


@pytest.fixture(scope="module")
def run(demo: Path) -> Path:
    return demo / "run"


def test_graphs_are_sound(run: Path) -> None:
    for trace in traces(run, "*"):
        for index, node in enumerate(trace["nodes"]):
            parents = [node.get("parent", -1), *(edge["node"] for edge in node["semantic_parents"])]
            assert max(parents) < index
        sampled = [index for index, node in enumerate(trace["nodes"]) if node["sampled"]]
        assert [call["node"] for call in trace["calls"]] == sampled
        assert all(call["usage"]["cached_input_tokens"] <= call["usage"]["prompt_tokens"] for call in trace["calls"])


@pytest.mark.parametrize("env", ["word-problems", "pictures", "shell-jobs"])
def test_the_label_says_whether_the_answer_is_right(run: Path, env: str) -> None:
    checked = 0
    for episode in episodes(run, "*"):
        for trace in episode["traces"]:
            answer = trace["task"]["data"]["answer"]
            numeric = answer.isdigit() or env == "pictures"
            if episode["env"]["name"] == env and numeric and trace["metrics"] and final(trace):
                said = re.search(rf"(?<!/)\b{answer}\b", final(trace)) is not None
                assert said == bool(trace["metrics"]["correct_final_label"]), final(trace)
                checked += 1
    assert checked > 20


def test_the_written_code_runs_as_it_was_judged(run: Path) -> None:
    solvers = [trace for trace in traces(run) if trace["agent"]["name"] == "solver"]
    for trace in solvers:
        scope: dict[str, Any] = {}
        exec(final(trace).split("```python\n")[1].split("```")[0], scope)
        right = [scope["is_leap"](year) for year in (1900, 2000, 2023, 2024)] == [False, True, False, True]
        assert right == bool(trace["metrics"]["correct_final_label"])
    assert len(solvers) >= 4


def image_urls(run: Path) -> set[str]:
    found = set()
    for trace in traces(run, "*"):
        for node in trace["nodes"]:
            parts = node["message"].get("content")
            found |= (
                {part["image_url"]["url"] for part in parts if "image_url" in part}
                if isinstance(parts, list)
                else set()
            )
    return found


def test_pictures_are_valid_pngs(run: Path) -> None:
    urls = image_urls(run)
    assert len(urls) == 4
    for url in urls:
        png, chunks = b64decode(url.removeprefix("data:image/png;base64,"), validate=True), {}
        assert png.startswith(b"\x89PNG\r\n\x1a\n")
        offset = 8
        while offset < len(png):
            length, kind = struct.unpack_from(">I4s", png, offset)
            chunks[kind] = png[offset + 8 : offset + 8 + length]
            assert struct.unpack_from(">I", png, offset + 8 + length)[0] == zlib.crc32(kind + chunks[kind])
            offset += 12 + length
        width, height, depth, colour = struct.unpack_from(">IIBB", chunks[b"IHDR"])
        assert (list(chunks), colour) == ([b"IHDR", b"PLTE", b"IDAT", b"IEND"], 3)
        assert len(zlib.decompress(chunks[b"IDAT"])) == height * (1 + width * depth // 8)


def roots(trace: Record) -> int:
    return sum("parent" not in node for node in trace["nodes"])


def arguments(trace: Record) -> list[str]:
    return [call["arguments"] for node in trace["nodes"] for call in node["message"].get("tool_calls", ())]


def invalid(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return True
    return False


def edges(trace: Record) -> set[str]:
    return {edge["type"] for node in trace["nodes"] for edge in node["semantic_parents"]}


SPECIAL: dict[str, Callable[[Record], Any]] = {
    "an error": lambda trace: trace["errors"] and not trace["ok"] and trace["stop_condition"] == "error",
    "a cut answer": lambda trace: (
        trace["stop_condition"] == "max_output_tokens" and trace["calls"][-1]["finish_reason"] == "length"
    ),
    "all turns used": lambda trace: trace["stop_condition"] == "max_turns",
    "a compaction": lambda trace: roots(trace) == 2 and not edges(trace),
    "a sub-agent": lambda trace: roots(trace) == 2 and edges(trace) == {"subagent_call", "subagent_return"},
    "no score": lambda trace: trace["rewards"] and all(named["score"] is None for named in trace["rewards"].values()),
    "invalid arguments": lambda trace: any(map(invalid, arguments(trace))),
    "a long tool output": lambda trace: any(
        node["message"]["role"] == "tool" and node["message"]["content"].count("\n") > 200 for node in trace["nodes"]
    ),
    "reasoning": lambda trace: "reasoning_content" in trace["nodes"][-1]["message"],
    "a code block": lambda trace: "```python\n" in final(trace),
    "German": lambda trace: "Ein gerader Zaun" in trace["nodes"][1]["message"]["content"],
    "Spanish": lambda trace: "¿" in trace["nodes"][1]["message"]["content"],
    "Japanese": lambda trace: re.search("[\u3040-\u30ff]", final(trace)),
    "Arabic": lambda trace: re.search("[\u0600-\u06ff]", final(trace)),
    "a judge": lambda trace: trace["agent"]["name"] == "judge" and not trace["agent"]["trainable"],
}


@pytest.mark.parametrize("what", SPECIAL)
def test_there_is_a_trace_with(run: Path, what: str) -> None:
    assert any(SPECIAL[what](trace) for trace in traces(run))


def test_one_episode_failed_before_any_agent_ran(run: Path) -> None:
    failed = [episode for episode in episodes(run) if not episode["traces"]]
    assert len(failed) == 1
    assert failed[0]["errors"][0]["type"]
    assert failed[0]["ok"] is False


def test_a_judged_episode_holds_both_agents(run: Path) -> None:
    names = {tuple(trace["agent"]["name"] for trace in e["traces"]) for e in episodes(run) if len(e["traces"]) > 1}
    assert names == {("solver", "judge")}


def test_every_scored_trace_has_what_the_default_success_rule_reads(run: Path) -> None:
    for trace in traces(run, "*"):
        if any(named["score"] is not None for named in trace["rewards"].values()):
            assert trace["metrics"]["correct_final_label"] in (0.0, 1.0)
            assert all(named["weight"] > 0 for named in trace["rewards"].values())
