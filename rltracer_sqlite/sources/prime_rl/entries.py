"""From records to what the index keeps of them: one Entry per trace, episode without traces, or v0 row."""

from __future__ import annotations

import math
from typing import Any

from ... import messages as normal
from ..base import Entry, Problem, Shard, Update
from ..values import MAX_TEXT, add_values, flag, integer, number, place_uid, recorded_uid, reward_path, short
from .called import written_names
from .identity import decoded, identify, prompt_nodes, prompt_of, recorded_prompt
from .record_types import Node, Record, Reward, Task

# verifiers' names for a limit that cut a rollout off.
LIMITS = {
    "max_turns", "max_input_tokens", "max_output_tokens", "max_total_tokens", "context_length", "compaction_failed",
    "max_turns_reached", "prompt_too_long", "max_total_completion_tokens_reached",
}  # fmt: skip


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
    prompt = recorded_prompt(prompt_nodes(nodes, first_assistant))
    identify(entry, prompt, trace.task if isinstance(trace.task, Task) else outer.task, entry.data_idx)
    _count_tokens(entry, trace, nodes)
    if not bad_parents:
        return [entry]
    reason = f"message {bad_parents[0]} names a parent that does not come before it"
    return [Problem(line, offset, length, reason), entry]


def common(trace: Record, outer: Record, shard: Shard, offset: int, length: int, line: int, item: int | None) -> Entry:
    """Return an entry with what a trace, an episode that failed and a v0 row have in common."""
    info = trace.info or {}
    work = outer.run.work if outer.run else None
    run = trace.run or outer.run
    entry = Entry(recorded_uid(trace.id) or place_uid(shard.path, offset, item), offset, length, line, item)
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
    first_assistant, bad, turns = None, [], 0
    called: list[Any] = []
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
                turns += 1
        if message.tool_calls:
            called += message.tool_calls
    entry.turns = turns
    if called:
        entry.tool_calls, entry.tools = len(called), written_names(called)
    entry.branches = len(nodes) - len(parents)
    return first_assistant, bad


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
        if (here := reward_path(name)) is not None and math.isfinite(score):
            values[here] = score
    return (total if known and math.isfinite(total) else None), values


def _count_tokens(entry: Entry, trace: Record, nodes: list[Node]) -> None:
    usages = [call.usage for call in trace.calls or () if call.usage] or [node.usage for node in nodes if node.usage]
    sampled = [usage.completion_tokens for usage in usages if usage.completion_tokens is not None]
    if usages:
        entry.prompt_tokens = usages[-1].prompt_tokens
    entry.completion_tokens = integer(sum(sampled)) if sampled else trace.num_output_tokens
    entry.prompt_tokens = _first(entry.prompt_tokens, trace.num_input_tokens)
    last = (trace.calls or nodes)[-1:]
    finished = last[0].finish_reason if last else None
    if entry.stop_condition is not None or finished is not None:
        entry.truncated = int(entry.stop_condition in LIMITS or finished == "length")


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
        end = span.get("end") if type(span) is dict else None
        if type(end) is not float or end - end != 0.0:  # a finite one is taken as it is
            end = number(end)
        if end is not None and (last is None or end > last):
            last = end
    return start, last - start if last is not None and start and last >= start else None


def _completed(record: Record) -> bool | None:
    return None if record.is_completed is None else record.is_completed and not record.errors and not record.error


def error_type(error: Any) -> str | None:
    if isinstance(error, dict):
        return normal.one_line(str(error.get("type") or error.get("error") or "error"))[:MAX_TEXT]
    return normal.one_line(str(error).split("(")[0])[:MAX_TEXT] if error else None


def _inner(info: dict[str, Any], outer: str, inner: str) -> int | None:
    value = info.get(outer)
    return integer(value.get(inner)) if isinstance(value, dict) else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _first(*values: Any) -> Any:
    for value in values:
        if value is not None:
            return value
    return None
