"""The JSONL of a verifier workflow, as the `rltracer` package 0.1.0 reads it: one file per workflow.

Each line is a record whose `final_row` (or the record itself) has `rubric.messages`: a list of messages, or a list
as JSON text. There are no steps, splits or rewards of a fixed name; what is recorded beside the messages can be
selected by its dotted path. Written as any source can be: lines in, entries out.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from ..messages import normal_message
from .base import CHANGED, PACKED, START, Entry, Locator, LocatorError, NotRollouts, Position, Problem, Scanned, Shard
from .conversation import entry_of, trajectory_of
from .files import open_shard, read_bytes
from .lines import Tail, complete_lines, decode_leniently
from .other_files import is_other, other_shard
from .places import Root, files_below, kept_name
from .values import add_values

if TYPE_CHECKING:
    from ..trajectory import Message, Trajectory

COMMIT_RECORDS = 4000
FILES, RECORDS = 20, 20  # looked into before a place is said not to be recognised
NO_MESSAGES = "a record without rubric.messages"


class WorkflowSource:
    """Verifier workflows' intermediate predictions."""

    name = "workflow"
    step_kind = None

    def __init__(self, tokenizer: str | None = None) -> None:
        self.tokenizer = tokenizer

    def recognises(self, root: Root) -> bool:
        """Say whether a file at `root` begins with a record of a workflow."""
        known = (shard for shard in self.shards(root) if not is_other(shard))
        for shard in islice(known, FILES):
            try:
                if any(isinstance(found, Entry) for found in islice(self.scan(root, shard), RECORDS)):
                    return True
            except (NotRollouts, LocatorError, OSError):
                continue
        return False

    def shards(self, root: Root) -> Iterable[Shard]:
        """List the JSONL files at `root`, and those that are left aside. Opens none of them."""
        files = [root.name] if root.is_file() else list(files_below(root))
        paths = {file.removesuffix(PACKED): file for file in sorted(files, reverse=True)}
        found = (_shard(path, file) for path, file in sorted(paths.items()))
        return [shard for shard in found if shard is not None]

    def scan(self, root: Root, shard: Shard, start: Position = START) -> Iterator[Scanned]:
        """Read one file. Raises NotRollouts when its first record has no messages."""
        number = start.line
        with open_shard(root, shard.path) as reader:
            for line in complete_lines(reader, start.offset):
                if isinstance(line, Tail):
                    yield Position(line.offset, number, line.length)
                    return
                number += 1
                if (data := bytes(line.buffer[line.start : line.end])).strip():
                    yield from _found(data, shard, line.offset, number)
                if number % COMMIT_RECORDS == 0:
                    yield Position(line.offset + line.length + 1, number)

    def load(self, root: Root, locators: Sequence[Locator]) -> Trajectory:
        """Decode one trajectory. Raises LocatorError."""
        locator = locators[0]
        raw = read_bytes(root, locator.path, locator.byte_offset, locator.byte_length)
        try:
            record, remark = decode_leniently(raw)
            messages = _messages(record)
        except ValueError as error:
            raise LocatorError(CHANGED.format(path=locator.shown, what=str(error))) from None
        shard = Shard(locator.path, locator.path, locator.layout)
        entry = _entry(record, messages, shard, locator.byte_offset, locator.byte_length, locator.line or 1)
        remarks = [remark] if remark else []
        return trajectory_of(entry, locator, messages, raw, record, tools=_row(record).get("tools"), remarks=remarks)


def _shard(path: str, file: str) -> Shard | None:
    if path.endswith(".jsonl"):
        return Shard(kept_name(path), kept_name(file), "lines")
    return other_shard(file, WorkflowSource.name)


def _found(data: bytes, shard: Shard, offset: int, number: int) -> Iterator[Entry | Problem]:
    try:
        record, remark = decode_leniently(data)
        messages = _messages(record)
    except ValueError as error:
        if number == 1 and str(error) == NO_MESSAGES:
            raise NotRollouts(NO_MESSAGES) from None
        yield Problem(number, offset, len(data), f"not readable: {error}")
        return
    yield _entry(record, messages, shard, offset, len(data), number)
    if remark:
        yield Problem(number, offset, len(data), f"read in part: {remark}")


def _entry(record: Any, messages: list[Message], shard: Shard, offset: int, length: int, line: int) -> Entry:
    entry = entry_of(shard, messages, offset, length, line)
    entry.env = PurePosixPath(shard.path).stem
    add_values(entry.values, "", record, depth=0)
    return entry


def _messages(record: Any) -> list[Message]:
    """Return the messages of a record. Raises ValueError where it has none."""
    rubric = _row(record).get("rubric")
    recorded = rubric.get("messages") if isinstance(rubric, Mapping) else None
    if isinstance(recorded, str):
        recorded, _ = decode_leniently(recorded.encode("utf-8", "replace"))
    if not isinstance(recorded, list) or not recorded:
        raise ValueError(NO_MESSAGES)
    if not all(isinstance(message, Mapping) and isinstance(message.get("role"), str) for message in recorded):
        raise ValueError("rubric.messages: a message without a role")
    return [normal_message(message) for message in recorded]


def _row(record: Any) -> Mapping[str, Any]:
    row = record.get("final_row", record) if isinstance(record, Mapping) else None
    return row if isinstance(row, Mapping) else {}
