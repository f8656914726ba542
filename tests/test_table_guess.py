"""A mapping guessed from a file reads that file as its own mapping does."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rltracer_sqlite.cli.sources import command
from rltracer_sqlite.sources import source_named, source_names
from rltracer_sqlite.sources.base import Entry, SourceError
from rltracer_sqlite.sources.table import TableSource, mapping_source
from rltracer_sqlite.sources.table.guess import guess_mapping
from rltracer_sqlite.sources.table.mapping_file import parse_mapping
from tests.table_rows import RENDERED, STRIPPED, write_lines, write_parquet
from tests.table_samples import SAMPLES
from tests.table_scans import read

INVENTED = {
    "nested": {"episode": {"chat": [{"speaker": "human", "text": "q"}, {"speaker": "bot", "text": "a"}],
                           "outcome": {"score": 0.5}}, "meta": {"iter": 3, "task_type": "maze"}},
    "plain": {"question": "q", "response": "a", "score": 0.5, "iteration": 3, "dataset": "maze"},
    "scores": {"prompt": "q", "response": "a", "rewards": [0.25, 0.25], "step": 3, "env": "maze"},
    "columns": {"input": ["q"] * 2, "output": ["a"] * 2, "score": [0.5] * 2, "step": [3] * 2, "env": ["maze"] * 2},
    "lists of one": {"input": ["q"], "output": ["a"], "score": [0.5], "step": [3], "env": ["maze"]},
    "json text": {"conversation": json.dumps([{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]),
                  "r": 0.5, "update": 3, "domain": "maze"},
    "names of its own": {"dialog": [{"who": "sys", "utterance": "s"}, {"who": "you", "utterance": "q"},
                                    {"who": "policy", "utterance": "a", "monologue": "m"}],
                         "verdict": {"rewards": {"exact": 0.25, "style": 0.25}}, "train_iter": 3, "suite": "maze"},
    "keys inside keys": {"turns": [{"author": {"role": "user"}, "content": {"parts": ["q"]}},
                                   {"author": {"role": "assistant"}, "content": {"parts": ["a"]}}],
                         "reward": 0.5, "step": 3, "env": "maze"},
    "words of names": {"raw_prompt": "q", "model_reply": "a", "epoch_no": 3, "suite": "maze",
                       "scorecard": json.dumps({"rewards": {"exact": 0.25, "style": 0.25}})},
    "nobody known": {"log": [{"actor": "asker", "line": "q"}, {"actor": "maple", "line": "a"}],
                     "score": 0.5, "step": 3, "env": "maze"},
    "an answer apart": {"history": [{"role": "user", "content": "q"}], "output": "a", "reward": 0.5, "step": 3,
                        "env": "maze"},
}  # fmt: skip


def entries_of(toml: str, path: Path) -> list[Entry]:
    return [entry for _, entry in read(TableSource(parse_mapping(toml, "guess")), path)[0]]


@pytest.mark.parametrize("name", INVENTED)
def test_an_invented_format_is_understood(name: str, tmp_path: Path) -> None:
    path = tmp_path / "dump.jsonl"
    write_lines(path, INVENTED[name], INVENTED[name])
    entries = entries_of(guess_mapping(path).toml, path)
    assert len(entries) >= 2
    preview = "s" if name == "names of its own" else "q"  # nobody can know who "you" is
    assert {(e.reward, e.step, e.env, e.turns, e.preview) for e in entries} == {(0.5, 3, "maze", 1, preview)}


@pytest.mark.parametrize("name", ["verl", "ms-swift", "ms-swift-ray", "skyrl", "roll-rlvr", "open-instruct", "nemo-rl"])
def test_a_guess_finds_the_rewards_and_prompts_of_a_known_format(name: str, tmp_path: Path) -> None:
    SAMPLES[name][1](tmp_path)
    reader = source_named(SAMPLES[name][0])
    for shard in reader.shards(tmp_path):
        path = tmp_path / shard.path
        if not (known := read(reader, path)[0]):
            continue
        found = entries_of(guess_mapping(path).toml, path)
        assert [entry.prompt_key for entry in found] == [entry.prompt_key for _, entry in known]
        if name != "ms-swift":  # its reward functions have any name
            assert [entry.reward for entry in found] == [entry.reward for _, entry in known]


@pytest.mark.parametrize(
    ("prompt", "kind"), [(RENDERED, "rendered"), (STRIPPED, "stripped"), ("What?", "text"), (["x"], "messages")]
)
def test_the_kind_of_text_is_told_from_the_prompt(prompt: Any, kind: str, tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", {"prompt": prompt, "completion": "x"})
    assert f'kind = "{kind}"' in guess_mapping(tmp_path / "a.jsonl").toml


def test_several_answers_to_one_prompt(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    write_lines(path, {"prompt": "q", "completions": ["a", "b"], "rewards": [1.0, 0.0], "answer": "a"})
    entries = entries_of(guess_mapping(path).toml, path)
    assert [(entry.item, entry.reward) for entry in entries] == [(0, 1.0), (1, 0.0)]


def test_lists_of_another_length_than_the_answers_are_no_values_of_them(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    asked = {"prompt": "q", "prompt_ids": [1, 2, 3], "about": {"ids": [4], "marks": [5, 6]}}
    write_lines(path, *({**asked, "completions": ["a", "b"], "rewards": [1.0, 0.0]} for _ in range(3)))
    guess = guess_mapping(path)
    assert 'explode = ["completions", "about.marks", "rewards"]' in guess.toml
    assert [(entry.item, entry.reward) for entry in entries_of(guess.toml, path)] == [(0, 1.0), (1, 0.0)] * 3


@pytest.mark.parametrize(
    ("place", "template"),
    [
        ("12.jsonl", "{step}.jsonl"),
        ("rollouts_step7.jsonl", "rollouts_step{step}.jsonl"),
        ("step_7/all.jsonl", "step_{step}/*.jsonl"),
        ("gsm8k.jsonl", "*.jsonl"),
        ("iter_0012/eval-worker3.jsonl", "iter_{step}/{split}-worker*.jsonl"),
        ("train/step_7.jsonl", "{split}/step_{step}.jsonl"),
        ("training/testing.jsonl", "*.jsonl"),
        ("test_7/a{b}*.jsonl", "*.jsonl"),
    ],
)
def test_step_and_split_are_found_in_the_place_of_a_file(place: str, template: str, tmp_path: Path) -> None:
    write_lines(tmp_path / place, {"question": "q", "answer": "a"})
    assert f'paths = ["{template}"]' in guess_mapping(tmp_path / place).toml


def test_parquet_and_sqlite_files(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    write_parquet(tmp_path / "a.parquet", [{"question": "q", "answer": "a", "score": 1.0}])
    assert [entry.reward for entry in entries_of(guess_mapping(tmp_path / "a.parquet").toml, tmp_path)] == [1.0]
    connection = sqlite3.connect(tmp_path / "a.db")
    connection.execute("create table samples as select 'q' as question, 'a' as answer, 1.0 as score")
    connection.commit()
    assert 'table = "samples"' in guess_mapping(tmp_path / "a.db").toml
    connection.execute("create table more (a)")
    connection.close()
    with pytest.raises(SourceError, match=r"more, samples|samples, more"):
        guess_mapping(tmp_path / "a.db")


@pytest.mark.parametrize("data", [b"", b"hello\n", b"[1, 2]\n", bytes(range(256)), b'{"a": 1'])
def test_a_file_without_objects_is_one_sentence(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(data)
    with pytest.raises(SourceError, match="none of its first records"):
        guess_mapping(tmp_path / "a.jsonl")


def run(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(command, arguments)
    return done.exit_code, done.stdout, done.stderr


def test_the_command_prints_a_mapping_that_can_be_used(tmp_path: Path) -> None:
    write_lines(tmp_path / "dump.jsonl", INVENTED["nested"], INVENTED["nested"])
    code, toml, notes = run("guess", str(tmp_path / "dump.jsonl"))
    (tmp_path / "my.toml").write_text(toml)
    assert code == 0
    assert "trajectories 2, prompts 1, steps 1, mean reward 0.5" in notes
    found = read(mapping_source(tmp_path / "my.toml"), tmp_path / "dump.jsonl")[0]
    assert [entry.reward for _, entry in found] == [0.5, 0.5]


def test_a_guess_that_is_not_complete_says_so(tmp_path: Path) -> None:
    write_lines(tmp_path / "dump.jsonl", {"loss": 1.0, "tag": "x"})
    code, toml, notes = run("guess", str(tmp_path / "dump.jsonl"))
    assert code == 0
    assert "# No column looks like a conversation" in toml
    assert '# "tag": text, such as "x"' in toml
    assert "the mapping is not complete" in notes
    assert "say which columns hold the conversation" in notes


def test_what_a_person_has_to_check_is_told(tmp_path: Path) -> None:
    write_lines(tmp_path / "step_1" / "a.jsonl", *[INVENTED["names of its own"]] * 2)
    code, toml, notes = run("guess", str(tmp_path / "step_1" / "a.jsonl"))
    assert code == 0
    assert 'reasoning = "monologue"' in toml
    assert 'roles = { "policy" = "assistant", "sys" = "system" }' in toml
    assert 'inside = "verdict.rewards"' in toml
    assert "what these roles mean, or leave them as they are: you" in notes
    assert "no column was found for: split, advantage, group, truth, stop;" in notes


def test_a_known_file_needs_no_mapping(tmp_path: Path) -> None:
    SAMPLES["verl"][1](tmp_path)
    assert "is read by the source verl" in run("guess", str(tmp_path / "rollouts" / "3.jsonl"))[2]


def test_the_sources_are_listed_and_shown() -> None:
    code, listed, _ = run()
    assert code == 0
    assert "prime-rl" in listed
    for name in source_names():
        done = CliRunner().invoke(command, ["show", name])
        if not hasattr(source_named(name), "mapping"):
            assert isinstance(done.exception, SourceError)
            assert "is code, not a mapping" in str(done.exception)
        else:
            assert parse_mapping(done.stdout, name).name == name


def test_text_of_a_file_cannot_steer_the_terminal(tmp_path: Path) -> None:
    write_lines(tmp_path / "a.jsonl", {"question": "\x1b[2Jq", "answer": "a", "\x1b[31m": 1})
    code, toml, notes = run("guess", str(tmp_path / "a.jsonl"))
    assert code == 0
    assert "\x1b" not in toml + notes
