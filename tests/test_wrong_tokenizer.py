"""A tokenizer that is another one than the policy's: told in a sentence, and mended by giving the right one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.sources.prime_rl.token_scan import LEAST_UNMARKED
from rltracer_sqlite.stopping import Stopping
from tests.commands import Done, indexed
from tests.indexing import rows, value
from tests.table_answers import open_instruct
from tests.table_rows import write_lines
from tests.token_layouts import export_line, micro_batch, question, write_bin, write_tokenizer
from tests.wrong_tokenizers import LONG, SHARD, wrong


@pytest.fixture
def run(tmp_path: Path) -> Path:
    write_bin(tmp_path / "run" / SHARD, [micro_batch("g20", [LONG, question()])])
    return tmp_path / "run"


def with_tokenizer(run: Path, tokenizer: Path, *more: object) -> Done:
    done = indexed(run.parent / "x.sqlite", run, "--tokenizer", tokenizer, *more)
    assert done.returncode == 0
    assert value(run.parent / "x.sqlite", "select count(*) from trajectories") == 2  # no row is lost for it
    return done


def kinds(run: Path) -> list[tuple[Any, ...]]:
    return rows(run.parent / "x.sqlite", "select distinct content_kind from trajectories")


@pytest.mark.parametrize("more", [(), ("--quiet",), ("--jobs", 2)])
def test_ids_without_any_special_token_are_told(run: Path, tmp_path: Path, more: tuple[object, ...]) -> None:
    said = with_tokenizer(run, wrong(tmp_path / "other"), *more).stderr
    count = len(LONG.ids) + len(question().ids)
    assert said == (
        f"Warning: {SHARD}: The tokenizer {tmp_path}/other/tokenizer.json seems not to fit these files: none of "
        f"{count} token ids is one of its 3 special tokens, which mark turns. Choose the policy's own with "
        "--tokenizer.\n"
    )
    assert kinds(run) == [("prompt_completion",)]
    assert value(tmp_path / "x.sqlite", "select count(*) from problems where reason like '%seems not to fit%'") == 1


def test_ids_beyond_the_vocabulary_are_told(run: Path, tmp_path: Path) -> None:
    small = write_tokenizer(tmp_path / "small", vocabulary=80)
    said = with_tokenizer(run, small).stderr
    assert said.startswith(f"Warning: {SHARD}: The tokenizer {small}/tokenizer.json does not fit these files: ")


def test_the_right_one_mends_it_and_says_nothing(run: Path, tmp_path: Path) -> None:
    with_tokenizer(run, wrong(tmp_path / "other"))
    ids = rows(tmp_path / "x.sqlite", "select id, uid from trajectories")
    assert with_tokenizer(run, write_tokenizer(tmp_path / "own")).stderr == ""
    assert kinds(run) == [("rendered",)]
    assert rows(tmp_path / "x.sqlite", "select id, uid from trajectories") == ids
    assert value(tmp_path / "x.sqlite", "select count(*) from problems") == 0
    assert "Read 0 bytes" in with_tokenizer(run, tmp_path / "own").stdout


def test_one_that_is_given_later_makes_text_of_the_ids(run: Path, tmp_path: Path) -> None:
    assert indexed(tmp_path / "x.sqlite", run).returncode == 0
    assert kinds(run) == [("token_ids",)]
    assert with_tokenizer(run, write_tokenizer(tmp_path / "own")).stderr == ""
    assert kinds(run) == [("rendered",)]


def test_a_watch_tells_it_too(run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Stopping, "sleep", lambda stopping, seconds: setattr(stopping, "is_asked", True))
    said = with_tokenizer(run, wrong(tmp_path / "other"), "--watch").stderr
    assert said.startswith(f"Warning: {SHARD}: The tokenizer {tmp_path}/other/tokenizer.json seems not to fit")


def test_few_ids_say_nothing_of_their_tokenizer(tmp_path: Path) -> None:
    other, short = wrong(tmp_path / "other"), question(prompt="a")
    write_lines(tmp_path / "run/token_exports/step_1/rank_0.jsonl", export_line(short))
    assert len(short.ids) < LEAST_UNMARKED
    assert indexed(tmp_path / "x.sqlite", tmp_path / "run", "--tokenizer", other).stderr == ""


@pytest.mark.parametrize(("broken", "is_told"), [(range(30, 31), False), (range(40), True)], ids=["one row", "all"])
def test_a_row_that_a_policy_filled_with_broken_characters_says_nothing(
    tmp_path: Path, broken: range, is_told: bool
) -> None:
    open_instruct(tmp_path / "run")
    file = tmp_path / "run" / "run_rollouts_000000.jsonl"
    row = json.loads(file.read_text().splitlines()[0])
    rows = [{**row, "sample_idx": n, **({"response_tokens": [0xFF] * 400} if n in broken else {})} for n in range(40)]
    write_lines(file, *rows)
    done = indexed(tmp_path / "x.sqlite", tmp_path / "run", "--tokenizer", write_tokenizer(tmp_path / "own"))
    assert ("does not fit" in done.stderr) == is_told
    assert value(tmp_path / "x.sqlite", "select count(*) from trajectories") == 40
