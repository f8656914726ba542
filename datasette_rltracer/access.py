"""Who may see a page: the database in its address has to be an index whose tables this visitor may view."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from datasette.utils import tilde_decode
from datasette.utils.asgi import Forbidden, NotFound, Request

from . import compat
from .indexes import is_known_index, is_rollout_index

if TYPE_CHECKING:
    from datasette.app import Datasette

PLUGIN = "datasette-rltracer"
MOST_INDEXES = 20  # that a page names


async def permitted_index(datasette: Datasette, request: Request, *tables: str) -> str:
    """Return the name of the index in the address, of which the visitor may view `trajectories` and these tables.

    Raises NotFound or Forbidden.
    """
    return await permitted_index_at(datasette, request, request.url_vars["database"], *tables)


async def permitted_index_at(datasette: Datasette, request: Request, route: str, *tables: str) -> str:
    """Return the same for a database by how an address has its name."""
    try:
        database = str(datasette.get_database(route=tilde_decode(route)).name)
    except KeyError:
        raise NotFound("There is no database of this name.") from None
    await may_view(datasette, request, database, "trajectories", *tables)
    if not await is_rollout_index(datasette, database):
        raise NotFound("This database is no index of rollouts.")
    return database


async def permitted_indexes(datasette: Datasette, request: Request, *tables: str) -> list[str]:
    """Return the names of the indexes of which the visitor may view these tables and `trajectories`, the first ones."""
    found: list[str] = []
    for name in [name for name in datasette.databases if is_known_index(datasette, name)]:
        if len(found) == MOST_INDEXES:
            break
        with suppress(Forbidden):
            await may_view(datasette, request, name, "trajectories", *tables)
            found.append(name)
    return found


async def may_view(datasette: Datasette, request: Request, database: str, *tables: str) -> None:
    """Raise Forbidden where the visitor may not view one of these tables."""
    hidden = await compat.first_hidden(datasette, request.actor, database, *dict.fromkeys(tables))
    if hidden is not None:
        raise Forbidden(f"You may not view {hidden} of this database.")
