"""Files of ours that browsers keep without asking again: the address of one changes with what is in it."""

from __future__ import annotations

from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

if TYPE_CHECKING:
    from datasette.app import Datasette

    from .hosts import App, Scope
    from .stream import Receive, Send

STATIC = Path(__file__).parent / "static"
PLUGIN = "datasette-rltracer"
FOR_A_YEAR = (b"cache-control", b"max-age=31536000, immutable")


def static_url(datasette: Datasette, name: str) -> str:
    """Return the address of a file of ours; it changes with the file, so that browsers do not keep an old one."""
    # Added and not formatted: the sum stays the kind of string that Datasette does not prefix again.
    return datasette.urls.static_plugins(PLUGIN, name) + f"?v={_versions()[name]}"


@cache
def _versions() -> dict[str, str]:
    return {file.name: sha256(file.read_bytes()).hexdigest()[:10] for file in STATIC.iterdir() if file.is_file()}


def kept_by_browsers(app: App) -> App:
    """Return an application that tells browsers to keep the files of ours that are asked for by their whole address."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        async def kept(event: dict[str, Any]) -> None:
            if event["type"] == "http.response.start" and event["status"] == 200:
                others = [header for header in event["headers"] if header[0].lower() != FOR_A_YEAR[0]]
                event = {**event, "headers": [*others, FOR_A_YEAR]}
            await send(event)

        await app(scope, receive, kept if _is_of_today(scope) else send)

    return answer


def _is_of_today(scope: Scope) -> bool:
    if scope["type"] != "http":
        return False
    folder, _, name = scope["path"].rpartition("/")
    version = parse_qs(scope["query_string"].decode("latin-1")).get("v")
    return folder.endswith(f"/-/static-plugins/{PLUGIN}") and version == [_versions().get(name)]
