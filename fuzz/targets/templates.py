"""Conversations out of rendered text, by the chat template of any family."""

from __future__ import annotations

import json
from typing import Any

from rltracer_sqlite.tokens.families import FAMILIES
from rltracer_sqlite.tokens.templates import RENDERED, STRIPPED, UNSPLIT, parse_conversation
from tests import token_templates as templates

from ..target import Target


def check(data: bytes) -> None:
    """Any text is a conversation in the normal form, with its words in it, in time that grows with its length."""
    head, text = data[:2].ljust(2, b"\0"), data[2:].decode("utf-8", "replace")
    chosen = head[0] % (len(FAMILIES) + 3)
    family = FAMILIES[chosen] if chosen < len(FAMILIES) else None
    length = len(text) * head[1] // 255 if head[1] else None
    found = parse_conversation(text, family, length)
    assert found.content_kind in (RENDERED, STRIPPED, UNSPLIT)
    for message in found.messages:
        _check_message(message)
    json.dumps([found.messages, found.tools, found.flags])
    if found.content_kind == UNSPLIT and length is None:
        assert found.messages == [{"role": "user", "content": text}]
    assert parse_conversation(text, family, length) == found
    if found.content_kind != UNSPLIT and not any("said more" in flag for flag in found.flags):
        # The end of a prompt may lie within a word, and of a call that says more that is told.
        _check_words(text, found.messages, found.tools)


def _check_message(message: dict[str, Any]) -> None:
    assert isinstance(message["role"], str)
    assert message.get("content") is None or isinstance(message["content"], str)
    assert isinstance(message.get("reasoning_content", ""), str)
    for call in message.get("tool_calls", ()):
        assert isinstance(call["function"]["name"], str)
        assert isinstance(call["function"]["arguments"], str)


def _check_words(text: str, messages: list[dict[str, Any]], tools: list[dict[str, Any]]) -> None:
    """Check that a word which no template can mean as a mark is still there.

    What a template says around its list of tools, about how to call them, is left out on purpose.
    """
    if "zebra" in text and "tools" not in text.lower():
        assert "zebra" in json.dumps([messages, tools]).lower()


def seeds() -> list[bytes]:
    """Return a conversation with tools and reasoning in every template, and pieces of such."""
    call = {
        "type": "function",
        "id": "c1",
        "function": {"name": "search", "arguments": '{"text": "zebra", "count": 2}'},
    }
    said = [
        {"role": "system", "content": "Be brief."}, {"role": "user", "content": "zebra?"},
        {"role": "assistant", "content": "I look.", "reasoning_content": "hm", "tool_calls": [call]},
        {"role": "tool", "content": "found a zebra", "tool_call_id": "c1"}, {"role": "assistant", "content": "yes"},
    ]  # fmt: skip
    texts = []
    for render in RENDERERS:
        try:
            texts.append(render(said, [TOOL]))
        except (AssertionError, KeyError, TypeError, ValueError):
            texts.append(render(said[:2] + said[-1:]))
    texts += ["system\na\nuser\nzebra\nassistant\nb", "<think>", "plain", "", "</think>\n<tool_call>{"]
    heads = [
        bytes([len(FAMILIES), 0]),
        bytes([len(FAMILIES), 128]),
        *(bytes([number, 0]) for number in range(len(FAMILIES))),
    ]
    whole = [head + text.encode() for text in texts for head in heads[:2]]
    return whole + [heads[2 + number % len(FAMILIES)] + text.encode() for number, text in enumerate(texts)]


RENDERERS = (
    templates.chatml, templates.qwen_coder, templates.glm, templates.llama, templates.gemma, templates.deepseek,
    templates.mistral, templates.kimi, templates.harmony, templates.tulu,
)  # fmt: skip
TOOL = {"type": "function", "function": {"name": "search", "description": "", "parameters": {
    "type": "object", "properties": {"text": {"type": "string"}, "count": {"type": "integer"}}}}}  # fmt: skip
WORDS = (
    *sorted({mark for family in FAMILIES for mark in (*family.ends, *family.noise)}),
    "<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>", "<function=", "<parameter=",
    "</parameter>", "</function>", "[INST]", "[TOOL_CALLS]", "[/INST]", "<arg_key>", "</arg_key>", "<arg_value>",
    "</arg_value>",
    "<|start|>", "<|channel|>", "<|message|>", "<|call|>", "<tool_response>", "</tool_response>", "<tools>", "</tools>",
    '{"name": "f", "arguments": ', "user\n", "assistant\n", "system\n", "zebra",
)  # fmt: skip
TARGETS = {"templates": Target("templates", "conversations out of rendered text", check, seeds, "text", WORDS)}
