"""The pages of `rltracer serve`: the runs below a folder and their steps, each read when it is opened.

They exist only where the plugin's configuration has `browse`, which names the folder and the database to fill.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from datasette.utils.asgi import Request, Response

from .access import may_view
from .addresses import DATABASE
from .browse_config import browse_config, browse_url
from .browse_folder import SHOWN, browser_of
from .browse_open import open_page
from .browse_runs import runs_page
from .browse_steps import steps_page
from .edge import Route

if TYPE_CHECKING:
    from datasette.app import Datasette

BROWSE = DATABASE + "/browse"


def routes(datasette: Datasette) -> list[Route]:
    """Return the addresses of these pages and what answers them; none where they are not configured."""
    if browse_config(datasette) is None:
        return []
    return [
        (r"^/-/rltracer/?$", first_page),
        (BROWSE + r"$", runs_page),
        (BROWSE + r"/(?P<run>[^/]+)$", steps_page),
        (BROWSE + r"/(?P<run>[^/]+)/(?P<step>[^/]+)$", open_page),
    ]


async def first_page(datasette: Datasette, request: Request) -> Response:
    """Lead to the list of runs."""
    database = browser_of(datasette).database
    await may_view(datasette, request, database, *SHOWN)
    return Response.redirect(browse_url(datasette, database))
