"""What systems call their columns, and what a mapping can take from the place of a file: for guessing only."""

from __future__ import annotations

import re
from pathlib import Path

from .mapping import SPLITS

STEP = re.compile(r"((?:step|iter|iteration|update|epoch|completions|rollouts)[_-]?)\d+", re.I)
SPLIT = re.compile(rf"(?<![a-z])({'|'.join(sorted(SPLITS, key=len, reverse=True))})(?![a-z])")
# Names that systems give to columns, the most telling first.
NAMES = {
    "prompt": ("prompt", "input", "question", "query", "instruction", "problem", "input_prompt", "prompt_text"),
    "completion": ("completion", "response", "reply", "output", "completions", "responses", "output_response",
                   "generation", "completion_text", "generated_text", "answer"),
    "prompt_ids": ("prompt_ids", "prompt_tokens", "prompt_token_ids", "input_ids", "input_tokens"),
    "completion_ids": ("completion_ids", "response_tokens", "completion_token_ids", "output_tokens", "response_ids"),
    "reward": ("reward", "rewards", "score", "scores", "total_reward", "final_reward", "return", "r"),
    "advantage": ("advantage", "advantages", "adv"),
    "step": ("step", "iteration", "epoch", "iter", "global_step", "training_step", "train_step", "train_iter",
             "gen_step", "update"),
    "split": ("split", "phase", "mode", "stage"),
    "env": ("env", "environment", "env_name", "env_class", "dataset", "data_source", "domain", "task_type", "suite"),
    "agent": ("agent", "agent_name"),
    "group": ("group_id", "group", "prompt_id", "prompt_idx", "group_idx", "group_index", "problem_id", "question_id",
              "pid", "qid"),
    "truth": ("ground_truth", "gts", "gold", "label", "solution", "reference", "expected_answer", "target", "answer"),
    "stop": ("stop_reason", "finish_reason", "stop_condition", "termination_reason"),
    "truncated": ("truncated", "is_truncated"),
    "error": ("error", "exception"),
    "prompt_tokens": ("prompt_tokens", "input_tokens", "prompt_length", "prompt_len", "num_prompt_tokens"),
    "completion_tokens": ("completion_tokens", "output_tokens", "response_tokens", "response_length", "completion_len",
                          "num_tokens", "num_response_tokens"),
    "policy_version": ("policy_version", "model_version", "weight_version", "checkpoint", "ckpt"),
    "seconds": ("seconds", "duration", "elapsed", "latency_s", "wall_s", "duration_s", "elapsed_s"),
    "tools": ("tools", "tool_defs", "functions"),
    "logprobs": ("logprobs", "log_probs", "rollout_log_probs", "generation_logprobs"),
    "mask": ("loss_mask", "mask", "token_loss_mask", "response_mask"),
}  # fmt: skip
TOKEN_ROLES = ("prompt_ids", "completion_ids", "logprobs", "mask")
COUNTS = ("prompt_tokens", "completion_tokens", "policy_version", "seconds")


def place_template(file: Path, with_step: bool, with_split: bool) -> str:
    """Return the end of a file's path with {step} and {split} for what looks like them, from the first of them on."""
    written: list[str] = []
    for part in reversed(file.absolute().parts[-3:]):
        is_name = not written
        stem, suffix = (file.stem, file.suffix) if is_name else (part, "")
        made = re.sub(r"[{}*]", "*", stem)
        if with_step and (found := "{step}" if stem.isdigit() and is_name else STEP.sub(r"\1{step}", made, 1)) != made:
            made, with_step = found, False
        # A folder may be called test for many reasons: only its whole name counts.
        if with_split and (is_name or stem in SPLITS) and (found := SPLIT.sub("{split}", made, 1)) != made:
            made, with_split = found, False
        written.insert(0, (re.sub(r"\d+", "*", made) if "{" in made else "*") + suffix)
    first = next((number for number, part in enumerate(written) if "{" in part), -1)
    return "/".join(written[first:])


def mapping_name(file: Path) -> str:
    """Return a name for a mapping of a file's format."""
    plain = re.sub(r"[^a-z0-9]+", "-", re.sub(r"\d+", "", file.stem.lower())).strip("-")
    return f"my-{plain or 'format'}"[:60]
