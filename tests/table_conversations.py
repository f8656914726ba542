"""Small files of the systems that record whole conversations, and what is in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.table_rows import (
    BAD,
    BAD_SPLIT,
    CALLS,
    CONTEXT,
    GOOD,
    GOOD_ANSWER,
    QUESTION,
    RENDERED,
    TOOL,
    Message,
    Row,
    said,
    write_lines,
    write_parquet,
)


def trl_messages(root: Path) -> list[Row]:
    def call(**arguments: Any) -> Message:
        return {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"type": "function", "function": {"name": "f", "arguments": arguments}}],
        }

    rows = [
        {"step": 5, "prompt": CONTEXT, "completion": [answer], "correct": score, "advantage": 0.1}
        for answer, score in ((call(a=1), 1.0), (call(b="x"), 0.0))
    ]
    write_parquet(root / "completions" / "completions_00005.parquet", rows)

    def normal(arguments: str) -> list[Message]:
        made = [{"id": None, "type": "function", "function": {"name": "f", "arguments": arguments}}]
        return [*CONTEXT, {"role": "assistant", "content": "", "tool_calls": made}]

    return [Row(normal('{"a": 1}'), 1.0, 5, more={"tool_calls": 1}), Row(normal('{"b": "x"}'), 0.0, 5)]


def nemo_rl(root: Path) -> list[Row]:
    ids = {
        "token_ids": [[9, 8, 7, 6, 0, 0]],
        "token_loss_mask": [[0, 0, 1, 1, 0, 0]],
        "input_lengths": [4],
        "advantages": [[0.0, 0.0, 0.7, 0.7, 0.0, 0.0]],
        "generation_logprobs": [[0.0, 0.0, -1.0, -3.0, 0.0, 0.0]],
    }
    turns = [RENDERED, BAD, "Environment: wrong", GOOD]
    first = {"content": [turns], "rewards": [0.5], **ids, "idx": 0}
    second = {"content": [[RENDERED, BAD]], "rewards": [0.0], **ids, "idx": 1}
    write_lines(root / "exp_001" / "train_data_step4.jsonl", first, second)
    chunks = [{"role": "user", "content": RENDERED}, {"role": "assistant", "content": BAD}]
    write_lines(root / "exp_001" / "val_data_step0.jsonl", {"content": [chunks], "rewards": [0.0], "idx": 0})
    told = [*BAD_SPLIT, {"role": "environment", "content": "Environment: wrong"}, GOOD_ANSWER]
    numbers = {"advantage": 0.7, "logprob_mean": -2.0, "prompt_tokens": 2, "completion_tokens": 2, "turns": 2}
    return [
        Row(BAD_SPLIT, 0.0, 0, "eval", "rendered"),
        Row(told, 0.5, 4, "train", "rendered", numbers),
        Row(BAD_SPLIT, 0.0, 4, "train", "rendered", {"turns": 1}),
    ]


def nemo_gym(root: Path) -> list[Row]:
    output = [
        {"type": "reasoning", "summary": [{"type": "summary_text", "text": "six sevens"}]},
        {"type": "function_call", "call_id": "c1", "name": "multiply", "arguments": '{"a": 6, "b": 7}'},
        {"type": "function_call_output", "call_id": "c1", "output": "42"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "42"}]},
    ]
    response = {"output": output, "usage": {"input_tokens": 30, "output_tokens": 9}, "status": "completed"}
    request = {"input": [{**message, "type": "message"} for message in CONTEXT], "tools": [TOOL]}
    common = {"responses_create_params": request, "_ng_task_index": 6, "agent_ref": {"name": "calc"}}
    missed = {"output": [{"type": "message", "role": "assistant", "content": BAD}], "status": "completed"}
    write_lines(
        root / "x_rollouts.jsonl",
        {**common, "response": response, "reward": 1.0, "info": {"tries": 1}},
        {**common, "response": missed, "reward": 0.0},
    )
    write_lines(root / "x_rollouts_materialized_inputs.jsonl", {"responses_create_params": request})
    called = {"role": "assistant", "content": None, "reasoning_content": "six sevens", "tool_calls": CALLS}
    result = {"role": "tool", "content": "42", "tool_call_id": "c1", "name": "multiply"}
    facts = {
        "env": "calc",
        "group_id": "6",
        "data_idx": 6,
        "prompt_tokens": 30,
        "completion_tokens": 9,
        "turns": 2,
        "stop_condition": "completed",
        "truncated": 0,
        "tool_calls": 1,
        "values": {"info.tries": 1.0},
    }
    good = [*CONTEXT, called, result, {"role": "assistant", "content": "42"}]
    return [Row(good, 1.0, more=facts), Row(BAD_SPLIT, 0.0, more={"group_id": "6", "turns": 1})]


def roll_agentic(root: Path) -> list[Row]:
    messages = [
        *CONTEXT,
        {"role": "assistant", "content": "", "tool_calls": CALLS},
        {"role": "tool", "tool_call_id": "c1", "content": "42"},
        {"role": "assistant", "content": "42"},
    ]
    data = {
        "trajectory_id": "t0",
        "env_info": {"group_id": 4, "tag": "calc", "mode": "val"},
        "reward_info": {"episode_reward": 1.0},
        "failure_info": {"stop_reason": "FINISH", "failure_mode": ""},
    }
    missed = {**data, "trajectory_id": "t1", "reward_info": {"episode_reward": 0.0}}
    line = {
        "trajectory_data": [json.dumps(data), json.dumps(missed)],
        "messages": [json.dumps(messages), json.dumps(said(BAD))],
        "tools": [json.dumps([TOOL])] * 2,
        "global_step": [6, 6],
    }
    write_lines(root / "rollout_dump_data.step_6.jsonl", line)
    facts = {
        "env": "calc",
        "group_id": "4",
        "episode_id": "t0",
        "stop_condition": "FINISH",
        "tool_calls": 1,
        "ok": 1,
    }
    return [Row(messages, 1.0, 6, "eval", more=facts), Row(said(BAD), 0.0, 6, "eval", more={"episode_id": "t1"})]


def chat(root: Path) -> list[Row]:
    tooled = [*CONTEXT, {"role": "assistant", "content": None, "reasoning_content": "r", "tool_calls": CALLS}]
    parts = [
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "see"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}},
            ],
        }
    ]
    write_lines(
        root / "a.jsonl",
        {"messages": said(BAD), "reward": 1},
        {"messages": tooled, "tools": [TOOL], "metadata": {"reward": 0.5, "step": 9, "env": "e", "prompt_id": 3}},
        {"messages": parts},
        {"prompt": QUESTION, "completion": GOOD, "reward": 1.0},
        {"prompt": CONTEXT, "completion": [{"role": "assistant", "content": BAD}], "score": 0.0, "step": 1},
        {"prompt": QUESTION, "completions": [GOOD, BAD], "rewards": [1.0, 0.0], "answer": "42"},
        {"prompt": CONTEXT, "chosen": [{"role": "assistant", "content": "42"}], "rejected": BAD, "score_chosen": 2.0},
        {"conversations": [{"from": "human", "value": QUESTION}, {"from": "gpt", "value": BAD}], "score": 0.0},
    )
    question = {"role": "user", "content": QUESTION}
    return [
        Row(said(BAD), 1.0),
        Row(tooled, 0.5, 9, more={"env": "e", "group_id": "3", "tool_calls": 1}),
        Row(parts, None, more={"turns": 0}),
        Row([question, GOOD_ANSWER], 1.0, kind="prompt_completion"),
        Row(said(BAD), 0.0, 1),
        Row([question, GOOD_ANSWER], 1.0, more={"item": 0}),
        Row([question, {"role": "assistant", "content": BAD}], 0.0, more={"item": 1}),
        Row(said("42"), 2.0, more={"item": 0, "values": {"info.label": "chosen"}}),
        Row(said(BAD), None, more={"item": 1, "values": {"info.label": "rejected"}}),
        Row([question, {"role": "assistant", "content": BAD}], 0.0),
    ]


CALLED = [*CONTEXT, {"role": "assistant", "content": None, "tool_calls": CALLS}]


def write_workflow(root: Path) -> Path:
    """Write the predictions of one workflow, in the shapes that 0.1.0 accepts."""
    path = root / "math_check.jsonl"
    write_lines(
        path,
        {"final_row": {"rubric": {"messages": said("42"), "score": 0.5}, "tools": [TOOL], "source": "gsm"}, "id": 3},
        {"final_row": {"rubric": {"messages": json.dumps(CALLED)}}},
        {"rubric": {"messages": said("41")}},
        {"final_row": {"rubric": {"messages": []}}},
        {"final_row": {"rubric": {"messages": [{"content": "no role"}]}}},
    )
    return path
