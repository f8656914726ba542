"""Who is asking: pages of other sites, which a browser on this machine may have been led to, are not to use `serve`.

`rltracer serve` listens on this machine only, and asks for no password. A foreign page can still send the browser
there: by a link or an image, and by a name of its own that it lets point to 127.0.0.1 (DNS rebinding), with which it
could even read the answers. Its name then stands in the Host header.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from ipaddress import ip_address
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from .browse_config import browse_config
from .stream import Receive, Send

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.utils.asgi import Request

Scope = dict[str, Any]  # of ASGI, as is what answers in it
App = Callable[[Scope, Receive, Send], Awaitable[None]]

REFUSED = b"This server answers to localhost and to addresses in numbers, not to the name in this request.\n"


def checked_host(datasette: Datasette) -> Callable[[App], App]:
    """Return what refuses other names than this machine's, where `rltracer serve` listens on this machine only."""

    def wrap(app: App) -> App:
        async def answer(scope: Scope, receive: Receive, send: Send) -> None:
            if scope["type"] != "http" or is_this_machine(_header(scope, b"host")) or not _is_only_here(datasette):
                await app(scope, receive, send)
                return
            headers = [[b"content-type", b"text/plain; charset=utf-8"], [b"x-content-type-options", b"nosniff"]]
            await send({"type": "http.response.start", "status": 421, "headers": headers})
            await send({"type": "http.response.body", "body": REFUSED})

        return answer

    return wrap


def _is_only_here(datasette: Datasette) -> bool:
    return bool((browse_config(datasette) or {}).get("only_here"))


def _header(scope: Scope, name: bytes) -> str:
    found = [value for key, value in scope.get("headers") or [] if key.lower() == name]
    return found[0].decode("latin-1") if len(found) == 1 else ""


def is_this_machine(host: str) -> bool:
    """Say whether a Host header names this machine: localhost, or an address in numbers, which no site can rebind."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return False
    try:
        return bool(ip_address(name))
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")


def is_from_elsewhere(request: Request) -> bool:
    """Say whether another site has led the browser here: by Fetch Metadata, else by the Referer."""
    site = request.headers.get("sec-fetch-site")
    if site is not None:
        return str(site) not in ("same-origin", "none")
    referer = request.headers.get("referer")
    return bool(referer) and urlsplit(referer).netloc != request.headers.get("host")
