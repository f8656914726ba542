"""Rendered text with its markers and without them: what each family still says, and what it does not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rltracer_sqlite.tokens.families import family_named, find_family, find_stripped_family
from rltracer_sqlite.tokens.templates import Conversation, parse_conversation
from tests.layouts.corpora import corpora

SHARED = corpora()
ASKED = "A shop sells pens at 3 for $2. How much do 12 pens cost?"
RULE = "You are a careful assistant. Put the final answer after ####."
THOUGHT = "12 pens is 4 packs of 3, 4*2=8."
ANSWER = "12 / 3 = 4 packs, 4 x $2 = $8.\n#### 8"


def from_corpus(name: str) -> Conversation:
    if SHARED is None:
        pytest.skip("no corpora")
    line = (SHARED / "other" / "verl" / "families" / name / "1.jsonl").read_text(encoding="utf-8").split("\n")[0]
    row: dict[str, Any] = json.loads(line)
    return parse_conversation(row["input"] + row["output"], prompt_length=len(row["input"]))


@pytest.mark.parametrize(
    ("name", "family", "kind", "roles"),
    [
        ("qwen_special", "ChatML", "rendered", ["system", "user"]),
        ("deepseek_special", "DeepSeek", "rendered", ["system", "user"]),
        ("glm_special", "GLM", "rendered", ["system", "user"]),
        ("harmony_special", "Harmony", "rendered", ["system", "developer", "user"]),
        ("mistral_special", "Mistral", "rendered", ["user"]),
        ("qwen_stripped", "ChatML", "stripped", ["system", "user"]),
        ("deepseek_stripped", "DeepSeek", "rendered", ["system", "user"]),
    ],
)
def test_these_are_split(name: str, family: str, kind: str, roles: list[str]) -> None:
    conversation = from_corpus(name)
    assert (conversation.family, conversation.content_kind) == (family, kind)
    assert [message["role"] for message in conversation.messages] == [*roles, "assistant"]
    assert conversation.messages[-1] == {"role": "assistant", "reasoning_content": THOUGHT, "content": ANSWER}
    question = f"{RULE}\n\n{ASKED}" if family == "Mistral" else ASKED
    assert conversation.messages[-2]["content"] == question
    if family not in ("Mistral", "Harmony"):
        assert conversation.messages[0]["content"] == RULE


@pytest.mark.parametrize("name", ["glm_stripped", "harmony_stripped", "mistral_stripped"])
def test_these_are_a_prompt_and_a_completion(name: str) -> None:
    conversation = from_corpus(name)
    assert conversation.content_kind == "prompt_completion"
    assert conversation.flags == ("its turns cannot be told apart: shown as prompt and completion",)
    prompt, completion = conversation.messages
    assert prompt["role"] == "user"
    assert RULE in prompt["content"]
    assert ASKED in prompt["content"]
    assert completion == {"role": "assistant", "reasoning_content": THOUGHT, "content": ANSWER}


GLUED = [
    "system\n\nBe brief.user\n\nWhat is 2 + 2?assistant\n\n4",
    "systemBe brief.userWhat is 2 + 2?assistant4",
    "What is 2 + 2?",
]


@pytest.mark.parametrize("text", GLUED)
def test_what_cannot_be_split_is_not_split(text: str) -> None:
    conversation = parse_conversation(text, prompt_length=len(text) - 1)
    assert conversation.content_kind == "prompt_completion"
    assert [message["content"] for message in conversation.messages] == [text[:-1], text[-1]]
    alone = parse_conversation(text)
    assert [message["content"] for message in alone.messages] == [text]
    assert alone.flags == ("its turns cannot be told apart",)


def test_stripped_llama_is_recognised_and_left_whole() -> None:
    family = find_stripped_family(GLUED[0])
    assert family is family_named("llama 3")
    assert family.stripped_turn is None


def test_stripped_gemma_is_split() -> None:
    conversation = parse_conversation("user\nWhat is 2 + 2?\nmodel\n4\nuser\nSure?\nmodel\nYes.")
    assert [message["content"] for message in conversation.messages] == ["What is 2 + 2?", "4", "Sure?", "Yes."]
    assert (conversation.family, conversation.content_kind) == ("Gemma", "stripped")


def test_stripped_chatml_keeps_tools_apart() -> None:
    call = '<tool_call>\n{"name": "run", "arguments": {}}\n</tool_call>'
    text = f"user\nGo.\nassistant\n{call}\nuser\n<tool_response>\nok\n</tool_response>\nassistant\nDone."
    roles = [message["role"] for message in parse_conversation(text).messages]
    assert roles == ["user", "assistant", "tool", "assistant"]


@pytest.mark.parametrize(
    ("text", "reasoning", "content"),
    [
        ("<think>\nHm.\n</think>\n\nYes.", "Hm.", "Yes."),
        ("<think>Hm.</think>Yes.", "Hm.", "Yes."),
        ("Hm.\n</think>\n\nYes.", "Hm.", "Yes."),
        ("<think>\n\n</think>\n\nYes.", None, "Yes."),
        ("<think>\nHm", "Hm", ""),
        ("Yes, <think> is a mark.", None, "Yes, <think> is a mark."),
    ],
)
def test_reasoning_is_apart_from_the_answer(text: str, reasoning: str | None, content: str) -> None:
    (message,) = parse_conversation(f"<|im_start|>assistant\n{text}<|im_end|>").messages
    assert message.get("reasoning_content") == reasoning
    assert message["content"] == content


def test_a_header_that_asks_for_an_answer_is_no_message() -> None:
    text = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
    assert [message["role"] for message in parse_conversation(text).messages] == ["user"]
    empty = parse_conversation(text + "<|im_end|>").messages
    assert empty[-1] == {"role": "assistant", "content": ""}


def test_a_conversation_that_was_cut_off_says_so() -> None:
    text = "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\nHel"
    conversation = parse_conversation(text)
    assert conversation.messages[-1]["content"] == "Hel"
    assert conversation.flags == ("the last turn has no end mark",)


def test_text_outside_of_turns_is_kept_and_flagged() -> None:
    conversation = parse_conversation("Once upon <|im_start|>user\nHello<|im_end|>")
    assert conversation.messages[0] == {"role": "text", "content": "Once upon "}
    assert conversation.flags == ("1 text(s) outside of any turn",)


def test_harmony_joins_its_channels_into_one_answer() -> None:
    text = (
        "<|start|>user<|message|>Weather?<|end|><|start|>assistant<|channel|>analysis<|message|>Look.<|end|>"
        "<|start|>assistant<|channel|>commentary to=functions.look <|constrain|>json<|message|>{}<|call|>"
        "<|start|>functions.look to=assistant<|channel|>commentary<|message|>sun<|end|>"
        "<|start|>assistant<|channel|>final<|message|>Sunny.<|return|>"
    )
    question, call, result, answer = parse_conversation(text).messages
    assert question == {"role": "user", "content": "Weather?"}
    assert (call["reasoning_content"], call["tool_calls"][0]["function"]["name"]) == ("Look.", "look")
    assert result == {"role": "tool", "content": "sun", "tool_call_id": "call_0", "name": "look"}
    assert answer == {"role": "assistant", "content": "Sunny."}


@pytest.mark.parametrize("text", ["", "plain words", "|im_start|>user", "<|im_end|>"])
def test_a_text_without_markers_has_no_family(text: str) -> None:
    assert find_family(text) is None


def test_a_given_family_overrides_the_guess() -> None:
    conversation = parse_conversation("user\nHi\nassistant\nHo", family_named("chatml"))
    assert [message["content"] for message in conversation.messages] == ["Hi", "Ho"]


HOSTILE = ("<tool_call>", "<tool_call>\n<function=a>", "<think>", "<|im_start|>assistant\n", "<|im_end|>\n", "\n")


@pytest.mark.parametrize("piece", HOSTILE)
def test_hostile_text_takes_no_longer_than_its_length(piece: str) -> None:
    text = "<|im_start|>assistant\n" + piece * (400_000 // len(piece)) + "x"
    assert parse_conversation(text).family == "ChatML"
