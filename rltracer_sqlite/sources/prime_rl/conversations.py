"""Reading many records in the order of their files: only what is said in them, or only what they record.

An export reads thousands of records, and most of their bytes are numbers per token. So a shard stays open for all
of its records, and only the messages, the tools and the task are decoded; `load` does the rest of the work.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack
from typing import Any, TypedDict

import msgspec

from ...trajectory import Trajectory
from ..base import Locator, LocatorError
from ..files import open_shard, read_place
from ..places import Root
from ..readers import ByteReader
from .branches import branches_of, recorded_tools
from .layout import TOKEN_LAYOUTS
from .load import decoded_object, pick
from .metadata import task_of, truth_of

Load = Callable[[Root, Sequence[Locator]], Trajectory]
LINES = ".jsonl"


class SpokenNode(TypedDict, total=False):
    message: Any
    parent: Any
    sampled: Any


class SpokenTrace(TypedDict, total=False):
    id: Any
    rollout_id: Any
    task: Any
    answer: Any
    tools: Any
    tool_defs: Any
    oai_tools: Any
    nodes: list[SpokenNode]
    prompt: Any
    completion: Any


class SpokenRecord(SpokenTrace, total=False):
    traces: list[SpokenTrace]


DECODER = msgspec.json.Decoder(SpokenRecord)


def read_conversations(root: Root, locators: Iterable[Locator], load: Load) -> Iterator[Trajectory]:
    """Yield a trajectory per locator, in their order: messages, branches, tools, and "task" and "truth" in `metadata`.

    `load` reads what is no line of text. Raises LocatorError where a record is missing or has changed.
    """
    for locator, raw in _read(root, locators):
        try:
            yield _conversation(raw, locator) if raw is not None else load(root, [locator])
        except RecursionError:
            place = f"byte {locator.byte_offset:,} of {locator.shown}"
            raise LocatorError(f"The record at {place} is nested too deeply to be read.") from None


def read_records(root: Root, locators: Iterable[Locator], load: Load) -> Iterator[dict[str, Any]]:
    """Yield the whole decoded record per locator, an Episode's own fields beside those of the trace that is meant."""
    for locator, raw in _read(root, locators):
        if raw is None:
            yield load(root, [locator]).record
            continue
        outer = decoded_object(raw, locator)
        trace = pick(outer, locator)
        yield trace if trace is outer else {**{key: outer[key] for key in outer if key != "traces"}, **trace}


def _read(root: Root, locators: Iterable[Locator]) -> Iterator[tuple[Locator, bytes | None]]:
    """Yield each locator with the bytes of its record; None for what stands in no file of lines."""
    opened: tuple[str, ByteReader] | None = None
    with ExitStack() as stack:
        for locator in locators:
            if not locator.path.endswith(LINES) or locator.layout in TOKEN_LAYOUTS:
                yield locator, None
                continue
            if opened is None or opened[0] != locator.path:
                stack.close()
                opened = (locator.path, stack.enter_context(open_shard(root, locator.path)))
            yield locator, read_place(opened[1], locator.path, locator.byte_offset, locator.byte_length)


def _conversation(raw: bytes, locator: Locator) -> Trajectory:
    outer = _spoken(raw, locator)
    trace = pick(outer, locator)
    branches = branches_of(trace)
    return Trajectory(
        messages=branches.messages[-1] if branches.messages else [],
        metadata={"task": task_of(trace, outer), "truth": truth_of(trace, outer)},
        branches=branches.messages,
        branch_nodes=branches.nodes,
        trained=branches.trained,
        tools=recorded_tools(trace),
    )


def _spoken(raw: bytes, locator: Locator) -> dict[str, Any]:
    try:
        return DECODER.decode(raw)  # type: ignore[return-value]
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        # Nodes of another shape, NaN, bytes that are no text: read as `load` reads them.
        return decoded_object(raw, locator)
