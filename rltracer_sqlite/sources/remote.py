"""The root of a run behind a URL: what a source asks of a folder, listed once and read in ranges."""

from __future__ import annotations

import os
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ..errors import LocatorError
from .readers import PlainFile
from .remote_file import LARGEST, Held, RemoteFile
from .remote_listing import LINK, Status, list_files, status_of
from .remote_requests import TIMEOUT, RemoteError, Truncated, ask, bounded, canonical, connect

GIVEN_UP = 3  # requests without an answer, after which the further files of a run are not waited for


class NotLocal(LocatorError):
    """A remote run where a source wanted files of this machine."""


class _Descriptor:
    """An open file that is closed with the last that knows of it."""

    def __init__(self, number: int) -> None:
        self.number = number
        weakref.finalize(self, os.close, number)


class RemoteRoot:
    """A folder or a file behind a URL. Of a Path it has, from `name` to `is_file`, what tells where and what it is.

    What is listed stays known until `forget`, so that recognising a run and reading it take one listing. Pickled, it
    is its URL. Raises SourceError for a URL that is not read: of another scheme, or with a user's name in it.
    """

    def __init__(self, url: str) -> None:
        self.url = canonical(url)
        self.held = Held()
        self._listing: dict[str, Status] | None = None
        self._statuses: dict[str, Status] = {}
        self._connection: tuple[int, Any, str] | None = None
        self._copy: tuple[str, Status, _Descriptor] | None = None
        self._connecting = threading.Lock()
        self._unanswered = 0  # requests in a row that were given up

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]

    @property
    def parent(self) -> RemoteRoot:
        above = self.url.rpartition("/")[0]
        return self if above.endswith(":/") else RemoteRoot(above)

    def __str__(self) -> str:
        return self.url

    def __repr__(self) -> str:
        return f"RemoteRoot({self.url!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RemoteRoot) and other.url == self.url

    def __hash__(self) -> int:
        return hash(self.url)

    def __reduce__(self) -> tuple[type[RemoteRoot], tuple[str]]:
        return RemoteRoot, (self.url,)

    def as_posix(self) -> str:
        return self.url

    def absolute(self) -> RemoteRoot:
        return self

    def resolve(self, strict: bool = False) -> RemoteRoot:
        return self

    def is_relative_to(self, other: object) -> bool:
        return isinstance(other, RemoteRoot) and f"{self.url}/".startswith(f"{other.url}/")

    def exists(self) -> bool:
        return bool(self.files())

    def is_dir(self) -> bool:
        return self.exists() and not self.is_file()

    def is_file(self) -> bool:
        return "" in self.files()

    def __fspath__(self) -> NoReturn:
        raise NotLocal(f"{self.url} is not on this machine, and what reads it here opens files of this machine only.")

    def __truediv__(self, other: object) -> NoReturn:
        self.__fspath__()

    if not TYPE_CHECKING:  # a type checker should see a misspelt name

        def __getattr__(self, name: str) -> NoReturn:
            if hasattr(Path, name) and not name.startswith("__"):
                self.__fspath__()
            raise AttributeError(name)

    def forget(self) -> None:
        """Forget what was listed and read, so that the run is looked at anew."""
        self.held, self._listing, self._statuses, self._copy, self._unanswered = Held(), None, {}, None, 0

    def files(self) -> dict[str, Status]:
        """Return the files below the root with their status, or "" where it is one file itself."""
        if self._listing is None:
            self._listing = self._list()
        return self._listing

    def walk(self, skipped: frozenset[str]) -> Iterator[str]:
        """Yield the paths of the files in their order, apart from those in folders that are passed over."""
        for path in sorted(self.files()):
            folders = path.split("/")[:-1]
            if path and not any(name in skipped or name.startswith(".") for name in folders):
                yield path

    def status(self, file: str, fresh: bool = False) -> Status:
        """Return (bytes, time) of a file, as listed or else by asking. Raises FileNotFoundError or LocatorError."""
        place = self._place(file)
        if not fresh and self._listing is not None:
            if place not in self._listing:
                raise FileNotFoundError(file)
            known = self._listing[place]
        elif not fresh and place in self._statuses:
            known = self._statuses[place]
        else:
            known = self._statuses[place] = self._look(place)
        if known[0] == LINK:
            raise LocatorError(f"{file} is a link, which is not followed in a remote run.")
        return known

    def reader(self, file: str) -> RemoteFile:
        """Return a reader of a file. Raises FileNotFoundError or LocatorError."""
        reader = RemoteFile(self, file)
        self._refuse_links(file)
        return reader

    def read_range(self, file: str, start: int, end: int) -> bytes:
        """Return the bytes of a file from `start` up to `end`, which it has. Raises LocatorError."""
        if self._unanswered >= GIVEN_UP:
            raise RemoteError(f"{self.url}: {file} was not asked for, since the last requests had no answer either.")
        try:
            data = ask(f"{self.url}: {file}", lambda: self._fetched(file, start, end))
        except FileNotFoundError:
            raise LocatorError(f"{file} is not there any more (looked under {self.url}).") from None
        except RemoteError as error:
            self._unanswered = self._unanswered + 1 if error.may_pass else 0
            raise
        self._unanswered = 0
        return data

    def read(self, file: str, offset: int, length: int) -> bytes:
        """Return at most `length` bytes of a file in one request. Raises FileNotFoundError or LocatorError."""
        self._refuse_links(file)
        try:
            data = ask(f"{self.url}: {file}", lambda: self._bytes(file, offset, offset + length))
            if len(data) < length:
                self._system()[0].invalidate_cache()  # some systems remember a size that has been outgrown
                data = ask(f"{self.url}: {file}", lambda: self._bytes(file, offset, offset + length))
            return data
        except RemoteError:
            if self.status(file, fresh=True)[0] > offset:
                raise
            return b""  # some systems refuse a range behind the end

    def copy(self, reader: RemoteFile) -> PlainFile:
        """Return a whole file as a local, nameless one; that of the last file is kept."""
        import tempfile

        status = self.status(reader.file)
        if self._copy is None or self._copy[:2] != (reader.file, status):
            with tempfile.TemporaryFile() as target:
                for start in range(0, reader.size(), LARGEST):
                    target.write(reader.pread(LARGEST, start))
                target.flush()
                self._copy = (reader.file, status, _Descriptor(os.dup(target.fileno())))
        return PlainFile(os.dup(self._copy[2].number))

    def _system(self) -> tuple[Any, str]:
        with self._connecting:
            # A connection is of the process that made it: after a fork it is made anew.
            if self._connection is None or self._connection[0] != os.getpid():
                self._connection = (os.getpid(), *connect(self.url))
            return self._connection[1], self._connection[2]

    def _place(self, file: str) -> str:
        """Return a file's place in the listing; "" is the root itself. Raises LocatorError where it leads out."""
        if not isinstance(file, str) or not file or "\0" in file or {"", ".", ".."} & set(file.split("/")):
            raise LocatorError(f"Not a path inside a run: {file!r}.")
        is_root = "" in self._listing if self._listing is not None else self._is_named(file)
        return "" if is_root and file == self.name else file

    def _is_named(self, file: str) -> bool:
        # Without a listing: a folder would hold a file of its own name only by a very odd choice.
        return file == self.name

    def _full(self, place: str) -> str:
        base = self._system()[1]
        return f"{base}/{place}" if place else base

    def _refuse_links(self, file: str) -> None:
        """Refuse what a link on the server leads to outside the root, where there are links."""
        system, base = self._system()
        if (server := getattr(system, "ftp", None)) is None:
            return
        full, inside = self._full(self._place(file)), ask(self.url, lambda: server.normalize(base))
        real = ask(self.url, lambda: server.normalize(full))
        if real != inside and not real.startswith(f"{inside}/"):
            raise LocatorError(f"{file} leads outside the run's folder; what it points to is not read.")

    def _look(self, place: str) -> Status:
        system, _ = self._system()
        system.invalidate_cache()
        info = ask(
            f"{self.url}: {place or self.name}", lambda: system.info(self._full(place), **bounded(system, TIMEOUT))
        )
        if info.get("type") == "directory":
            raise FileNotFoundError(place)
        return status_of(info)

    def _fetched(self, file: str, start: int, end: int) -> bytes:
        data = self._bytes(file, start, end)
        if len(data) != end - start:
            raise Truncated(f"{len(data):,} bytes came instead of {end - start:,}")
        return data

    def _bytes(self, file: str, start: int, end: int) -> bytes:
        system, _ = self._system()
        full = self._full(self._place(file))
        # What is no network protocol of its own reads through a file object, which must not read ahead by itself.
        options: dict[str, Any] = bounded(system, TIMEOUT) or {"cache_type": "none"}
        return bytes(system.cat_file(full, start=start, end=end, **options))

    def _list(self) -> dict[str, Status]:
        system, base = self._system()
        try:
            # What lists asks again for each page by itself; all pages anew would take long.
            return ask(self.url, lambda: list_files(system, base), attempts=1)
        except FileNotFoundError:
            return {}
