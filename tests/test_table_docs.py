"""docs/mappings.md names every key, role, kind and preset, and its example works as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rltracer_sqlite.sources.table import mapping_source
from rltracer_sqlite.sources.table.built_in import PRESETS
from rltracer_sqlite.sources.table.mapping import ENDINGS, KINDS, LAYOUTS, ROLES
from rltracer_sqlite.sources.table.read import FILE_KEYS, SHAPE_KEYS
from tests.test_table_presets import locator, read

DOCS = (Path(__file__).parents[1] / "docs" / "mappings.md").read_text(encoding="utf-8")
TABLES = {"content", "columns", "rewards", "variant"}  # named as [content], [columns], …


@pytest.mark.parametrize(
    "word", [*ROLES, *KINDS, *LAYOUTS, *FILE_KEYS, *(set(SHAPE_KEYS) - TABLES), *PRESETS, *ENDINGS]
)
def test_every_word_of_a_mapping_is_explained(word: str) -> None:
    assert f"`{word}`" in DOCS or f'`"{word}"`' in DOCS


def test_the_example_reads_the_line_that_it_is_for(tmp_path: Path) -> None:
    line = re.findall(r"```json\n(.*?)\n```", DOCS)[0]
    toml = re.findall(r"```toml\n(.*?)```", DOCS, re.S)[0]
    (tmp_path / "my.toml").write_text("\n".join(part.removeprefix("   ") for part in toml.split("\n")))
    (tmp_path / "rollouts").mkdir()
    (tmp_path / "rollouts" / "step_12.jsonl").write_text(line + "\n")
    reader = mapping_source(tmp_path / "my.toml")
    [(shard, entry)], problems, _ = read(reader, tmp_path / "rollouts")
    said = reader.load(tmp_path / "rollouts", [locator(shard, entry)]).messages
    assert (entry.step, entry.reward, entry.env, problems) == (12, 0.5, "maze", [])
    assert said == [{"role": "user", "content": "Left or right?"}, {"role": "assistant", "content": "Left."}]
