"""A bucket on an S3 server of this machine, which is read in small pieces."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from rltracer_sqlite.sources import remote_file, remote_requests
from tests.remote.s3_server import S3Server

PIECE = 64 << 10


@pytest.fixture(scope="session")
def server() -> Iterator[S3Server]:
    """The server of all tests of a process: file systems of s3fs are kept, and each keeps the address it began with."""
    for name in ("s3fs", "moto"):
        pytest.importorskip(name, reason=f"{name} is not installed: pip install 'datasette-rltracer[remote-test]'")
    server = S3Server()
    yield server
    server.stop()


@pytest.fixture
def s3(server: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """A bucket that is empty, and reading in small pieces with short pauses."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", server.endpoint)
    for name, text in {"ACCESS_KEY_ID": "id", "SECRET_ACCESS_KEY": "hush-hush", "DEFAULT_REGION": "us-east-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", text)
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setattr("s3fs.S3FileSystem.retries", 1)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name, size in {"FIRST": 4 << 10, "SMALL": 8 << 10, "END": 4 << 10, "LARGEST": PIECE}.items():
        monkeypatch.setattr(remote_file, name, size)
    monkeypatch.setattr(remote_requests, "PAUSE", 0.01)
    server.reset()
    return server
