"""A source for .chatlog files: a line "# reward=1 step=3", lines "user: …" and "assistant: …", and an empty line."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rltracer_sqlite.sources.base import START, Entry, Locator, LocatorError, Position, Scanned, Shard
from rltracer_sqlite.sources.conversation import entry_of, trajectory_of
from rltracer_sqlite.sources.files import open_shard, read_bytes
from rltracer_sqlite.sources.places import Root, walk
from rltracer_sqlite.trajectory import Message, Trajectory

BLOCK = re.compile(rb"# reward=([\d.]+) step=(\d+)\n((?:.+\n)+)\n")


class ChatlogSource:
    name = "chatlog"

    def __init__(self, tokenizer: str | None = None) -> None:
        """Every source is given a tokenizer; this one needs none."""

    def recognises(self, root: Root) -> bool:
        return any(shard.path.endswith(".chatlog") for shard in self.shards(root))

    def shards(self, root: Root) -> list[Shard]:
        files = [root.name] if root.is_file() else sorted(found.path for found in walk(root))
        return [Shard(path, path, "chatlog") for path in files if path.endswith(".chatlog")]

    def scan(self, root: Root, shard: Shard, start: Position = START) -> Iterator[Scanned]:
        with open_shard(root, shard.path) as reader:
            data = reader.pread(reader.size() - start.offset, start.offset)
        end = 0
        for block in BLOCK.finditer(data):
            line, end = start.line + data.count(b"\n", 0, block.start()) + 1, block.end()
            yield _read(shard, block, start.offset + block.start(), line)[0]
        yield Position(start.offset + end, start.line + data.count(b"\n", 0, end), len(data) - end)

    def load(self, root: Root, locators: Sequence[Locator]) -> Trajectory:
        place = locators[0]
        raw = read_bytes(root, place.path, place.byte_offset, place.byte_length)
        if (block := BLOCK.fullmatch(raw)) is None:
            raise LocatorError(f"{place.path} has changed since it was indexed. Index the run again.")
        entry, messages = _read(Shard(place.path, place.path, "chatlog"), block, place.byte_offset, place.line or 1)
        return trajectory_of(entry, place, messages, raw, {"messages": messages})


def _read(shard: Shard, block: re.Match[bytes], offset: int, line: int) -> tuple[Entry, list[Message]]:
    spoken = (said.partition(": ")[::2] for said in block[3].decode(errors="replace").splitlines())
    messages = [{"role": role, "content": content} for role, content in spoken]
    entry = entry_of(shard, messages, offset, len(block[0]), line, reward=float(block[1]))
    entry.step = int(block[2])
    return entry, messages
