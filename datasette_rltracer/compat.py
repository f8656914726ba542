"""The few places where Datasette 0.65 and 1.0 differ; delete this module with 0.65 support."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from datasette.utils.asgi import Forbidden

try:
    from datasette.jump import JumpSQL
    from datasette.resources import DatabaseResource, TableResource
except ImportError:  # Datasette 0.x
    IS_1 = False
else:
    IS_1 = True

if TYPE_CHECKING:
    from datasette.app import Datasette
    from datasette.permissions import Resource

Actor = Mapping[str, Any] | None  # whoever asks, as Datasette tells it; None is nobody in particular
HAS_TOP_HOOKS = IS_1  # for a line at the top of a page
# What 1.0 keeps in its configuration; the rest of a table's metadata is description.
CONFIGURATION = {"label_column", "facets", "sort", "sort_desc", "hidden", "fts_table", "fts_pk"}


async def first_hidden(datasette: Datasette, actor: Actor, database: str, *tables: str) -> str | None:
    """Return the first of these tables that this actor may not see, or None where the actor may see all of them.

    Each is asked for together with its database and the instance. The table pages of 1.0 ask about the table alone,
    so that a block of permissions on the database or the instance does not close them. Our pages are of the whole
    index, so each of the three closes them.
    """
    if IS_1:
        return await _first_hidden_on_1(datasette, actor, database, tables)
    around: bool | None = None  # what the database and the instance say, asked once for all tables that say nothing
    for table in tables:
        allowed = await datasette.permission_allowed(actor, "view-table", resource=(database, table), default=None)
        if allowed is None:
            if around is None:
                around = await _may_enter(datasette, actor, database)
            allowed = around
        if not allowed:
            return table
    return None


async def _may_enter(datasette: Datasette, actor: Actor, database: str) -> bool:
    try:
        await datasette.ensure_permissions(actor, [("view-database", database), "view-instance"])
    except Forbidden:
        return False
    return True


async def _first_hidden_on_1(datasette: Datasette, actor: Actor, database: str, tables: Iterable[str]) -> str | None:
    for table in tables:
        asked: dict[str, Resource | None] = {
            "view-instance": None,
            "view-database": DatabaseResource(database=database),
            "view-table": TableResource(database=database, table=table),
        }
        for action, resource in asked.items():  # within a request Datasette keeps the answers
            if not await datasette.allowed(action=action, resource=resource, actor=actor):
                return table
    return None


async def can_execute_sql(datasette: Datasette, actor: Actor, database: str) -> bool:
    """Say whether this actor may write queries over this database."""
    if IS_1:
        resource = DatabaseResource(database=database)
        return bool(await datasette.allowed(action="execute-sql", resource=resource, actor=actor))
    return bool(await datasette.permission_allowed(actor, "execute-sql", resource=database, default=True))


def jump_item(label: str, url: str, description: str) -> JumpSQL:
    """Return an entry of 1.0's jump menu; 0.65 has none and never asks for one."""
    return JumpSQL.menu_item(label=label, url=url, description=description)


def plugin_config(datasette: Datasette, plugin: str, database: str) -> dict[str, Any]:
    """Return a plugin's configuration for a database, else the one for all of them."""
    own = datasette.plugin_config(plugin, database=database)
    # 1.0a41 forgets to fall back by itself where a database has any other configuration.
    return (own if own is not None else datasette.plugin_config(plugin)) or {}


async def describe_tables(datasette: Datasette, database: str, tables: dict[str, dict[str, Any]]) -> None:
    """Give the tables of a database their metadata on 1.0, where the user has not given any."""
    if not IS_1:
        return  # 0.65 asks for it: see `offered_metadata`
    _configure_tables(datasette, database, tables)
    for table, metadata in tables.items():
        given = await datasette.get_resource_metadata(database, table)
        if "description" in metadata and not {"description", "description_html"} & set(given):
            await datasette.set_resource_metadata(database, table, "description", metadata["description"])
        for column, description in metadata.get("columns", {}).items():
            if "description" not in await datasette.get_column_metadata(database, table, column):
                await datasette.set_column_metadata(database, table, column, "description", description)


def _configure_tables(datasette: Datasette, database: str, tables: dict[str, dict[str, Any]]) -> None:
    databases = _inner(datasette.config, "databases")
    if not databases.get(database) and datasette.config.get("plugins"):
        # See `plugin_config`: without this a configuration of the database would hide that of every plugin.
        databases[database] = {"plugins": dict(datasette.config["plugins"])}
    configured = _inner(_inner(databases, database), "tables")
    for table, metadata in tables.items():
        users = _inner(configured, table)
        for key, value in _without_second_order(metadata, users).items():
            if key in CONFIGURATION:
                users.setdefault(key, value)


def _inner(outer: dict[str, Any], key: str) -> dict[str, Any]:
    inner = outer.get(key)
    if not isinstance(inner, dict):
        inner = outer[key] = {}
    return inner


def offered_metadata(
    datasette: Datasette, key: str | None, database: str | None, known: dict[str, dict[str, dict[str, Any]]]
) -> dict[str, Any]:
    """Return the metadata of the tables of the `known` databases, for 0.65's question after `key`.

    Datasette merges the user's metadata into the answer, so that the user's wins; hence the copies. Other keys
    than this one decide about permissions and plugins, where an answer could hide what the user has set; and with
    neither a key nor a database /-/metadata asks, which shows all of them to whoever may see one.
    """
    if key != "databases" and (key is not None or database is None):
        return {}
    users = datasette._metadata_local.get("databases") or {}
    return {
        "databases": {
            name: {"tables": {table: _copy(metadata, _table(users, name, table)) for table, metadata in tables.items()}}
            for name, tables in known.items()
        }
    }


def _table(databases: dict[str, Any], database: str, table: str) -> dict[str, Any]:
    tables = (databases.get(database) or {}).get("tables") or {}
    return tables.get(table) or {}


def _copy(metadata: dict[str, Any], users: dict[str, Any]) -> dict[str, Any]:
    copy = _without_second_order(metadata, users)
    return {**copy, "columns": dict(copy["columns"])} if "columns" in copy else dict(copy)


def _without_second_order(metadata: dict[str, Any], users: dict[str, Any]) -> dict[str, Any]:
    """Return metadata without its order of rows where the user has chosen one: two orders exclude each other."""
    if {"sort", "sort_desc"} & set(users):
        return {key: value for key, value in metadata.items() if key not in ("sort", "sort_desc")}
    return metadata
