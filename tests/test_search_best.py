"""The stretch that is shown of what a search matches: around most of the words, closest to each other."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rltracer_sqlite import search_text
from rltracer_sqlite.search import best_snippet, find_matches, full_text_query
from tests.commands import indexed, rltracer
from tests.layouts.records import message, trace

NOISE = "bash: foo: command not found\n" * 30


def best(text: str, typed: str, characters: int = 320, starts: tuple[int, ...] = (0,)) -> str | None:
    query = full_text_query(typed)
    [matches] = find_matches([text], query)
    found = best_snippet(text, matches, query, characters, starts).best
    return found and text[slice(*found)]


@pytest.mark.parametrize(
    ("text", "typed", "shown"),
    [
        (f"{NOISE}chmod: Operation not permitted\n{NOISE}", "Operation not permitted", "Operation not permitted"),
        (
            "permitted, not operation. Operations  not\npermitted.",
            "Operation not permitted",
            "Operations  not\npermitted",
        ),
        ("code; exit. Then code to exit, exit code", "exit code", "exit code"),
        ("exit with a code: exit a code", "exit code", "code: exit"),
        (f"exit {'x ' * 200} code exit 1 exit", "exit code", "code exit"),
        ("out timed out", 'timeout OR "timed out"', "timed out"),
        (f"alpha beta {'x ' * 200} gamma alpha", "alpha beta gamma", "alpha beta"),
        ("tests fail; the test fails, failing", "fail* test", "tests fail"),
        ("time. timeouts: time, timed time", "time*", "time"),
        (f"端口 {'x ' * 200}显存不足", "显存 不足", "显存不足"),
        ("the man the", "the man the", "the man"),
        ("nothing", "absent", None),
    ],
)
def test_the_best_is_the_phrase_or_most_of_the_words_closest_to_each_other(text: str, typed: str, shown: str) -> None:
    assert best(text, typed) == shown


def test_of_words_alone_the_best_is_the_first_of_most() -> None:
    text, query = f"port {'x ' * 300} port here {'x ' * 300} a port, port", full_text_query("port")
    [matches] = find_matches([text], query)
    snippet = best_snippet(text, matches, query)
    assert (snippet.best, len(snippet.matches)) == (matches[2], 2)


def test_what_is_narrower_has_the_most_that_is_as_near() -> None:
    text = f"alpha {'x ' * 50} beta gamma; alpha beta"
    assert [best(text, "alpha beta gamma", size) for size in (320, 20)] == ["beta gamma; alpha", "beta gamma; alpha"]
    assert best(text, "alpha beta gamma", 12) == "beta gamma"


def test_the_best_lies_in_one_part() -> None:
    text = "exit\n\ncode x exit"
    assert best(text, "exit code") == "exit\n\ncode"
    assert best(text, "exit code", starts=(0, 6)) == "code x exit"


def test_many_forms_and_matches_take_no_more_time_for_each() -> None:
    text = " ".join(f"a{number} b" for number in range(20_000)) + " a b*"
    assert best(text, "a* b") == "a0 b"


@given(
    st.lists(st.sampled_from(["word", "match", "länger", "\n", "x" * 70]), max_size=200),
    st.integers(20, 400),
    st.sampled_from(["match", "match word", "länger OR match", 'ma* "word match"']),
)
def test_a_snippet_holds_matches_and_is_short(words: list[str], size: int, typed: str) -> None:
    text, query = " ".join(words), full_text_query(typed)
    [matches] = find_matches([text], query)
    snippet = best_snippet(text, matches, query, size)
    assert 0 <= snippet.start <= snippet.end <= len(text)
    assert snippet.end - snippet.start <= size + 80 + 5
    assert bool(snippet.matches) == bool(matches) == bool(snippet.best)
    for start, end in snippet.matches:
        assert snippet.start <= start < end <= snippet.end
    if snippet.best:
        assert {match[index] for match in snippet.matches for index in (0, 1)} >= set(snippet.best)


def test_terminal_and_python_show_the_phrase_and_not_where_single_words_are_densest(tmp_path: Path) -> None:
    said = f"{NOISE}chmod: Operation not permitted\n{NOISE}"
    messages = [message("user", "operation: permitted or not?"), message("assistant", said), message("user", NOISE)]
    index, run = tmp_path / "x.sqlite", tmp_path / "run/rollouts/step_1/train/all"
    run.mkdir(parents=True)
    (run / "traces.jsonl").write_text(json.dumps(trace(messages)) + "\n")
    assert indexed(index, tmp_path / "run", "--fts").returncode == 0
    line = rltracer("search", index, "Operation", "not", "permitted").stdout.splitlines()[1]
    assert "chmod: Operation not permitted bash" in line
    [match] = search_text(index, "Operation not permitted")
    assert (match.message, match.role) == (2, "assistant")
    assert {match.snippet[start:end] for start, end in match.marks} == {"Operation", "not", "permitted"}
