"""The rows that an address of Datasette's gives, on either line."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlsplit

from datasette.app import Datasette


async def sql_rows(datasette: Datasette, address: str) -> list[dict[str, Any]]:
    """Return the rows of the query in an address such as /db?sql=…; follows 1.0's redirect."""
    parts = urlsplit(address)
    base = datasette.setting("base_url").rstrip("/")
    response = await datasette.client.get(
        f"{parts.path.removeprefix(base)}.json?{parts.query}&_shape=array", follow_redirects=True
    )
    assert response.status_code == 200, response.text
    return list(response.json())


async def table_rows_of(datasette: Datasette, address: str) -> list[dict[str, Any]]:
    """Return the rows of a table's page."""
    parts = urlsplit(address)
    response = await datasette.client.get(f"{parts.path}.json?{parts.query}&_shape=array&_size=max")
    assert response.status_code == 200, response.text
    return list(response.json())
