"""Opening the files of a run: inside its root, plain or compressed, by uncompressed byte offsets."""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .absent import absent
from .base import PACKED, Locator, LocatorError, NotRollouts
from .places import Root, base_folder
from .readers import ByteReader, PackedReader, PlainFile
from .remote import RemoteRoot

MAX_RECORD_BYTES = 1 << 30
MAX_OFFSET = 1 << 62
LFS_POINTER = b"version https://git-lfs"
IS_POINTER = "a Git LFS pointer instead of the file itself; run git lfs pull"
# On Windows these are not names below a folder: drives, shares, streams of a file, devices, and the other separator.
WINDOWS_ELSEWHERE = re.compile(
    r"[\\:]|(^|/)\s*(con|prn|aux|nul|conin\$|conout\$|com[\d¹²³]|lpt[\d¹²³])\s*(\.[^/]*)?(/|$)", re.IGNORECASE
)


def read_bytes(root: Root, path: str, offset: int, length: int) -> bytes:
    """Return `length` uncompressed bytes of the shard `path` under `root`, from `offset` on.

    `path` and the numbers may come from a database, so they are not trusted. Raises LocatorError.
    """
    if isinstance(root, RemoteRoot):
        return _read_remote(root, path, offset, length)
    with open_shard(root, path) as reader:
        return read_place(reader, path, offset, length)


def file_there(root: Root, locator: Locator) -> str:
    """Return the file that a shard is now, by its path in the run: plain or packed.

    It may have been sealed since it was indexed. Of a remote run, and where there is neither, it is what it was then.
    """
    known = locator.shown
    if isinstance(root, Path) and isinstance(locator.path, str):
        for file in (known, locator.path, locator.path + PACKED):
            if _is_below(file) and os.path.isfile(base_folder(root) / file):
                return file
    return known


def _is_below(file: str) -> bool:
    """Say whether a text from a database names something below a folder, as far as its form tells."""
    return isinstance(file, str) and is_name_inside(file) and ".." not in file.split("/")


def _read_remote(root: RemoteRoot, path: str, offset: int, length: int) -> bytes:
    """Return the bytes of a record by one request, unless the file is compressed."""
    _check_place(path, offset, length)
    try:
        return _whole(root.read(path, offset, length), path, offset, length)
    except FileNotFoundError:
        with open_shard(root, path) as reader:
            return read_place(reader, path, offset, length)


def read_place(reader: ByteReader, path: str, offset: int, length: int) -> bytes:
    """Return `length` uncompressed bytes from `offset` on of an open shard, as `read_bytes` does."""
    _check_place(path, offset, length)
    path = path + PACKED if reader.is_packed else path
    try:
        data = reader.pread(length, offset)
    except OSError as error:
        raise LocatorError(f"{path} cannot be read: {error.strerror}.") from None
    return _whole(data, path, offset, length)


def _check_place(path: str, offset: int, length: int) -> None:
    whole_numbers = type(offset) is int and type(length) is int
    if not whole_numbers or not 0 <= offset < MAX_OFFSET or not 0 < length <= MAX_RECORD_BYTES:
        raise LocatorError(f"The place of a record in {path!r} is out of range: {length} bytes at {offset}.")


def _whole(data: bytes, path: str, offset: int, length: int) -> bytes:
    if len(data) != length:
        raise LocatorError(
            f"{path} ends before byte {offset + length:,}: it is shorter than when it was indexed. Index the run again."
        )
    return data


@contextmanager
def open_shard(root: Root, path: str) -> Iterator[ByteReader]:
    """Open a shard by its path without the ending of a compression, whichever way it is packed now."""
    reader = _reader(root, path)
    try:
        yield reader
    finally:
        reader.close()


def _reader(root: Root, path: str) -> ByteReader:
    try:
        return _opened(root, path)
    except FileNotFoundError:
        pass
    try:
        packed = _opened(root, path + PACKED)
    except FileNotFoundError:
        if "\\udc" in path:
            raise LocatorError(f"{path} cannot be read, since its name is not UTF-8; rename it.") from None
        raise absent(root, path) from None
    # Only compressed shards pay for the import of the decompressor.
    from .seekable import SeekableZstd

    return SeekableZstd(packed, path)


def _opened(root: Root, file: str) -> PackedReader:
    return root.reader(file) if isinstance(root, RemoteRoot) else PlainFile(open_inside(root, file))


def open_inside(root: Path, path: str) -> int:
    """Return a descriptor of the regular file `path` under `root`; never of anything outside it.

    Under a root that is one file there is that file alone, and not what lies in the same folder.

    Raises FileNotFoundError, or LocatorError for a path that leads elsewhere or is no regular file.
    """
    if not isinstance(path, str) or not is_name_inside(path):
        raise LocatorError(f"Not a path inside a run: {path!r}.")
    base = base_folder(root)
    if base != root and path != root.name:
        raise FileNotFoundError(path)
    try:
        folder = base.resolve(strict=True)
        full = (folder / path).resolve(strict=True)
    except (FileNotFoundError, NotADirectoryError):
        raise FileNotFoundError(path) from None
    except (OSError, RuntimeError, ValueError) as error:
        raise LocatorError(f"{path} cannot be opened: {error}.") from None
    if not full.is_relative_to(folder):
        raise LocatorError(f"{path} leads outside the run's folder; what it points to is not read.")
    try:
        descriptor = _opened_below(folder, full)
    except OSError as error:
        raise LocatorError(f"{path} cannot be opened: {error.strerror}.") from None
    mode = os.fstat(descriptor).st_mode
    if not stat.S_ISREG(mode):
        os.close(descriptor)
        raise LocatorError(f"{path} is {'a folder' if stat.S_ISDIR(mode) else 'not a regular file'}.")
    return descriptor


def status_inside(root: Path, path: str) -> os.stat_result:
    """Return the status of the file that `open_inside` opens, and raise as it does."""
    descriptor = open_inside(root, path)
    try:
        return os.fstat(descriptor)
    finally:
        os.close(descriptor)


# Non-blocking, so that a named pipe cannot hold the reader for ever.
OPENING = (
    os.O_RDONLY
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_NOFOLLOW", 0)
    | getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_BINARY", 0)
)


def _opened_below(folder: Path, full: Path) -> int:
    """Open a resolved path below a folder without following a link that has been put into it since."""
    if not hasattr(os, "O_PATH"):  # not Linux
        return os.open(full, OPENING)
    *folders, name = full.relative_to(folder).parts or ("",)
    passed = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in folders:
            deeper = os.open(part, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=passed)
            # In this order: a signal in between would have it closed twice, and that error take the signal's place.
            above, passed = passed, deeper
            os.close(above)
        return os.open(name or ".", OPENING, dir_fd=passed)
    finally:
        os.close(passed)


def is_name_inside(path: str, windows: bool = os.name == "nt") -> bool:
    """Say whether a text has the form of a path below a folder; where it leads is another question."""
    if not path or "\0" in path or path.startswith("/"):
        return False
    return not windows or WINDOWS_ELSEWHERE.search(path) is None


def refuse_pointer(beginning: bytes) -> None:
    """Raise NotRollouts for the beginning of a file that Git LFS has put in the place of the real one."""
    if beginning.startswith(LFS_POINTER):
        raise NotRollouts(IS_POINTER)
