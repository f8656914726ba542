"""Trajectories to rows: conversations for SFT, prompts for RL, pairs for preference training.

The columns are those of TRL's conversational formats (`messages`; `prompt`, `chosen` and `rejected`) with OpenAI's
nested tool calls, and of datadev's RL data. A row that would teach something that never happened is refused.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from ..amounts import plural
from ..messages import Message, prompt_context, tool_call
from ..trajectory import Trajectory
from .errors import ExportError
from .lines import Row

KEPT = ("role", "content", "reasoning_content", "tool_calls", "tool_call_id", "name")
DATADEV_COLUMNS = ("prompt", "answer", "output", "feedback", "record_id", "rubric_index", "source", "tools")


class RowRejected(Exception):
    """A trajectory that cannot be a row, and why; of a pair it is the rejected one, unless the chosen is at fault."""

    of_chosen = False


class Made(NamedTuple):
    """A row, and for each trajectory in it the number of the branch that it holds, counted from 1."""

    row: Row
    branches: tuple[int, ...] = ()  # of SFT one, of a pair that of the chosen one and that of the rejected one


def sft_rows(trajectory: Trajectory, include_tools: bool = True, last_branch: bool = False) -> list[Made]:
    """Return one row per branch that holds an answer, each different branch once; or that of the last one alone.

    A branch in which the policy sampled nothing, such as that of another agent, is left out where the record tells.
    Raises RowRejected where no branch holds an answer, or a tool call has no name.
    """
    _refuse_ids(trajectory)
    tools = _tools_text(trajectory) if include_tools else {}
    made: dict[str, Made] = {}  # by what the branch says: a retry that went the same way is not a second example
    for number, branch in _trained(trajectory):
        if any(message.get("role") == "assistant" for message in branch):
            said = training_messages(branch)
            made.setdefault(repr(said), Made({"messages": said, **tools}, (number,)))
    if not made:
        raise RowRejected("no answer")
    return list(made.values())[-1:] if last_branch else list(made.values())


def _refuse_ids(trajectory: Trajectory) -> None:
    if trajectory.metadata.get("content_kind") == "token_ids":
        raise RowRejected("token ids without text; index the run with --tokenizer")


def _trained(trajectory: Trajectory) -> list[tuple[int, list[Message]]]:
    """Return the branches in which the policy sampled something, with their numbers from 1; all where none is said."""
    branches = list(enumerate(trajectory.branches or [trajectory.messages], start=1))
    flags = trajectory.trained
    if len(flags) != len(branches) or not any(flags):
        return branches
    return [branch for branch, trained in zip(branches, flags, strict=True) if trained]


def training_messages(messages: Sequence[Mapping[str, Any]]) -> list[Message]:
    """Return messages as they stand in a row.

    Raises RowRejected for a tool call without a name, and where a tool answers an answer that says and calls nothing.
    """
    made = _with_ids([_training_message(message, place) for place, message in enumerate(messages)])
    for message, following in pairwise(made):
        is_answered = following.get("role") == "tool" and message.get("role") == "assistant"
        if is_answered and not message["content"] and "tool_calls" not in message:
            raise RowRejected("a tool's result whose call was not recorded")
    return made


def _training_message(message: Mapping[str, Any], place: int) -> Message:
    kept: Message = {
        key: _as_text(message[key]) for key in KEPT if message.get(key) is not None and key != "tool_calls"
    }
    content = message.get("content") or ""
    kept["content"] = content if _is_in_parts(content) else _as_text(content)
    calls = list(recorded_calls(message))
    if calls:
        kept["tool_calls"] = [_training_call(call, f"call_{place}_{number}") for number, call in enumerate(calls)]
    return {key: kept[key] for key in KEPT if key in kept}


def _with_ids(messages: list[Message]) -> list[Message]:
    """Return messages in which results that were recorded without the ids of their calls have them, in their order."""
    made, waiting, answered = list[Message](), deque[str](), set[str]()  # ids of calls, and of those that results name
    for message in messages:
        if message.get("role") == "assistant":
            waiting, answered = deque(call["id"] for call in message.get("tool_calls", ())), set()
        elif message.get("role") == "tool" and (named := message.get("tool_call_id")):
            answered.add(named)
        elif message.get("role") == "tool":
            while waiting and waiting[0] in answered:
                waiting.popleft()
            if waiting:
                whole = {**message, "tool_call_id": waiting.popleft()}
                message = {key: whole[key] for key in KEPT if key in whole}
        made.append(message)
    return made


def _is_in_parts(content: Any) -> bool:
    return isinstance(content, list) and all(isinstance(part, (Mapping, str)) for part in content)


def _as_text(value: Any) -> str:
    """Return a value of a message as text, which is what every row has in its place: a column is of one type."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def recorded_calls(message: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the tool calls of a message, under whichever name they were recorded."""
    for key in ("tool_calls", "tool_call", "function_call"):
        recorded = message.get(key)
        if recorded:
            yield from recorded if isinstance(recorded, list) else [recorded]
            return


def _training_call(recorded: Any, missing_id: str) -> dict[str, Any]:
    call = tool_call(recorded)
    name = call["function"]["name"]
    if not isinstance(name, str) or not name.strip():
        raise RowRejected("tool call without a name")
    arguments = json_arguments(call["function"]["arguments"])
    identity = missing_id if call["id"] in (None, "") else _as_text(call["id"])  # as its result names it
    return {"id": identity, "type": "function", "function": {"name": name, "arguments": arguments}}


def json_arguments(text: str) -> str:
    """Return arguments as JSON: as they were recorded where they are JSON, else the text as a JSON string."""
    if not text.strip():
        return "{}"
    try:
        json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return json.dumps(text, ensure_ascii=False)
    return text


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _tools_text(*trajectories: Trajectory) -> Row:
    """Return the column of tools; of a pair it has what either of the two could call."""
    tools: list[dict[str, Any]] = []
    for trajectory in trajectories:
        known = {str(tool["function"]["name"]) for tool in tools}
        named = ((tool, (tool.get("function") or {}).get("name")) for tool in trajectory.tools)
        tools += [tool for tool, name in named if name and str(name) not in known]
    return {"tools": json.dumps(tools, ensure_ascii=False)} if tools else {}


def preference_row(chosen: Trajectory, rejected: Trajectory, include_tools: bool = True) -> Made:
    """Return a pair: the prompt that both share, and the two continuations.

    Raises RowRejected where the prompts are not the same, or the continuations are.
    """
    try:
        _refuse_ids(chosen)
        prompt = training_messages(chosen.prompt)
        better, of_better = _continuation(chosen, prompt)
    except RowRejected as error:
        error.of_chosen = True
        raise
    _refuse_ids(rejected)
    worse, of_worse = _continuation(rejected, prompt)
    if better == worse:
        raise RowRejected("both answers are the same")
    tools = _tools_text(chosen, rejected) if include_tools else {}
    return Made({"prompt": prompt, "chosen": better, "rejected": worse, **tools}, (of_better, of_worse))


def _continuation(trajectory: Trajectory, prompt: list[Message]) -> tuple[list[Message], int]:
    """Return what follows the prompt on the last branch that begins with it, and the number of that branch.

    A reward is of the whole trajectory. The last branch is what verifiers calls the messages of a trace. Where the
    branches are outputs of a rollout, each of which goes on from the one before, only the last of them is an answer.
    """
    branches = _trained(trajectory)
    is_in_outputs = trajectory.metadata.get("outputs") is not None
    for number, branch in branches[-1:] if is_in_outputs else reversed(branches):
        context = prompt_context(branch)
        if len(context) < len(branch) and training_messages(context) == prompt:
            return training_messages(branch[len(context) :]), number
    if is_in_outputs:
        raise RowRejected("the last output of a rollout of several begins with another prompt")
    raise RowRejected("the prompts of the pair differ")


def joined_rl_row(trajectory: Trajectory, source_row: Mapping[str, Any]) -> Row:
    """Return the columns of a datadev row, as they are. Raises ExportError where its prompt is not the trace's."""
    trace = [(message.get("role"), message.get("content") or "") for message in trajectory.prompt]
    data = [(message.get("role"), message.get("content") or "") for message in source_row["prompt"]]
    if trace != data:
        raise ExportError(
            f"The prompt of a trace differs from the row that its task.data.idx names: {_difference(trace, data)}. "
            "Is rl_data_path the file that this run was trained on?"
        )
    return {column: source_row[column] for column in DATADEV_COLUMNS}


def _difference(trace: list[Any], data: list[Any]) -> str:
    if len(trace) != len(data):
        return f"{plural(len(trace), 'message')}, and {len(data)} in the row"
    place = next(number for number, pair in enumerate(zip(trace, data, strict=True)) if pair[0] != pair[1])
    return f"message {place + 1} is {str(trace[place][1])[:80]!r}, and {str(data[place][1])[:80]!r} in the row"


def traced_rl_row(trajectory: Trajectory, env: str | None, task_key: str | None) -> Row:
    """Return a prompt row from the trace alone, with datadev's columns; what no trace records is null."""
    _refuse_ids(trajectory)
    prompt = training_messages(trajectory.prompt)
    if not prompt:
        raise RowRejected("no prompt before the first answer")
    task = trajectory.metadata.get("task")
    data = task.get("data") if isinstance(task, Mapping) and isinstance(task.get("data"), Mapping) else task
    data = data if isinstance(data, Mapping) else {}
    row = {column: data.get(column) for column in DATADEV_COLUMNS}
    return row | {
        "prompt": prompt,
        "answer": trajectory.metadata.get("truth"),
        "record_id": row["record_id"] if row["record_id"] is not None else task_key,
        "source": row["source"] if row["source"] is not None else env,
        "tools": trajectory.tools,
    }
