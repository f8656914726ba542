"""The kinds of training data that a table can be downloaded as, at its address with `.sft`, `.rl` or `.preference`.

`/db/trajectories.sft?<filters>` has rows for SFT, `.rl` prompts and `.preference` pairs. The filters are Datasette's
own, and Datasette itself applies them, as the visitor.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from datasette.utils.asgi import BadRequest, NotFound, Request, Response

from .bounds import Busy
from .edge import come_again, within
from .export_download import download
from .export_options import MODES, TABLES, Refused, in_address_words
from .export_page import form_page
from .indexes import is_known_index, is_rollout_index

if TYPE_CHECKING:
    from datasette.app import Datasette


def renderers() -> list[dict[str, Any]]:
    """Return an output renderer per kind of training data, for `register_output_renderer`."""
    return [{"extension": mode, "render": _renderer(mode), "can_render": can_render} for mode in MODES]


def can_render(datasette: Datasette, database: str, table: str | None, view_name: str) -> bool:
    """Say whether a page offers training data: the tables of an index that trajectories can be chosen in."""
    return view_name == "table" and table in TABLES and is_known_index(datasette, database)


def _renderer(mode: str) -> Callable[..., Awaitable[Response]]:
    async def render(
        datasette: Datasette, request: Request, database: str, table: str | None, view_name: str
    ) -> Response:
        if view_name != "table" or table not in TABLES or not await is_rollout_index(datasette, database):
            raise NotFound("Training data is made of the tables trajectories and prompt_groups of an index.")
        try:
            return await within(datasette, database, download(datasette, request, database, table, mode))
        except BadRequest as error:
            if "text/html" not in (request.headers.get("accept") or ""):
                # A program sees nothing but its address.
                raise BadRequest(in_address_words(str(error))) if isinstance(error, Refused) else error from None
            # A person gets the form as it was filled in, and the reason.
            return await form_page(datasette, request, database, table, str(error), 400)
        except Busy as error:
            return come_again(error)

    return render
