"""Whether runs below a folder are offered, and where their pages are; `serve` has the pages themselves."""

from __future__ import annotations

from typing import Any

from datasette.utils import tilde_encode

from .access import PLUGIN
from .addresses import own_url


def browse_config(datasette: Any) -> dict[str, Any] | None:
    """Return the configuration of these pages, or None where there is none."""
    found = (datasette.plugin_config(PLUGIN) or {}).get("browse")
    return found if isinstance(found, dict) and {"root", "database"} <= set(found) else None


def browse_url(datasette: Any, database: str, run: str | None = None, step: str | None = None, **query: Any) -> str:
    """Return the address of the list of runs, of a run's steps, or of the opening of one."""
    parts = ["browse", *(tilde_encode(part) for part in (run, step) if part is not None)]
    return own_url(datasette, database, "/".join(parts), query.items())


def browsed_database(datasette: Any) -> str | None:
    """Return the database that these pages fill, or None where they do not exist."""
    config = browse_config(datasette)
    return str(config["database"]) if config and config["database"] in datasette.databases else None
