"""Sending what a blocking generator makes: off the event loop, and no longer than the visitor stays."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, TypeVar

from datasette.utils.asgi import Response

Made = TypeVar("Made")


class VisitorLeft(Exception):
    """The visitor has closed the connection, so nobody waits for what is being made."""


class Visitor:
    """Whether the visitor of a request is still there. Close it when the request has been answered."""

    def __init__(self, receive: Callable[[], Any]) -> None:
        self.left = threading.Event()  # asked by the thread that does the work
        self.task = asyncio.ensure_future(self._watch(receive))

    async def _watch(self, receive: Callable[[], Any]) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self.left.set()

    def stay_or_raise(self, *_: Any) -> None:
        """Raise VisitorLeft where the visitor has gone; takes whatever a progress callback is told."""
        if self.left.is_set():
            raise VisitorLeft

    async def run(self, work: Callable[..., Made], *arguments: Any) -> Made:
        """Return what blocking work returns, done in another thread."""
        return await asyncio.get_running_loop().run_in_executor(None, work, *arguments)

    def close(self) -> None:
        self.task.cancel()


class StreamingResponse(Response):  # type: ignore[misc]
    """A download whose bytes come from a blocking iterator. It closes the iterator, `opened` and the watch."""

    def __init__(
        self,
        chunks: Iterator[bytes],
        visitor: Visitor,
        opened: AbstractContextManager[Any],
        filename: str,
        content_type: str,
    ) -> None:
        super().__init__(status=200, content_type=content_type)
        self.chunks, self.visitor, self.opened = chunks, visitor, opened
        self.headers["content-disposition"] = f'attachment; filename="{filename}"'
        self.headers["x-content-type-options"] = "nosniff"
        self.headers["cache-control"] = "no-store"

    async def asgi_send(self, send: Callable[[dict[str, Any]], Any]) -> None:
        try:
            await self._send(send)
        except VisitorLeft:
            pass  # nobody is there to be told
        finally:
            self.visitor.close()
            await self.visitor.run(self._close)

    async def _send(self, send: Callable[[dict[str, Any]], Any]) -> None:
        headers = {**self.headers, "content-type": self.content_type}
        pairs = [[name.encode("latin-1"), value.encode("latin-1")] for name, value in headers.items()]
        await send({"type": "http.response.start", "status": self.status, "headers": pairs})
        while not self.visitor.left.is_set():
            chunk = await self.visitor.run(next, self.chunks, None)
            if chunk is None:
                await send({"type": "http.response.body", "body": b""})
                return
            await send({"type": "http.response.body", "body": chunk, "more_body": True})

    def _close(self) -> None:
        close = getattr(self.chunks, "close", None)
        if close is not None:
            close()
        self.opened.__exit__(None, None, None)
