"""Sending what a blocking generator makes: off the event loop, and no longer than the visitor stays."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from datasette.utils.asgi import Response

Made = TypeVar("Made")
Message = dict[str, Any]  # of ASGI, as are the functions that give and take one
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
STALL_SECONDS = 60.0  # a visitor may take this long for a piece
PIECE_BYTES = 1 << 18


class VisitorLeft(Exception):
    """The visitor has closed the connection, so nobody waits for what is being made."""


class VisitorStalled(Exception):
    """The visitor takes nothing of what is sent."""


class Visitor:
    """Whether the visitor of a request is still there. Close it when the request has been answered."""

    def __init__(self, receive: Receive) -> None:
        self.left = threading.Event()  # asked by the thread that does the work
        self.task = asyncio.ensure_future(self._watch(receive))

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.left.set()

    def stay_or_raise(self, *_: object) -> None:
        """Raise VisitorLeft where the visitor has gone; takes whatever a progress callback is told."""
        if self.left.is_set():
            raise VisitorLeft

    async def run(self, work: Callable[..., Made], *arguments: Any) -> Made:
        """Return what blocking work returns, done in another thread."""
        return await asyncio.get_running_loop().run_in_executor(None, work, *arguments)

    def close(self) -> None:
        """Wait for the visitor no longer, and end work that goes on in another thread."""
        self.left.set()
        self.task.cancel()


class PatientResponse(Response):
    """An answer that is sent piece by piece to a visitor who reads it, and no longer."""

    body: bytes
    on_end: Callable[[], None] = staticmethod(lambda: None)

    async def asgi_send(self, send: Send) -> None:
        try:
            await _started(self, send)
            for start in range(0, len(self.body), PIECE_BYTES):
                await _taken(send, self.body[start : start + PIECE_BYTES])
            await send({"type": "http.response.body", "body": b""})
        except VisitorStalled:
            pass  # as below
        finally:
            self.on_end()


class StreamingResponse(Response):
    """A download whose bytes come from a blocking iterator. It closes the iterator, `opened` and the watch.

    A visitor who stops reading without leaving is taken for gone after STALL_SECONDS.
    """

    def __init__(
        self,
        chunks: Iterator[bytes],
        visitor: Visitor,
        opened: AbstractContextManager[object],
        filename: str,
        content_type: str,
        on_end: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__(status=200, content_type=content_type)
        self.on_end = on_end
        self.chunks, self.visitor, self.opened = chunks, visitor, opened
        self.headers["content-disposition"] = f'attachment; filename="{filename}"'
        self.headers["x-content-type-options"] = "nosniff"
        self.headers["cache-control"] = "no-store"

    async def asgi_send(self, send: Send) -> None:
        try:
            await self._send(send)
        except (VisitorLeft, VisitorStalled):
            pass  # nobody is there to be told; the server ends a connection whose answer is not complete
        finally:
            self.visitor.close()
            try:
                await self.visitor.run(self._close)
            finally:
                self.on_end()

    async def _send(self, send: Send) -> None:
        await _started(self, send)
        while not self.visitor.left.is_set():
            chunk = await self.visitor.run(next, self.chunks, None)
            if chunk is None:
                await send({"type": "http.response.body", "body": b""})
                return
            for start in range(0, len(chunk), PIECE_BYTES):
                await _taken(send, chunk[start : start + PIECE_BYTES])

    def _close(self) -> None:
        try:
            self._close_chunks()
        finally:
            self.opened.__exit__(None, None, None)

    def _close_chunks(self) -> None:
        close = getattr(self.chunks, "close", None)
        if close is not None:
            close()


async def _started(answer: Response, send: Send) -> None:
    headers = {**answer.headers, "content-type": answer.content_type}
    if "cache-control" in headers:
        headers.pop("Cache-Control", None)  # which Datasette adds to the answers of tables
    pairs = [[name.encode("latin-1"), value.encode("latin-1")] for name, value in headers.items()]
    await send({"type": "http.response.start", "status": answer.status, "headers": pairs})


async def _taken(send: Send, piece: bytes) -> None:
    """Send a piece. Raises VisitorStalled where the visitor does not take it."""
    try:
        await asyncio.wait_for(send({"type": "http.response.body", "body": piece, "more_body": True}), STALL_SECONDS)
    except asyncio.TimeoutError:
        raise VisitorStalled from None
