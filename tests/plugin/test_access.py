"""Who may see the tables of an index, and that a page asks for it no more often than it must."""

from __future__ import annotations

import pytest

from datasette_rltracer.compat import IS_1, first_hidden

pytestmark = pytest.mark.asyncio
TABLES = ("trajectories", "runs", "steps")
ROOT = {"id": "root"}


def allowed(**tables):
    """Return the metadata, or the configuration of 1.0, that allows what is named to the root user alone."""
    database = {"tables": {table: {"allow": ROOT} for table in tables.pop("tables", ())}, **tables}
    return {"config" if IS_1 else "metadata": {"databases": {"run": database}}}


@pytest.mark.parametrize(
    ("given", "hidden"),
    [
        ({}, None),
        (allowed(tables=["steps"]), "steps"),
        (allowed(tables=["runs", "steps"]), "runs"),
        (allowed(tables=["prompts"]), None),
        (allowed(allow=ROOT), "trajectories"),
    ],
)
async def test_the_first_table_that_is_hidden_is_named(serve, given, hidden):
    datasette = serve(**given)
    await datasette.invoke_startup()
    assert await first_hidden(datasette, None, "run", *TABLES) == hidden
    assert await first_hidden(datasette, ROOT, "run", *TABLES) is None


@pytest.mark.skipif(IS_1, reason="1.0 keeps the answers within a request")
async def test_the_database_and_the_instance_are_asked_once_and_for_the_visitor_alone(serve):
    datasette = serve()
    await datasette.invoke_startup()
    assert await first_hidden(datasette, ROOT, "run", *TABLES) is None
    asked = [(check["action"], check["actor"]) for check in datasette._permission_checks]
    actions = ["view-table", "view-database", "view-instance", "view-table", "view-table"]
    assert asked == [(action, ROOT) for action in actions]
