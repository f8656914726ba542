"""An index of an earlier version that lacks what is read now: it is not called damaged, and what helps is said."""

from __future__ import annotations

import sqlite3
from contextlib import closing

import pytest
from datasette.app import Datasette

from tests.commands import rltracer
from tests.index_factory import make_index

from .html import words


@pytest.fixture
def earlier(tmp_path):
    path = make_index(tmp_path / "x.sqlite", [{"reward": 1.0}])
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for (view,) in connection.execute("select name from sqlite_master where type = 'view'").fetchall():
            connection.execute(f"drop view {view}")
        connection.execute("alter table shards drop column file")
        connection.execute("pragma user_version = 1")
    return path


@pytest.mark.asyncio
async def test_a_page_says_what_it_lacks(earlier):
    datasette = Datasette([str(earlier)])
    await datasette.invoke_startup()
    answer = await datasette.client.get("/-/rltracer/x/run/1")
    assert answer.status_code == 409
    said = "This index was made by an earlier version: there is no column shards.file. Whoever keeps it brings it up to"
    assert said in words(answer.text)
    assert "damaged" not in answer.text


def test_a_command_says_what_it_lacks(earlier):
    done = rltracer("inspect", earlier, "--problems")
    assert (done.returncode, "Traceback" in done.stderr) == (1, False)
    assert "no such column: s.file). Index its run again, which brings it up to date" in " ".join(done.stderr.split())
