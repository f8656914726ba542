"""What a remote file system says of its files: their paths, sizes, and times that tell one version from another."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from hashlib import blake2b
from typing import Any

from .remote_requests import LISTING_TIMEOUT, bounded

Status = tuple[int, int]  # bytes, and a number that changes with the content: see `status_of`
LINK = -1  # instead of the size of what is a link
SECOND = 1_000_000_000
LARGEST = 1 << 62  # of what an index can keep
ETAGS = ("ETag", "etag", "generation", "blob_id", "md5Hash", "content_md5")
TIMES = ("LastModified", "mtime", "updated", "last_modified", "created")


def list_files(system: Any, base: str) -> dict[str, Status]:
    """Return the files below a place by their paths from there; by "" where the place itself is one.

    Raises FileNotFoundError, or what the file system raises.
    """
    system.invalidate_cache()
    if getattr(system, "ftp", None) is not None:
        found = dict(_walked(system, base))
    else:
        listed = system.find(base, detail=True, **bounded(system, LISTING_TIMEOUT))
        found = {name: info for name, info in listed.items() if info.get("type") != "directory"}
    inside = {name[len(base) + 1 :]: status_of(info) for name, info in found.items() if name.startswith(f"{base}/")}
    return inside or ({"": status_of(found[base])} if base in found else {})


def _walked(system: Any, base: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """List folder by folder, following no link."""
    info = system.info(base)
    if info["type"] != "directory":
        yield base, info
        return
    pending = [base]
    while pending:
        for info in system.ls(pending.pop(), detail=True):
            name = str(info["name"]).rstrip("/")
            if info["type"] != "directory":
                yield name, info
            elif not name.rpartition("/")[2].startswith("."):
                pending.append(name)


def status_of(info: dict[str, Any]) -> Status:
    """Return (bytes, time) of a file: its time in nanoseconds, the part below a second made of its ETag.

    Object stores tell times in seconds, in which an object may be written twice; an ETag tells the contents apart.
    """
    size = LINK if info.get("type") == "link" else min(max(int(info.get("size") or 0), 0), LARGEST)
    time = next((info[name] for name in TIMES if info.get(name)), 0)
    if isinstance(time, str):
        try:
            time = datetime.fromisoformat(time.replace("Z", "+00:00"))
        except ValueError:
            time = 0
    seconds = min(max(time.timestamp() if isinstance(time, datetime) else float(time), 0), LARGEST / SECOND)
    etag = next((str(info[name]) for name in ETAGS if info.get(name)), None)
    if etag is None:
        return size, int(seconds * SECOND)
    digest = int.from_bytes(blake2b(etag.encode(), digest_size=8).digest(), "big")
    return size, int(seconds) * SECOND + digest % SECOND
