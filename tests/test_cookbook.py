"""The queries of docs/cookbook.md answer something on the demo, and walk through no table that they need not."""

from __future__ import annotations

import re
import shutil
import sqlite3
from pathlib import Path

import pytest
from click.testing import CliRunner

from rltracer_sqlite.cli.index import command as index_command

PAGE = (Path(__file__).parents[1] / "docs/cookbook.md").read_text(encoding="utf-8")
RECIPES = re.findall(r"^### (\d+)\. (.+?)$.*?^```sql\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
IDS = [f"{int(number):02} {title}" for number, title, _ in RECIPES]
# What is asked of every rollout of a run reads every row; these group by other columns than the run's indexes do.
WHOLE = re.compile(r"group by (env|turns|t\.id|error_type)|order by abs\(t\.advantage\)|policy_version")


@pytest.fixture(scope="module")
def databases(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Index the demo alone, and beside its own first half as a baseline."""
    folder = tmp_path_factory.mktemp("cookbook")
    later = shutil.ignore_patterns(*(f"step_{step}" for step in range(5, 9)), "monitors")
    shutil.copytree(demo / "run", folder / "baseline", ignore=later)
    runs = {"demo": demo / "run", "baseline": folder / "baseline"}
    for database, names in (("demo", ["demo"]), ("two", ["demo", "baseline"])):
        for name in names:
            words = [folder / f"{database}.sqlite", runs[name], "--name", name]
            assert CliRunner().invoke(index_command, [str(word) for word in words]).exit_code == 0
    return {name: folder / f"{name}.sqlite" for name in ("demo", "two")}


@pytest.mark.parametrize("sql", [sql for _, _, sql in RECIPES], ids=IDS)
def test_a_recipe_answers_by_the_indexes(sql: str, databases: dict[str, Path]) -> None:
    connection = sqlite3.connect(f"file:{databases['two' if 'baseline' in sql else 'demo']}?mode=ro", uri=True)
    try:
        rows = connection.execute(sql).fetchall()
        plan = [line[3] for line in connection.execute(f"explain query plan {sql}")]
    finally:
        connection.close()
    assert rows, "no answer on the demo"
    assert any(value is not None for row in rows for value in row)
    large = {"trajectories", "annotations", *re.findall(r"(?:from|join) (?:trajectories|annotations) (\w+)", sql)}
    walked = {line.split()[1] for line in plan if line.startswith("SCAN ") and "COVERING" not in line} & large
    assert not walked or WHOLE.search(sql), plan


def test_there_are_thirty_four_in_their_order() -> None:
    assert [int(number) for number, _, _ in RECIPES] == list(range(1, 35))
    assert len({title for _, title, _ in RECIPES}) == 34
    assert PAGE.count("```sql") == 34
