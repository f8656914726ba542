"""The boundary that a new file format implements: shards in, entries and trajectories out.

A source knows one system's files and nothing of the index. Everything it yields is relative to the run's root, so that
scanning one shard is a pure function that can run in any process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, Union, runtime_checkable

import msgspec

from ..errors import KnownOther as KnownOther

# Of the boundary as well: whoever writes a source raises them.
from ..errors import LocatorError as LocatorError
from ..errors import NotRollouts as NotRollouts
from ..errors import SourceError as SourceError

if TYPE_CHECKING:
    from ..trajectory import Message, Trajectory
    from .places import Root
    from .readers import ByteReader


PACKED = ".zst"  # behind the path of a shard whose file is compressed
# The path of a value that no record has: of a rollout of several outputs, whether its last one begins with the prompt
# of its first (1) or with another (0).
SAME_PROMPT = "info.outputs.same_prompt"
CHANGED = "{path} has changed since it was indexed: {what}. Index the run again."


@dataclass(frozen=True)
class Shard:
    """One source file of a run, known by what it is and not by how it is packed."""

    path: str  # relative to the run's root, "/" separated, without the ending of a compression
    file: str  # the file to read now, relative to the root: `path`, or `path` + ".zst"
    layout: str  # the shape of the files around it, for example "traces" or "stream"
    step: int | None = None  # by its place in the layout; None where the records say it, or nothing does
    split: str | None = None  # "train" or "eval" by the layout, else None
    producer: str | None = None  # None: holds the records themselves; else who wrote these later facts
    beside: tuple[str, ...] = ()  # paths of shards that come first and hold the same trajectories
    aside: str = ""  # why it is not read although it belongs to the run; "": it is read


class Position(NamedTuple):
    """How far a shard has been read. Everything before `offset` is done."""

    offset: int = 0  # bytes, uncompressed
    line: int = 0  # complete lines before `offset`
    waiting: int = 0  # bytes behind `offset` that are no complete record yet


START = Position()


class Entry(msgspec.Struct, gc=False):
    """What the index keeps of one trajectory: where it is, and what it can be selected by."""

    uid: str
    byte_offset: int
    byte_length: int
    line: int  # 1-based
    item: int | None = None  # the place inside the record; None where the record is the trajectory
    prompt_key: str = ""
    task: str = ""
    preview: str = ""
    step: int | None = None
    dispatch_step: int | None = None
    split: str | None = None
    env: str | None = None
    agent: str | None = None
    reward: float | None = None
    # dotted path in the record -> recorded scalar; None: a text too long to be indexed
    values: dict[str, float | str | None] = {}  # a Struct copies its empty defaults
    effective: int | None = None
    advantage: float | None = None
    ship_step: int | None = None
    logprob_mean: float | None = None
    turns: int = 0
    tool_calls: int | None = 0  # None: its text is not known, or in no messages
    tools: str | None = None  # the names of the tools called, as `tool_names.names_json` writes them
    branches: int = 0
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    stop_condition: str | None = None
    truncated: int | None = None
    ok: int | None = None
    error_type: str | None = None
    episode_id: str | None = None
    group_id: str | None = None
    task_key: str | None = None
    data_idx: int | str | None = None
    policy_version: int | None = None
    started_at: float | None = None  # Unix time, seconds
    seconds: float | None = None
    content_kind: str = "messages"
    unrewarded: tuple[str, ...] = ()  # the named rewards that its record has a place for, and no score


class Update(msgspec.Struct, gc=False):
    """A later fact about a trajectory, found in another place than its record (an annotation)."""

    uid: str
    byte_offset: int
    byte_length: int
    line: int
    item: int | None = None
    effective: int | None = None
    advantage: float | None = None
    ship_step: int | None = None
    logprob_mean: float | None = None


class Problem(msgspec.Struct, gc=False):
    """Something that could not be read, or could be read in part only, and why."""

    line: int | None
    byte_offset: int
    byte_length: int
    reason: str


# What is told, as the end of a reason, of rows that a file repeats from the end of the file before it.
OF_THE_FILE_BEFORE = ", the file before this one, and {are} counted once"


class Misfit(Problem, gc=False):
    """That the tokenizer is another one than the policy's: what it gives is no text that anybody wrote."""


Scanned = Union["Entry", "Update", "Problem", Position]
"""What a scan yields. A `Position` says that everything before it has been yielded: a place to commit."""


@dataclass(frozen=True)
class Locator:
    """Where the bytes of a trajectory, or of a later fact about it, are."""

    uid: str
    path: str  # the shard's path, relative to the root
    layout: str
    byte_offset: int  # in the uncompressed bytes
    byte_length: int
    item: int | None = None
    line: int | None = None
    producer: str | None = None  # None: the record; else an annotation
    file: str = ""  # the file that `path` is, where that is known

    @property
    def shown(self) -> str:
        """The name by which a person finds the file."""
        return self.file or self.path


class Source(Protocol):
    """One system's files. Implement this, register it, and the index does the rest."""

    name: str

    def recognises(self, root: Root) -> bool:
        """Say whether this source's files are at `root`, by content where names are not enough."""
        ...

    def shards(self, root: Root) -> Iterable[Shard]:
        """List the shards by their names only. Opens no shard."""
        ...

    def scan(self, root: Root, shard: Shard, start: Position = START) -> Iterator[Scanned]:
        """Read one shard from `start` on, ending with the `Position` that was reached."""
        ...

    def load(self, root: Root, locators: Sequence[Locator]) -> Trajectory:
        """Decode one trajectory: the record's locator first, then its annotations, oldest first."""
        ...


@runtime_checkable
class MessageSource(Protocol):
    """What a source may offer beside `Source`, so that words are read faster than by `load`."""

    def messages(self, root: Root, reader: ByteReader) -> Callable[[Locator], list[Message]]:
        """Return what reads the messages of a trajectory of an open shard; it raises LocatorError."""
        ...


@runtime_checkable
class PartedSource(Protocol):
    """What a source may offer beside `Source`, so that several processes read parts of one shard.

    For any cuts, `scan(root, shard, start)` yields what `joined` makes of the findings of all parts one after
    another. A source is pickled to reach the other processes, and what a scan changes in it stays there: what is to
    be remembered of a shard is a finding, and `joined` sees it. A source without these methods is read by whole
    shards.
    """

    def has_lines(self, shard: Shard) -> bool:
        """Say whether a shard may be cut behind any newline; where it may not, it is one part."""
        ...

    def scan_part(self, root: Root, shard: Shard, start: Position = START, stop: int | None = None) -> Iterator[Any]:
        """Yield the findings of the lines that begin at `start` or behind it and before `stop`, then a `Position`.

        A finding is what a scan yields, or anything that can be pickled and that `joined` understands. Where it has
        a `line`, this is counted from `start.line`. Lines give no `Position` but the last.
        """
        ...

    def joined(self, shard: Shard, start: Position, found: Iterable[Any]) -> Iterator[Scanned]:
        """Yield what a scan from `start` yields, given the findings of its parts in their order."""
        ...
