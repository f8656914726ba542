"""Decoding one trajectory of prime-rl or verifiers from its record, with what annotations add to it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from ...trajectory import Trajectory
from ..base import CHANGED, Locator, LocatorError
from ..files import read_bytes
from ..lines import decode_leniently
from ..places import Root
from ..values import recorded_uid
from .branches import branches_of, recorded_tools
from .layout import BINARY
from .record_decoding import DAMAGED_ARRAYS, decode_awkward

if TYPE_CHECKING:
    from ...tokens.streams import Tokens
    from ...tokens.tokenizer import TextTokenizer


def load_lines(root: Root, locators: Sequence[Locator], tokenizer: TextTokenizer | None = None) -> Trajectory:
    """Return the trajectory at the first locator; the further ones are its annotations, oldest first.

    Raises LocatorError where a record is missing, has changed or cannot be decoded.
    """
    try:
        return _load(root, locators, tokenizer)
    except RecursionError:
        place = f"byte {locators[0].byte_offset:,} of {locators[0].shown}"
        raise LocatorError(f"The record at {place} is nested too deeply to be shown.") from None


def _load(root: Root, locators: Sequence[Locator], tokenizer: TextTokenizer | None) -> Trajectory:
    record = locators[0]
    raw = read_bytes(root, record.path, record.byte_offset, record.byte_length)
    outer, remark = _decoded(raw, record)
    trace = pick(outer, record)
    annotations = []
    for locator in locators[1:]:
        if locator.path.endswith(BINARY):
            continue  # the trainer's numbers for these tokens: read when tokens are asked for
        if (locator.path, locator.byte_offset, locator.item) == (record.path, record.byte_offset, record.item):
            continue  # a record that stands in a later file only is its own annotation
        found = decoded_object(read_bytes(root, locator.path, locator.byte_offset, locator.byte_length), locator)
        annotations.append((locator, pick(found, locator)))
    for locator, later in annotations:
        trace = _overlaid(trace, later, locator)
    from .trace_tokens import trace_tokens

    trajectory = _trajectory(
        trace, outer, raw, locators, annotations,
        partial(trace_tokens, root, trace, locators, annotations, tokenizer),
    )  # fmt: skip
    if remark:
        trajectory.metadata["remarks"] = [remark]
    return trajectory


def decoded_object(raw: bytes, locator: Locator) -> dict[str, Any]:
    """Return the JSON object of a record's bytes. Raises LocatorError when they are none any more."""
    return _decoded(raw, locator)[0]


def _decoded(raw: bytes, locator: Locator) -> tuple[dict[str, Any], str]:
    """Return the JSON object of a record's bytes, and a remark where a part of it had to be left out."""
    remark = ""
    try:
        value = msgspec.json.decode(raw)
    except (ValueError, RecursionError):
        try:
            value, _ = decode_leniently(raw)
        except ValueError as error:
            value, remark = _without_damaged_arrays(raw, locator, error), DAMAGED_ARRAYS
    if not isinstance(value, dict):
        raise LocatorError(CHANGED.format(path=locator.shown, what=f"no record at byte {locator.byte_offset:,}"))
    return value, remark


def _without_damaged_arrays(raw: bytes, locator: Locator, error: ValueError) -> Any:
    """Return the record as the index read it, which does not look into token arrays. Raises LocatorError."""
    try:
        return decode_awkward(raw + b"\n", 0, len(raw))[0]
    except ValueError:
        place = f"byte {locator.byte_offset:,} of {locator.shown}"
        raise LocatorError(
            f"The record at {place} cannot be decoded: {error}."
            " The file is damaged, or has changed since it was indexed."
        ) from None


def pick(outer: dict[str, Any], locator: Locator) -> dict[str, Any]:
    """Return the trace that a locator means, out of its Episode or bare record; checks that it is the one indexed."""
    inner: Any = outer
    if (item := locator.item) is not None:
        traces = outer.get("traces")
        inner = traces[item] if isinstance(traces, list) and type(item) is int and 0 <= item < len(traces) else None
    if not isinstance(inner, dict) or not _is_meant(inner, locator):
        what = f"another record at byte {locator.byte_offset:,}"
        raise LocatorError(CHANGED.format(path=locator.shown, what=what))
    return inner


def _is_meant(record: dict[str, Any], locator: Locator) -> bool:
    # A record without an id is known by its place.
    by_place = str(locator.uid).startswith(f"{locator.path}@")
    return by_place or locator.uid in {recorded_uid(record.get(name)) for name in ("id", "rollout_id", "trace_id")}


def _overlaid(trace: dict[str, Any], later: dict[str, Any], locator: Locator) -> dict[str, Any]:
    """Return a trace with what a later copy or an update says of it; the newest wins."""
    merged = {**trace, "info": _merged(trace.get("info"), later.get("info"))}
    nodes, later_nodes = trace.get("nodes"), later.get("nodes")
    if isinstance(nodes, list) and isinstance(later_nodes, list) and len(nodes) == len(later_nodes):
        # The copy under effective/ has the same nodes, with the trainer's streams added to them.
        merged["nodes"] = [_merged(old, new) for old, new in zip(nodes, later_nodes, strict=True)]
    return merged


def _merged(old: Any, new: Any) -> Any:
    if not isinstance(old, dict) or not isinstance(new, dict):
        return old if new is None else new
    return {**old, **{key: _merged(old.get(key), value) for key, value in new.items()}}


def _trajectory(
    trace: dict[str, Any],
    outer: dict[str, Any],
    raw: bytes,
    locators: Sequence[Locator],
    annotations: list[tuple[Locator, dict[str, Any]]],
    read_tokens: Callable[[], list[Tokens | None]],
) -> Trajectory:
    branches = branches_of(trace)
    from .metadata import metadata

    return Trajectory(
        messages=branches.messages[-1] if branches.messages else [],
        metadata=metadata(trace, outer, locators, annotations),
        branches=branches.messages,
        branch_nodes=branches.nodes,
        trained=branches.trained,
        tools=recorded_tools(trace),
        raw=raw,
        record=trace,
        read_tokens=read_tokens,
    )
