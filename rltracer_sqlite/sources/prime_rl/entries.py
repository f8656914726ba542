"""From records to what the index keeps of them: one Entry per trace, episode without traces, or v0 row."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Any, NamedTuple

import msgspec

from ... import messages as normal
from ..base import Entry, Problem, Shard, Update
from ..values import integer, number
from .records import ANY, NOTHING, Node, Raw, Record, Reward, Task, TaskData, is_there

# verifiers' names for a limit that cut a rollout off.
LIMITS = {
    "max_turns", "max_input_tokens", "max_output_tokens", "max_total_tokens", "context_length", "compaction_failed",
    "max_turns_reached", "prompt_too_long", "max_total_completion_tokens_reached",
}  # fmt: skip
MAX_TEXT = 200  # characters of a recorded text, or of a dotted path, that the index keeps
MAX_DEPTH = 3
KNOWN_PATHS = 4096  # dotted paths that are not put together again for each record
KNOWN_PROMPTS = 1024  # prompts whose key and preview are remembered
SHORT_PROMPT = 1 << 14  # bytes; only prompts up to this length are


def trace_entries(record: Record, shard: Shard, offset: int, length: int, line: int) -> list[Entry | Problem]:
    """Return the entries of an Episode or of a bare Trace."""
    if record.nodes is not None:
        return _trace(record, record, shard, offset, length, line, None)
    found: list[Entry | Problem] = []
    for item, trace in enumerate(record.traces or []):
        if trace.id is None and trace.nodes is None:
            reason = f"trace {item} of the episode has neither an id nor messages"
            found.append(Problem(line, offset, length, reason))
        else:
            found += _trace(trace, record, shard, offset, length, line, item)
    return found or [_failed_episode(record, shard, offset, length, line)]


def _trace(
    trace: Record, outer: Record, shard: Shard, offset: int, length: int, line: int, item: int | None
) -> list[Entry | Problem]:
    entry = common(trace, outer, shard, offset, length, line, item)
    nodes = trace.nodes or []
    first_assistant, bad_parents = _measure(entry, nodes)
    prompt = _recorded_prompt(prompt_nodes(nodes, first_assistant))
    identify(entry, prompt, trace.task if isinstance(trace.task, Task) else outer.task, entry.data_idx)
    _count_tokens(entry, trace, nodes)
    if not bad_parents:
        return [entry]
    reason = f"message {bad_parents[0]} names a parent that does not come before it"
    return [Problem(line, offset, length, reason), entry]


def common(trace: Record, outer: Record, shard: Shard, offset: int, length: int, line: int, item: int | None) -> Entry:
    info = trace.info or {}
    work = outer.run.work if outer.run else None
    run = trace.run or outer.run
    entry = Entry(recorded_uid(trace.id) or place_uid(shard, offset, item), offset, length, line, item)
    entry.step = shard.step if shard.step is not None else _inner(info, "arrival", "step")
    entry.dispatch_step = _first(
        work.step if work else None, run.step if run else None, _inner(info, "dispatch", "step"), trace.eval_step
    )
    if entry.step is None and shard.layout == "stream":
        entry.step = entry.dispatch_step
    if entry.step is not None and entry.step < 0:
        entry.step = None
    entry.split = shard.split or _recorded_split(trace, outer, info, shard)
    entry.env = short(_env(trace, outer, info))
    entry.agent = short(trace.agent.name) if trace.agent else None
    entry.reward, entry.values = _reward(trace.rewards)
    if trace.reward is not None:
        entry.reward = trace.reward
    add_values(entry.values, "metrics", trace.metrics)
    add_values(entry.values, "info", info)
    entry.effective = flag(info.get("effective"))
    if shard.producer == "effective":
        entry.effective = 1
    entry.advantage = number(info.get("advantage"))
    entry.ship_step = _inner(info, "ship", "step")
    entry.stop_condition = short(trace.stop_condition)
    entry.ok = flag(trace.ok if trace.ok is not None else _completed(trace))
    entry.error_type = error_type((trace.errors or [None])[0])
    entry.episode_id = recorded_uid(outer.id if outer is not trace else info.get("episode_id"))
    group = (outer.group.id if outer.group else None) or trace.group_id or info.get("group_id")
    entry.group_id = recorded_uid(group)
    policy = work.policy.start if work and work.policy else None
    entry.policy_version = _first(policy, trace.policy_version, integer(info.get("policy_version")))
    entry.started_at, entry.seconds = _times(trace.timing)
    return entry


def _measure(entry: Entry, nodes: list[Node]) -> tuple[int | None, list[int]]:
    """Count turns, tool calls and branches; return the first assistant node and the nodes with a bad parent."""
    parents: set[int] = set()
    first_assistant, bad = None, []
    for position, node in enumerate(nodes):
        message, parent = node.message, node.parent
        if parent is not None:
            if 0 <= parent < position:
                parents.add(parent)
            else:
                bad.append(position)
        if message.role == "assistant":
            if first_assistant is None:
                first_assistant = position
            if node.sampled is not False:
                entry.turns += 1
        if message.tool_calls:
            entry.tool_calls += len(message.tool_calls)
    entry.branches = len(nodes) - len(parents)
    return first_assistant, bad


def prompt_nodes(nodes: list[Node], first_assistant: int | None) -> list[Node]:
    """Return the nodes that lead to the first assistant message, root first: the prompt."""
    path: list[Node] = []
    current = len(nodes) if first_assistant is None else first_assistant
    parent = current - 1 if first_assistant is None else nodes[current].parent
    # A parent that does not come before its node is treated as missing, as in the branches.
    while parent is not None and 0 <= parent < current:
        path.append(nodes[parent])
        current, parent = parent, nodes[parent].parent
    return path[::-1]


class Prompt(NamedTuple):
    """What the index keeps of the messages of a prompt that has words."""

    key: str
    preview: str


def prompt_of(context: Sequence[Mapping[str, Any]]) -> Prompt | None:
    """Return the key and preview of a prompt's messages; None where they have no text at all."""
    return None if normal.is_empty(context) else Prompt(normal.prompt_key(context), normal.preview(context))


def _recorded_prompt(nodes: list[Node]) -> Prompt | None:
    recorded = tuple([(node.message.role, bytes(node.message.content)) for node in nodes])
    # A long prompt, such as one with images, is not worth its place in the memory of known ones.
    is_short = sum([len(content) for _, content in recorded]) <= SHORT_PROMPT
    return (_known_prompt if is_short else _known_prompt.__wrapped__)(recorded)


@lru_cache(maxsize=KNOWN_PROMPTS)
def _known_prompt(recorded: tuple[tuple[str | None, bytes], ...]) -> Prompt | None:
    # The rollouts of a group begin with the same bytes, so most of them need no decoding and hashing.
    return prompt_of([{"role": role, "content": ANY.decode(raw) if raw else None} for role, raw in recorded])


def identify(entry: Entry, prompt: Prompt | None, task: Any, example: int | str | None) -> None:
    """Fill in what says which prompt and task a trajectory is of."""
    if isinstance(task, Task):
        data = task.data or task
        example = data.idx if data.idx is not None else example
        entry.task_key = short(task.key or task.name)
        entry.task = recorded_uid(task.key or task.hash) or truth_hash(data)
    entry.data_idx = short(example) if isinstance(example, str) else example
    if prompt is None:
        # Without words the record's own example id is all that tells prompts apart.
        words = "" if example is None else f"{entry.env or ''} {example}"
        prompt = Prompt(normal.prompt_key([{"role": "example", "content": words}]), normal.EMPTY_PREVIEW)
    entry.prompt_key, entry.preview = prompt


def truth_hash(data: TaskData | Record) -> str:
    """Return a short hash of a task's recorded ground truth, or '' where none is recorded."""
    for name in ("answer", "ground_truth", "solution", "target"):
        value = getattr(data, name, NOTHING)
        if is_there(value) and bytes(value) != b'""':
            # Encoded anew, since writers differ in spaces and escapes.
            return sha256(msgspec.json.encode(decoded(value), order="sorted")).hexdigest()[:16]
    return ""


def _failed_episode(episode: Record, shard: Shard, offset: int, length: int, line: int) -> Entry:
    """Return the row of an episode that failed before any agent ran: no turns, no reward, its task's prompt."""
    entry = common(episode, episode, shard, offset, length, line, None)
    entry.episode_id, entry.ok, entry.reward = recorded_uid(episode.id), 0, None
    task = episode.task if isinstance(episode.task, Task) else None
    data = (task.data or task) if task else None
    context = []
    for role, text in (("system", data.system_prompt), ("user", data.prompt)) if data else ():
        content = decoded(text)
        if isinstance(content, list):
            context += [message for message in content if isinstance(message, dict)]
        elif content:
            context.append({"role": role, "content": content})
    identify(entry, prompt_of(context), task, None)
    return entry


def update(record: Record, offset: int, length: int, line: int) -> Update:
    """Return what an annotation record of the stream layout says about its trace."""
    info = record.info or {}
    return Update(
        recorded_uid(record.trace_id) or "", offset, length, line, None,
        flag(info.get("effective")), number(info.get("advantage")), _inner(info, "ship", "step"),
    )  # fmt: skip


def _reward(rewards: dict[str, Reward | float | None] | None) -> tuple[float | None, dict[str, float | str | None]]:
    """Return the total reward, Σ score × weight, and the named scores; one missing score leaves the total unknown."""
    total, known = 0.0, bool(rewards)
    values: dict[str, float | str | None] = {}
    for name, reward in (rewards or {}).items():
        score = reward.score if isinstance(reward, Reward) else reward
        if score is None:
            known = False
            continue
        weight = reward.weight if isinstance(reward, Reward) else None
        total += score * (1.0 if weight is None else weight)
        here = value_path("rewards", f"{name}.score") if len(name) < MAX_TEXT else None
        if here is not None and math.isfinite(score):
            values[here] = score
    return (total if known and math.isfinite(total) else None), values


def add_values(values: dict[str, Any], path: str, recorded: Any, depth: int = 1) -> None:
    """Add what is recorded as a JSON object, by its dotted paths below `path`."""
    for name, value in (recorded or {}).items():
        if len(name) > MAX_TEXT or (here := value_path(path, name)) is None:
            continue  # no name of a column, and nothing to ask for
        kind = type(value)
        if kind is float or kind is int or kind is bool:
            if (finite := number(value)) is not None:
                values[here] = finite
        elif kind is dict:
            if depth < MAX_DEPTH:
                add_values(values, here, value, depth + 1)
        elif kind is str:
            values[here] = short(value) or "" if len(value) <= MAX_TEXT else None


@lru_cache(maxsize=KNOWN_PATHS)
def value_path(path: str, name: str) -> str | None:
    """Return the dotted path of a value as the index keeps it, or None where it is too long."""
    here = (f"{path}.{name}" if path else name).replace("\0", "\N{REPLACEMENT CHARACTER}")
    return here if len(here) <= MAX_TEXT else None


def _count_tokens(entry: Entry, trace: Record, nodes: list[Node]) -> None:
    usages = [call.usage for call in trace.calls or () if call.usage] or [node.usage for node in nodes if node.usage]
    sampled = [usage.completion_tokens for usage in usages if usage.completion_tokens is not None]
    if usages:
        entry.prompt_tokens = usages[-1].prompt_tokens
    entry.completion_tokens = integer(sum(sampled)) if sampled else trace.num_output_tokens
    entry.prompt_tokens = _first(entry.prompt_tokens, trace.num_input_tokens)
    reasons = [call.finish_reason for call in trace.calls or ()] or [node.finish_reason for node in nodes]
    entry.truncated = int(entry.stop_condition in LIMITS or "length" in reasons[-1:])


def _recorded_split(trace: Record, outer: Record, info: dict[str, Any], shard: Shard) -> str | None:
    if shard.layout == "evals":
        return None  # an evaluation of its own has no training split to be told from
    work = outer.run.work.type if outer.run and outer.run.work else None
    run = (trace.run or outer.run).type if (trace.run or outer.run) else None  # type: ignore[union-attr]
    candidates = (trace.kind, info.get("kind"), work, run)
    return next((split for split in candidates if split in ("train", "eval")), None)


def _env(trace: Record, outer: Record, info: dict[str, Any]) -> str | None:
    if trace.env_name or info.get("env_name"):
        return trace.env_name or _text(info["env_name"])
    env = outer.env
    if isinstance(env, str):
        return env
    return (env.name or env.id) if env else _text(info.get("env_id"))


def _times(timing: Any) -> tuple[float | None, float | None]:
    """Return (start, seconds) from verifiers' spans, or from v0's milliseconds."""
    if not isinstance(timing, dict):
        return None, None
    start = number(_first(timing.get("start"), timing.get("start_time"))) or None
    if (total := number(timing.get("total"))) is not None:
        return start, total
    if (milliseconds := number(timing.get("total_ms"))) is not None:
        return start, milliseconds / 1000
    last = None
    for span in timing.values():
        end = number(span.get("end")) if type(span) is dict else None
        if end is not None and (last is None or end > last):
            last = end
    return start, last - start if last is not None and start and last >= start else None


def decoded(raw: Raw) -> Any:
    """Return the value of a part that was left undecoded; None where it is missing."""
    return ANY.decode(raw) if is_there(raw) else None


def recorded_uid(recorded: Any) -> str | None:
    """Return a recorded id as the index keeps it: one that is too long by its hash; None where there is none."""
    if type(recorded) is not str:
        if recorded is None or isinstance(recorded, (dict, list)):
            return None
        recorded = str(recorded)
    uid: str = recorded
    return short(uid) if len(uid) <= MAX_TEXT else sha256(uid.encode()).hexdigest()


def place_uid(shard: Shard, offset: int, item: int | None) -> str:
    """Return the uid of a trajectory without a recorded id: its place."""
    return f"{shard.path}@{offset}" + ("" if item is None else f".{item}")


def short(text: str | None) -> str | None:
    """Return a recorded text as the index keeps it: not too long, and without NUL, at which SQLite's functions stop."""
    if not text:
        return None
    # Nearly every text is kept as it is, which is asked without copying it.
    return (
        text
        if len(text) <= MAX_TEXT and "\0" not in text
        else text[:MAX_TEXT].replace("\0", "\N{REPLACEMENT CHARACTER}")
    )


def _completed(record: Record) -> bool | None:
    return None if record.is_completed is None else record.is_completed and not record.errors and not record.error


def error_type(error: Any) -> str | None:
    if isinstance(error, dict):
        return normal.one_line(str(error.get("type") or error.get("error") or "error"))[:MAX_TEXT]
    return normal.one_line(str(error).split("(")[0])[:MAX_TEXT] if error else None


def _inner(info: dict[str, Any], outer: str, inner: str) -> int | None:
    value = info.get(outer)
    return integer(value.get(inner)) if isinstance(value, dict) else None


def flag(value: Any) -> int | None:
    return int(value) if isinstance(value, bool) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _first(*values: Any) -> Any:
    for value in values:
        if value is not None:
            return value
    return None
