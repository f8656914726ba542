"""Files of systems that are known and not read yet, told in one sentence that names the system."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from functools import cached_property
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import IO, cast

from ..base import SourceError
from ..byte_file import ByteFile
from ..files import open_shard
from ..parquet_file import INSTALL, has_pyarrow
from ..places import SQLITE_HEADER, Root, base_folder, files_below
from ..remote import RemoteRoot
from .built_in import PRESETS, preset
from .files import shard_of
from .mapping import ENDINGS
from .recognise import sample
from .sqlite import DAMAGED, connect

TRACKIO = "traces of trackio"
FILES = 200  # looked at before nothing more is said of a folder
HEAD = 1 << 16
UNREADABLE = (zipfile.BadZipFile, SourceError, OSError, ValueError, NotImplementedError, RuntimeError, KeyError)
NOT_READ = "The file {path} holds {what}, which this version does not read yet."


def refusal(root: Root) -> str | None:
    """Return a sentence saying which system's files are at a place that no source reads, or None."""
    names = [root.name] if root.is_file() else islice(files_below(root), FILES)
    for file in (_File(root, name) for name in names):
        for test in TESTS:
            if what := test(file):
                return NOT_READ.format(path=file.shown, what=what)
        if said := _aside(file) or _needs(file):
            return said
    return None


def is_trackio(root: Root, path: str) -> bool:
    """Say whether a SQLite file of this machine holds traces of trackio."""
    return _trackio(_File(root, path)) is not None


class _File:
    """A file that is looked at."""

    def __init__(self, root: Root, path: str) -> None:
        self.root, self.path = root, path
        self.name, self.suffix = PurePosixPath(path).name, PurePosixPath(path).suffix

    @property
    def shown(self) -> str:
        base = base_folder(self.root)
        return str(base / self.path) if isinstance(base, Path) else f"{base}/{self.path}"

    @cached_property
    def head(self) -> bytes:
        """Its first bytes; none where it cannot be read."""
        try:
            with open_shard(self.root, self.path) as reader:
                return reader.pread(min(HEAD, reader.size()), 0)
        except (SourceError, OSError):
            return b""

    def members(self) -> list[str]:
        """The names in an archive; none where it is none."""
        try:
            with self._archive() as archive:
                return archive.namelist()[:1000]
        except UNREADABLE:
            return []

    def member_head(self, name: str) -> bytes:
        """The first bytes of a file in an archive."""
        try:
            with self._archive() as archive, archive.open(name) as member:
                return member.read(HEAD)
        except UNREADABLE:
            return b""

    @contextmanager
    def _archive(self) -> Iterator[zipfile.ZipFile]:
        with open_shard(self.root, self.path) as reader, zipfile.ZipFile(cast(IO[bytes], ByteFile(reader))) as archive:
            yield archive


def _inspect_log(file: _File) -> str | None:
    if file.suffix == ".eval" and any(name.startswith("_journal/") for name in file.members()):
        return "an Inspect AI log"
    head = file.head if file.suffix == ".json" else b""
    return "an Inspect AI log" if all(key in head for key in (b'"eval"', b'"status"', b'"task_id"')) else None


def _torch_rollouts(file: _File) -> str | None:
    if file.suffix != ".pt":
        return None
    pickles = [name for name in file.members() if name.endswith("data.pkl")]
    head = file.member_head(pickles[0]) if pickles else b""
    is_slime = b"rollout_id" in head and b"samples" in head
    return "rollouts of slime or miles (a torch file)" if is_slime else None


def _harbor(file: _File) -> str | None:
    if file.suffix != ".json":
        return None
    head = file.head
    if b'"ATIF-v' in head[:4096]:
        return "an ATIF trajectory, as Harbor and others write it"
    return "a result of a Harbor trial" if b'"task_checksum"' in head and b'"trial_name"' in head else None


def _wandb_table(file: _File) -> str | None:
    if not file.name.endswith(".table.json"):
        return None
    head = file.head
    return "a table that W&B keeps locally" if b'"columns"' in head and b'"data"' in head else None


def _trackio(file: _File) -> str | None:
    if not _is_database(file) or not isinstance(file.root, Path):
        return None
    try:
        with closing(connect(file.root, file.path)) as connection:
            columns = {row[0] for row in connection.execute("select name from pragma_table_info('traces')")}
    except (*DAMAGED, SourceError):
        return None
    return TRACKIO if {"messages", "metadata", "run_name", "trace_index"} <= columns else None


def _tinker(file: _File) -> str | None:
    if not file.name.endswith("_rollout_summaries.jsonl"):
        return None
    head = file.head
    return "rollout summaries of the Tinker cookbook" if b'"group_idx"' in head and b'"traj_idx"' in head else None


def _swe_agent(file: _File) -> str | None:
    if file.name.endswith(".traj.json") and b'"messages"' in file.head:
        return "a trajectory of mini-swe-agent"
    return "a trajectory of SWE-agent" if file.suffix == ".traj" and b'"trajectory"' in file.head else None


TESTS: tuple[Callable[[_File], str | None], ...] = (
    _inspect_log, _torch_rollouts, _harbor, _wandb_table, _trackio, _tinker, _swe_agent,
)  # fmt: skip


def _is_database(file: _File) -> bool:
    return file.suffix in (".db", ".sqlite", ".sqlite3") and file.head.startswith(SQLITE_HEADER)


def _aside(file: _File) -> str | None:
    """Return what a file is that belongs to a known system and holds no rollouts."""
    if not file.path.endswith(ENDINGS):
        return None
    for name in PRESETS:
        mapping = preset(name)
        shard = shard_of(base_folder(file.root), file.path, mapping)
        if shard is None or not mapping.asides:
            continue
        rows = sample(file.root, shard)
        for aside in mapping.asides:
            named = not aside.paths or any(template.find(file.path) is not None for template in aside.paths)
            fits = [row for row in rows if aside.test is None or aside.test.fits(row.has)]
            if named and (aside.test is None or fits):
                what = aside.told(fits[0].get) if fits else aside.says
                return f"The file {file.shown} holds no rollouts: it is {what}."
    return None


def _needs(file: _File) -> str | None:
    """Return what has to be there, or be done, before a file can be read."""
    if file.suffix == ".parquet" and not has_pyarrow():
        return f"The file {file.shown} is a Parquet file, which needs pyarrow: {INSTALL}."
    if isinstance(file.root, RemoteRoot) and _is_database(file):
        return f"The file {file.shown} is a SQLite database, which is read on this machine only: copy it here."
    return None
