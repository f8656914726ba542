"""What says which row it is, and measures nothing, is kept as info: in the index, in Python, in the terminal."""

from __future__ import annotations

from pathlib import Path

import pytest

from rltracer_sqlite import RLTracer
from rltracer_sqlite.sources.table import mapping_source_from_text
from tests.commands import indexed, rltracer
from tests.indexing import rows
from tests.layouts import corpora
from tests.table_answers import verl
from tests.table_rows import write_lines, write_parquet

OTHER = (corpora() or Path("absent")) / "other"
MAPPING = """
name = "mine"
info = ["no", "made.when", "settings"]

[files]
paths = ["*.jsonl"]

[content]
messages = "said"
"""
SAID = [{"role": "user", "content": "6 * 7?"}, {"role": "assistant", "content": "42"}]
# What of each system's rows is a measure, by its path; nothing else is.
MEASURES = {
    "areal": {"original_reward"},
    "chat_jsonl": set(),
    "ms_swift/grpo_hf": {"num_turns", "entropy"},
    "nemo_gym": {"terminated"},
    "nemo_rl": set(),
    "open_instruct": {
        "request_info.num_calls", "request_info.timeouts", "request_info.tool_runtimes", "request_info.tool_calleds",
        "request_info.rollout_state.done",
    },
    "roll/agentic_rollout_dump": {
        "trajectory_data.length_info.trajectory_length", "trajectory_data.length_info.num_actions",
        "trajectory_data.length_info.terminated", "trajectory_data.reward_info.first_round_reward",
        "trajectory_data.reward_info.final_reward", "trajectory_data.failure_info.has_failure",
        "trajectory_data.metrics.env/swe/success",
    },
    "roll/rlvr_rollout_dump": set(),
    "skyrl": set(),
    "trl/grpo_out": set(),
    "verl/v1_0.9": {"acc"},
    "verl/legacy_0.8": {"acc", "format_reward"},
}  # fmt: skip
OF_MEASURES = """
select path from fields where trajectories > 0 and column_name like 'metric%'
"""


def test_columns_and_paths_inside_them_are_info(tmp_path: Path) -> None:
    row = {"said": SAID, "no": 7, "made": {"when": "today", "steps": 3}, "settings": {"t": 0.5, "deep": {"k": 1}}}
    write_lines(tmp_path / "run/x.jsonl", {**row, "score": 0.5})
    [entry, *_] = mapping_source_from_text(MAPPING).scan(
        tmp_path / "run", next(iter(mapping_source_from_text(MAPPING).shards(tmp_path / "run")))
    )
    assert entry.values == {  # type: ignore[union-attr]
        "info.no": 7, "info.made.when": "today", "made.steps": 3, "info.settings.t": 0.5, "info.settings.deep.k": 1,
        "score": 0.5,
    }  # fmt: skip


def test_what_a_record_calls_info_stays_so_and_is_never_written_over(tmp_path: Path) -> None:
    write_lines(tmp_path / "run/x.jsonl", {"said": SAID, "no": 7, "info": {"no": 8, "at": 9}, "info_no": 10, "No": 11})
    mapping = tmp_path / "mine.toml"
    mapping.write_text(MAPPING.replace('["no", ', '["no", "info", "info_no", '))
    indexed(tmp_path / "x.sqlite", tmp_path / "run", "--mapping", mapping)
    assert rows(tmp_path / "x.sqlite", "select path from fields where trajectories > 0 order by path") == [
        ("No",), ("info.at",), ("info.info_no",), ("info.no",), ("no",),
    ]  # fmt: skip
    with RLTracer(tmp_path / "x.sqlite") as index:
        known = index.trajectory(1).load().metadata
    assert known["info"] == {"no": 8, "at": 9, "info_no": 10}
    assert known["metrics"] == {"no": 7, "No": 11}


def test_verl_rows_have_their_uid_as_info_everywhere(tmp_path: Path) -> None:
    verl(tmp_path / "run")
    indexed(tmp_path / "x.sqlite", tmp_path / "run")
    assert rows(tmp_path / "x.sqlite", "select info_uid, metric_acc from trajectories where step = 3") == [
        ("a_b_0_0", 1), ("a_b_1_0", 0),
    ]  # fmt: skip
    with RLTracer(tmp_path / "x.sqlite") as index:
        known = index.trajectory(2).load().metadata
    assert (known["metrics"], known["info"]) == ({"acc": 1.0}, {"uid": "a_b_0_0"})
    shown = rltracer("inspect", tmp_path / "x.sqlite", "--trajectory", 2).stdout.splitlines()
    assert [line for line in shown if line in ("  acc 1", "info: uid a_b_0_0")] == ["  acc 1", "info: uid a_b_0_0"]
    (tmp_path / "run/rollouts/3.jsonl").unlink()
    assert "info: uid a_b_0_0" in rltracer("inspect", tmp_path / "x.sqlite", "--trajectory", 2).stdout


def test_numbers_that_only_tell_rows_apart_are_no_rewards(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    row = {"step": 1, "prompt": "6 * 7?", "completion": "42", "right": 1.0, "advantage": 0.5, "idx": 7, "seed": 3}
    write_parquet(tmp_path / "run/completions_00001.parquet", [row])
    indexed(tmp_path / "x.sqlite", tmp_path / "run")
    assert rows(tmp_path / "x.sqlite", "select reward, reward_right, info_idx, info_seed from trajectories") == [
        (1, 1, 7, 3)
    ]


@pytest.mark.skipif(not OTHER.is_dir(), reason="the corpora are not beside this repository")
@pytest.mark.parametrize("folder", sorted(MEASURES))
def test_of_every_system_the_measures_alone_are_metrics(tmp_path: Path, folder: str) -> None:
    assert indexed(tmp_path / "x.sqlite", OTHER / folder).returncode == 0
    assert {path for (path,) in rows(tmp_path / "x.sqlite", OF_MEASURES)} == MEASURES[folder]


def test_an_empty_name_is_none(tmp_path: Path) -> None:
    names = {"env": "e", "agent": "a", "group": "g", "episode": "p", "task": "t", "stop": "s"}
    for number, value in enumerate(("", None, " ")):
        write_lines(tmp_path / f"run/{number}.jsonl", {"said": SAID, **dict.fromkeys("eagpts", value)})
    columns = "\n".join(f'{role} = "{column}"' for role, column in names.items())
    (tmp_path / "mine.toml").write_text(f"{MAPPING}\n[columns]\n{columns}\n")
    indexed(tmp_path / "x.sqlite", tmp_path / "run", "--mapping", tmp_path / "mine.toml")
    query = "select env, agent, group_id, episode_id, task_key, stop_condition, truncated from trajectories"
    assert rows(tmp_path / "x.sqlite", query) == [(None,) * 7] * 3
    assert rows(tmp_path / "x.sqlite", "select env, trajectories from prompt_groups") == [(None, 3)]
