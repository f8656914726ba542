"""Decoding one packed sequence into a trajectory: its text, its messages and its per-token numbers."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from ...tokens.streams import Tokens, merge_tokens, trained_runs
from ...tokens.templates import UNTOLD, Conversation, parse_conversation, without_text
from ...tokens.tokenizer import TextTokenizer
from ...tool_names import called_tools
from ...trajectory import Message, Trajectory
from ..base import Locator
from ..places import Root
from ..values import logprob_summary, place_of
from .samples import Sample
from .token_readers import read_sample


def load_token_trajectory(
    root: Root, locators: Sequence[Locator], tokenizer: TextTokenizer | None = None
) -> Trajectory:
    """Return the trajectory of the sequence at the first locator; the others are copies of it in other shards.

    Without a tokenizer it has no messages, `metadata["content_kind"]` is "token_ids", and `metadata["remarks"]`
    say why. Raises LocatorError.
    """
    sample = read_sample(root, locators[0], tokenizer)
    tokens, copies = sample.tokens(), []
    for locator in locators[1:]:
        if (locator.path, locator.byte_offset, locator.item) != _place_of(locators[0]):
            copy = read_sample(root, locator, tokenizer)
            tokens = merge_tokens(tokens, copy.tokens())
            copies.append((locator, copy))
    tokens = tokens.with_pieces(tokenizer)
    conversation = _conversation(sample, tokens)
    messages = conversation.messages
    return Trajectory(
        messages=messages,
        metadata=_metadata(sample, tokens, conversation, locators[0], copies),
        branches=[messages] if messages else [],
        trained=[True] if messages else [],
        tools=conversation.tools,
        record=_record(sample),
        read_tokens=partial(list, [tokens]),
    )


def annotation_tokens(root: Root, locator: Locator) -> tuple[int | None, Tokens]:
    """Return the branch that a sequence is of, where it says so, and its tokens: a later fact about a trace.

    Lay it over the branch's own with `rltracer_sqlite.tokens.merge_tokens`. Raises LocatorError.
    """
    sample = read_sample(root, locator, None)
    return sample.branch_index, sample.tokens()


def _conversation(sample: Sample, tokens: Tokens) -> Conversation:
    if sample.text is not None:
        prompt, completion = sample.text
        return parse_conversation(prompt + completion, prompt_length=len(prompt))
    if tokens.pieces is None:
        return without_text()
    length = sum(map(len, tokens.pieces[: sample.prompt_length]))
    return parse_conversation("".join(tokens.pieces), prompt_length=length)


def _metadata(
    sample: Sample,
    tokens: Tokens,
    conversation: Conversation,
    locator: Locator,
    copies: list[tuple[Locator, Sample]],
) -> dict[str, Any]:
    """Return `Trajectory.metadata`, with the keys of a trace's. A value that is not recorded is None."""
    samples = [sample, *(copy for _, copy in copies)]
    called = [call for message in conversation.messages for call in message.get("tool_calls", ())]
    return {
        "uid": locator.uid,
        "env": _first(one.env for one in samples),
        "agent": None,
        "task": None,
        "truth": None,
        "reward": _first(one.reward for one in samples),
        "rewards": {},
        "metrics": {},
        "info": dict(sample.facts),
        "advantage": _first(one.first_advantage() for one in samples),
        "logprobs": logprob_summary(tokens.trained_logprobs()),
        "tool_calls": None if conversation.content_kind in UNTOLD and not called else len(called),
        "tools": list(called_tools(called)),
        "completion": _completion(tokens, conversation.messages),
        "timing": None,
        "errors": [],
        "trace_id": _first(one.trace_id for one in samples),
        "branch_index": _first(one.branch_index for one in samples),
        "content_kind": conversation.content_kind,
        "family": conversation.family,
        "remarks": list(conversation.flags),
        "locator": place_of(locator),
        "annotations": [place_of(other) | {"producer": other.producer} for other, _ in copies],
    }


def _completion(tokens: Tokens, messages: list[Message]) -> dict[str, Any]:
    runs = trained_runs(tokens.mask or [])
    return {
        "stop_condition": None,
        "truncated": None,
        "prompt_tokens": runs[-1][0] if runs else None,
        "completion_tokens": None if tokens.mask is None else sum(tokens.mask),
        "turns": sum(message.get("role") == "assistant" for message in messages) if messages else len(runs),
    }


def _record(sample: Sample) -> dict[str, Any]:
    """Return the sample's scalars as they are recorded; its lists are in `Trajectory.tokens`."""
    named = {"env_name": sample.env, "reward": sample.reward, "advantage": sample.first_advantage()}
    named |= {"trace_id": sample.trace_id, "branch_index": sample.branch_index}
    return {**sample.facts, **{name: value for name, value in named.items() if value is not None}}


def _place_of(locator: Locator) -> tuple[str, int, int | None]:
    return locator.path, locator.byte_offset, locator.item


def _first(values: Any) -> Any:
    return next((value for value in values if value is not None), None)
