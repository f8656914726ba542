"""Tool calls as models write them: well, with types, and badly."""

from __future__ import annotations

import json
from typing import Any

import pytest

from rltracer_sqlite.tokens.families import CHATML, DEEPSEEK, GLM, LLAMA, MISTRAL
from rltracer_sqlite.tokens.templates import parse_conversation
from rltracer_sqlite.tokens.toolblocks import listed_tools, split_tools
from rltracer_sqlite.tokens.toolcalls import find_calls
from rltracer_sqlite.tokens.toolpairs import schemas_of

PARAMETERS = {
    "properties": {
        "count": {"type": "integer"},
        "rate": {"type": "number"},
        "deep": {"type": "boolean"},
        "where": {"type": "object"},
        "either": {"type": ["integer", "null"]},
        "text": {"type": "string"},
        "free": {},
    }
}
SCHEMAS = schemas_of([{"function": {"name": "run", "parameters": PARAMETERS}}])


def tagged(**values: str) -> str:
    inner = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in values.items())
    return f"<tool_call>\n<function=run>\n{inner}</function>\n</tool_call>"


@pytest.mark.parametrize(
    ("key", "written", "value"),
    [
        ("count", "10", 10),
        ("count", "ten", "ten"),
        ("count", "1.5", "1.5"),
        ("count", "true", "true"),
        ("rate", "1.5", 1.5),
        ("rate", "2", 2),
        ("deep", "True", True),
        ("deep", "false", False),
        ("deep", "1", "1"),
        ("where", '{"a": [1]}', {"a": [1]}),
        ("where", "{oops", "{oops"),
        ("either", "null", None),
        ("either", "7", 7),
        ("text", "10", "10"),
        ("text", "two\nlines </parameter> here", "two\nlines </parameter> here"),
        ("free", "10", "10"),
        ("unknown", "10", "10"),
    ],
)
def test_arguments_have_the_type_of_their_schema(key: str, written: str, value: Any) -> None:
    (call,) = find_calls(tagged(**{key: written}), CHATML.calls, SCHEMAS).calls
    assert json.loads(call["function"]["arguments"]) == {key: value}


def test_without_a_schema_arguments_stay_as_written() -> None:
    (call,) = find_calls(tagged(count="10"), CHATML.calls, {}).calls
    assert json.loads(call["function"]["arguments"]) == {"count": "10"}


def test_json_arguments_are_kept_as_the_model_wrote_them() -> None:
    text = 'Look.\n<tool_call>\n{"name": "run",  "arguments": {"a":1,  "b": 1e3}}\n</tool_call>'
    found = find_calls(text, CHATML.calls, {})
    assert found.text == "Look."
    assert found.calls[0]["function"] == {"name": "run", "arguments": '{"a":1,  "b": 1e3}'}


@pytest.mark.parametrize("inside", ["</tool_call>", "<tool_call>", "}\\n</tool_call>"])
def test_a_mark_inside_a_json_string_ends_nothing(inside: str) -> None:
    text = f'<tool_call>\n{{"name": "run", "arguments": {{"text": "{inside}"}}}}\n</tool_call>'
    found = find_calls(text, CHATML.calls, {})
    assert json.loads(found.calls[0]["function"]["arguments"])["text"] == inside.replace("\\n", "\n")
    assert (found.text, found.malformed) == ("", 0)


MALFORMED = [
    '<tool_call>\n{"name": "run", "arguments": {"a": 1}\n</tool_call>',
    "<tool_call>\n{}\n</tool_call>",
    "<tool_call>\n[1, 2]\n</tool_call>",
    '<tool_call>\n{"name": 3}\n</tool_call>',
    "<tool_call>\n<function=run>\n<parameter=a>\n1\n</function>\n</tool_call>",
    "<tool_call>\n<function=run>\nwords\n</function>\n</tool_call>",
    "<tool_call>\n<function=>\n</function>\n</tool_call>",
    "<tool_call>\nI would rather not\nsay <b>\n</tool_call>",
    '<tool_call>\n{"name": "run", "arguments": {"text": "never ended',
    "<tool_call>" + "[" * 5000 + "</tool_call>",
    '<tool_call>\n{"name": "run", "args": {"a": 1}}\n</tool_call>',
    '<tool_call>\n{"name": "run", "args": {"a": "two\nlines"}}\n</tool_call>',
]


@pytest.mark.parametrize("text", MALFORMED, ids=range(len(MALFORMED)))
def test_a_malformed_call_stays_text_and_is_flagged(text: str) -> None:
    conversation = parse_conversation(f"<|im_start|>assistant\nFirst.\n{text}<|im_end|>")
    (message,) = conversation.messages
    assert message["content"].endswith(text)
    assert "tool_calls" not in message
    assert "1 tool call(s) malformed: left in the text as written" in conversation.flags


def test_a_good_call_beside_a_malformed_one_is_read() -> None:
    found = find_calls(f"{MALFORMED[1]}\n{tagged(a='1')}", CHATML.calls, {})
    assert (len(found.calls), found.malformed) == (1, 1)
    assert found.text.strip() == MALFORMED[1]


def test_json_with_a_line_break_in_a_string_is_read() -> None:
    found = find_calls('<tool_call>{"name": "run", "arguments": {"text": "a\nb"}}</tool_call>', CHATML.calls, {})
    assert json.loads(found.calls[0]["function"]["arguments"]) == {"text": "a\nb"}


@pytest.mark.parametrize(
    ("written", "more"),
    [
        ('{"name": "run", "arguments": {"a": 1}}', False),
        ('{"type": "function", "id": "c", "name": "run", "parameters": {"a": 1}}', False),
        ('{"name": "run", "arguments": {"a": 1}, "why": "b"}', True),
        ('{"name": "run", "arguments": {"a": 1}, "why": "two\nlines"}', True),
        ('{"name": "run", "arguments": {"a": 1}, "parameters": {"b": 1}}', True),
        ('{"name": "run", "arguments": {"a": 1}, "id": 7}', True),
    ],
)
@pytest.mark.parametrize("length", [None, 3])
def test_what_a_call_has_no_place_for_is_told(written: str, more: bool, length: int | None) -> None:
    start = "" if length else "<|im_start|>assistant\n"
    conversation = parse_conversation(f"{start}why<tool_call>{written}</tool_call>", CHATML, length)
    (call,) = conversation.messages[-1]["tool_calls"]
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == ("run", {"a": 1})
    told = "1 tool call(s) said more than a name, arguments and an id: see the text as written"
    assert (told in conversation.flags) is more


def test_arguments_written_as_a_json_string_are_unpacked() -> None:
    found = find_calls('<tool_call>{"name": "run", "arguments": "{\\"a\\": 1}"}</tool_call>', CHATML.calls, {})
    assert found.calls[0]["function"]["arguments"] == '{"a": 1}'


@pytest.mark.parametrize(
    ("family", "text", "name", "arguments", "call_id"),
    [
        (DEEPSEEK, "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>run<｜tool▁sep｜>{\"a\": 1}<｜tool▁call▁end｜>"
         "<｜tool▁calls▁end｜>", "run", '{"a": 1}', None),
        (MISTRAL, '[TOOL_CALLS]run[CALL_ID]abc123def[ARGS]{"a": 1}', "run", '{"a": 1}', "abc123def"),
        (MISTRAL, '[TOOL_CALLS] [{"name": "run", "arguments": {"a": 1}, "id": "x"}]', "run", '{"a": 1}', "x"),
        (LLAMA, '<|python_tag|>{"name": "run", "parameters": {"a": 1}}', "run", '{"a": 1}', None),
        (LLAMA, '{"name": "run", "parameters": {"a": 1}}', "run", '{"a": 1}', None),
        (GLM, "<tool_call>run\n<arg_key>a</arg_key>\n<arg_value>1</arg_value>\n</tool_call>", "run",
         '{"a": "1"}', None),
        (GLM, "<tool_call>run</tool_call>", "run", "{}", None),
        (CHATML, "<tool_call>\n<function=run>\n</function>\n</tool_call>", "run", "{}", None),
    ],
)  # fmt: skip
def test_other_ways_of_writing_a_call(family: Any, text: str, name: str, arguments: str, call_id: str | None) -> None:
    (call,) = find_calls(text, family.calls, {}).calls
    assert call == {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


@pytest.mark.parametrize("text", ['{"name": "Ada"}', '{"name": "Ada", "parameters": 3}', '{"answer": 4}', "{", "4"])
def test_a_json_answer_is_no_call(text: str) -> None:
    assert find_calls(text, LLAMA.calls, {}).text == text


def test_responses_find_their_calls() -> None:
    calls = tagged(a="1") + "\n" + tagged(a="2")
    text = (
        f"<|im_start|>assistant\n{calls}<|im_end|>\n<|im_start|>user\n<tool_response>\none\n\n</tool_response>\n"
        "<tool_response>\ntwo\n</tool_response>\n<tool_response>\nthree\n</tool_response>\nGo on.<|im_end|>\n"
    )
    conversation = parse_conversation(text)
    assert [message.get("tool_call_id") for message in conversation.messages] == [None, "call_0", "call_1", None, None]
    assert [message["content"] for message in conversation.messages[1:]] == ["one\n", "two", "three", "Go on."]
    assert conversation.messages[-1]["role"] == "user"
    assert conversation.flags == ("1 tool response(s) without a call",)


QWEN = "# Tools\n\nYou may call …\n\n<tools>\n{}\n</tools>\n\nFor each function call …\n<tool_call>\n…\n</tool_call>"
TOOL = {"type": "function", "function": {"name": "run", "description": "Runs."}}


@pytest.mark.parametrize(
    ("text", "own"),
    [
        (QWEN.format(json.dumps(TOOL)), ""),
        ("Be brief.\n\n" + QWEN.format(json.dumps(TOOL)), "Be brief."),
        (QWEN.format(json.dumps(TOOL["function"])) + "\n\nBe brief.", "Be brief."),
        (f"Use these: <tools>\n[{json.dumps(TOOL)}]\n</tools>", f"Use these: <tools>\n[{json.dumps(TOOL)}]\n</tools>"),
    ],
)
def test_tools_are_taken_out_of_a_system_turn(text: str, own: str) -> None:
    assert split_tools(text) == (own, [TOOL])


@pytest.mark.parametrize("text", ["Hello.", QWEN.format("no json"), "# Tools\n\n<tools>\n</tools>", "<tools>\n", ""])
def test_a_system_turn_without_tools_stays(text: str) -> None:
    assert split_tools(text) == (text, [])


def test_tools_written_as_xml_are_read() -> None:
    (tool,) = listed_tools(
        "<function>\n<name>run</name>\n<description>Runs.</description>\n<parameters>\n<parameter>\n<name>count</name>\n"
        "<type>integer</type>\n</parameter>\n</parameters>\n</function>"
    )
    assert tool["function"]["parameters"]["properties"] == {"count": {"type": "integer"}}
    assert (tool["function"]["name"], tool["function"]["description"]) == ("run", "Runs.")


def test_harmony_tools_give_their_names() -> None:
    text = "# Tools\n\nnamespace functions {\n\n// Runs.\n// Fast.\ntype run = (_: {a: string}) => any;\n}"
    _, tools = split_tools(text)
    assert tools == [{"type": "function", "function": {"name": "run", "description": "Runs.\nFast."}}]
