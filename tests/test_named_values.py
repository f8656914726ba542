"""Recorded values by their names: those of one object stand together in the terminal, and no line is too wide."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from rltracer_sqlite.cli.named_values import value_lines
from tests.commands import indexed, rltracer
from tests.layouts import message
from tests.table_rows import write_lines

DATA = {
    "timestamp": "20260801",
    "length_info": {"trajectory_length": 2, "num_actions": 2, "terminated": True},
    "reward_info": {"episode_reward": 1.0, "final_reward": 1.0},
    "metrics": {"env/swe/success": 1.0},
    "env_info": {"env_id": 0, "seed": 42, "episode_id": 1, "max_steps": 8, "sequence_length": 4096},
}
SHOWN = """
  trajectory_data.reward_info.final_reward 1,
  trajectory_data.metrics.env/swe/success 1
  trajectory_data.length_info: trajectory_length 2, num_actions 2, terminated 1
info: trajectory_data.timestamp 20260801
  trajectory_data.env_info: env_id 0, seed 42, episode_id 1, max_steps 8,
    sequence_length 4096
"""


def test_the_metrics_of_a_roll_run_stand_together_by_their_objects(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    said = [message("user", "6 * 7?"), message("assistant", "42")]
    row = {"trajectory_data": [json.dumps(DATA)], "messages": [json.dumps(said)], "global_step": [6]}
    write_lines(tmp_path / "run/rollout_dump_data.step_6.jsonl", row)
    assert indexed(tmp_path / "x.sqlite", tmp_path / "run").returncode == 0
    assert SHOWN in rltracer("inspect", tmp_path / "x.sqlite", "--trajectory", 1).stdout


@pytest.mark.parametrize(
    ("values", "title", "lines"),
    [
        ([], "info:", []),
        ([("a", "1"), ("b.c", "2"), ("d", "3")], "", ["  a 1, b.c 2, d 3"]),
        ([("b.c", "2"), ("a", "1"), ("b.d.e", "3"), ("b.f", "4")], "info:", ["info: a 1, b.d.e 3", "  b: c 2, f 4"]),
        ([("b.c", "2"), ("b.d", "3")], "info:", ["info:", "  b: c 2, d 3"]),
        ([("b.c", "2"), ("b.d", "3")], "", ["  b: c 2, d 3"]),
        ([("a" * 40, "1"), ("b" * 40, "2")], "", [f"  {'a' * 40} 1,", f"  {'b' * 40} 2"]),
        ([("a", "x" * 90)], "info:", ["info:", "  a", f"  {'x' * 78}", f"  {'x' * 12}"]),
        ([("a\nb", "c\x1b")], "", ["  a␊b c␛"]),
    ],
)
def test_a_name_stays_beside_its_value_and_every_name_is_whole(
    monkeypatch: pytest.MonkeyPatch, values: list[tuple[str, str]], title: str, lines: list[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    assert list(value_lines(values, title)) == lines
