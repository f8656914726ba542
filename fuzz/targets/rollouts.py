"""Rollouts of several outputs, each a row of its own: put together the same however their files are cut and read."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise, permutations
from pathlib import Path
from typing import Any

from rltracer_sqlite.index import migrations, parallel, parts
from rltracer_sqlite.index.parts import Part, Parts, scan_part, scan_with
from rltracer_sqlite.index.plan import Job
from rltracer_sqlite.sources import lines, source_named
from rltracer_sqlite.sources.base import SAME_PROMPT, START, Entry, Position, Problem, Shard, Source, SourceError
from rltracer_sqlite.sources.files import open_shard
from rltracer_sqlite.sources.table import TableSource, joined, mapping_source_from_text, rollouts
from rltracer_sqlite.sources.table.outputs import Output
from tests.indexing import index, rows
from tests.rollout_rows import mine

from ..invariants import check_nothing_lost, entries, patched, place_of, scanned
from ..scratch import scratch
from ..target import Target
from .index import EVERYTHING, STEPS, statements
from .tables import check_load, check_resumed_entries

MOST = 4  # outputs of a rollout, here
INDEXED = 192  # heads of inputs that are indexed too, which takes longer
NEXT_FILE = re.compile(rb"^=== ?(\d{0,3})\n", re.M)
TOLD = tuple(f"read in part: {reason}" for reason in (rollouts.APART, rollouts.AGAIN))
NAMES = ("1.jsonl", "a/1.jsonl", "2.jsonl")
MESSAGES = """
name = "mine"
[[shape]]
name = "agent"
has = ["messages", "session"]
[shape.content]
messages = "messages"
[shape.columns]
id = "id"
reward = "score"
rollout = "session"
output = "part"
completion_tokens = "tokens"
seconds = "seconds"
started_at = "began"
step = "step"
group = "group"
[[shape]]
name = "plain"
has = ["messages"]
lacks = ["session"]
[shape.content]
messages = "messages"
[shape.columns]
reward = "score"
"""


@cache
def sources() -> tuple[TableSource, ...]:
    """Return what reads such rows: the system that writes them, and mappings of one's own."""
    verl = source_named("verl")
    assert isinstance(verl, TableSource)
    return verl, mine(), mapping_source_from_text(MESSAGES)


@dataclass
class File:
    """A file of an input, and where it is cut, of 255 parts."""

    name: str
    content: bytes
    cut: int

    @property
    def shard(self) -> Shard:
        return Shard(self.name, self.name, "lines", int(self.name[-7]))

    @property
    def at(self) -> int | None:
        """Where the file may end for a while; None where a line would be read that is none when it goes on."""
        at = len(self.content) * min(self.cut, 255) // 255
        begun = self.content[:at].rpartition(b"\n")[2].strip()
        rest = self.content[at:].partition(b"\n")[0].strip()
        return None if begun.endswith(b"}") and rest else at


def check(data: bytes) -> None:
    """Each row is in one trajectory or is told of, whichever way its file is read, and is shown as it was counted."""
    head = data[0] if data else 0
    source, files = sources()[head % len(sources())], list(_files(data[1:]))
    with patched(rollouts, MOST_OUTPUTS=MOST):
        for file in files:
            _check_file(source, file)
        if head >= INDEXED:
            _check_index(source, files)


def _files(content: bytes) -> Iterator[File]:
    first, *others = NEXT_FILE.split(content)
    pieces = [(first, b"128"), *zip(others[1::2], others[::2], strict=True)]
    for name, (piece, cut) in zip(NAMES, pieces, strict=False):
        yield File(name, piece, int(cut or b"128"))


def _check_file(source: TableSource, file: File) -> None:
    root, shard = scratch("rollouts"), file.shard
    place = root / file.name
    place.parent.mkdir(exist_ok=True)
    place.write_bytes(file.content)
    found = scanned(source, root, shard)
    with patched(lines, CHUNK_BYTES=1 + len(file.content) % 53, FINISH_BYTES=16), patched(joined, COMMIT_RECORDS=1):
        pieces = scanned(source, root, shard)
        if found is None or pieces is None:
            assert found is pieces
            return
        assert entries(pieces) == entries(found), "small pieces changed what was found"
        assert pieces[-1] == found[-1]
        check_resumed_entries(source, root, shard, pieces)
    with patched(parts, PART_BYTES=1 + file.cut % 200), patched(lines, FINISH_BYTES=16):
        assert _by_parts(source, root, file) == found, "reading in parts changed what was found"
    check_nothing_lost(file.content.replace(b"\xef\xbb\xbf", b"   "), found)
    _check_together(source, root, file, found)
    _check_grown(source, root, file, found)
    for entry in entries(found)[:20]:
        check_load(source, root, shard, entry)
        _check_shown(source, root, shard, entry)


def _by_parts(source: TableSource, root: Path, file: File) -> list[Any]:
    job = Job(file.shard, 0, START, len(file.content), 0, again=False)
    return list(scan_with(Parts(source, root, [job]), InTurn(source, root))(job))


def _check_together(source: TableSource, root: Path, file: File, found: list[Any]) -> None:
    """Each output is in one trajectory, which is what its outputs say; what is apart is told."""
    alone = [one for one in source.scan_part(root, file.shard) if isinstance(one, Entry)]
    left, together = iter(alone), list[list[Entry]]()
    for entry in entries(found):
        end = entry.byte_offset + entry.byte_length
        together.append([one for one in alone if entry.byte_offset <= one.byte_offset < end])
        assert [next(left, None) for _ in together[-1]] == together[-1], "an output is in two trajectories"
        _check_sums(entry, together[-1])
    assert next(left, None) is None, "an output is in no trajectory"
    apart = sum(_is_apart(*two, file.content) for two in pairwise([[], *together]))
    assert apart == sum(map(_times, found)), "what stands apart is told, each time"


def _check_sums(entry: Entry, of_it: list[Entry]) -> None:
    assert of_it[0].byte_offset == entry.byte_offset
    assert (entry.line, entry.uid) == (of_it[0].line, of_it[0].uid)
    assert (entry.branches, entry.turns) == (sum(one.branches for one in of_it), sum(one.turns for one in of_it))
    if len(of_it) == 1:
        assert [getattr(entry, name) for name in Entry.__struct_fields__] == [
            getattr(of_it[0], name) for name in Entry.__struct_fields__
        ]
        return
    outputs = sorted((one for one in of_it if isinstance(one, Output)), key=lambda one: one.number)
    assert len(outputs) == len(of_it) == len({one.number for one in outputs}) <= MOST
    assert len(set(map(_identity, outputs))) == 1
    first, last = outputs[0], outputs[-1]
    values = {**last.values, SAME_PROMPT: float(first.prompt_key == last.prompt_key)}
    assert (entry.reward, entry.advantage, entry.values) == (last.reward, last.advantage, values)
    assert (entry.prompt_key, entry.preview) == (first.prompt_key, first.preview)


def _is_apart(before: list[Entry], of_it: list[Entry], content: bytes) -> bool:
    """Say whether outputs are missing before a trajectory, or it begins with one that the trajectory before it has."""
    begun = of_it[0]
    if not isinstance(begun, Output):
        return False
    known = [one for one in before if isinstance(one, Output) and _identity(one) == _identity(begun)]
    if any(one.number == begun.number for one in known):
        between = content[before[-1].byte_offset + before[-1].byte_length : begun.byte_offset]
        if not between.strip():
            return True
    return min(one.number for one in of_it if isinstance(one, Output)) > 0


def _identity(one: Output) -> tuple[Any, ...]:
    return one.rollout, one.step, one.split, one.group_id


def _times(one: Any) -> int:
    """Return of how many trajectories a problem says that they stand apart."""
    if not isinstance(one, Problem) or not one.reason.startswith(TOLD):
        return 0
    more = re.search(r"\(and ([\d,]+) more\)$", one.reason)
    return 1 + (int(more[1].replace(",", "")) if more else 0)


def _check_grown(source: TableSource, root: Path, file: File, found: list[Any]) -> None:
    """A file that was read while it was shorter, and then went on, gives what it gives when it is read at once."""
    if (at := file.at) is None:
        return
    place, shard = root / file.name, file.shard
    place.write_bytes(file.content[:at])
    first = scanned(source, root, shard)
    place.write_bytes(file.content)
    reached = first[-1] if first else START
    assert isinstance(reached, Position)
    later = scanned(source, root, shard, reached)
    # What was told before is told again where more belongs to it.
    grown = {entry.byte_offset: entry for entry in (*entries(first), *entries(later))}
    assert list(grown.values()) == entries(found), "a file that grows gives something else"
    assert later is not None
    assert later[-1] == found[-1]


def _check_shown(source: TableSource, root: Path, shard: Shard, entry: Entry) -> None:
    """Each output is a branch, which search finds, and the last one is the conversation."""
    place = place_of(entry, shard)
    shown = source.load(root, [place])
    assert len(shown.branches) == entry.branches
    assert not entry.branches or shown.messages == shown.branches[-1]
    with open_shard(root, shard.path) as reader:
        read = source.messages(root, reader)(place)
    assert read == [message for branch in shown.branches for message in branch]
    with open_shard(root, shard.path) as reader:
        assert shown.raw == reader.pread(entry.byte_length, entry.byte_offset)


def _check_index(source: TableSource, files: list[File]) -> None:
    """Several files give one index: read at once, bit by bit, and in parts by another."""
    folder = scratch("rollouts-index")
    for name in ("whole", "grown", "parted"):
        shutil.rmtree(folder / name, ignore_errors=True)
    with patched(migrations, statements=statements):
        whole = _index(source, folder / "whole", [(file, len(file.content)) for file in files])
        for file in files:
            _index(source, folder / "grown", [(file, file.at or 0)])
        grown = _index(source, folder / "grown", [(file, len(file.content)) for file in files])
        with patched(parts, PART_BYTES=64), patched(parallel, Workers=InTurn):
            parted = _index(source, folder / "parted", [(file, len(file.content)) for file in files], processes=2)
    assert grown == whole
    assert parted == whole


class InTurn:
    """What scans the parts of files as several processes do, in this one."""

    def __init__(self, source: Source, root: Path, parts: Iterable[Part] = (), count: int = 1) -> None:
        self.source, self.root = source, root

    def __enter__(self) -> InTurn:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def batches(self, part: Part) -> Iterator[list[Any]]:
        return scan_part(self.source, self.root, part)

    def drop(self, part: Part) -> None:
        pass


def _index(source: TableSource, folder: Path, files: Iterable[tuple[File, int]], **options: Any) -> Any:
    for file, end in files:
        place = folder / "run" / file.name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(file.content[:end])
    database = folder / "run.sqlite"
    try:
        index(database, folder / "run", source=source, **options)
    except SourceError as error:
        assert str(error)
        return None
    assert rows(database, "pragma integrity_check") == [("ok",)]
    assert rows(database, "select count(*) from trajectories where prompt_group_id is null") == [(0,)]
    return [rows(database, question) for question in (EVERYTHING, STEPS)]


def _row(session: int, part: Any, score: float = 0.0, **more: Any) -> dict[str, Any]:
    """Return a row that any of the sources reads."""
    said = {"input": f"user\nWhy {part}?\nassistant\n", "output": f"said {session}.{part}"}
    messages = [{"role": "user", "content": f"Why {part}?"}, {"role": "assistant", "content": f"said {session}.{part}"}]
    named = {"uid": f"g-1_{session}_{part}", "session": session, "part": part, "id": f"r{session}", "group": "g-1"}
    return {**said, "messages": messages, "gts": "42", "score": score, "step": 1, **named, **more}


def _lines(*rows: dict[str, Any]) -> bytes:
    return b"".join(json.dumps(row).encode() + b"\n" for row in rows)


def seeds() -> list[bytes]:
    """Return rollouts of one output and of several, in every order, apart, twice, in several files, and odd ones."""
    parts = [_row(1, part, float(part), tokens=5, seconds=0.5, began=1.5) for part in range(3)]
    runs = [_lines(_row(0, 0, 1.0), *order, _row(2, 0)) for order in permutations(parts)]
    runs += [
        _lines(*parts, *parts), _lines(*parts, parts[2], _row(1, 3), parts[0]), _lines(parts[1], parts[2]),
        _lines(*(_row(1, part) for part in range(2 * MOST + 1))), _lines(parts[0], _row(2, 0), parts[1]),
        _lines(parts[0])[:-1] + b"\r\n\r\n\n" + _lines(_row(1, 1, float("nan")))[:-1],
        b"\xef\xbb\xbf" + _lines(parts[0]) + b"not JSON\n" + _lines({"messages": parts[0]["messages"]}, parts[1]),
        _lines(parts[0]) + b"=== 40\n" + _lines(*parts[1:]) + b"=== 200\n" + _lines(*parts),
        _lines(*parts[:2]) + b"=== 128\n" + _lines(_row(1, 2)) + _lines(*parts[:2])[:-40],
        _lines(_row(1, 0, step=1), _row(1, 1, step=2), _row(1, 2, group="h"), _row(1, "3"), _row(1, 2**63)),
        _lines(*(_row(1, part, tokens=2**62, seconds=1e308) for part in range(2))),
    ]  # fmt: skip
    heads = (0, 1, 2, INDEXED, INDEXED + 1, INDEXED + 2)
    return [bytes([heads[(n + shift) % 3 + 3 * (n % 2)]]) + run for shift in range(3) for n, run in enumerate(runs)]


WORDS = (
    "input", "output", "messages", "role", "content", "assistant", "user", "gts", "score", "step", "uid", "session",
    "part", "id", "tokens", "seconds", "began", "group", "reward", "g-1_1_0", "g-1_1_1", "_", "tool_calls",
    "\n=== 99\n", "\n", "\r\n",
)  # fmt: skip
SAYS = "rows that are outputs of one rollout, however they are cut"
TARGETS = {"rollouts": Target("rollouts", SAYS, check, seeds, "json", WORDS)}
