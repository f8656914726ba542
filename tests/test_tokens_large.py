"""Texts and pickles with very many marks take time that grows with their length: by its square, these took minutes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from rltracer_sqlite.sources.prime_rl.torch_pickle import read_tensors
from rltracer_sqlite.tokens.families import family_named
from rltracer_sqlite.tokens.templates import parse_conversation
from rltracer_sqlite.tokens.toolblocks import split_tools
from rltracer_sqlite.tokens.toolcalls import find_calls

ASKED = "<|start|>user<|message|>hi<|end|>"
CALL = "<|start|>assistant<|channel|>commentary to=functions.f<|message|>{}<|call|>"
RESULT = "<|start|>functions.f<|message|>ok<|end|>"
THOUGHT = "<|start|>assistant<|channel|>analysis<|message|>so<|end|>"


def results_that_find_their_calls() -> int:
    messages = parse_conversation(ASKED + CALL * 8000 + RESULT * 8000).messages
    return len({message["tool_call_id"] for message in messages if message["role"] == "tool"})


def thoughts_of_one_answer() -> int:
    messages = parse_conversation(ASKED + THOUGHT * 8000).messages
    return messages[-1]["reasoning_content"].count("so\n") + 1


def comments_of_a_namespace() -> int:
    return len(split_tools("namespace functions {\n" + "//\n" * 300_000 + "type f = () => any;\n}")[1])


def closing_marks_in_a_value() -> int:
    value = "</parameter> x" * 500_000
    body = f"<tool_call>\n<function=f>\n<parameter=a>\n{value}</parameter>\n</function>\n</tool_call>"
    return len(find_calls(body, family_named("ChatML").calls, {}).calls)


def marks_of_padding() -> int:
    text = "<|endoftext|>" * 200_000 + "<|im_start|>user\nhi<|im_end|>"
    return len(parse_conversation(text, family_named("ChatML")).messages)


def tuples_of_a_pickle() -> int:
    count = 200_000
    return len(read_tensors(b"\x80\x02" + b"(" + b")" * count + b"(t" * count + b"t."))


@pytest.mark.parametrize(
    ("read", "found"),
    [
        (results_that_find_their_calls, 8000),
        (thoughts_of_one_answer, 8000),
        (comments_of_a_namespace, 1),
        (closing_marks_in_a_value, 1),
        (marks_of_padding, 1),
        (tuples_of_a_pickle, 400_000),
    ],
)
def test_time_grows_with_the_length(read: Callable[[], int], found: int) -> None:
    assert read() == found
