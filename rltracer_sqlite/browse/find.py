"""The runs below a folder, by the names of their files: none but databases is opened, and no link is followed."""

from __future__ import annotations

import os
import re
import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from ..amounts import plural, ranges, size
from ..arguments import file_path
from ..reprs import short
from ..sources.base import PACKED, SourceError
from ..sources.files import is_name_inside
from ..sources.other_files import is_skipped, unread_kind
from ..sources.places import FILE, SKIPPED_FOLDERS, Listed, base_folder, walk
from ..sources.prime_rl.layout import LAYOUTS
from ..sources.table.refused import TRACKIO, is_trackio
from .conventions import Convention, convention

ENDINGS = (".jsonl", ".jsonl.zst", ".bin", ".pt", ".parquet")
DATABASES = (".db", ".sqlite", ".sqlite3")  # only their tables tell what they hold
# Weights and data sets have these endings too; only a known place makes them rollouts.
DOUBTFUL = (".bin", ".pt", ".parquet")
MOST_FILES = 1_000_000  # that are looked at by name
HERE = "."  # the path of a run that is the folder itself

# What the folders between a run and its files are called, by the systems that write them.
INSIDE = re.compile(
    r"run_default|rollouts|token_exports|batches|monitors|file|traces|rollout_data\w*|validation_data\w*|train|eval|val"
    r"|completions|exports|dumped_evals|dump_details"
    r"|(?:global_)?step_?\d+|iter_?\d+"
)
STEP = re.compile(r"(?:^|/)(?:global_)?(?:step|iter)_?(\d{1,15})(?=/|\.)")


@dataclass
class RunFolder:
    """A folder that holds the files of a run; `path` is relative to the folder that was looked through.

    `is_known`: at least one file is named and placed as rollouts are; else only its content can tell.
    """

    path: str
    files: int = 0
    bytes: int = 0
    steps: set[int] = field(default_factory=set)  # that its paths tell
    modified: float = 0.0  # Unix time of its newest file
    is_known: bool = False
    unread: str = ""  # what its files are, where none of them is of a kind that is read
    system: str = ""  # the source whose files are named so, if any

    @property
    def kind(self) -> str:
        """Return which system wrote its files, in words, as far as their names tell it."""
        if self.unread:
            return f"{self.unread}, not read yet"
        return self.system if self.is_known else f"perhaps {self.system}" if self.system else "of no known name"

    def __repr__(self) -> str:
        steps = f", steps {ranges(self.steps)}" if self.steps else ""
        kind = f", {self.unread}" if self.unread else ""
        return f"<RunFolder {short(self.path, 200)}: {plural(self.files, 'file')}, {size(self.bytes)}{steps}{kind}>"


@dataclass(frozen=True)
class Found:
    """The runs below a folder, the newest first, and how many files were looked at; `is_all`: none was left out."""

    runs: list[RunFolder]
    files: int
    is_all: bool

    def __repr__(self) -> str:
        return f"<Found: {plural(len(self.runs), 'run')} among {plural(self.files, 'file')}>"


def find_runs(root: str | os.PathLike[str]) -> Found:
    """Return the runs below a folder, or the one that a single file is. Raises SourceError where it cannot be read."""
    root = file_path("root", root)
    try:
        base, is_file, count = base_folder(root), root.is_file(), 0
    except OSError as error:
        raise SourceError(f"{root} cannot be read: {error.strerror}.") from None
    runs: dict[str, RunFolder] = {}
    others: dict[str, RunFolder] = {}  # with files that are known and not read
    for path, what in [Listed(root.name)] if is_file else walk(root, SKIPPED_FOLDERS):
        count += what == FILE
        if count > MOST_FILES:
            break
        if what != FILE:
            continue
        if kind := unread_kind(path):
            _add(others, without_inner(path[: kind[1].start()]), path, base / path, unread=kind[0])
        elif path.endswith(DATABASES):
            if is_trackio(root, path):
                _add(others, without_inner(path.rpartition("/")[0]), path, base / path, unread=TRACKIO)
        elif _may_be_rollouts(path):
            place = place_of(base, path)
            if place.is_known or not path.endswith(DOUBTFUL):
                _add(runs, place.folder, path, base / path, place)
    listed = [*runs.values(), *(run for path, run in others.items() if path not in runs)]
    ordered = sorted(listed, key=lambda run: (bool(run.unread), not run.is_known, -run.modified, run.path))
    return Found(ordered, min(count, MOST_FILES), count <= MOST_FILES)


class Placed(NamedTuple):
    """The folder of the run that a file belongs to, by its path alone, and the system that names and places one so."""

    folder: str
    is_known: bool  # the place is telling
    system: str


def place_of(root: Path, path: str) -> Placed:
    """Return where a file belongs."""
    base = root.absolute().as_posix()
    place = f"{base}/{path.removesuffix(PACKED)}"
    _, found = _place_in_run(place)
    if found is None:
        return Placed(_folder(base, place, None), False, "")
    return Placed(_folder(base, place, found.match), found.is_telling, found.system)


def _folder(base: str, place: str, match: re.Match[str] | None) -> str:
    # Where the folder that is looked through lies inside a run itself, it stands for that run.
    folder = place.rpartition("/")[0] if match is None else place[: match.start()]
    return without_inner(folder[len(base) + 1 :])


def without_inner(folder: str) -> str:
    """Return a folder without the ones at its end that lie between a run and its files."""
    names = folder.strip("/").split("/") if folder.strip("/") else []
    while names and INSIDE.fullmatch(names[-1]):
        names.pop()
    return "/".join(names) or HERE


def several_runs(root: Path) -> list[str]:
    """Return the folders of the training runs below a folder, relative to it, or [] where it may well be one run.

    It is no run itself when no rollouts are its own and two folders hold a file of the same place in a run: parts of
    one run, such as its evaluations, the files of its ranks or its later steps, differ in theirs.
    """
    base = root.absolute().as_posix()
    folders: set[str] = set()
    places: dict[str, str] = {}
    is_shared = False
    for path, what in walk(root, SKIPPED_FOLDERS):
        if what != FILE or not _may_be_rollouts(path):
            continue
        place = f"{base}/{path.removesuffix(PACKED)}"
        layout, found = _place_in_run(place)
        if layout == "evals" or found is None:
            continue
        folder = _folder(base, place, found.match)
        if folder == HERE:
            return []
        folders.add(folder)
        inside = found.match[0].strip("/") if layout else path.removeprefix(f"{folder}/")
        # A name such as 1.jsonl alone tells of no run: anything may be called so.
        if found.is_telling or "/" in inside:
            is_shared = places.setdefault(inside, folder) != folder or is_shared
    return sorted(folders) if is_shared else []


def run_folder_path(root: str | os.PathLike[str], path: str) -> Path:
    """Return the folder of a run by its path below `root`, resolved. Raises SourceError for a path that leads out."""
    base = file_path("root", root).resolve()
    if not isinstance(path, str) or not is_name_inside(path) or ".." in path.split("/"):
        raise SourceError("There is no such run.")
    try:
        full = (base / path).resolve(strict=True)
    except (OSError, RuntimeError, ValueError):
        raise SourceError("There is no such run.") from None
    if full != base and not full.is_relative_to(base):
        raise SourceError("There is no such run.")
    return full


def _may_be_rollouts(path: str) -> bool:
    return path.endswith(ENDINGS) and not is_skipped(path)


def _place_in_run(place: str) -> tuple[str, Convention | None]:
    """Return the layout of prime-rl that a path ends in, "" for other systems, and what the path is by its end.

    That is None for a place that no system is known to write.
    """
    for name, pattern in LAYOUTS:
        if match := pattern.search(place):
            return name, Convention(match, True, "prime-rl")
    return "", convention(place)


def _add(
    runs: dict[str, RunFolder], folder: str, path: str, file: Path, place: Placed | None = None, unread: str = ""
) -> None:
    try:
        status = os.stat(file, follow_symlinks=False)
    except OSError:
        return  # it has just gone
    if not stat.S_ISREG(status.st_mode):
        return
    run = runs.setdefault(folder, RunFolder(folder, unread=unread))
    run.files += 1
    run.bytes += status.st_size
    run.modified = max(run.modified, status.st_mtime)
    if place is not None and (place.is_known > run.is_known or not run.system):
        run.is_known, run.system = place.is_known, place.system
    if not unread and (step := _step(path, file)) is not None:
        run.steps.add(step)


def _step(path: str, file: Path) -> int | None:
    """Return the step that a path tells, as the source of such files will find it there."""
    if written := STEP.search(path):
        return int(written[1])
    place = file.absolute().as_posix().removesuffix(PACKED)
    layout, found = _place_in_run(place)
    step = found.match.groupdict().get("step") if found and not layout else None
    return None if step is None else int(step)
