"""The chat templates of the families, written out for tests: messages in the normal form -> text."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

Message = dict[str, Any]

QWEN_TOOLS = (
    "# Tools\n\nYou may call one or more functions to assist with the user query.\n\n"
    "You are provided with function signatures within <tools></tools> XML tags:\n<tools>\n{}\n</tools>\n\n"
    "For each function call, return a json object with function name and arguments within <tool_call></tool_call>"
    ' XML tags:\n<tool_call>\n{{"name": <function-name>, "arguments": <args-json-object>}}\n</tool_call>'
)
QWEN_CODER_TOOLS = (
    "# Tools\n\nYou have access to the following functions:\n\n<tools>\n{}\n</tools>\n\n"
    "If you choose to call a function ONLY reply in the following format with NO suffix:\n\n<tool_call>\n"
    "<function=example_function_name>\n<parameter=example_parameter_1>\nvalue_1\n</parameter>\n</function>\n"
    "</tool_call>\n\n<IMPORTANT>\nReminder:\n- Function calls MUST follow the specified format\n</IMPORTANT>"
)


def thought(message: Message) -> str:
    reasoning = message.get("reasoning_content")
    return f"<think>\n{reasoning}\n</think>\n\n" if reasoning else ""


def hermes_call(call: Message) -> str:
    function = call["function"]
    return (
        f'<tool_call>\n{{"name": {json.dumps(function["name"])}, "arguments": {function["arguments"]}}}\n</tool_call>'
    )


def as_text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def tagged_call(call: Message) -> str:
    function = call["function"]
    pairs = json.loads(function["arguments"]).items()
    parameters = "".join(f"<parameter={key}>\n{as_text(value)}\n</parameter>\n" for key, value in pairs)
    return f"<tool_call>\n<function={function['name']}>\n{parameters}</function>\n</tool_call>"


def glm_call(call: Message) -> str:
    function = call["function"]
    pairs = json.loads(function["arguments"]).items()
    inner = "".join(f"<arg_key>{key}</arg_key>\n<arg_value>{as_text(value)}</arg_value>\n" for key, value in pairs)
    return f"<tool_call>{function['name']}\n{inner}</tool_call>"


def answer(message: Message, write_call: Callable[[Message], str]) -> str:
    calls = "\n".join(write_call(call) for call in message.get("tool_calls", ()))
    between = "\n" if message["content"] and calls else ""
    return thought(message) + message["content"] + between + calls


def groups(messages: Sequence[Message]) -> list[list[Message]]:
    """Return the messages with consecutive tool responses together."""
    grouped: list[list[Message]] = []
    for message in messages:
        if message["role"] == "tool" and grouped and grouped[-1][-1]["role"] == "tool":
            grouped[-1].append(message)
        else:
            grouped.append([message])
    return grouped


def responses(several: Sequence[Message]) -> str:
    return "\n".join(f"<tool_response>\n{message['content']}\n</tool_response>" for message in several)


def turns(
    messages: Sequence[Message], tool_role: str, write_call: Callable[[Message], str]
) -> Iterator[tuple[str, str]]:
    """Yield the role and the text of each turn; tool responses that follow each other are one, of `tool_role`."""
    for several in groups(messages):
        role, text = several[0]["role"], several[0]["content"]
        if role == "tool":
            role, text = tool_role, responses(several)
        elif role == "assistant":
            text = answer(several[0], write_call)
        yield role, text


def chatml(
    messages: Sequence[Message],
    tools: Sequence[Message] = (),
    write_call: Callable[[Message], str] = hermes_call,
    block: str = QWEN_TOOLS,
) -> str:
    parts = []
    if tools:
        listed = block.format("\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools))
        own = messages[0]["content"] + "\n\n" if messages and messages[0]["role"] == "system" else ""
        parts.append(f"<|im_start|>system\n{own}{listed}<|im_end|>\n")
        messages = messages[1:] if own else messages
    parts += [f"<|im_start|>{role}\n{text}<|im_end|>\n" for role, text in turns(messages, "user", write_call)]
    return "".join(parts)


def qwen_coder(messages: Sequence[Message], tools: Sequence[Message] = ()) -> str:
    return chatml(messages, tools, tagged_call, QWEN_CODER_TOOLS)


def glm(messages: Sequence[Message], tools: Sequence[Message] = ()) -> str:
    parts = ["[gMASK]<sop>"]
    if tools:
        listed = QWEN_TOOLS.format("\n".join(json.dumps(tool, ensure_ascii=False) for tool in tools))
        parts.append(f"<|system|>\n{listed}")
    parts += [f"<|{role}|>\n{text}" for role, text in turns(messages, "observation", glm_call)]
    return "".join(parts)


def llama(messages: Sequence[Message], tools: Sequence[Message] = ()) -> str:
    parts = ["<|begin_of_text|>"]
    for message in messages:
        role, text = message["role"], message["content"]
        if role == "tool":
            role = "ipython"
        elif message.get("tool_calls"):
            function = message["tool_calls"][0]["function"]
            text = f'{{"name": {json.dumps(function["name"])}, "parameters": {function["arguments"]}}}'
        elif role == "assistant":
            text = thought(message) + text
        parts.append(f"<|start_header_id|>{role}<|end_header_id|>\n\n{text}<|eot_id|>")
    return "".join(parts)


def gemma(messages: Sequence[Message], tools: Sequence[Message] = ()) -> str:
    parts = ["<bos>"]
    for message in messages:
        role = "model" if message["role"] == "assistant" else message["role"]
        text = thought(message) + message["content"]
        parts.append(f"<start_of_turn>{role}\n{text}<end_of_turn>\n")
    return "".join(parts)


def deepseek(messages: Sequence[Message], tools: Sequence[Message] = ()) -> str:
    parts = ["<｜begin▁of▁sentence｜>"]
    after_tool = False
    for several in groups(messages):
        message, role = several[0], several[0]["role"]
        if role == "system":
            parts.append(message["content"])
        elif role == "user":
            parts.append(f"<｜User｜>{message['content']}")
        elif role == "tool":
            outputs = [f"<｜tool▁output▁begin｜>{one['content']}<｜tool▁output▁end｜>" for one in several]
            parts.append("<｜tool▁outputs▁begin｜>" + "\n".join(outputs) + "<｜tool▁outputs▁end｜>")
        else:
            opening = "" if after_tool else "<｜Assistant｜>"
            parts.append(opening + thought(message) + message["content"] + _deepseek_calls(message))
            parts.append("<｜end▁of▁sentence｜>")
        after_tool = role == "tool"
    return "".join(parts)


def _deepseek_calls(message: Message) -> str:
    calls = [
        f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{call['function']['name']}\n```json\n"
        f"{call['function']['arguments']}\n```<｜tool▁call▁end｜>"
        for call in message.get("tool_calls", ())
    ]
    return f"<｜tool▁calls▁begin｜>{chr(10).join(calls)}<｜tool▁calls▁end｜>" if calls else ""


def mistral(messages: Sequence[Message], tools: Sequence[Message] = ()) -> str:
    parts = ["<s>"]
    if tools:
        parts.append(f"[AVAILABLE_TOOLS] {json.dumps(list(tools), ensure_ascii=False)}[/AVAILABLE_TOOLS]")
    for message in messages:
        role, text = message["role"], message["content"]
        if role == "system":
            parts.append(f"[SYSTEM_PROMPT]{text}[/SYSTEM_PROMPT]")
        elif role == "user":
            parts.append(f"[INST]{text}[/INST]")
        elif role == "tool":
            result = json.dumps({"content": text, "call_id": message["tool_call_id"]}, ensure_ascii=False)
            parts.append(f"[TOOL_RESULTS]{result}[/TOOL_RESULTS]")
        elif message.get("tool_calls"):
            calls = [
                f'{{"name": {json.dumps(call["function"]["name"])}, "arguments": {call["function"]["arguments"]}, '
                f'"id": {json.dumps(call["id"])}}}'
                for call in message["tool_calls"]
            ]
            parts.append(f"{thought(message)}{text}[TOOL_CALLS][{', '.join(calls)}]</s>")
        else:
            parts.append(f"{thought(message)}{text}</s>")
    return "".join(parts)


def kimi(messages: Sequence[Message], tools: Sequence[Message] = ()) -> str:
    parts = []
    if tools:
        listed = json.dumps(list(tools), ensure_ascii=False)
        parts.append(f"<|im_system|>tool_declare<|im_middle|>{listed}<|im_end|>")
    for message in messages:
        role, text = message["role"], message["content"]
        if role == "tool":
            opening = f"<|im_system|>{message['name']}<|im_middle|>## Return of {message['tool_call_id']}\n"
        elif role == "system":
            opening = "<|im_system|>system<|im_middle|>"
        else:
            opening = f"<|im_{role}|>{role}<|im_middle|>"
            text = (thought(message) if role == "assistant" else "") + text + _kimi_calls(message)
        parts.append(f"{opening}{text}<|im_end|>")
    return "".join(parts)


def _kimi_calls(message: Message) -> str:
    calls = [
        f"<|tool_call_begin|>{call['id']}<|tool_call_argument_begin|>{call['function']['arguments']}<|tool_call_end|>"
        for call in message.get("tool_calls", ())
    ]
    return f"<|tool_calls_section_begin|>{''.join(calls)}<|tool_calls_section_end|>" if calls else ""


def harmony(messages: Sequence[Message], tools: Sequence[Message] = ()) -> str:
    parts = []
    for message in messages:
        role, text = message["role"], message["content"]
        if role == "system":
            parts.append(f"<|start|>developer<|message|># Instructions\n\n{text}<|end|>")
        elif role == "user":
            parts.append(f"<|start|>user<|message|>{text}<|end|>")
        elif role == "tool":
            header = f"functions.{message['name']} to=assistant<|channel|>commentary"
            parts.append(f"<|start|>{header}<|message|>{text}<|end|>")
        else:
            parts.append(_harmony_answer(message))
    return "".join(parts)


def _harmony_answer(message: Message) -> str:
    parts = []
    if message.get("reasoning_content"):
        parts.append(f"<|start|>assistant<|channel|>analysis<|message|>{message['reasoning_content']}<|end|>")
    calls = message.get("tool_calls", ())
    for call in calls:
        header = f"commentary to=functions.{call['function']['name']} <|constrain|>json"
        parts.append(f"<|start|>assistant<|channel|>{header}<|message|>{call['function']['arguments']}<|call|>")
    if message["content"] or not calls:
        parts.append(f"<|start|>assistant<|channel|>final<|message|>{message['content']}<|return|>")
    return "".join(parts)


def tulu(messages: Sequence[Message], tools: Sequence[Message] = ()) -> str:
    parts = []
    for number, message in enumerate(messages):
        role, text = message["role"], message["content"]
        if role == "assistant":
            end = "\n" if number + 1 < len(messages) else ""
            parts.append(f"<|assistant|>\n{thought(message)}{text}<|endoftext|>{end}")
        else:
            parts.append(f"<|{role}|>\n{text}\n")
    return "".join(parts)
