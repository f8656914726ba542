"""Files of systems that are known and not read yet, told in one sentence that names the system."""

from __future__ import annotations

import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

from ..files import base_folder
from .built_in import PRESETS, preset
from .files import describe, walk
from .mapping import ENDINGS
from .parquet import INSTALL, has_pyarrow
from .recognise import sample

FILES = 200  # looked at before nothing more is said of a folder
HEAD = 1 << 16
NOT_READ = "{path} holds {what}, which this version does not read yet."


def refusal(root: Path) -> str | None:
    """Return a sentence saying which system's files are at a place that no source reads, or None."""
    base = base_folder(root)
    files = [root.name] if root.is_file() else islice(walk(base), FILES)
    for file in files:
        for test in TESTS:
            if what := test(base / file):
                return NOT_READ.format(path=base / file, what=what)
        if said := _aside(base, file) or _needs_pyarrow(base / file):
            return said
    return None


def _inspect_log(path: Path) -> str | None:
    if path.suffix == ".eval" and any(name.startswith("_journal/") for name in _members(path)):
        return "an Inspect AI log"
    head = _head(path) if path.suffix == ".json" else b""
    return "an Inspect AI log" if all(key in head for key in (b'"eval"', b'"status"', b'"task_id"')) else None


def _torch_rollouts(path: Path) -> str | None:
    if path.suffix != ".pt":
        return None
    pickles = [name for name in _members(path) if name.endswith("data.pkl")]
    head = _member_head(path, pickles[0]) if pickles else b""
    is_slime = b"rollout_id" in head and b"samples" in head
    return "rollouts of slime or miles (a torch file)" if is_slime else None


def _harbor(path: Path) -> str | None:
    if path.suffix != ".json":
        return None
    head = _head(path)
    if b'"ATIF-v' in head[:4096]:
        return "an ATIF trajectory, as Harbor and others write it"
    return "a result of a Harbor trial" if b'"task_checksum"' in head and b'"trial_name"' in head else None


def _wandb_table(path: Path) -> str | None:
    if not path.name.endswith(".table.json"):
        return None
    head = _head(path)
    return "a table that W&B keeps locally" if b'"columns"' in head and b'"data"' in head else None


def _trackio(path: Path) -> str | None:
    if path.suffix not in (".db", ".sqlite", ".sqlite3") or _head(path)[:15] != b"SQLite format 3":
        return None
    try:
        with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            columns = {row[0] for row in connection.execute("select name from pragma_table_info('traces')")}
    except sqlite3.Error:
        return None
    return "traces of trackio" if {"messages", "metadata", "run_name", "trace_index"} <= columns else None


def _tinker(path: Path) -> str | None:
    if not path.name.endswith("_rollout_summaries.jsonl"):
        return None
    head = _head(path)
    return "rollout summaries of the Tinker cookbook" if b'"group_idx"' in head and b'"traj_idx"' in head else None


def _swe_agent(path: Path) -> str | None:
    if path.name.endswith(".traj.json") and b'"messages"' in _head(path):
        return "a trajectory of mini-swe-agent"
    return "a trajectory of SWE-agent" if path.suffix == ".traj" and b'"trajectory"' in _head(path) else None


TESTS: tuple[Callable[[Path], str | None], ...] = (
    _inspect_log, _torch_rollouts, _harbor, _wandb_table, _trackio, _tinker, _swe_agent,
)  # fmt: skip


def _aside(base: Path, file: str) -> str | None:
    """Return what a file is that belongs to a known system and holds no rollouts."""
    if not file.endswith(ENDINGS):
        return None
    for name in PRESETS:
        mapping = preset(name)
        shard = describe(base, file, mapping)
        if shard is None or not mapping.asides:
            continue
        rows = sample(base, shard)
        for aside in mapping.asides:
            named = not aside.paths or any(template.find(file) is not None for template in aside.paths)
            if named and (aside.test is None or any(aside.test.fits(row.has) for row in rows)):
                return f"{base / file} holds no rollouts: it is {aside.says}."
    return None


def _needs_pyarrow(path: Path) -> str | None:
    if path.suffix == ".parquet" and not has_pyarrow():
        return f"{path} is a Parquet file, which needs pyarrow: {INSTALL}."
    return None


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(HEAD) if path.is_file() else b""
    except OSError:
        return b""


def _members(path: Path) -> Iterator[str]:
    try:
        with zipfile.ZipFile(path) as archive:
            return iter(archive.namelist()[:1000])
    except (zipfile.BadZipFile, OSError, ValueError):
        return iter(())


def _member_head(path: Path, name: str) -> bytes:
    try:
        with zipfile.ZipFile(path) as archive, archive.open(name) as member:
            return member.read(HEAD)
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError, RuntimeError):
        return b""
