"""Random conversations through each family's template and back."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rltracer_sqlite.messages import prompt_context, prompt_key
from rltracer_sqlite.tokens.families import FAMILIES, find_family
from rltracer_sqlite.tokens.templates import parse_conversation
from tests import token_templates as templates

Message = dict[str, Any]


@dataclass(frozen=True)
class Ability:
    """What a family's template can write."""

    name: str
    render: Callable[..., str]
    roles: tuple[str, ...] = ("system", "user")
    calls: int = 2  # at most, in one turn
    content_beside_calls: bool = True
    lists_tools: bool = False
    types_arguments: bool = False  # or writes them as JSON
    own_ids: str = ""  # the form of the ids that it writes itself


ABILITIES = (
    Ability("ChatML", templates.chatml, lists_tools=True),
    Ability("ChatML", templates.qwen_coder, lists_tools=True, types_arguments=True),
    Ability("GLM", templates.glm, lists_tools=True, types_arguments=True),
    Ability("Llama 3", templates.llama, calls=1, content_beside_calls=False),
    Ability("Gemma", templates.gemma, roles=("user",), calls=0),
    Ability("DeepSeek", templates.deepseek),
    Ability("Mistral", templates.mistral, lists_tools=True, own_ids="abcdefgh{}"),
    Ability("Kimi", templates.kimi, lists_tools=True, own_ids="functions.{name}:{}"),
    Ability("Harmony", templates.harmony, content_beside_calls=False),
    Ability("Tülu", templates.tulu, calls=0),
)
SCHEMA = {"type": "object", "properties": {"text": {"type": "string"}, "count": {"type": "integer"}}}
TOOLS = [
    {"type": "function", "function": {"name": name, "description": "Does “it”.", "parameters": SCHEMA}}
    for name in ("search", "run_code")
]
# Anything but what a family takes for a mark: those cannot be told from text by anyone.
WORDS = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="<[]|>｜#{"), min_size=1, max_size=40)
WORD = WORDS.filter(lambda text: text.strip() == text and text != "")
LINES = st.lists(WORD, min_size=1, max_size=3).map("\n".join)


@st.composite
def conversations(draw: st.DrawFn, ability: Ability) -> list[Message]:
    messages: list[Message] = []
    if "system" in ability.roles and draw(st.booleans()):
        messages.append({"role": "system", "content": draw(LINES)})
    count = 0
    for _ in range(draw(st.integers(1, 3))):
        messages.append({"role": "user", "content": draw(LINES)})
        for _ in range(draw(st.integers(0, 2)) if ability.calls else 0):
            calling = _calling(draw, ability, count)
            count += len(calling["tool_calls"])
            messages.append(calling)
            messages += [_response(draw, call) for call in calling["tool_calls"]]
        messages.append(_with_reasoning(draw, {"role": "assistant", "content": draw(LINES)}))
    return messages


def _calling(draw: st.DrawFn, ability: Ability, count: int) -> Message:
    content = draw(st.one_of(st.just(""), LINES)) if ability.content_beside_calls else ""
    message: Message = {"role": "assistant", "content": content}
    if ability.render is not templates.llama:
        message = _with_reasoning(draw, message)
    message["tool_calls"] = []
    for number in range(draw(st.integers(1, ability.calls))):
        name = draw(st.sampled_from(["search", "run_code"]))
        call_id = (ability.own_ids or "call_{}").format(count + number, name=name)
        arguments = {"text": draw(LINES), "count": draw(st.integers(-5, 10**6))}
        function = {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False)}
        message["tool_calls"].append({"id": call_id, "type": "function", "function": function})
    return message


def _response(draw: st.DrawFn, call: Message) -> Message:
    return {"role": "tool", "content": draw(LINES), "tool_call_id": call["id"], "name": call["function"]["name"]}


def _with_reasoning(draw: st.DrawFn, message: Message) -> Message:
    reasoning = draw(st.one_of(st.none(), LINES))
    return message if reasoning is None else {**message, "reasoning_content": reasoning}


def expected(messages: Sequence[Message], ability: Ability) -> list[Message]:
    if ability.render is templates.harmony:
        return [message | {"role": "developer"} if message["role"] == "system" else message for message in messages]
    return list(messages)


@pytest.mark.parametrize("ability", ABILITIES, ids=lambda ability: ability.render.__name__)
@given(data=st.data())
@settings(max_examples=40, deadline=None)
def test_round_trip(ability: Ability, data: st.DataObject) -> None:
    messages = data.draw(conversations(ability))
    tools = TOOLS if ability.types_arguments or (ability.lists_tools and data.draw(st.booleans())) else []
    conversation = parse_conversation(ability.render(messages, tools))
    assert conversation.messages == expected(messages, ability)
    assert conversation.tools == tools
    assert (conversation.family, conversation.content_kind, conversation.flags) == (ability.name, "rendered", ())


@pytest.mark.parametrize("ability", ABILITIES, ids=lambda ability: ability.render.__name__)
def test_the_prompt_key_is_that_of_the_messages(ability: Ability) -> None:
    messages = [{"role": "user", "content": "Wie viel ist 2 + 2?\n"}, {"role": "assistant", "content": "4"}]
    conversation = parse_conversation(ability.render(messages))
    assert prompt_key(prompt_context(conversation.messages)) == prompt_key(messages[:1])


@pytest.mark.parametrize("ability", ABILITIES, ids=lambda ability: ability.render.__name__)
def test_white_space_of_a_text_is_its_own(ability: Ability) -> None:
    message = {"role": "user", "content": "  two\n\nlines\t"}
    text = ability.render([message, {"role": "assistant", "content": "4"}])
    got = parse_conversation(text).messages[0]["content"]
    assert got == (" two\n\nlines\t" if ability.name == "Mistral" else message["content"])


def test_every_family_is_tried() -> None:
    assert {ability.name for ability in ABILITIES} == {family.name for family in FAMILIES}


@pytest.mark.parametrize("ability", ABILITIES, ids=lambda ability: ability.render.__name__)
def test_a_family_is_found_by_its_first_mark(ability: Ability) -> None:
    message = {"role": "user", "content": "What do <|im_start|>, [INST] and <start_of_turn> mean?"}
    family = find_family(ability.render([message, {"role": "assistant", "content": "Marks."}]))
    assert family is not None
    assert family.name == ability.name


@given(st.text(st.sampled_from("<|im_start>user\n\n<think></>[INST]tool_calls{}\"':｜▁"), max_size=200))
@settings(max_examples=100, deadline=None)
def test_any_text_gives_messages(text: str) -> None:
    for family in (None, *FAMILIES):
        for message in parse_conversation(text, family, prompt_length=len(text) // 2).messages:
            assert isinstance(message["content"], str)
            assert message["role"]
