"""An independent reading of other systems' files: json, pyarrow, and a few lines of text splitting.

It knows nothing of mappings or templates, only what these files are: see docs/mappings.md for their sources.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

Message = dict[str, Any]
ROLE_LINE = re.compile(r"^(system|user|assistant|tool)$")


class Told(NamedTuple):
    """One trajectory: where its row is, and what it says."""

    file: str
    line: int  # counted from 1
    item: int | None
    reward: float | None
    step: int | None
    split: str | None
    messages: list[Message]
    earlier: tuple[list[Message], ...] = ()  # the messages of its outputs before the last


def chatml(text: str) -> list[Message]:
    """Return the messages of a text that keeps ChatML's marks."""
    turns = [part.split("<|im_end|>")[0] for part in text.split("<|im_start|>")[1:]]
    return paired([spoken(*turn.split("\n", 1)) for turn in turns if turn.strip() != "assistant"])


def stripped(text: str) -> list[Message]:
    """Return the messages of a text whose roles stand alone on their lines."""
    turns: list[tuple[str, list[str]]] = []
    for line in text.split("\n"):
        if ROLE_LINE.match(line):
            turns.append((line, []))
        else:
            turns[-1][1].append(line)
    return paired([spoken(role, "\n".join(lines)) for role, lines in turns])


def spoken(role: str, text: str) -> Message:
    """Return what one turn says: reasoning, a tool call or a tool's response apart from its text."""
    if role == "system":
        return {"role": role, "content": text.split("\n\n# Tools")[0]}
    if "<tool_response>" in text:
        return {"role": "tool", "content": text.split("<tool_response>\n")[1].split("\n</tool_response>")[0]}
    if role != "assistant":
        return {"role": role, "content": text}
    message: Message = {"role": role}
    if "</think>" in text:
        before, text = text.split("</think>\n\n")
        message["reasoning_content"] = before.replace("<think>", "").strip("\n")
    if "<tool_call>" in text:
        call = json.loads(text.split("<tool_call>")[1].split("</tool_call>")[0])
        arguments = json.dumps(call.get("arguments", {}))
        message["tool_calls"] = [
            {"id": "call_0", "type": "function", "function": {"name": call["name"], "arguments": arguments}}
        ]
        text = ""
    return {**message, "content": text}


def paired(messages: list[Message]) -> list[Message]:
    """Return the messages with each tool's response naming the call before it."""
    for before, message in pairwise(messages):
        if message["role"] == "tool" and before.get("tool_calls"):
            message["tool_call_id"] = "call_0"
            message["name"] = before["tool_calls"][0]["function"]["name"]
    return messages


def lines(path: Path) -> Iterator[tuple[int, Any]]:
    """Yield (line number, value) of each line that is JSON."""
    for number, line in enumerate(path.read_text(encoding="utf-8").split("\n"), 1):
        try:
            yield number, json.loads(line)
        except ValueError:
            continue


def finite(value: float | None) -> float | None:
    """Return a number, or None for NaN."""
    return None if value is None or value != value else value


def verl(root: Path) -> Iterator[Told]:
    for path in sorted(root.rglob("*.jsonl")):
        told: list[Told] = []
        for number, row in lines(path):
            split = "eval" if "reward" in row else "train"
            text = row["input"] + row["output"]
            messages = chatml(text) if "<|im_start|>" in text else stripped(text)
            told.append(Told(_name(path, root), number, None, row["score"], int(path.stem), split, messages))
            # {prompt}_{rollout}_{output}: the first line of a rollout, and what its last output says.
            if not str(row.get("uid", "_0")).endswith("_0"):
                later, earlier = told.pop(), told.pop()
                told.append(later._replace(line=earlier.line, earlier=(*earlier.earlier, earlier.messages)))
        yield from told


def trl(root: Path) -> Iterator[Told]:
    import pyarrow.parquet

    seen = set()
    for path in sorted(root.rglob("*.parquet")):
        for number, row in enumerate(pyarrow.parquet.read_table(path).to_pylist(), 1):
            step = row.pop("step")
            same = json.dumps(row)
            if same in seen:
                continue
            seen.add(same)
            scores = [row["accuracy_reward"], row["think_format_reward"]]
            prompt, completion = row["prompt"], row["completion"]
            messages = stripped(prompt + completion) if isinstance(prompt, str) else prompt + completion
            reward = sum(score for score in map(finite, scores) if score is not None)
            yield Told(_name(path, root), number, None, reward, step, None, messages)


def ms_swift(root: Path) -> Iterator[Told]:
    for path in sorted(root.rglob("*.jsonl")):
        for number, row in lines(path):
            if "gen_step" in row:
                messages = chatml(row["prompt"] + row["completion"])
                yield Told(_name(path, root), number, None, row["reward"], row["gen_step"], None, messages)
                continue
            for item, step in enumerate(row["step"]):
                scores = [finite(row[name][item]) for name in ("MathAccuracy", "Format")]
                reward = sum(score for score in scores if score is not None)
                messages = chatml(row["prompt"][item] + row["completion"][item])
                yield Told(_name(path, root), number, item, reward, int(step), None, messages)


def nemo_rl(root: Path) -> Iterator[Told]:
    for path in sorted(root.rglob("*.jsonl")):
        split, step = path.stem.split("_data_step")
        for number, row in lines(path):
            (chunks,), (reward,) = row["content"], row["rewards"]
            if isinstance(chunks[0], str):
                messages = chatml("".join(chunks))
            else:
                *rendered, environment = chunks
                messages = [*chatml("".join(chunk["content"] for chunk in rendered)), environment]
            yield Told(_name(path, root), number, None, reward, int(step), {"val": "eval"}.get(split, split), messages)


def nemo_gym(root: Path) -> Iterator[Told]:
    for path in sorted(root.rglob("*_rollouts.jsonl")):
        for number, row in lines(path):
            given = row["responses_create_params"]["input"]
            messages = [{"role": one["role"], "content": one["content"]} for one in given]
            names = {}
            for one in row["response"]["output"]:
                if one["type"] == "function_call":
                    names[one["call_id"]] = one["name"]
                    function = {"name": one["name"], "arguments": one["arguments"]}
                    call = {"id": one["call_id"], "type": "function", "function": function}
                    messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
                elif one["type"] == "function_call_output":
                    call_id = one["call_id"]
                    messages.append(
                        {"role": "tool", "content": one["output"], "tool_call_id": call_id, "name": names[call_id]}
                    )
                else:
                    content = one["content"]
                    text = content if isinstance(content, str) else "".join(part["text"] for part in content)
                    messages.append({"role": one["role"], "content": text})
            yield Told(_name(path, root), number, None, row["reward"], None, None, messages)


def skyrl(root: Path) -> Iterator[Told]:
    for path in sorted(root.rglob("*.jsonl")):
        named = re.search(r"global_step_(\d+)_evals", str(path))
        for number, row in lines(path):
            if "input_prompt" in row:
                reward = sum(row["score"]) if isinstance(row["score"], list) else row["score"]
                messages = chatml(row["input_prompt"] + row["output_response"])
                yield Told(_name(path, root), number, None, reward, int(named[1]) if named else None, "eval", messages)


def areal(root: Path) -> Iterator[Told]:
    for path in sorted(root.rglob("*.jsonl")):
        for number, row in lines(path):
            split = {"rollout": "train", "eval-rollout": "eval"}[path.parts[-3]]
            messages = chatml(row["prompt"] + row["completion"])
            yield Told(_name(path, root), number, None, row["reward"], int(path.parts[-2]), split, messages)


def roll(root: Path) -> Iterator[Told]:
    for path in sorted(root.rglob("*.jsonl")):
        for number, row in lines(path):
            for item, step in enumerate(row["global_step"]):
                messages = json.loads(row["messages"][item])
                split = None
                if "scores" in row:
                    reward = row["scores"][item]
                    messages.append(spoken("assistant", row["responses"][item]))
                else:
                    data = json.loads(row["trajectory_data"][item])
                    reward, split = data["reward_info"]["episode_reward"], data["env_info"]["mode"]
                yield Told(_name(path, root), number, item, reward, step, split, messages)


def open_instruct(root: Path) -> Iterator[Told]:
    for path in sorted(root.rglob("*_rollouts_*.jsonl")):
        for number, row in lines(path):
            yield Told(_name(path, root), number, None, row["reward"], row["step"], None, [])


def chat(root: Path) -> Iterator[Told]:
    for path in sorted(root.rglob("*.jsonl")):
        for number, row in lines(path):
            beside = row.get("metadata", {})
            reward, step = (
                row.get("reward", row.get("score", beside.get("reward"))),
                row.get("step", beside.get("step")),
            )
            answers = _answers(row)
            for item, (messages, own) in enumerate(answers):
                which = item if "completions" in row or "chosen" in row else None
                yield Told(_name(path, root), number, which, own if which is not None else reward, step, None, messages)


def _answers(row: dict[str, Any]) -> list[tuple[list[Message], float | None]]:
    if "messages" in row:
        return [(row["messages"], None)]
    if "conversations" in row:
        names = {"human": "user", "gpt": "assistant"}
        return [([{"role": names[one["from"]], "content": one["value"]} for one in row["conversations"]], None)]
    prompt = row["prompt"] if isinstance(row["prompt"], list) else [{"role": "user", "content": row["prompt"]}]
    if "completions" in row:
        pairs = zip(row["completions"], row["rewards"], strict=True)
        return [([*prompt, spoken("assistant", text)], reward) for text, reward in pairs]
    if "chosen" in row:
        return [(prompt + row[name], row[f"score_{name}"]) for name in ("chosen", "rejected")]
    answer = row["completion"]
    return [(prompt + (answer if isinstance(answer, list) else [spoken("assistant", answer)]), None)]


def _name(path: Path, root: Path) -> str:
    return path.relative_to(root).as_posix()


READINGS = {
    "verl/legacy_0.8": ("verl", verl),
    "verl/v1_0.9": ("verl", verl),
    "verl/families/qwen_special": ("verl", verl),
    "verl/families/qwen_stripped": ("verl", verl),
    "trl/grpo_out": ("trl", trl),
    "trl/grpo_out_v1_16": ("trl", trl),
    "ms_swift/grpo_hf": ("ms-swift", ms_swift),
    "ms_swift/grpo_megatron_ray": ("ms-swift", ms_swift),
    "nemo_rl": ("nemo-rl", nemo_rl),
    "nemo_gym": ("nemo-gym", nemo_gym),
    "skyrl": ("skyrl", skyrl),
    "areal": ("areal", areal),
    "roll/rlvr_rollout_dump": ("roll", roll),
    "roll/agentic_rollout_dump": ("roll", roll),
    "open_instruct": ("open-instruct", open_instruct),
    "chat_jsonl": ("chat", chat),
}
"""A folder of the corpora, the source that has to read it, and its independent reading."""
