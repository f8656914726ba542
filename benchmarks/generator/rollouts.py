"""One rollout as messages with token ids, whatever format it is written in."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.random import Generator, default_rng
from numpy.typing import NDArray

from .pool import Ids, Pool

START, END, THINK, END_THINK = (np.array([token], np.int32) for token in (151_644, 151_645, 151_667, 151_668))


def tool(name: str, description: str, properties: dict[str, Any], required: str) -> dict[str, Any]:
    """Return a tool's definition as verifiers records it."""
    parameters = {"type": "object", "properties": properties, "required": [required]}
    return {
        "type": "function",
        "name": name,
        "namespace": None,
        "description": description,
        "parameters": parameters,
        "strict": None,
    }


TOOLS = [
    tool(
        "bash",
        "Run a bash command in the sandbox and return its combined output.",
        {
            "command": {"type": "string", "description": "The command to run."},
            "timeout": {"type": "integer", "default": 120},
        },
        "command",
    ),
    tool(
        "search",
        "Search the document store; returns JSON hits with id, score and snippet.",
        {"query": {"type": "string"}, "top_k": {"type": "integer", "minimum": 1, "maximum": 50}},
        "query",
    ),
    tool("python", "Execute Python code and return stdout.", {"code": {"type": "string"}}, "code"),
]


@dataclass
class Node:
    """One message and its tokens; `head` and `tail` of them belong to the chat template."""

    role: str
    message: dict[str, Any]
    ids: Ids
    head: int
    tail: int

    @property
    def sampled(self) -> bool:
        """Whether the policy wrote it."""
        return self.role == "assistant"


@dataclass
class Rollout:
    """One sampled conversation; `rng` goes on where making it has stopped."""

    rng: Generator
    id: str
    step: int
    number: int
    env: str
    agent: str
    prompt: int
    prompt_text: str
    system_text: str
    turns: int
    correct: bool
    failed: bool
    advantage: float
    nodes: list[Node] = field(default_factory=list)

    @property
    def sampled_tokens(self) -> int:
        """How many tokens the policy wrote."""
        return sum(len(node.ids) - node.head for node in self.nodes if node.sampled)


class RolloutMaker:
    """Makes each rollout of a run from the seed alone, in any order."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        has_ids = options.tokens or options.format in ("bin", "token_export")
        self.pool = Pool(options.seed, options.tokenizer if has_ids else None)
        self.unique = options.unique_prompts or max(options.prompts, options.steps * options.prompts // 3)
        if self.unique < options.prompts:
            raise SystemExit("--unique-prompts must be at least --prompts: a step samples each of its prompts once.")
        self.systems = {
            env: self.pool.draw(default_rng([options.seed, 1, place]), "prompt", 220)
            for place, env in enumerate(options.envs)
        }
        rng = default_rng([options.seed, 2])
        self.difficulty = rng.beta(0.6, 0.6, self.unique)  # pass rates from 0 to 1, with many near the ends
        lengths = rng.lognormal(np.log(options.prompt_tokens), 0.7, self.unique)
        self.prompt_tokens = np.clip(lengths, 12, 6000).astype(int)
        self.epoch_steps = self.unique // options.prompts
        epochs = options.steps // self.epoch_steps + 1
        self.order = [rng.permutation(self.unique) for _ in range(epochs)]
        self.prompts: dict[int, tuple[str, Ids]] = {}

    def step_prompts(self, step: int) -> NDArray[np.int64]:
        """Return the prompts of a step, each once; an epoch goes through whole steps of a permutation."""
        epoch, place = divmod(step - 1, self.epoch_steps)
        count = self.options.prompts
        return self.order[epoch][place * count : (place + 1) * count]

    def prompt(self, number: int) -> tuple[str, Ids]:
        """Return a prompt's text and token ids."""
        if number not in self.prompts:
            rng = default_rng([self.options.seed, 3, number])
            text, ids = self.pool.draw(rng, "prompt", int(self.prompt_tokens[number]))
            head = f"Problem {number}: "
            self.prompts[number] = head + text, np.concatenate([self.pool.encode(head), ids])
        return self.prompts[number]

    def logprobs(self, rng: Generator, count: int) -> NDArray[np.float32]:
        """Return sampled logprobs: mostly confident, some exactly 0, a long tail."""
        values = -np.exp(rng.normal(-4.5, 3.0, count))
        values[rng.random(count) < 0.12] = 0.0
        return np.maximum(values, -18.0).astype(np.float32)

    def rollout(self, step: int, prompt: int, number: int, split: str, agent: int = 0) -> Rollout:
        """Return one rollout of a prompt, by the solver (0) or another agent of the episode."""
        options = self.options
        rng = default_rng([options.seed, 11, step, prompt, number, split == "eval", 6 + agent])
        env = options.envs[prompt % len(options.envs)]
        system_text, system_ids = self.systems[env]
        prompt_text, prompt_ids = self.prompt(prompt)
        odds = float(np.clip(self.difficulty[prompt], 0.001, 0.999))
        pass_rate = 1 / (1 + np.exp(-(np.log(odds / (1 - odds)) + 0.04 * step)))  # the policy improves with the step
        correct, failed = bool(rng.random() < pass_rate), bool(rng.random() < options.error_rate)
        turns = 1 + int(rng.binomial(2 * max(0, options.turns - 1), 0.5))
        if failed:
            turns = max(1, turns // 2)
        nodes = [self._given("system", system_text, system_ids), self._given("user", prompt_text, prompt_ids)]
        for turn in range(turns):
            nodes += self._turn(rng, last=turn == turns - 1)
        name = f"agent_{agent}" if agent else "solver"
        advantage = float(np.float32((1.0 if correct else 0.0) - pass_rate))
        return Rollout(
            rng, rng.bytes(16).hex(), step, number, env, name, prompt, prompt_text, system_text, turns, correct,
            failed, advantage, nodes,
        )  # fmt: skip

    def _given(self, role: str, text: str, ids: Ids) -> Node:
        encode = self.pool.encode
        whole = np.concatenate([START, encode(f"{role}\n"), ids, END, encode("\n")])
        return Node(role, {"role": role, "content": text}, whole, 3, 2)

    def _turn(self, rng: Generator, last: bool) -> list[Node]:
        """Return an assistant message and, unless it is the last, the result of the tool that it calls."""
        pool, encode, median = self.pool, self.pool.encode, self.options.tokens_per_turn
        length = int(np.clip(rng.lognormal(np.log(median), 0.6), 8, 8 * median))
        reasoning, reasoning_ids = pool.draw(rng, "reason", max(8, int(length * 0.55)))
        content, content_ids = pool.draw(rng, "answer", max(8, int(length * 0.35)))
        message: dict[str, Any] = {
            "role": "assistant",
            "content": content,
            "reasoning_content": reasoning,
            "tool_calls": None,
            "provider_state": None,
        }
        parts = [THINK, encode("\n"), reasoning_ids, encode("\n"), END_THINK, encode("\n\n"), content_ids]
        call_id = ""
        if not last:
            call_id, call_parts = self._call(rng, message)
            parts += call_parts
        ids = np.concatenate([START, encode("assistant\n"), *parts, END])
        answer = Node("assistant", message, ids, 1 + len(encode("assistant\n")), 0)
        return [answer] if last else [answer, self._result(rng, call_id, message["tool_calls"][0]["name"])]

    def _call(self, rng: Generator, message: dict[str, Any]) -> tuple[str, list[Ids]]:
        """Add a tool call to a message; return its id and its tokens in Qwen3-Coder's form."""
        encode = self.pool.encode
        chosen = TOOLS[int(rng.integers(len(TOOLS)))]
        argument = next(iter(chosen["parameters"]["properties"]))
        kind = "code" if chosen["name"] == "python" else "prose"
        value, value_ids = self.pool.snippet(kind, int(rng.integers(len(self.pool.texts[kind]))))
        call_id = f"call_{rng.bytes(9).hex()}"
        message["tool_calls"] = [
            {
                "id": call_id,
                "type": "function",
                "name": chosen["name"],
                "namespace": None,
                "arguments": json.dumps({argument: value}),
            }
        ]
        before = encode(f"<function={chosen['name']}>\n<parameter={argument}>\n")
        after = encode("\n</parameter>\n</function>\n</tool_call>")
        return call_id, [encode("\n<tool_call>\n"), before, value_ids, after]

    def _result(self, rng: Generator, call_id: str, name: str) -> Node:
        encode = self.pool.encode
        length = max(8, int(rng.lognormal(np.log(self.options.tokens_per_turn * 0.5), 0.9)))
        text, ids = self.pool.draw(rng, "tool", length)
        before, after = encode("user\n<tool_response>\n"), encode("\n</tool_response>")
        whole = np.concatenate([encode("\n"), START, before, ids, after, END, encode("\n")])
        return Node("tool", {"role": "tool", "tool_call_id": call_id, "content": text, "name": name}, whole, 6, 4)
