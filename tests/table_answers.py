"""Small files of the systems that record a prompt and its answer as text or as token ids, and what is in them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tests.table_rows import (
    BAD,
    BAD_SPLIT,
    CONTEXT,
    GOOD,
    GOOD_SPLIT,
    RENDERED,
    STRIPPED,
    Row,
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
        Row(
            GOOD_SPLIT, 1.0, 3, "train", "stripped", {"group_id": "a_b", "values": {"acc": 1.0, "info.uid": "a_b_0_0"}}
        ),
        Row(BAD_SPLIT, 0.0, 3, "train", "stripped", {"values": {"acc": 0.0, "info.uid": "a_b_1_0"}}),
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
    facts = {
        "env": "math",
        "data_idx": 3,
        "stop_condition": "length",
        "truncated": 1,
        "values": {"info.data_source": "d"},
    }
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
