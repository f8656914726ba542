"""Asking a file system on a network: an address without secrets, bounded retries, and one sentence for what failed."""

from __future__ import annotations

import errno
import re
import time
from collections.abc import Callable
from typing import Any, TypeVar

from ..errors import LocatorError, SourceError

Answer = TypeVar("Answer")

# scheme: the package that reads it beside fsspec. No other scheme is opened, whatever fsspec knows.
PACKAGES = {
    "s3": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "hf": "huggingface_hub",
    "ssh": "paramiko",
    "sftp": "paramiko",
    "az": "adlfs",
    "abfs": "adlfs",
}
# What is listed is remembered by a root for as long as it is good, so not by the file system as well.
UNCACHED = {"s3", "gs", "gcs", "az", "abfs"}
SSH = ("ssh", "sftp")
INSTALL = "pip install 'datasette-rltracer[remote]'"
URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)(.*)", re.DOTALL)
NOT_IN_A_URL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff\\?#]|::")
MAX_URL = 2_000

ATTEMPTS = 3
PAUSE = 0.5  # seconds before the second attempt; four times as many before the next
TIMEOUT = 120.0  # seconds for one answer, a listing apart
LISTING_TIMEOUT = 900.0
CONNECT_TIMEOUT = 20.0
KEEP_ALIVE = 30  # seconds
PASSING = {
    errno.EIO,
    getattr(errno, "EREMOTEIO", 121),
    errno.EAGAIN,
    errno.EBUSY,
    errno.ETIMEDOUT,
    errno.ECONNRESET,
    errno.EPIPE,
}
PASSING_NAMES = re.compile(r"Timeout|Payload|IncompleteRead|ServerDisconnected|Connection|ResponseStreaming")
MAX_SENTENCE = 200


class RemoteError(LocatorError):
    """A remote run that cannot be read, in a sentence that says why; `may_pass`: later it may be."""

    may_pass = False


class Truncated(OSError):
    """An answer with fewer bytes than there are."""


def is_url(text: str) -> bool:
    """Say whether a text is a URL rather than a path of this machine."""
    return URL.match(text) is not None


def canonical(text: str) -> str:
    """Return a URL in the one way in which it is written here. Raises SourceError for one that is not read."""
    match = URL.fullmatch(text) if len(text) <= MAX_URL else None
    if match is None:
        raise SourceError(f"{redacted(text)[:MAX_SENTENCE]} is no URL of a run.")
    scheme, host, path = match[1].lower(), match[2], match[3]
    if scheme not in PACKAGES:
        known = ", ".join(f"{name}://" for name in PACKAGES)
        raise SourceError(f"{redacted(text)} cannot be read: a run is a path of this machine, or a URL with {known}.")
    if "@" in host:
        raise SourceError(
            f"{redacted(text)} names a user or a password, which a URL must not: an index would keep it. "
            "See docs/remote.md for where credentials come from."
        )
    parts = [part for part in path.split("/") if part]
    if not host or NOT_IN_A_URL.search(text) or {".", ".."} & set(parts):
        raise SourceError(f"{redacted(text)} is no plain URL of a run, such as {scheme}://bucket/folder/run.")
    return "/".join([f"{scheme}://{host}", *parts])


def redacted(text: str) -> str:
    """Return a text without what could be a name, a password or a signature in the URLs that it holds."""
    return re.sub(r"\?[^\s\"']*", "?…", re.sub(r"://[^/\s\"']*@", "://…@", text))


def connect(url: str) -> tuple[Any, str]:
    """Return the file system behind a URL and the path in it. Raises SourceError naming a package that is missing."""
    scheme = url.partition("://")[0]
    try:
        from fsspec.core import url_to_fs
    except ImportError:
        raise SourceError(f"{url} needs fsspec: {INSTALL}.") from None
    options = {"use_listings_cache": False} if scheme in UNCACHED else {}
    try:
        system, path = ask(url, lambda: _over_ssh(url) if scheme in SSH else url_to_fs(url, **options))
    except ImportError:
        package = PACKAGES[scheme]
        how = INSTALL if package == "s3fs" else f"pip install {package}"
        raise SourceError(f"{url} needs {package}: {how}.") from None
    return system, str(path).rstrip("/")


def _over_ssh(url: str) -> tuple[Any, str]:
    # Of the implementations there are, the one that can say where a path really leads on the server.
    from fsspec.implementations.sftp import SFTPFileSystem

    system = SFTPFileSystem(**SFTPFileSystem._get_kwargs_from_urls(url), timeout=CONNECT_TIMEOUT)
    if (transport := system.client.get_transport()) is None or not transport.is_active():
        system._connect()  # it is shared, and has been cut off since it was used
    system.client.get_transport().set_keepalive(KEEP_ALIVE)
    system.ftp.get_channel().settimeout(TIMEOUT)
    return system, SFTPFileSystem._strip_protocol(url)


def ask(where: str, call: Callable[[], Answer], attempts: int | None = None) -> Answer:
    """Return an answer, asking again a few times where the fault may pass.

    Raises FileNotFoundError, ImportError, or RemoteError with a sentence about `where`.
    """
    attempts = attempts or ATTEMPTS
    for attempt in range(attempts):
        try:
            return call()
        except (FileNotFoundError, ImportError, SourceError):
            raise
        except Exception as error:  # each file system raises what the library behind it raises
            may_pass = _may_pass(error)
            if attempt == attempts - 1 or not may_pass:
                told = RemoteError(f"{where} cannot be read: {_sentence(error)}.")
                told.may_pass = may_pass
                raise told from None
        time.sleep(PAUSE * 4**attempt)
    raise AssertionError


def bounded(system: Any, seconds: float) -> dict[str, Any]:
    """Return the argument that bounds the time of a call, where a file system takes one."""
    return {"timeout": seconds} if getattr(system, "async_impl", False) else {}


def _may_pass(error: Exception) -> bool:
    if isinstance(error, PermissionError):
        return False
    if isinstance(error, (TimeoutError, ConnectionError, EOFError, Truncated)):
        return True
    return getattr(error, "errno", None) in PASSING or PASSING_NAMES.search(type(error).__name__) is not None


def _sentence(error: Exception) -> str:
    name, first = type(error).__name__, (str(error).strip().splitlines() or [""])[0]
    text = re.sub(r"^\[Errno \w+\] ", "", first).rstrip(".")
    if "Credential" in name or "TokenNotFound" in name:
        return "no credentials were found; docs/remote.md says where they come from"
    if isinstance(error, PermissionError):
        return f"access is denied ({redacted(text)[:MAX_SENTENCE]})"
    if isinstance(error, TimeoutError) or "Timeout" in name:
        return "there was no answer in time"
    return redacted(text)[:MAX_SENTENCE] or name
