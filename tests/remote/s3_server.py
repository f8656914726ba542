"""An S3 server on this machine for tests: moto's, with every request counted and any of them made to fail."""

from __future__ import annotations

import threading
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from tests.serving import PATIENCE

BUCKET = "runs"
# Whose signature it is counts for nothing here, but without one an object cannot be written again.
SIGNED = "AWS4-HMAC-SHA256 Credential=id/20260101/us-east-1/s3/aws4_request, SignedHeaders=host, Signature=x"
Respond = Callable[..., Any]
Fault = Callable[[dict[str, Any], Respond], "Iterable[bytes] | None"]


class Request(NamedTuple):
    """One request: LIST, HEAD, GET or another method, the key, the range asked for, and the bytes of the answer."""

    method: str
    key: str
    range: str | None
    bytes: int


class S3Server:
    """A bucket called "runs" behind `endpoint`. `fault` may answer a request in place of the server."""

    def __init__(self) -> None:
        # Imported as late as here: whoever collects the tests would wait for it.
        from moto.server import DomainDispatcherApplication, create_backend_app
        from werkzeug.serving import make_server

        self.app = DomainDispatcherApplication(create_backend_app)
        self.requests: list[Request] = []
        self.fault: Fault | None = None
        self.under_way, self.idle = 0, threading.Condition()
        self.server = make_server("127.0.0.1", 0, self._answer, threaded=True)
        self.endpoint = f"http://127.0.0.1:{self.server.server_port}"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def stop(self) -> None:
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()

    def put(self, key: str, data: bytes) -> None:
        """Write an object."""
        self._send("PUT", key, data)

    def delete(self, key: str) -> None:
        """Delete an object; "" deletes the bucket."""
        self._send("DELETE", key)

    def upload(self, folder: Path, prefix: str) -> None:
        """Write each file of a folder as an object."""
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            self.put(f"{prefix}/{file.relative_to(folder).as_posix()}", file.read_bytes())

    def reset(self) -> None:
        """Make everything new and empty."""
        self.fault = None
        with self._opener().open(urllib.request.Request(f"{self.endpoint}/moto-api/reset", method="POST")):
            self._send("PUT", "")
        self.requests.clear()

    def asked(self, *methods: str) -> list[Request]:
        """Return the requests so far that have one of these methods, all of them without any."""
        return [request for request in self.requests if not methods or request.method in methods]

    @contextmanager
    def failing(self, fault: Fault) -> Iterator[None]:
        self.fault = fault
        try:
            yield
        finally:
            self.fault = None
            self._let_end()

    def _let_end(self) -> None:
        """Wait for the requests that nobody waits for any more: they are none of what comes next."""
        with self.idle:
            assert self.idle.wait_for(lambda: not self.under_way, PATIENCE)

    def _send(self, method: str, key: str, data: bytes | None = None) -> None:
        address = f"{self.endpoint}/{BUCKET}/{key}"
        headers = {"Content-Type": "application/octet-stream", "Authorization": SIGNED}
        with self._opener().open(urllib.request.Request(address, data, headers, method=method)):
            self.requests.pop()

    def _opener(self) -> urllib.request.OpenerDirector:
        return urllib.request.build_opener(urllib.request.ProxyHandler({}))

    def _answer(self, environ: dict[str, Any], respond: Respond) -> Iterable[bytes]:
        with self.idle:
            self.under_way += 1
        try:
            return self._answered(environ, respond)
        finally:
            with self.idle:
                self.under_way -= 1
                self.idle.notify_all()

    def _answered(self, environ: dict[str, Any], respond: Respond) -> Iterable[bytes]:
        answer = self.fault(environ, respond) if self.fault else None
        body = b"".join(self.app(environ, respond) if answer is None else answer)
        method, key = environ["REQUEST_METHOD"], environ["PATH_INFO"].removeprefix(f"/{BUCKET}").strip("/")
        if method == "GET" and "list-type" in environ["QUERY_STRING"]:
            method = "LIST"
        self.requests.append(Request(method, key, environ.get("HTTP_RANGE"), len(body)))
        return [body]


def refusing(status: str, method: str = "GET", times: int = 1_000_000) -> Fault:
    """Return a fault that answers a method, of a key and not of a list, with an error so many times."""
    left = [times]

    def fault(environ: dict[str, Any], respond: Respond) -> Iterable[bytes] | None:
        if environ["REQUEST_METHOD"] != method or "list-type" in environ["QUERY_STRING"] or not left[0]:
            return None
        left[0] -= 1
        respond(status, [("Content-Type", "application/xml")])
        return [b"<Error><Code>%s</Code><Message>refused</Message></Error>" % status.split()[1].encode()]

    return fault
