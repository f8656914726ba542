"""The conversations that the writers put into their files, with what is true of each stated by hand."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .expected import Expected
from .files import Place
from .records import Record, message, nodes_of, tool_call, trace

TERMINAL_TOOL = {"name": "terminal", "description": "Run a shell command.", "parameters": {"type": "object"}}
CROP_TOOL = {"type": "custom", "name": "crop", "namespace": "vision", "format": {"type": "text"}}
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk"
    "+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@dataclass(frozen=True)
class Sample:
    """One conversation: a graph of messages, and the numbers that a reader must get from it."""

    env: str
    task: Record
    messages: list[Record]
    reward: float | None  # the total; None: unscored
    rewards: dict[str, tuple[float | None, float]]  # name → score, weight
    metrics: dict[str, float] = field(default_factory=dict)
    parents: list[int | None] | None = None  # None: a chain
    branches: int = 1
    last: list[int] | None = None  # the nodes of the last branch; None: all
    tools: list[Record] = field(default_factory=list)
    agent: str = "agent"

    def floats(self) -> Record:
        """Return the rewards in the form before July 23, 2026: numbers, the weight multiplied in."""
        return {name: None if score is None else score * weight for name, (score, weight) in self.rewards.items()}


def trace_of(sample: Sample, uid: str, *, token_ids: bool = True, **overrides: Any) -> Record:
    """Return a sample as a trace of the newest shape."""
    trained = sample.agent != "judge"
    graph = nodes_of(sample.messages, sample.parents, token_ids=token_ids and trained)
    rewards = {name: {"score": score, "weight": weight} for name, (score, weight) in sample.rewards.items()}
    facts = {"id": uid, "tools": sample.tools, "metrics": dict(sample.metrics), "rewards": rewards, **overrides}
    return trace(nodes=graph, task=sample.task, agent=sample.agent, trainable=trained, **facts)


def note_trace(expected: Expected, sample: Sample, record: Record, path: Path, place: Place, **facts: Any) -> None:
    """Note a written trace, its last branch taken by the nodes that the sample states."""
    last = range(len(record["nodes"])) if sample.last is None else sample.last
    messages = [record["nodes"][index]["message"] for index in last]
    truth = {"messages": messages, "reward": sample.reward, "branches": sample.branches}
    expected.note(record["id"], path, place, **truth, **facts)


def _judge(verdict: str, correct: float) -> Sample:
    system = "You are a careful grader."
    prompt = "Does the answer meet the criterion?\n<criteria>Names the capital of France.</criteria>\nAnswer: Paris."
    said = message("assistant", f"<verdict>{verdict}</verdict>", reasoning_content="Weigh the evidence.")
    return Sample(
        env="judge-bench",
        task={"idx": 0, "name": "judge-00", "prompt": prompt, "system_prompt": system, "answer": "pass"},
        messages=[message("system", system), message("user", prompt), said],
        reward=1.1 if correct else 0.1,
        rewards={"label_match": (correct, 1.0), "format": (1.0, 0.1)},
        metrics={"correct_final_label": correct, "num_turns": 1.0},
    )


JUDGE_PASS = _judge("pass", 1.0)
JUDGE_FAIL = _judge("fail", 0.0)

GRADER = Sample(  # a second agent of the same episode, which is not trained and not scored
    env="judge-bench",
    task=JUDGE_PASS.task,
    messages=[message("user", "Judge this answer: <verdict>pass</verdict>"), message("assistant", "Score: 1")],
    reward=None,
    rewards={},
    metrics={"judge_score": 1.0},
    agent="judge",
)

MATH = Sample(
    env="aime-mini",
    task={"idx": 100, "name": "aime-00", "prompt": "What is 7^4 modulo 10?", "answer": "1"},
    messages=[message("user", "What is 7^4 modulo 10?"), message("assistant", "It is \\boxed{1}.")],
    reward=1.0,
    rewards={"math_reward": (1.0, 1.0)},
    metrics={"boxed": 1.0},
)

TERMINAL = Sample(  # U+2028, U+2029 and U+0085 stand raw inside a line: only \n ends one
    env="terminal",
    task={"idx": 2, "name": "term-00", "prompt": "How many lines has data/log.txt? 数一数", "answer": "42"},
    messages=[
        message("user", "How many lines has data/log.txt? 数一数"),
        message("assistant", tool_calls=[tool_call("call_0", "terminal", {"command": 'wc -l "data/log.txt"'})]),
        message("tool", "42 data/log.txt\n", tool_call_id="call_0", name="terminal"),
        message("assistant", "It has\u2028 42\u2029 lines.\u0085 ✅ </done>"),
    ],
    reward=0.0,
    rewards={"exact": (0.0, 1.0)},
    metrics={"num_tool_calls": 1.0},
    tools=[TERMINAL_TOOL],
)

COMPACTED = Sample(  # the harness compacted its context: a new root
    env="terminal",
    task=TERMINAL.task,
    messages=[*TERMINAL.messages, message("user", "[compacted] 42 lines. Finish."), message("assistant", "42.")],
    parents=[None, 0, 1, 2, None, 4],
    reward=1.0,
    rewards={"exact": (1.0, 1.0)},
    branches=2,
    last=[4, 5],
    tools=[TERMINAL_TOOL],
)

DELEGATED = Sample(  # a sub-agent with its own root, called and returning between two turns of its caller
    env="planner",
    task={"idx": 8, "prompt": "Plan a trip"},
    messages=[
        message("user", "Plan a trip"),
        message("assistant", "Delegating.", tool_calls=[tool_call("s1", "task", {"prompt": "find hotels"})]),
        message("system", "You are a sub-agent."),
        message("user", "find hotels"),
        message("assistant", "Hotel Foo"),
        message("tool", "Hotel Foo", tool_call_id="s1"),
        message("assistant", "Stay at Hotel Foo."),
    ],
    parents=[None, 0, None, 2, 3, 1, 5],
    reward=0.5,
    rewards={"quality": (1.0, 0.5)},
    branches=2,
    last=[0, 1, 5, 6],
)

FORKED = Sample(  # the history was edited after the first sampled turn, which both branches share
    env="planner",
    task={"idx": 9, "prompt": "Name a colour"},
    messages=[
        *(message("user", "Name a colour"), message("assistant", "Red")),
        *(message("user", "Another"), message("assistant", "Blue")),
        *(message("user", "A warm one"), message("assistant", "Orange")),
    ],
    parents=[None, 0, 1, 2, 1, 4],
    reward=0.25,
    rewards={"quality": (0.25, 1.0)},
    branches=2,
    last=[0, 1, 4, 5],
)

_QUESTION = [{"type": "text", "text": "What colour is this?"}, {"type": "image_url", "image_url": {"url": PIXEL}}]
_CROP = tool_call("c1", "crop", "x=0 y=0 (not json)", type="custom", namespace="vision")
PICTURE = Sample(  # parts, a custom tool whose arguments are no JSON, and a reward that was not given
    env="vision",
    task={"idx": 7, "prompt": [message("user", _QUESTION)], "answer": "red"},
    messages=[
        message("user", _QUESTION),
        message("assistant", tool_calls=[_CROP], provider_state=[{"type": "reasoning", "encrypted_content": "gA=="}]),
        message("tool", [{"type": "text", "text": "cropped"}], tool_call_id="c1", name="crop"),
        message("assistant", "It is red."),
    ],
    reward=None,
    rewards={"quality": (None, 1.0)},
    tools=[CROP_TOOL],
)
