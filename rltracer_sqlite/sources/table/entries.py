"""From a row to what the index keeps of it, by the roles that a mapping gives to columns."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ...tokens.streams import Tokens, first_of_trained, mean_of_trained, trained_runs
from ...tokens.templates import TOKEN_IDS, UNTOLD, Conversation
from ...tokens.tokenizer import TextTokenizer
from ..base import Entry, Shard
from ..conversation import entry_of, short_text
from ..lines import NOT_FINITE
from ..values import MAX_TEXT, add_values, flag, number, reward_path, short, value_path
from .column_paths import is_inside
from .content import conversation_of
from .mapping import SPLITS, TRUNCATED, Shape, Variant
from .outputs import as_output
from .roles import BOOLEANS, RoleValues
from .rows import Row, RowError, json_text
from .tokens import TokenNumbers, identify_by_ids, read_tokens


@dataclass
class Reading:
    """One row read as a trajectory."""

    entry: Entry
    conversation: Conversation
    tools: Any = None
    tokens: Tokens | None = None
    truth: Any = None
    ids: list[int] = field(default_factory=list)  # where they are the content
    remarks: list[str] = field(default_factory=list)


class Place(NamedTuple):
    """Where a row is. In a file without lines, `line` is the number of the row, and `numbered` is true."""

    offset: int
    length: int
    line: int
    item: int | None = None
    numbered: bool = False


def read_row(
    row: Row, shape: Shape, shard: Shard, place: Place, tokenizer: TextTokenizer | None = None, with_ids: bool = True
) -> Reading:
    """Return a row as an entry and its conversation; `with_ids=False` leaves token ids out where text is recorded.

    Raises RowError naming the column that does not fit.
    """
    try:
        return _reading(row, shape, shard, place, tokenizer, with_ids)
    except RecursionError:  # what could just be decoded may be too deep to be written again
        raise RowError("nested too deeply") from None


def _reading(
    row: Row, shape: Shape, shard: Shard, place: Place, tokenizer: TextTokenizer | None, with_ids: bool
) -> Reading:
    values = RoleValues(row, shape)
    variant = _variant(shape, place.item)
    is_ids = shape.content.kind == TOKEN_IDS
    tokens = read_tokens(values.get, with_ids or is_ids, values.remarks, is_ids)
    ids = (tokens.ids[: tokens.prompt], tokens.ids[tokens.prompt :]) if tokens and is_ids else ([], [])
    completion = variant.completion if variant else shape.content.completion
    conversation = conversation_of(row, shape.content, completion, ids, tokenizer)
    truth, example = values.truth(), _example(values.get("example"))
    entry = entry_of(shard, conversation.messages, *place[:4], truth=truth, example=example)
    if place.numbered:
        entry.uid = f"{shard.path}@{place.offset}.{place.line}" + ("" if place.item is None else f".{place.item}")
    entry.content_kind = conversation.content_kind
    if entry.content_kind in UNTOLD and not entry.tool_calls:
        entry.tool_calls = None
    if conversation.content_kind == TOKEN_IDS:
        identify_by_ids(entry, ids[0], tokens)
    _fill(entry, values)
    _fill_from_tokens(entry, tokens, values)
    if variant:
        entry.values["info.label"] = variant.label
        if variant.reward:
            entry.reward = values.number(variant.reward, "reward")
    if shape.has_outputs:
        entry = as_output(entry, values, shape)
    tools = values.get("tools") or conversation.tools
    streams = tokens.streams() if tokens and with_ids else None
    return Reading(entry, conversation, tools, streams, truth, [*ids[0], *ids[1]], values.remarks)


def read_words(
    row: Row, shape: Shape, item: int | None, tokenizer: TextTokenizer | None
) -> tuple[str | None, Conversation]:
    """Return the recorded id of a row and its conversation, as `read_row` does, and read nothing else of it.

    Raises RowError naming the column that does not fit.
    """
    values, variant, content = RoleValues(row, shape), _variant(shape, item), shape.content
    tokens = read_tokens(values.get, True, values.remarks, True) if content.kind == TOKEN_IDS else None
    ids = (tokens.ids[: tokens.prompt], tokens.ids[tokens.prompt :]) if tokens else ([], [])
    completion = variant.completion if variant else content.completion
    return _recorded_id(values), conversation_of(row, content, completion, ids, tokenizer)


def _variant(shape: Shape, item: int | None) -> Variant | None:
    return shape.variants[item] if shape.variants and item is not None else None


def _recorded_id(values: RoleValues) -> str | None:
    recorded = values.get("id")
    is_id = isinstance(recorded, (str, int)) and not isinstance(recorded, bool) and len(str(recorded)) <= MAX_TEXT
    return short(str(recorded)) if is_id else None


def _fill(entry: Entry, values: RoleValues) -> None:
    entry.uid = _recorded_id(values) or entry.uid
    if entry.step is None:
        entry.step = values.integer_at("step")
    if entry.split is None:
        entry.split = SPLITS.get(str(values.get("split")).lower())
    for name in ("env", "agent"):
        setattr(entry, name, short_text(values.get(name)))
    entry.group_id, entry.episode_id = short_text(values.get("group")), short_text(values.get("episode"))
    entry.task_key = short_text(values.get("task"))
    entry.task = entry.task_key or entry.task
    entry.stop_condition = short_text(values.get("stop"))
    entry.truncated = flag(values.get("truncated"))
    if entry.truncated is None and entry.stop_condition is not None:
        entry.truncated = int(entry.stop_condition.lower() in TRUNCATED)
    error = values.get("error")
    entry.ok = flag(values.get("ok"))
    if error:
        entry.error_type, entry.ok = _error_type(error), 0
    elif entry.ok is None and values.is_recorded("error"):
        entry.ok = 1  # a row that has the column and nothing in it had no error
    for name in ("prompt_tokens", "completion_tokens", "policy_version"):
        setattr(entry, name, values.integer_at(name))
    entry.started_at, entry.seconds = values.number_at("started_at"), values.number_at("seconds")
    _fill_rewards(entry, values)
    _add_other_values(entry, values)


def _fill_rewards(entry: Entry, values: RoleValues) -> None:
    named = _named_rewards(values)
    for name, score in named.items():
        if score is None:
            entry.unrewarded += (name,)
        elif (path := reward_path(name)) is not None:
            entry.values[path] = score
    rewards = values.shape.rewards
    if "reward" in values.shape.roles:
        entry.reward = values.number_at("reward")
    elif named and rewards:
        known = [score for score in named.values() if score is not None]
        complete = len(known) == len(named) or rewards.skip_missing
        entry.reward = number(sum(known)) if known and complete else None
        if known and complete and entry.reward is None:
            values.remarks.append(f"the sum of its rewards: {NOT_FINITE}")


def _named_rewards(values: RoleValues) -> dict[str, float | None]:
    rewards, row = values.shape.rewards, values.row
    if rewards is None:
        return {}
    names = [name for name in rewards.columns if row.has(name)]
    if rewards.numbers:
        used = values.used
        numbers = (name for name in row.cells if name in row.numbers or row.kind(name) == "number")
        names = [name for name in numbers if name not in used and name not in rewards.leave_out]
    found = {name: number(row.get(name)) for name in names}
    inside = row.get(rewards.inside) if rewards.inside else None
    if isinstance(inside, dict):
        found |= {str(name): number(score) for name, score in inside.items() if name not in rewards.leave_out}
    return found


def _add_other_values(entry: Entry, values: RoleValues) -> None:
    shape, row, used = values.shape, values.row, values.used
    for name in row.cells:
        if name in used or row.kind(name) in ("list", "null") or reward_path(name) in entry.values:
            continue
        value = row.get(name)
        if isinstance(value, str) and value[:1] == "{":
            value = json_text(value) or value
        if isinstance(value, str) and shape.python_booleans:
            value = BOOLEANS.get(value, value)
        add_values(entry.values, "", {name: value}, depth=0)
    inside = tuple(f"{name}." for name in used if "." in name)
    for path in [path for path in entry.values if path in used or path.startswith(inside)]:
        del entry.values[path]
    for path in [path for path in entry.values if shape.info and is_inside(path, shape.info)]:
        # What the record calls info is info by its path; beside a value of that name another stays where it is.
        named = None if path.startswith("info.") else value_path("info", path)
        if named is not None and named not in entry.values:
            entry.values[named] = entry.values.pop(path)


def _fill_from_tokens(entry: Entry, tokens: TokenNumbers | None, values: RoleValues) -> None:
    if not isinstance(values.get("advantage"), list):
        entry.advantage = values.number_at("advantage")
    if tokens is None:
        return
    if tokens.advantages is not None:
        entry.advantage = first_of_trained(tokens.advantages, tokens.mask)
    entry.logprob_mean = mean_of_trained(tokens.logprobs, tokens.mask)
    runs = trained_runs(tokens.mask)
    if entry.completion_tokens is None:
        entry.completion_tokens = sum(end - start for start, end in runs)
    if entry.prompt_tokens is None:
        entry.prompt_tokens = runs[-1][0] if runs else len(tokens.mask)


def _example(value: Any) -> int | str | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and abs(value) < 2**63 else short_text(value)


def _error_type(error: Any) -> str:
    if isinstance(error, dict):
        error = error.get("type") or error.get("error") or error.get("message") or "error"
    return short_text(error if isinstance(error, (str, int, float)) else "error") or "error"
