"""What every table and column of an index means, read from the comments of its schema."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from .index.schema import TABLES
from .index.views import VIEW_COLUMNS, VIEWS

CREATE = re.compile(r"create (table|view) (\w+)\b")
CONSTRAINTS = {"primary", "foreign", "unique", "check", "constraint"}

# Facets count over a whole table, so those of a large table stand only on columns that lead an index.
SETTINGS: dict[str, dict[str, Any]] = {
    "runs": {"label_column": "name", "sort_desc": "indexed_at"},
    "steps": {"label_column": "step", "sort": "step", "facets": ["run_id", {"recorded": "split"}]},
    "shards": {"label_column": "file", "facets": ["run_id", "layout", "state"]},
    "prompts": {"label_column": "preview"},
    "prompt_groups": {
        "label_column": "id",
        "facets": [
            {"passrate": "pass_rate"},
            {"recorded": "env"},
            {"recorded": "split"},
            {"recorded": "zero_variance"},
        ],
    },
    "trajectories": {
        "label_column": "uid",
        "facets": [
            {"passrate": "group_pass_rate"},
            {"recorded": "env"},
            {"recorded": "split"},
            {"outcome": "success"},
            {"recorded": "stop_condition"},
        ],
    },
    "annotations": {"label_column": "uid"},
    "fields": {"label_column": "path", "sort": "path", "facets": ["kind"]},
    "step_values": {"label_column": "name", "facets": ["run_id"]},
    "problems": {"label_column": "reason", "facets": ["shard_id"]},
}
RECORDED_FACETS = ("env", "split", "zero_variance", "stop_condition")
# What stands for a facet of the plugin where there is no plugin.
PLAIN_FACETS = {
    str({"passrate": "pass_rate"}): "pass_bucket", str({"outcome": "success"}): "success",
    **{str({"recorded": column}): column for column in RECORDED_FACETS},
}  # fmt: skip
DESCRIPTION = "Rollouts of reinforcement-learning runs: where each trajectory is, and what it can be selected by."


def table_descriptions() -> dict[str, str]:
    """Return the meaning of each table and view by its name: the comment before it in the schema."""
    return {name: comment for name, comment, _ in _statements(TABLES + VIEWS)}


def column_descriptions() -> dict[str, dict[str, str]]:
    """Return the meaning of each column by table and name: the comment behind it in the schema.

    A view's column has its own meaning where the view computes it, else that of the table's column of the same name.
    """
    tables = {name: dict(_columns(lines)) for name, _, lines in _statements(TABLES)}
    known = {**tables["trajectories"], **tables["steps"], **tables["prompt_groups"], **tables["prompts"]}
    views = {
        name: _known_columns(_view_columns(lines), {**known, **VIEW_COLUMNS[name]})
        for name, _, lines in _statements(VIEWS)
    }
    return {**tables, **views}


def _known_columns(columns: Iterator[str], known: dict[str, str]) -> dict[str, str]:
    return {column: known[column] for column in columns if column in known and column != "id"}


def table_metadata() -> dict[str, dict[str, Any]]:
    """Return Datasette's metadata of each table and view: description, columns, label, facets and order.

    No units: Datasette 1.0 no longer knows them, so the descriptions say them.
    """
    columns = column_descriptions()
    return {
        name: {"description": description, "columns": columns[name], **_copied(SETTINGS.get(name, {}))}
        for name, description in table_descriptions().items()
    }


def datasette_metadata(database: str, searchable: bool = False) -> dict[str, Any]:
    """Return the content of a metadata.yml for an index that Datasette serves under the name `database`.

    With `searchable`, for an index with its full text, the page of the trajectories searches it.

    It works on Datasette 0.65 and on 1.0, which moves facets, labels and order to its configuration by itself, and
    it works without the plugin: the facets that are the plugin's give way to columns, bins to the column of the bins.
    """
    # sqlite-utils keeps its list of migrations in the same file; nobody reads it in a browser.
    tables = {**table_metadata(), "_sqlite_migrations": {"hidden": True}}
    if searchable:
        from .search.tables import DIGESTS, SEARCH_SETTINGS, SHARDS

        tables["trajectories"].update(SEARCH_SETTINGS)
        tables.update({name: {"hidden": True} for name in (DIGESTS, SHARDS)})
    for settings in tables.values():
        if "facets" in settings:
            plain = [PLAIN_FACETS.get(str(facet), facet) for facet in settings["facets"]]
            settings["facets"] = [facet for facet in plain if isinstance(facet, str)]
    return {"databases": {database: {"description": DESCRIPTION, "tables": tables}}}


def _copied(settings: dict[str, Any]) -> dict[str, Any]:
    return {key: list(value) if isinstance(value, list) else value for key, value in settings.items()}


def _statements(schema: str) -> Iterator[tuple[str, str, list[str]]]:
    """Yield (name, comment before it, lines of its body) of each table or view."""
    comment: list[str] = []
    body: list[str] = []
    name = ""
    for line in schema.splitlines():
        if name:
            body.append(line)
            if line.rstrip().endswith(";"):
                yield name, " ".join(comment), body
                name, body, comment = "", [], []
        elif line.startswith("--"):
            comment.append(line[2:].strip())
        elif found := CREATE.match(line):
            name = found[2]
        elif not line.strip():
            comment = []


def _columns(lines: list[str]) -> Iterator[tuple[str, str]]:
    """Yield (column, comment) of a table; the comment of a column on several lines may stand on any of them."""
    depth, column = 0, ""
    for line in lines:
        code, _, comment = line.partition("--")
        words = code.split()
        if depth == 0 and words and re.fullmatch(r"\w+", words[0]):
            column = "" if words[0] in CONSTRAINTS else words[0]
        depth += code.count("(") - code.count(")")
        if depth < 0:
            return
        if comment and column:
            yield column, comment.strip()


def _view_columns(lines: list[str]) -> Iterator[str]:
    for line in lines:
        yield from re.findall(r"\bas (\w+)(?=,|$)", line)
