"""Rows that hold one branch of several, that end without an answer, or that call what is not defined: what is said."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rltracer_sqlite.cli.export import command
from tests.export_runs import TOOLS, export, indexed, inspect, rollout, spec, write_steps
from tests.indexing import index
from tests.layouts import message, nodes_of, tool_call, trace
from tests.layouts.samples import COMPACTED, DELEGATED, FORKED, Sample, trace_of

QUESTION = message("user", "How many lines?")
CALL = message("assistant", tool_calls=[tool_call("c", "bash", {"command": "wc -l"})])
RESULT = message("tool", "42", tool_call_id="c")
Record = dict[str, Any]


def conversation(uid: str, reward: float, said: list[Record], parents: list[int | None] | None = None) -> Record:
    nodes = nodes_of(said, parents) if parents else nodes_of(said)
    rewards = {"reward": {"score": reward, "weight": 1.0}}
    return trace(nodes=nodes, id=uid, rewards=rewards, task={"idx": 0, "name": "q"}, tools=TOOLS)


def forked(reward: float = 1.0) -> Record:
    """Return a trajectory of three branches: one with the tool, one after compaction, and another attempt."""
    said = [QUESTION, CALL, RESULT, message("assistant", "42 lines."), message("user", "[compacted] Go on.")]
    said += [message("assistant", "It is 42."), message("assistant", "I cannot tell.")]
    return conversation("forked", reward, said, [None, 0, 1, 2, None, 4, 0])


def cut_off(reward: float = 0.0) -> Record:
    return {**conversation("cut", reward, [QUESTION, CALL, RESULT]), "stop_condition": "max_turns"}


def answered(uid: str, reward: float) -> Record:
    return conversation(uid, reward, [QUESTION, CALL, RESULT, message("assistant", f"{uid}.")])


def exported(tmp_path: Path, records: list[Record], **preferences: Any) -> tuple[list[Record], Record]:
    """Return the rows of records, and the summary of the export."""
    wanted = {"acceptance": "any", "per_prompt": None, "include_provenance": True, **preferences}
    rows = export(spec(indexed(tmp_path, {1: records})), tmp_path / "out.jsonl", **wanted)
    return rows, json.loads((tmp_path / "out.jsonl.summary.json").read_text())


def counts(origin: Record) -> tuple[int, int, int, int]:
    names = ("branch", "branch_count", "tool_call_count", "trajectory_tool_call_count")
    return tuple(origin[name] for name in names)  # type: ignore[return-value]


def test_a_pair_says_which_branch_it_holds_and_counts_what_it_holds(tmp_path: Path) -> None:
    [row], told = exported(tmp_path, [forked(), answered("no", 0.0)], mode="preference")
    assert row["chosen"] == [message("assistant", "I cannot tell.")]
    origin = row["trace_provenance"]
    assert (counts(origin["chosen"]), counts(origin["rejected"])) == ((3, 3, 0, 1), (1, 1, 1, 1))
    assert told["rows_of_one_branch_of_several"] == 1
    note, others = told["row_notes"]
    assert others.startswith("1 of 1 pair holds other messages than answers after the prompt (trajectory 2), such as")
    assert note.startswith("1 pair holds one branch of several (trajectory 1): the last that begins with the prompt.")
    assert note in told["notes"]


def test_a_pair_takes_the_last_branch_that_begins_with_the_prompt(tmp_path: Path) -> None:
    said = [QUESTION, CALL, RESULT, message("user", "[compacted] Go on."), message("assistant", "It is 42.")]
    compacted = conversation("compacted", 1.0, said, [None, 0, 1, None, 3])
    [row], told = exported(tmp_path, [compacted, answered("no", 0.0)], mode="preference")
    assert [said["role"] for said in row["chosen"]] == ["assistant", "tool"]
    assert counts(row["trace_provenance"]["chosen"]) == (1, 2, 1, 1)
    assert told["rows_ending_without_answer"] == {"chosen": 1}


@pytest.mark.parametrize("sample", [COMPACTED, DELEGATED, FORKED], ids=["compacted", "delegated", "forked"])
def test_the_calls_of_a_row_are_those_that_stand_in_it(tmp_path: Path, sample: Sample) -> None:
    rows, told = exported(tmp_path, [trace_of(sample, "a")])
    for row in rows:
        origin = row["trace_provenance"]
        assert origin["tool_call_count"] == sum(len(said.get("tool_calls", ())) for said in row["messages"])
        assert (origin["branch_count"], origin["trajectory_tool_call_count"]) == (2, sample_calls(sample))
    said = "2 rows are one branch of several, out of 1 trajectory of several branches (trajectory 1)."
    assert told["row_notes"][0].startswith(said)


def sample_calls(sample: Sample) -> int:
    return sum(len(said.get("tool_calls") or ()) for said in sample.messages)


def test_a_branch_has_its_number_among_all_of_its_trajectory(tmp_path: Path) -> None:
    said = [message("user", "Judge."), message("assistant", "ok"), QUESTION, *[message("assistant", "1")] * 2]
    nodes = nodes_of([*said, message("assistant", "2")], [None, 0, None, 2, 2, 2])
    nodes[1]["sampled"] = False  # another agent's, which is left out, as is the second of two equal ones
    rows, _ = exported(tmp_path, [trace(nodes=nodes, id="a")])
    assert [(row["messages"][-1]["content"], counts(row["trace_provenance"])[:2]) for row in rows] == [
        ("1", (2, 4)), ("2", (4, 4)),
    ]  # fmt: skip


def test_rows_that_end_without_an_answer_are_counted_by_column(tmp_path: Path) -> None:
    records = [answered("yes", 1.0), cut_off(), answered("other", 0.9), answered("no", 0.5)]
    _, told = exported(tmp_path, records, mode="preference")
    assert told["rows_ending_without_answer"] == {"rejected": 1}
    _, limit, ending, _ = told["row_notes"]
    assert limit == (
        "1 pair has an answer that a limit cut off (trajectory 2); drop_truncated leaves out such trajectories."
    )
    assert ending == (
        "1 rejected answer of 2 pairs ends with a message of the role tool, and no answer to it (trajectory 2)."
    )
    _, told = exported(tmp_path / "sft", records)
    assert told["rows_ending_without_answer"] == {"messages": 1}
    limit, ending = told["row_notes"]
    assert limit == (
        "1 selected trajectory was cut off by a limit (trajectory 2); drop_truncated leaves out such trajectories."
    )
    assert ending == "1 of 4 rows ends with a message of the role tool, and no answer to it (trajectory 2)."
    assert told["roles_ending_without_answer"] == {"tool": 1}
    _, told = exported(tmp_path / "rl", records, mode="rl", rl_from_trace=True)
    assert (told["rows_ending_without_answer"], told["row_notes"]) == ({}, [])


def test_what_a_dry_run_knows_of_branches(tmp_path: Path) -> None:
    run = spec(indexed(tmp_path, {1: [forked(), answered("no", 0.0), answered("other", 1.0)]}))
    wanted = {"acceptance": "any", "per_prompt": None}
    said = {mode: inspect(run, mode=mode, **wanted)["row_notes"] for mode in ("sft", "preference")}
    of_each = "Selected 1 trajectory of several branches (trajectory 1): each branch with an answer is a row."
    assert said["sft"][0].startswith(of_each)
    assert said["preference"][0].startswith("1 pair holds one branch of several")
    assert inspect(run, mode="rl", rl_from_trace=True, **wanted)["row_notes"] == []


def test_the_notes_on_rows_are_on_stderr(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: [forked(), cut_off()]})
    asked = [str(database), "--mode", "preference", "--acceptance", "any", "-o", str(tmp_path / "out.jsonl")]
    result = CliRunner().invoke(command, asked)
    branches, limit, ending, others = [line for line in result.stderr.splitlines() if line.startswith("Note: ")]
    assert "one branch of several" in branches
    assert limit.endswith("--no-truncated leaves out such trajectories.")
    assert ending.endswith("and no answer to it (trajectory 2).")
    assert others.endswith("--field 'tool_calls?<=0' keeps answers without tools.")
    assert "Note" not in result.stdout
    assert CliRunner().invoke(command, [*asked, "--quiet"]).output == ""


@pytest.mark.parametrize("which", ["chosen", "rejected"])
def test_the_tools_of_a_pair_are_those_of_both(tmp_path: Path, which: str) -> None:
    records = {"chosen": answered("yes", 1.0), "rejected": answered("no", 0.0)}
    del records[which]["tools"]
    [row], told = exported(tmp_path, list(records.values()), mode="preference")
    assert [tool["function"]["name"] for tool in json.loads(row["tools"])] == ["bash"]
    assert told["rows_without_tool_definitions"] == 0


def test_pairs_that_call_undefined_tools_are_counted(tmp_path: Path) -> None:
    records = [answered("yes", 1.0), conversation("no", 0.0, [QUESTION, message("assistant", "None.")])]
    for record in records:
        del record["tools"]
    _, told = exported(tmp_path, records, mode="preference")
    assert told["rows_without_tool_definitions"] == 1
    assert told["row_notes"][0] == "1 row calls tools that the record does not define (trajectory 1)."


def test_a_chosen_one_that_is_no_training_data_makes_way_for_the_next(tmp_path: Path) -> None:
    records = [answered("best", 1.0), answered("second", 0.9), answered("third", 0.5), answered("worst", 0.0)]
    records[0]["nodes"][1]["message"] = message("assistant", tool_calls=[{"id": "x", "arguments": "{}"}])
    rows, told = exported(tmp_path, records, mode="preference")
    assert [(row["chosen"][-1]["content"], row["rejected"][-1]["content"]) for row in rows] == [("second.", "worst.")]
    assert told["rejected"] == {"tool call without a name": 1}


@pytest.mark.parametrize(("content", "count"), [("", 1), ("<tool_call>wc</tool_call>", 2)], ids=["lost", "as text"])
def test_a_tool_that_answers_nothing_is_no_training_data(tmp_path: Path, content: str, count: int) -> None:
    said = [QUESTION, message("assistant", content), message("tool", "42"), message("assistant", "42.")]
    rows, told = exported(tmp_path, [conversation("a", 1.0, said), answered("b", 1.0)])
    assert len(rows) == count
    assert told["rejected"] == ({} if count == 2 else {"a tool's result whose call was not recorded": 1})


def test_the_first_count_says_what_it_is_of(tmp_path: Path) -> None:
    write_steps(tmp_path / "run", {1: [rollout("a")], 2: [rollout("b"), rollout("c")], 3: [rollout("d")]})
    write_steps(tmp_path / "run", {2: [rollout("e")], 3: [rollout("f")]}, split="eval")
    index(tmp_path / "x.sqlite", tmp_path / "run")
    database = tmp_path / "x.sqlite"
    said = {
        "split train, all steps of the run run; split eval has 2 more": {},
        "split train, steps 2 to 3 of the run run; split eval has 2 more": {"step_start": 2, "step_end": 3},
        "split train, step 1 of the run run": {"step_start": 1, "step_end": 1},
        "split eval, steps from 3 on of the run run; split train has 1 more": {"split": "eval", "step_start": 3},
        "any split, all steps of the run run": {"split": None},
    }
    assert [inspect(spec(database, **asked))["available_of"] for asked in said.values()] == list(said)
    available = "Available: split train, all steps of the run run; split eval has 2 more.\n"
    assert CliRunner().invoke(command, [str(database), "--dry-run"]).output.startswith(available)
    assert CliRunner().invoke(command, [str(database), "--dry-run", "--target", "9"]).output.endswith(available)
    assert CliRunner().invoke(command, [str(database), "--dry-run", "--mode", "preference"]).output.endswith(available)


def test_runs_that_are_asked_alike_are_named_together(tmp_path: Path) -> None:
    specs = [spec(indexed(tmp_path, {1: [rollout("a")]}, name)) for name in ("one", "two")]
    specs.append(spec(indexed(tmp_path, {1: [rollout("a")]}, "three"), split=None))
    told = inspect(specs)["available_of"]
    assert told == "split train, all steps of the runs one, two; any split, all steps of the run three"


@pytest.mark.parametrize(("last_branch", "held"), [(False, [1, 2, 3, 1]), (True, [3, 1])])
def test_with_the_last_branch_alone_a_target_is_one_of_rows(tmp_path: Path, last_branch: bool, held: list[int]) -> None:
    records = [forked(), answered("yes", 1.0)]
    rows, told = exported(tmp_path, records, target_count=2, last_branch=last_branch)
    assert [row["trace_provenance"]["branch"] for row in rows] == held
    assert (told["selected_count"], told["row_count"]) == (2, len(held))
    [note] = [note for note in told["row_notes"] if "of several branches (trajectory 1)" in note]
    assert note.startswith(f"{'1 row is' if last_branch else '3 rows are'} one branch of several, out of 1 trajectory")
    assert ("last_branch makes one row of each" in note) == (not last_branch)
    before = inspect(tmp_path / "run.sqlite", acceptance="any", per_prompt=None, last_branch=last_branch)["row_notes"]
    assert f"{'the last one' if last_branch else 'each branch'} with an answer is a row." in before[0]


def test_a_line_says_of_how_many_trajectories_its_rows_are(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: [forked(), answered("yes", 1.0)]})
    for options, said in (([], "Wrote 4 rows of 2 trajectories to "), (["--last-branch"], "Wrote 2 rows to ")):
        line = [str(database), "--acceptance", "any", "-o", str(tmp_path / "o.jsonl"), *options]
        assert said in CliRunner().invoke(command, line).output.replace("\n", " ")
