"""Small files of each system that a mapping reads, as its writer makes them, and what is in them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.table_rows import (
    BAD,
    BAD_SPLIT,
    CALLS,
    CONTEXT,
    GOOD,
    GOOD_ANSWER,
    GOOD_SPLIT,
    QUESTION,
    RENDERED,
    STRIPPED,
    TOOL,
    Message,
    Row,
    said,
    write_lines,
    write_parquet,
)
from tests.token_layouts import encode


def verl(root: Path) -> list[Row]:
    common = {"input": STRIPPED, "gts": "42"}
    rows = [
        {**common, "output": GOOD, "score": 1.0, "step": 3, "acc": "True", "uid": "a_b_0_0"},
        {**common, "output": BAD, "score": 0.0, "step": 3, "acc": "False", "uid": "a_b_1_0"},
    ]
    write_lines(root / "rollouts" / "3.jsonl", *rows)
    write_lines(root / "val" / "0.jsonl", {**common, "output": BAD, "score": 0.0, "step": 0, "reward": 0.0})
    return [
        Row(BAD_SPLIT, 0.0, 0, "eval", "stripped", {"group_id": None}),
        Row(GOOD_SPLIT, 1.0, 3, "train", "stripped", {"group_id": "a_b", "values": {"acc": 1.0, "uid": "a_b_0_0"}}),
        Row(BAD_SPLIT, 0.0, 3, "train", "stripped", {"values": {"acc": 0.0, "uid": "a_b_1_0"}}),
    ]


def trl_text(root: Path) -> list[Row]:
    rows = [
        {"step": 5, "prompt": STRIPPED, "completion": text, "correct": score, "format": None, "advantage": score}
        for text, score in ((GOOD, 1.0), (BAD, 0.0))
    ]
    rows.append({**rows[0], "format": 0.5})
    write_parquet(root / "completions" / "completions_00005.parquet", rows)
    return [
        Row(GOOD_SPLIT, 1.0, 5, None, "stripped", {"advantage": 1.0, "values": {"rewards.correct.score": 1.0}}),
        Row(BAD_SPLIT, 0.0, 5, None, "stripped"),
        Row(GOOD_SPLIT, 1.5, 5, None, "stripped"),
    ]


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


def ms_swift(root: Path) -> list[Row]:
    line = {
        "step": ["7", "7"],
        "prompt": [RENDERED] * 2,
        "completion": [GOOD, BAD],
        "Acc": [1.0, 0.0],
        "Format": [float("nan"), 0.5],
        "advantages": [0.5, -0.5],
        "num_turns": [1, 1],
    }
    write_lines(root / "completions.jsonl", line)
    values = {"rewards.Acc.score": 0.0, "rewards.Format.score": 0.5, "num_turns": 1.0}
    return [
        Row(GOOD_SPLIT, 1.0, 7, None, "rendered", {"advantage": 0.5, "item": 0}),
        Row(BAD_SPLIT, 0.5, 7, None, "rendered", {"advantage": -0.5, "item": 1, "values": values}),
    ]


def ms_swift_ray(root: Path) -> list[Row]:
    rows = [
        {"gen_step": 2, "prompt": RENDERED, "completion": text, "reward": r} for text, r in ((BAD, 0.0), (GOOD, 1.0))
    ]
    write_lines(root / "completions.jsonl", *rows)
    return [Row(BAD_SPLIT, 0.0, 2, None, "rendered"), Row(GOOD_SPLIT, 1.0, 2, None, "rendered")]


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


def skyrl(root: Path) -> list[Row]:
    folder = root / "dumped_evals" / "global_step_8_evals"
    row = {
        "input_prompt": RENDERED,
        "output_response": GOOD + "<|im_end|>",
        "score": [0.25, 0.75],
        "stop_reason": "length",
        "env_class": "math",
        "data_source": "d",
        "env_extras": {"reward_spec": {"ground_truth": "42"}, "extra_info": {"index": 3}},
    }
    write_lines(folder / "d.jsonl", row, {**row, "output_response": BAD, "score": 0.0, "stop_reason": "stop"})
    write_lines(folder / "aggregated_results.jsonl", {"eval/all/avg_score": 1.0})
    facts = {"env": "math", "data_idx": 3, "stop_condition": "length", "truncated": 1, "values": {"data_source": "d"}}
    stopped = {"stop_condition": "stop", "truncated": 0}
    return [
        Row(GOOD_SPLIT, 1.0, 8, "eval", "rendered", facts),
        Row(BAD_SPLIT, 0.0, 8, "eval", "rendered", stopped),
    ]


def areal(root: Path) -> list[Row]:
    def row(**more: Any) -> dict[str, Any]:
        return {
            "task_id": 5,
            "sample_idx": 0,
            "seqlen": 9,
            "prompt_len": 6,
            "head_version": 2,
            "tail_version": 3,
            "version_rle": [[2, 1], [3, 2]],
            "prompt": RENDERED,
            "completion": GOOD + "<|im_end|>",
            **more,
        }

    missed = row(reward=0.0, sample_idx=1, completion=BAD + "<|im_end|>")
    write_lines(root / "trial" / "rollout" / "2" / "5.jsonl", row(reward=1.0), missed)
    write_lines(root / "trial" / "eval-rollout" / "4" / "5.jsonl", row(reward=0.0))
    facts = {"group_id": "5", "policy_version": 2, "prompt_tokens": 6, "completion_tokens": 3}
    return [
        Row(GOOD_SPLIT, 1.0, 2, "train", "rendered", facts),
        Row(BAD_SPLIT, 0.0, 2, "train", "rendered", facts),
        Row(GOOD_SPLIT, 0.0, 4, "eval", "rendered", facts),
    ]


def roll_rlvr(root: Path) -> list[Row]:
    line = {
        "id": ["q"] * 2,
        "prompt": [RENDERED] * 2,
        "messages": [json.dumps(CONTEXT)] * 2,
        "responses": [GOOD, BAD],
        "scores": [1.0, 0.0],
        "ground_truth": ["42"] * 2,
        "tag": ["math"] * 2,
        "global_step": [6, 6],
    }
    write_lines(root / "rollout_dump_data.step_6.jsonl", line)
    facts = {"env": "math", "data_idx": "q"}
    return [Row(GOOD_SPLIT, 1.0, 6, more=facts), Row(BAD_SPLIT, 0.0, 6, more=facts)]


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
        "ok": None,
    }
    return [Row(messages, 1.0, 6, "eval", more=facts), Row(said(BAD), 0.0, 6, "eval", more={"episode_id": "t1"})]


def open_instruct(root: Path) -> list[Row]:
    asked, answers = encode(RENDERED), [encode(f"{text}<|im_end|>") for text in (GOOD, BAD)]
    row = {
        "step": 2,
        "sample_idx": 0,
        "prompt_idx": 1,
        "prompt_tokens": asked,
        "advantage": -0.5,
        "finish_reason": "stop",
        "dataset": "math",
        "ground_truth": ["42"],
        "request_info": {"num_calls": 1},
    }
    good, bad = (
        {
            **row,
            "response_tokens": ids,
            "reward": reward,
            "logprobs": [-1.0, -2.0] * (len(ids) // 2) + [-1.5] * (len(ids) % 2),
        }
        for ids, reward in zip(answers, (10.0, 0.0), strict=True)
    )
    write_lines(root / "run_rollouts_000000.jsonl", good, {**bad, "sample_idx": 1})
    write_lines(root / "run_metadata.jsonl", {"run_name": "run", "git_commit": "x", "model_name": "m"})
    facts = {
        "advantage": -0.5,
        "group_id": "1",
        "env": "math",
        "prompt_tokens": len(asked),
        "turns": 1,
        "logprob_mean": -1.5,
        "stop_condition": "stop",
        "values": {"request_info.num_calls": 1.0},
    }
    return [
        Row([], 10.0, 2, None, "token_ids", {**facts, "completion_tokens": len(answers[0])}),
        Row([], 0.0, 2, None, "token_ids", {**facts, "completion_tokens": len(answers[1])}),
    ]


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


SAMPLES: dict[str, tuple[str, Callable[[Path], list[Row]]]] = {
    "verl": ("verl", verl),
    "trl-text": ("trl", trl_text),
    "trl-messages": ("trl", trl_messages),
    "ms-swift": ("ms-swift", ms_swift),
    "ms-swift-ray": ("ms-swift", ms_swift_ray),
    "nemo-rl": ("nemo-rl", nemo_rl),
    "nemo-gym": ("nemo-gym", nemo_gym),
    "skyrl": ("skyrl", skyrl),
    "areal": ("areal", areal),
    "roll-rlvr": ("roll", roll_rlvr),
    "roll-agentic": ("roll", roll_agentic),
    "open-instruct": ("open-instruct", open_instruct),
    "chat": ("chat", chat),
}
"""What can be written, by a name: the source that has to read it, and the function that writes it into a folder."""
