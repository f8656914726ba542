"""The descriptions that Datasette shows are the comments of the schema, for every table and column."""

from __future__ import annotations

import sqlite3

import pytest

from rltracer_sqlite.index.schema import INDEXES, TABLES
from rltracer_sqlite.index.views import VIEWS
from rltracer_sqlite.metadata import (
    SETTINGS,
    column_descriptions,
    datasette_metadata,
    table_descriptions,
    table_metadata,
)


@pytest.fixture(scope="module")
def database():
    connection = sqlite3.connect(":memory:")
    connection.executescript(TABLES + INDEXES + VIEWS)
    yield connection
    connection.close()


def names(database, kind):
    return {row[0] for row in database.execute("select name from sqlite_master where type = ?", (kind,))}


def columns(database, table):
    return [row[1] for row in database.execute(f"pragma table_xinfo({table})")]


def test_every_table_and_view_is_described(database):
    described = table_descriptions()
    assert set(described) == names(database, "table") - {"sqlite_sequence"} | names(database, "view")
    assert all(text and not text.startswith("--") for text in described.values())


def test_every_column_of_every_table_is_described(database):
    described = column_descriptions()
    for table in names(database, "table") - {"sqlite_sequence"}:
        assert sorted(described[table]) == sorted(columns(database, table)), table
        assert all(described[table].values()), table


def test_every_column_of_every_view_is_described(database):
    for view in names(database, "view"):
        assert set(column_descriptions()[view]) == set(columns(database, view)), view
        assert all(column_descriptions()[view].values()), view


@pytest.mark.parametrize(
    ("table", "column", "words"),
    [
        ("prompt_groups", "pass_bucket", "ordered bins"),  # a generated column on several lines
        ("prompt_groups", "zero_variance", "no GRPO signal"),
        ("steps", "pass_rate", "successes / scored"),
        ("trajectories", "id", "never changes"),
        ("annotations", "producer", "effective, orch, trainer"),
        ("unread_steps", "split", "train or eval"),
    ],
)
def test_a_comment_belongs_to_its_column(table, column, words):
    assert words in column_descriptions()[table][column]


def facet_columns(settings):
    """Return the columns that facets are on; a facet of a kind of its own is {kind: column}."""
    listed = settings.get("facets", [])
    return [facet if isinstance(facet, str) else next(iter(facet.values())) for facet in listed]


def test_settings_name_real_tables_and_columns(database):
    for table, settings in SETTINGS.items():
        known = columns(database, table)
        named = [settings["label_column"], *facet_columns(settings)]
        named += [settings[key] for key in ("sort", "sort_desc") if key in settings]
        assert set(named) <= set(known), table


def test_every_table_has_a_label_column(database):
    assert set(SETTINGS) == names(database, "table") - {"sqlite_sequence"}
    assert all("label_column" in settings for settings in SETTINGS.values())


@pytest.mark.parametrize("table", ["trajectories", "prompt_groups", "prompts", "annotations", "problems"])
def test_facets_of_large_tables_stand_on_an_index(database, table):
    leading = set()
    for index in database.execute(f"pragma index_list({table})").fetchall():
        leading.add(database.execute(f"pragma index_info({index[1]})").fetchone()[2])
    assert set(facet_columns(SETTINGS[table])) <= leading


def test_metadata_has_the_form_of_a_metadata_yml():
    [(name, content)] = datasette_metadata("run")["databases"].items()
    assert name == "run"
    assert content["tables"]["runs"]["columns"]["name"] == "a short name, chosen when indexing"
    assert content["tables"]["_sqlite_migrations"] == {"hidden": True}
    assert "queries" not in content  # ignored by Datasette 1.0


def test_metadata_may_be_changed_by_its_receiver():
    table_metadata()["trajectories"]["facets"].append("uid")
    assert "uid" not in table_metadata()["trajectories"]["facets"]
