"""The docs name every key, role, kind, source and layout, and the examples work as they stand."""

from __future__ import annotations

import json
import re
from pathlib import Path
from textwrap import dedent

import pytest

from rltracer_sqlite.sources import BUILT_IN
from rltracer_sqlite.sources.prime_rl.layout import LAYOUTS as LAYOUTS_OF_PRIME_RL
from rltracer_sqlite.sources.table import mapping_source
from rltracer_sqlite.sources.table.guess import guess_mapping
from rltracer_sqlite.sources.table.mapping import ENDINGS, KINDS, LAYOUTS, ROLES
from rltracer_sqlite.sources.table.mapping_file import CONTENT_KEYS, FILE_KEYS, SHAPE_KEYS, parse_mapping
from tests.table_rows import write_lines
from tests.table_scans import locator, read

FOLDER = Path(__file__).parents[1] / "docs"
DOCS, FORMATS = ((FOLDER / name).read_text(encoding="utf-8") for name in ("mappings.md", "formats.md"))
EXAMPLES = list(
    zip(
        re.findall(r"```json\n(.*?)\n```", DOCS, re.S),
        [dedent(toml) for toml in re.findall(r" *```toml\n(.*?)```", DOCS, re.S) if "name = " in toml],
        strict=True,
    )
)
TABLES = {"content", "columns", "rewards", "variant"}  # named as [content], [columns], …


@pytest.mark.parametrize(
    "word", sorted({*ROLES, *KINDS, *LAYOUTS, *FILE_KEYS, *CONTENT_KEYS, *(set(SHAPE_KEYS) - TABLES), *ENDINGS})
)
def test_every_word_of_a_mapping_is_explained(word: str) -> None:
    assert f"`{word}`" in DOCS or f'`"{word}"`' in DOCS or f"`{word} = " in DOCS


@pytest.mark.parametrize("name", BUILT_IN)
def test_every_source_says_what_it_reads(name: str) -> None:
    assert f"| `{name}` |" in FORMATS or f"Source `{name}`" in FORMATS


@pytest.mark.parametrize("pattern", [pattern for _, pattern in LAYOUTS_OF_PRIME_RL])
def test_every_layout_of_prime_rl_is_listed(pattern: re.Pattern[str]) -> None:
    named = re.findall(r"`([^`]+)`", FORMATS.partition("## Tables of other systems")[0])
    assert any(pattern.search(place) for written in named for place in spelled(written)), pattern.pattern


def spelled(written: str) -> list[str]:
    """Return paths that a pattern in the text stands for."""
    plain = written.replace("<env>", "math").replace("<producer>", "orch").replace("[.zst]", "")
    for sign, found in (("N/", "3/"), ("_R", "_0"), ("**", "a/b"), ("*", "0"), ("[step_3/]", "step_3/")):
        plain = plain.replace(sign, found)
    choices = [plain.replace("{train,eval}", "train").replace("{all,effective}", part) for part in ("all", "effective")]
    return [f"/run/{choice}{end}" for choice in choices for end in ("", "0.jsonl", "results.jsonl")]


@pytest.mark.parametrize(("line", "toml"), EXAMPLES)
def test_an_example_reads_the_line_that_it_is_for(line: str, toml: str, tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(toml, encoding="utf-8")
    place = tmp_path / ("rollouts/step_12.jsonl" if "step_{step}" in toml else "dumps/iter_0012/learn-worker3.jsonl")
    write_lines(place, json.loads(line))
    reader = mapping_source(tmp_path / "my.toml")
    [(shard, entry)], problems, _ = read(reader, tmp_path)
    said = [message["role"] for message in reader.load(tmp_path, [locator(shard, entry)]).messages]
    assert (entry.step, said, problems) == (12, ["user", "assistant"], [])
    assert (entry.reward, entry.env, entry.split) in ((0.5, "maze", None), (1.25, "sums", "train"))
    assert reader.notes() == []


@pytest.mark.parametrize(("line", "toml"), EXAMPLES)
def test_a_guess_comes_near_an_example(line: str, toml: str, tmp_path: Path) -> None:
    place = tmp_path / "iter_0012" / "learn-worker3.jsonl"
    write_lines(place, json.loads(line), json.loads(line))
    guessed, written = (parse_mapping(text, "x").shapes[0] for text in (guess_mapping(place).toml, toml))
    assert guessed.content == written.content
    assert guessed.rewards == written.rewards
