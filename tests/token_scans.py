"""What tests of token shards ask: scan a file, load what it found, and compare."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rltracer_sqlite.sources.base import Entry, Locator, Position, Problem, Scanned, Shard, Update
from rltracer_sqlite.sources.prime_rl.token_load import load_token_trajectory
from rltracer_sqlite.sources.prime_rl.token_scan import scan_token_shard
from rltracer_sqlite.tokens import TextTokenizer
from rltracer_sqlite.trajectory import Trajectory


def shard_of(root: Path, file: Path, step: int | None = 1) -> Shard:
    path = file.relative_to(root).as_posix()
    return Shard(path, path, "tokens", step=step)


def scan(
    root: Path, file: Path, tokenizer: TextTokenizer | None = None, start: Position | None = None, **more: Any
) -> list[Scanned]:
    return list(scan_token_shard(root, shard_of(root, file), start or Position(), tokenizer, **more))


def entries(found: list[Scanned]) -> list[Entry]:
    return [one for one in found if isinstance(one, Entry)]


def updates(found: list[Scanned]) -> list[Update]:
    return [one for one in found if isinstance(one, Update)]


def problems(found: list[Scanned]) -> list[str]:
    return [one.reason for one in found if isinstance(one, Problem)]


def locator(entry: Entry | Update, file: Path, root: Path) -> Locator:
    path = file.relative_to(root).as_posix()
    return Locator(entry.uid, path, "tokens", entry.byte_offset, entry.byte_length, entry.item, entry.line)


def load(root: Path, file: Path, entry: Entry, tokenizer: TextTokenizer | None = None) -> Trajectory:
    return load_token_trajectory(root, [locator(entry, file, root)], tokenizer)
