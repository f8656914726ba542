"""The chat templates of model families, as data: how each writes turns, reasoning, tool calls and their results.

Read from the families' published chat templates and tokenizer files. A family that is written in the same manner
as one of these needs no code: describe it here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class PairSyntax:
    """A call written as a name and pairs of key and value, each between its own marks."""

    name_open: str
    name_close: str
    key_open: str
    key_close: str
    value_close: str
    value_open: str = ""  # between key_close and the value, white space aside
    end: str = ""  # ends the call; "" where only the mark around the call does


@dataclass(frozen=True)
class CallSyntax:
    """How a family marks a tool call. What is inside may be JSON, or match one of `bodies`, or be `pairs`."""

    open: str  # "": the whole turn is the call
    close: str = ""  # "": the next `open` or the end of the turn
    section: tuple[str, str] = ("", "")  # stands around all calls of a turn
    bodies: tuple[re.Pattern[str], ...] = ()  # groups: name, arguments, and id where it is written
    pairs: tuple[PairSyntax, ...] = ()


@dataclass(frozen=True, eq=False)
class Family:
    """How one family of models writes a conversation."""

    name: str
    mark: re.Pattern[str]  # found only in a text that keeps this family's markers
    turn: re.Pattern[str]  # begins a turn; groups: role, and where they are written name and channel
    roles: Mapping[str, str] = field(default_factory=dict)  # what is written -> role; "": no turn begins here
    others: str = ""  # the role behind any other name, which then is the tool's; "": the name is the role
    ends: tuple[str, ...] = ()  # ends the text of a turn
    noise: tuple[str, ...] = ()  # begins a text and holds nothing
    leading: str = ""  # the role of what stands before the first turn
    separator: str = ""  # written between the text of a turn without an end mark and the next turn
    padding: str = ""  # may be written on both sides of a text, and is no part of it
    headings: Mapping[str, str] = field(default_factory=dict)  # role -> what the template writes above its text
    think: tuple[tuple[str, str], ...] = (("<think>", "</think>"),)
    calls: tuple[CallSyntax, ...] = ()
    results: tuple[str, str] | None = None  # around each result where several share one turn, a user's or a tool's
    result: re.Pattern[str] | None = None  # a result that names its call; groups: id, and content or json
    channels: Mapping[str, str] = field(default_factory=dict)  # channel -> the key of the message that it fills
    recipient: re.Pattern[str] | None = None  # in a turn's header: the tool that the turn calls
    stripped_mark: re.Pattern[str] | None = None  # tells the family when its markers were removed
    stripped_turn: re.Pattern[str] | None = None  # what is left of `turn` then; None: turns cannot be told apart
    stripped_cut: tuple[str, str] | None = None  # what is left around the reasoning of a completion then


FUNCTION_TAGS = PairSyntax("<function=", ">", "<parameter=", ">", "</parameter>", end="</function>")
ARGUMENT_TAGS = PairSyntax("", "\n", "<arg_key>", "</arg_key>", "</arg_value>", value_open="<arg_value>")
QWEN_CALL = CallSyntax("<tool_call>", "</tool_call>", pairs=(FUNCTION_TAGS,))
GLM_CALL = CallSyntax("<tool_call>", "</tool_call>", pairs=(ARGUMENT_TAGS,))

CHATML = Family(
    name="ChatML",
    mark=re.compile(r"<\|im_start\|>"),
    turn=re.compile(r"<\|im_start\|>(?P<role>[\w.-]+)[^\n<]*(?:\n|\Z)"),
    roles={"function": "tool", "observation": "tool"},
    ends=("<|im_end|>", "<|endoftext|>"),
    noise=("<|endoftext|>",),
    calls=(QWEN_CALL,),
    results=("<tool_response>", "</tool_response>"),
    stripped_mark=re.compile(r"\A(?:system|user)\n[\s\S]*?^assistant\n", re.M),
    stripped_turn=re.compile(r"^(?P<role>system|user|assistant|tool)\n", re.M),
)

LLAMA = Family(
    name="Llama 3",
    mark=re.compile(r"<\|start_header_id\|>"),
    turn=re.compile(r"<\|start_header_id\|>(?P<role>[\w.-]*)<\|end_header_id\|>(?:\n\n)?"),
    roles={"ipython": "tool"},
    ends=("<|eot_id|>", "<|eom_id|>", "<|end_of_text|>"),
    noise=("<|begin_of_text|>",),
    calls=(CallSyntax("<|python_tag|>"), CallSyntax("")),
    stripped_mark=re.compile(r"\A(?:system|user)\n\n[\s\S]*?[^\n](?:user|assistant)\n\n"),
)

GEMMA = Family(
    name="Gemma",
    mark=re.compile(r"<start_of_turn>"),
    turn=re.compile(r"<start_of_turn>(?P<role>\w+)\n?"),
    roles={"model": "assistant"},
    ends=("<end_of_turn>", "<eos>"),
    noise=("<bos>",),
    stripped_mark=re.compile(r"\Auser\n[\s\S]*?^model\n", re.M),
    stripped_turn=re.compile(r"^(?P<role>user|model)\n", re.M),
)

_DEEPSEEK_CALLS = ("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>")
DEEPSEEK = Family(
    name="DeepSeek",
    mark=re.compile(r"<｜(?:User|Assistant)｜>"),
    turn=re.compile(r"(?P<role><｜(?:User|Assistant|tool▁outputs▁begin|tool▁outputs?▁end|tool▁output▁begin)｜>)"),
    roles={
        "<｜User｜>": "user",
        "<｜Assistant｜>": "assistant",
        "<｜tool▁outputs▁begin｜>": "",
        "<｜tool▁output▁begin｜>": "tool",
        # The model goes on directly behind the results.
        "<｜tool▁output▁end｜>": "assistant",
        "<｜tool▁outputs▁end｜>": "assistant",
    },
    ends=("<｜end▁of▁sentence｜>",),
    noise=("<｜begin▁of▁sentence｜>",),
    leading="system",
    calls=(
        CallSyntax(
            "<｜tool▁call▁begin｜>",
            "<｜tool▁call▁end｜>",
            section=_DEEPSEEK_CALLS,
            bodies=(
                re.compile(r"function<｜tool▁sep｜>(?P<name>[^\n]+)\n```json\n(?P<arguments>.*)\n```\s*", re.S),
                re.compile(r"(?P<name>[^\n<]+)<｜tool▁sep｜>(?P<arguments>.*)", re.S),
            ),
        ),
    ),
)

_MISTRAL_MARKS = {
    "[INST]": "user",
    "[/INST]": "assistant",
    "[SYSTEM_PROMPT]": "system",
    "[/SYSTEM_PROMPT]": "",
    "[AVAILABLE_TOOLS]": "tools",
    "[/AVAILABLE_TOOLS]": "",
    "[TOOL_RESULTS]": "tool",
    "[/TOOL_RESULTS]": "assistant",
}
MISTRAL = Family(
    name="Mistral",
    mark=re.compile(r"\[/?INST\]"),
    turn=re.compile("(?P<role>" + "|".join(map(re.escape, _MISTRAL_MARKS)) + ")"),
    roles=_MISTRAL_MARKS,
    ends=("</s>",),
    noise=("<s>",),
    padding=" ",
    think=(("<think>", "</think>"), ("[THINK]", "[/THINK]")),
    calls=(
        CallSyntax(
            "[TOOL_CALLS]",
            bodies=(re.compile(r"(?P<name>[^\[\s]+)(?:\[CALL_ID\](?P<id>[^\[]+))?\[ARGS\](?P<arguments>.*)", re.S),),
        ),
    ),
    result=re.compile(r'\s*\{"content": (?P<json>.*), "call_id": "(?P<id>[^"]*)"\}\s*', re.S),
)

GLM = Family(
    name="GLM",
    mark=re.compile(r"\[gMASK\]|<sop>|<\|observation\|>"),
    turn=re.compile(r"<\|(?P<role>system|user|assistant|observation)\|>\n?"),
    roles={"observation": "tool"},
    ends=("<|endoftext|>",),
    noise=("[gMASK]", "<sop>"),
    calls=(GLM_CALL,),
    results=("<tool_response>", "</tool_response>"),
)

KIMI = Family(
    name="Kimi",
    mark=re.compile(r"<\|im_(?:user|assistant|system)\|>"),
    turn=re.compile(r"<\|im_(?:(?P<role>user|assistant)\|>[^<\n]*|system\|>(?P<name>[^<\n]*))<\|im_middle\|>"),
    roles={"system": "system", "tool_declare": "tools", "user": "user", "assistant": "assistant"},
    others="tool",
    ends=("<|im_end|>", "[EOS]"),
    noise=("[BOS]",),
    calls=(
        CallSyntax(
            "<|tool_call_begin|>",
            "<|tool_call_end|>",
            section=("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
            bodies=(
                re.compile(
                    r"(?P<id>(?:functions\.)?(?P<name>[^:<\s]+):\d+)\s*<\|tool_call_argument_begin\|>(?P<arguments>.*)",
                    re.S,
                ),
            ),
        ),
    ),
    result=re.compile(r"## Return of (?P<id>[^\n]+)\n(?P<content>.*)", re.S),
)

HARMONY = Family(
    name="Harmony",
    mark=re.compile(r"<\|channel\|>|<\|message\|>"),
    turn=re.compile(
        r"(?:<\|start\|>(?P<role>[\w.-]*)[^<]*)?(?:<\|channel\|>(?P<channel>\w+)[^<]*)?(?:<\|constrain\|>[^<]*)?<\|message\|>"
        r"|<\|start\|>\w*\Z"
    ),
    roles={
        "": "assistant",
        "system": "system",
        "developer": "developer",
        "user": "user",
        "assistant": "assistant",
    },
    others="tool",
    ends=("<|end|>", "<|return|>", "<|call|>"),
    headings={"developer": "# Instructions\n\n"},
    think=(),
    channels={"analysis": "reasoning_content", "commentary": "content", "final": "content"},
    recipient=re.compile(r"\bto=(?:functions\.)?(?P<name>[^\s<]+)"),
    stripped_mark=re.compile(r"\Asystem(?:You are ChatGPT|[\s\S]*?# Valid channels:)"),
    stripped_cut=("analysis", "assistantfinal"),
)

TULU = Family(
    name="Tülu",
    mark=re.compile(r"<\|(?:system|user|assistant)\|>\n"),
    turn=re.compile(r"<\|(?P<role>system|user|assistant)\|>(?:\n|\Z)"),
    ends=("<|endoftext|>", "<|end_of_text|>", "<|end|>", "</s>"),
    noise=("<|endoftext|>", "<|begin_of_text|>", "<s>"),
    separator="\n",
)

FAMILIES = (HARMONY, CHATML, KIMI, LLAMA, GEMMA, DEEPSEEK, MISTRAL, GLM, TULU)

DETECTION_CHARACTERS = 1 << 17


def find_family(text: str) -> Family | None:
    """Return the family whose marker comes first in a text, or None where there is no marker of any."""
    head = text[:DETECTION_CHARACTERS]
    found = [(match.start(), order) for order, family in enumerate(FAMILIES) if (match := family.mark.search(head))]
    return FAMILIES[min(found)[1]] if found else None


def find_stripped_family(text: str) -> Family | None:
    """Return the family that a text without markers was most likely rendered by, or None."""
    head = text[:DETECTION_CHARACTERS]
    # Llama comes before ChatML: its role lines look alike, but only Llama's are glued to the text before them.
    order = (HARMONY, LLAMA, CHATML, GEMMA)
    return next((family for family in order if family.stripped_mark and family.stripped_mark.match(head)), None)


def family_named(name: str) -> Family:
    """Return a family by its name, for example "ChatML", in any case. Raises KeyError."""
    return {family.name.lower(): family for family in FAMILIES}[name.lower()]
