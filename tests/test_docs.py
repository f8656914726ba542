"""The documentation names what there is: every command, option, table, column and exit code."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rltracer_sqlite.cli import COMMANDS, group
from rltracer_sqlite.cli.index import command as index_command
from rltracer_sqlite.index.migrations import statements
from rltracer_sqlite.index.schema import TABLES
from rltracer_sqlite.index.views import VIEWS
from rltracer_sqlite.metadata import column_descriptions, table_descriptions
from tests.index_factory import make_index

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SCHEMA = (ROOT / "docs/schema.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_every_command_has_help_and_is_documented(name: str) -> None:
    import click

    command = group.get_command(click.Context(group), name)
    assert command is not None
    assert command.help
    docs = README + "".join(path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md"))
    assert f"rltracer {name}" in docs or name == "index"


def test_every_option_of_the_indexer_has_help() -> None:
    for parameter in index_command.params:
        assert parameter.param_type_name == "argument" or getattr(parameter, "help", None)


@pytest.mark.parametrize("table", sorted(table_descriptions()))
def test_every_table_and_view_is_documented(table: str) -> None:
    assert f"`{table}`" in README
    assert f"## {table}\n" in SCHEMA


def test_every_table_and_column_of_the_schema_has_a_comment() -> None:
    created = [re.match(r"create (?:table|view) (\w+)", text) for text in statements(TABLES + VIEWS)]
    assert {match[1] for match in created if match} == set(table_descriptions())
    assert all(meaning for columns in column_descriptions().values() for meaning in columns.values())


@pytest.mark.parametrize("page", ["schema.md", "cookbook.md"])
def test_the_join_from_trajectories_to_their_prompts_is_said_and_works(tmp_path: Path, page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    [join] = re.findall(r"^`(from trajectories t join [^`]+)`$", text, re.MULTILINE)
    database = make_index(tmp_path / "run.sqlite", [{"prompt": "2 + 2?"}, {"prompt": "3 + 3?"}])
    with closing(sqlite3.connect(database)) as connection:
        found = connection.execute(f"select t.id, g.prompt_id, p.preview {join} order by t.id").fetchall()
    assert found == [(1, 1, "2 + 2?"), (2, 2, "3 + 3?")]
