"""A mapping of one's own that misses something is told what, in words of the mapping."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from rltracer_sqlite.cli.index import command
from rltracer_sqlite.sources.base import SourceError
from rltracer_sqlite.sources.table import mapping_source, mapping_source_from_text
from tests.table_rows import write_lines

GOOD = """
name = "maple"

[files]
paths = ["iter_{step}/{split}-worker*.jsonl"]
splits = { learn = "train", probe = "eval" }

[content]
messages = "dialog.turns"
role = "who"
text = "utterance"
reasoning = "monologue"
roles = { sys = "system", human = "user", policy = "assistant" }

[columns]
env = "meta.suite"
advantage = "verdict.A"

[rewards]
inside = "verdict.rewards"
"""
RECORD = {
    "meta": {"suite": "sums"},
    "dialog": {"turns": [{"who": "human", "utterance": "1 + 1?"},
                         {"who": "policy", "utterance": "2", "monologue": "easy"}]},
    "verdict": {"rewards": {"exact": 1.0, "style": 0.25}, "A": 0.5},
}  # fmt: skip
MISSED = [
    (
        '"who"',
        '"whom"',
        'content.role: 4 messages without anything under "whom"; the keys of messages are who, utterance',
    ),
    ('"utterance"', '"said"', 'content.text: no message has anything under "said"; the keys of messages are utterance'),
    ('policy = "assistant"', "", "no message is the assistant's; say there what these roles mean: user, policy"),
    ("verdict.A", "A", "columns.advantage: none of the first 2 rows has a column A; did you mean verdict.A?"),
    ("verdict.rewards", "verdict.reward", "rewards.inside: none of the first 2 rows has a column verdict.reward;"),
    ("verdict.rewards", "verdict.reward", "no row has a reward, which pass rates and preference pairs are made of"),
    ("learn", "lern", "left aside: iter_7/learn-worker0.jsonl: named as no file of "),
]
REFUSED = [
    ("dialog.turns", "dialog.turn", "no column dialog.turn; did you mean dialog.turns?"),
    ("dialog.turns", "dialog", "column dialog holds an object, not a list of messages"),
    ("dialog.turns", "spoken", "no column spoken; its columns: meta, dialog, verdict"),
    ("iter_{", "it_{", "fits files.paths of maple (it_{step}/{split}-worker*.jsonl). It holds iter_7/learn-worker0"),
]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    for name in ("learn-worker0", "probe-worker1"):
        write_lines(tmp_path / "dumps" / "iter_7" / f"{name}.jsonl", RECORD)
    return tmp_path / "dumps"


def indexed(run: Path, old: str, new: str) -> tuple[int, str]:
    """Index with a mapping in which something is replaced; return the exit code and what is said."""
    mapping = run.parent / "my.toml"
    mapping.write_text(GOOD.replace(old, new).replace(",  }", " }"), encoding="utf-8")
    done = CliRunner().invoke(command, [str(run.parent / "run.sqlite"), str(run), "--mapping", str(mapping)])
    return done.exit_code, done.output + (str(done.exception) if isinstance(done.exception, SourceError) else "")


def test_a_mapping_that_misses_nothing_is_not_spoken_of(run: Path) -> None:
    code, said = indexed(run, "", "")
    assert code == 0
    assert not any(part in said for part in ("content.", "columns.", "none of the first", "not read:"))
    assert "2 trajectories, 2 prompt groups, 1 step, 0 problems" in said
    assert mapping_source(run.parent / "my.toml").notes() == []


@pytest.mark.parametrize(("old", "new", "told"), MISSED)
def test_what_a_mapping_misses_is_told(old: str, new: str, told: str, run: Path) -> None:
    code, said = indexed(run, old, new)
    assert code == 0
    assert told in said


@pytest.mark.parametrize(("old", "new", "told"), REFUSED)
def test_a_mapping_that_finds_nothing_says_why(old: str, new: str, told: str, run: Path) -> None:
    code, said = indexed(run, old, new)
    assert code == 1
    assert told in said


def test_only_who_wrote_a_mapping_is_told(run: Path) -> None:
    kept = mapping_source_from_text(GOOD.replace("iter_", "it_"))
    assert ([shard for shard in kept.shards(run) if not shard.aside], kept.notes()) == ([], [])


def test_rows_that_cannot_be_read_do_not_hinder_the_others(run: Path) -> None:
    write_lines(run / "iter_7" / "learn-worker0.jsonl", {"dialog": {"turns": [5]}}, 5, RECORD)
    code, said = indexed(run, "verdict.A", "A")
    assert code == 0
    assert "2 problems" in said
    assert "none of the first 2 rows has a column A" in said
