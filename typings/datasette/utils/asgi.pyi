from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from datasette.utils import MultiParams
from typing_extensions import Self

_Scope = dict[str, Any]
_Message = dict[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]

class Base400(Exception):
    status: int

class NotFound(Base400): ...
class Forbidden(Base400): ...
class BadRequest(Base400): ...

class Request:
    scope: _Scope
    receive: _Receive
    @property
    def method(self) -> str: ...
    @property
    def url(self) -> str: ...
    @property
    def url_vars(self) -> dict[str, str]: ...
    @property
    def headers(self) -> dict[str, str]: ...
    @property
    def path(self) -> str: ...
    @property
    def query_string(self) -> str: ...
    @property
    def args(self) -> MultiParams: ...
    @property
    def actor(self) -> dict[str, Any] | None: ...

class Response:
    body: str | bytes
    status: int
    headers: dict[str, str]
    content_type: str
    def __init__(
        self,
        body: str | bytes | None = None,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
        content_type: str = "text/plain",
    ) -> None: ...
    async def asgi_send(self, send: _Send) -> None: ...
    @classmethod
    def html(cls, body: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Self: ...
    @classmethod
    def text(cls, body: str, status: int = 200, headers: Mapping[str, str] | None = None) -> Self: ...
    @classmethod
    def json(cls, body: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Self: ...
    @classmethod
    def redirect(cls, path: str, status: int = 302, headers: Mapping[str, str] | None = None) -> Self: ...
