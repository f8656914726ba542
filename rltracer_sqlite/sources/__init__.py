"""Which source reads the files at a place, decided by their content."""

from __future__ import annotations

import os
from pathlib import Path
from typing import IO, TYPE_CHECKING, cast

from ..amounts import listed
from .absent import dangling
from .base import Source, SourceError
from .installed import BUILT_IN as BUILT_IN
from .installed import references
from .installed import source_names as source_names
from .places import Root, real_place
from .remote import NotLocal
from .remote_requests import PACKAGES

if TYPE_CHECKING:
    from .readers import ByteReader

OWN_TABLES = "Tables of your own can be read by a mapping: see rltracer sources guess --help."


def source_named(name: str, tokenizer: str | None = None, mapping: str | None = None) -> Source:
    """Return a source by the name, and the mapping if any, that an index keeps of a run.

    Raises SourceError for a source that is not installed and for a mapping that is none.
    """
    for known, reference in references():
        if known == name:
            return _load(reference, tokenizer)
    if mapping is not None:
        from .table import mapping_source_from_text

        return mapping_source_from_text(mapping, tokenizer)
    raise SourceError(f"The source {name!r} is not installed here. Installed: {', '.join(source_names())}.")


def source_for(root: Root, tokenizer: str | None = None, layout: str | None = None) -> Source:
    """Return the source that recognises the files at `root`. Raises SourceError where none does."""
    try:
        str(real_place(root)).encode()
        if not root.exists():
            raise SourceError(missing(root))
    except UnicodeEncodeError:
        raise SourceError(f"{root} has a name that is not UTF-8, which an index cannot keep; rename it.") from None
    except OSError as error:
        raise SourceError(f"{root} cannot be read: {error.strerror}.") from None
    for _, reference in references():
        source = _load(reference, tokenizer, layout)
        try:
            if source.recognises(root):
                return source
        except NotLocal:
            continue  # a source of another package that reads files of this machine only
    raise SourceError(nothing_found(root))


def missing(root: Root, what: str = "The file or folder") -> str:
    """Say that there is nothing at a place, which was to be `what`."""
    if isinstance(root, Path) and (scheme := str(root).partition(":/")[0]) in PACKAGES:
        return f"{what} {root} does not exist. A URL is given as text, not as a Path: {scheme}://…"
    if isinstance(root, Path) and (target := dangling(root)) is not None:
        return f"{root} is a link to {target}, where there is nothing."
    return f"{what} {root} does not exist."


def nothing_found(root: Root) -> str:
    """Say in a sentence what lies at a place where no source finds rollouts."""
    from .files import IS_POINTER, LFS_POINTER, open_shard
    from .table.refused import refusal

    if reason := refusal(root):
        return reason
    if root.is_file():
        with open_shard(root, root.name) as reader:
            beginning, cut_off = reader.pread(min(64, reader.size()), 0), _is_cut_off(reader, root.name)
        if beginning.startswith(LFS_POINTER):
            return f"The file {root} is {IS_POINTER}."
        if cut_off:
            return f"The file {root} is cut off: its end, which says where everything is, is missing."
        if not beginning:
            return f"The file {root} is empty."
        return f"The file {root} holds no rollouts of a known format. {OWN_TABLES}"
    if isinstance(root, Path):
        names = sorted(map(_shown, root.iterdir()))
    else:
        names = sorted({path.partition("/")[0] for path in root.files()})
    if not names:
        return f"The folder {root} holds no files."
    shown = listed(names)
    return f"The folder {root} holds no rollouts of a known format. It holds: {shown}. {OWN_TABLES}"


def _is_cut_off(reader: ByteReader, name: str) -> bool:
    """Say whether a torch archive or a Parquet file has its beginning and not its end."""
    if name.endswith(".pt") and reader.pread(4, 0) == b"PK\x03\x04":
        from zipfile import is_zipfile

        from .byte_file import ByteFile

        return not is_zipfile(cast(IO[bytes], ByteFile(reader)))
    from .parquet_file import MAGIC

    return name.endswith(".parquet") and reader.pread(4, 0) == MAGIC != reader.pread(4, reader.size() - 4)


def _shown(entry: Path) -> str:
    if entry.is_symlink():
        return f"{entry.name} (a link)"
    return entry.name if os.access(entry, os.R_OK) else f"{entry.name} (not readable)"


def _load(reference: str, tokenizer: str | None, layout: str | None = None) -> Source:
    from importlib import import_module

    module, _, attribute = reference.partition(":")
    options = {"tokenizer": tokenizer, **({"layout": layout} if layout else {})}
    try:
        return getattr(import_module(module), attribute)(**options)  # type: ignore[no-any-return]
    except TypeError:
        if not layout:
            raise
        raise SourceError(f"The source {attribute} takes no --layout.") from None
