"""The files at a place that a mapping may read: found by their names, in the order of their steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import PurePosixPath

from ..base import PACKED, Shard, SourceError
from ..other_files import is_other, other_shard
from ..places import CLOSED, FILE, LINK, SKIPPED_FOLDERS, Root, base_folder, kept_name, walk
from .mapping import ENDINGS, Mapping

ENDINGS_TO_READ = (*ENDINGS, *(ending + PACKED for ending in ENDINGS))
LAYOUTS = {".parquet": "parquet", ".json": "json", ".db": "sqlite", ".sqlite": "sqlite", ".sqlite3": "sqlite"}
MOST_VISITED = 50_000  # files looked at before a folder is said not to be recognised


def find_tables(root: Root, mapping: Mapping) -> Iterator[Shard]:
    """List the shards at `root`, a folder or one file, in the order of their steps and paths; last what is left aside.

    Where files may repeat the end of the file before them, each has that file `beside` it.
    """
    last: dict[str, str] = {}
    for shard in sorted(_found(root, mapping), key=_reading_order):
        folder = str(PurePosixPath(shard.path).parent)
        yield replace(shard, beside=(last[folder],)) if mapping.repeats and folder in last else shard
        if not shard.aside:
            last[folder] = shard.path


def candidates(root: Root, mapping: Mapping, most: int | None = None) -> Iterator[Shard]:
    """Yield the files whose names a mapping accepts, in no order; of at most `most` files. Opens none of them."""
    return _found(root, mapping, most, with_others=False)


def _found(root: Root, mapping: Mapping, most: int | None = None, with_others: bool = True) -> Iterator[Shard]:
    """Yield the files whose names a mapping accepts; with the others also those that are left aside as it does not.

    With them is a folder that cannot be listed, or is in the place of a file: opening it will fail, and say why.
    """
    base = base_folder(root)
    if root.is_file():
        # One file is named by a person: whatever it is called, its content decides, if it is of a fitting kind.
        named = shard_of(base, root.name, mapping) or _shard(root.name)
        endings = {PurePosixPath(template.written).suffix for template in mapping.paths}
        if mapping.generic or not endings or PurePosixPath(named.path).suffix in endings:
            yield named
        return
    if not root.is_dir():
        raise SourceError(f"The file or folder {root} does not exist.")
    seen: set[str] = set()
    for file, what in islice(walk(root, SKIPPED_FOLDERS), most):
        if what in (FILE, LINK):
            shard = shard_of(base, file, mapping) or (other_shard(file, mapping.name) if with_others else None)
        else:
            shard = _unreadable(base, file, what, mapping) if with_others else None
        if shard is not None and shard.path not in seen:
            seen.add(shard.path)
            yield shard


def _unreadable(base: Root, folder: str, what: str, mapping: Mapping) -> Shard | None:
    if what == CLOSED:
        return _shard(folder)
    return None if mapping.generic or not mapping.paths else shard_of(base, folder, mapping)


def shard_of(base: Root, file: str, mapping: Mapping) -> Shard | None:
    """Return the shard that a file is for a mapping, with what its path says; None where the name does not fit."""
    path = file.removesuffix(PACKED)
    # The folders above `base` count too: a person may point at one step.
    place = f"{base.absolute().as_posix()}/{path}"
    for aside in mapping.asides:
        if any(template.find(place) is not None for template in aside.paths):
            # A name may be chance; where the mapping says what the records look like, they decide.
            return _shard(file) if aside.test else replace(_shard(file), aside=aside.says)
    for template in mapping.paths:
        if (found := template.find(place)) is not None:
            return _shard(file, found.get("step"), found.get("split"))
    return _shard(file) if not mapping.paths and path.endswith(ENDINGS) else None


def _shard(file: str, step: int | None = None, split: str | None = None) -> Shard:
    file = kept_name(file)
    path = file.removesuffix(PACKED)
    return Shard(path, file, LAYOUTS.get(PurePosixPath(path).suffix, "lines"), step, split)


def _reading_order(shard: Shard) -> tuple[bool, int, str]:
    return is_other(shard), -1 if shard.step is None else shard.step, shard.path
