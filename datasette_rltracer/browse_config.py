"""Whether runs below a folder are offered, and where their pages are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from datasette.utils import tilde_encode

from .access import PLUGIN
from .addresses import own_url

if TYPE_CHECKING:
    from datasette.app import Datasette


def browse_config(datasette: Datasette) -> dict[str, Any] | None:
    """Return the configuration of these pages, or None where there is none."""
    found = (datasette.plugin_config(PLUGIN) or {}).get("browse")
    return found if isinstance(found, dict) and {"root", "database"} <= set(found) else None


def browse_url(
    datasette: Datasette, database: str, run: str | None = None, step: str | None = None, **query: Any
) -> str:
    """Return the address of the list of runs, of a run's steps, or of the opening of one."""
    parts = ["browse", *(tilde_encode(part) for part in (run, step) if part is not None)]
    return own_url(datasette, database, "/".join(parts), query.items())


def browsed_database(datasette: Datasette) -> str | None:
    """Return the database that these pages fill, or None where they do not exist: what is read goes into a file."""
    attached = datasette.databases.get(str((browse_config(datasette) or {}).get("database")))
    return attached.name if attached is not None and attached.path is not None else None
