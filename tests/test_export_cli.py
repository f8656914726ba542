"""`rltracer export`: its options reach the exporter, and what goes wrong is one sentence."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rltracer_sqlite.cli.export import command
from rltracer_sqlite.export import ExportError, FieldFilter
from rltracer_sqlite.export.filters import parse_field
from tests.export_runs import indexed, read_rows, rollout, uids, write_data, write_steps
from tests.indexing import index


def run(*arguments: object, code: int = 0) -> Result:
    """Run the command, which must end with this code."""
    result = CliRunner().invoke(command, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Return the index of a run with two prompts of different difficulty over two steps."""
    records = [
        rollout(f"{q}{n}", q, passed=n < limit, calls=n) for q, limit in (("easy", 4), ("mid", 2)) for n in range(4)
    ]
    return indexed(tmp_path, {1: records[::2], 2: records[1::2]})


def test_an_export_prints_its_funnel_and_where_it_went(tmp_path: Path, database: Path) -> None:
    output = run(database, "-o", tmp_path / "out.jsonl").output
    assert "accepted" in output
    assert "Selected 4 trajectories of 2 eligible prompts." in output
    assert f"Wrote 4 rows to {tmp_path / 'out.jsonl'}; summary" in output
    assert len(read_rows(tmp_path / "out.jsonl")) == 4
    assert "Selected 1 trajectory of 1 of the 2 eligible prompts." in run(database, "--dry-run", "--target", "1").output
    again = run(database, "-o", tmp_path / "out.jsonl").output
    assert f"Wrote 4 rows to {tmp_path / 'out.jsonl'}, replaced; summary" in again


def test_a_dry_run_writes_nothing(tmp_path: Path, database: Path) -> None:
    before = sorted(tmp_path.iterdir())
    output = run(database, "--dry-run", "--max-pass-rate", "0.5", "--field", "tool_calls<=0").output
    lines = [line.split() for line in output.splitlines()]
    assert ["difficulty", "2", "4"] in lines
    assert ["well", "formed", "1", "when", "read"] in lines
    assert ["tool_calls", "<=", "0", "1", "1"] in lines
    assert sorted(tmp_path.iterdir()) == before


def test_the_notes_below_a_funnel_name_the_options(tmp_path: Path) -> None:
    failed = {"ok": False, "stop_condition": None, "errors": [{"type": "X"}]}
    output = run(indexed(tmp_path, {1: [rollout("a", **failed)]}), "--dry-run").output
    assert "or it has no answer: --keep-errors keeps those with an answer." in " ".join(output.split())


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (["--per-prompt", "all"], "easy0 easy1 easy2 easy3 mid0 mid1"),
        (["--per-prompt", "all", "--steps", "1"], "easy0 easy2 mid0"),
        (["--per-prompt", "all", "--steps", "2-"], "easy1 easy3 mid1"),
        (["--acceptance", "failed"], "mid2 mid3"),
        (["--min-difficulty", "0.75", "--order", "shortest", "--field", "metrics.num_turns=1,4"], "easy0 easy3"),
        (["--field", "info.absent?<=3", "--unique-prompts", "--order", "shortest", "--field", "tool_calls<=0"],
         "easy0 mid0"),
        (["--target", "1", "--field", "metrics.num_turns>=4"], "easy3"),
        (["--window", "1", "--global-per-prompt", "1", "--field", "tool_calls=3,1", "--max-pass-rate", "0.5"], "mid1"),
    ],
)  # fmt: skip
def test_options(tmp_path: Path, database: Path, options: list[str], expected: str) -> None:
    run(database, "-o", tmp_path / "out.jsonl", "--quiet", *options)
    assert sorted(uids(read_rows(tmp_path / "out.jsonl"))) == expected.split()


def test_a_run_folder_needs_no_index(tmp_path: Path) -> None:
    root = write_steps(tmp_path / "run", {1: [rollout("a")]})
    assert "Wrote 1 row to" in run(root, "-o", tmp_path / "out.jsonl").output


def test_rl_from_data_and_from_traces(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: [rollout("a", "q0")]})
    data = write_data(tmp_path / "train.jsonl", ["q0"])
    run(database, "--mode", "rl", "--rl-data", data, "-o", tmp_path / "out.jsonl")
    assert read_rows(tmp_path / "out.jsonl")[0]["feedback"] == "good"
    assert "--rl-from-trace" in run(database, "--mode", "rl", "-o", tmp_path / "x.jsonl", code=2).output
    run(database, "--mode", "rl", "--rl-from-trace", "-o", tmp_path / "out.jsonl")
    assert read_rows(tmp_path / "out.jsonl")[0]["feedback"] is None


def test_runs_of_a_database_are_chosen_by_name(tmp_path: Path) -> None:
    for name in ("a", "b"):
        index(tmp_path / "x.sqlite", write_steps(tmp_path / name, {1: [rollout(name)]}))
    run(tmp_path / "x.sqlite", "-o", tmp_path / "out.jsonl")
    assert uids(read_rows(tmp_path / "out.jsonl")) == ["a", "b"]
    run(tmp_path / "x.sqlite", "--run", "b", "-o", tmp_path / "out.jsonl")
    assert uids(read_rows(tmp_path / "out.jsonl")) == ["b"]
    assert "no run 'c'" in str(run(tmp_path / "x.sqlite", "--run", "c", "--dry-run", code=1).exception)


WRONG = [
    (["--dry-run", "--field", "tool_calls"], 2, "is no filter"),
    (["--dry-run", "--field", "tool_calls<=many"], 2, "is no number"),
    (["--dry-run", "--min-pass-rate", "2"], 2, "between 0 and 1"),
    (["--dry-run", "--target", "99"], 1, "99 trajectories asked for, 4 available"),
    (["--dry-run", "--field", "metrics.num_turn<=8"], 1, "Similar: metrics.num_turns"),
    (["--dry-run", "--steps", "x"], 2, "is not a range of steps"),
    (["--dry-run", "--per-prompt", "few"], 2, "is no number, and not all"),
    ([], 2, "Give a file with -o"),
]


@pytest.mark.parametrize(("options", "code", "sentence"), WRONG)
def test_what_goes_wrong_is_a_sentence(database: Path, options: list[str], code: int, sentence: str) -> None:
    assert sentence in run(database, *options, code=code).output


def test_rejected_and_redacted_rows_are_told(tmp_path: Path) -> None:
    records = [rollout("good", answer="gh" + "p_" + "a1B2" * 9), rollout("bad")]
    records[1]["nodes"][2]["message"]["tool_calls"] = [{"id": "x"}]
    output = run(indexed(tmp_path, {1: records}), "--redact", "-o", tmp_path / "out.jsonl").output
    assert "Rejected 1: tool call without a name." in output
    assert "Redacted 1: GitHub token." in output


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("metrics.num_turns<=8", FieldFilter("metrics.num_turns", maximum=8)),
        ("rewards.a >= -0.5", FieldFilter("rewards.a", minimum=-0.5)),
        ("info.x?>=1", FieldFilter("info.x", minimum=1, include_missing=True)),
        ("env=math, code", FieldFilter("env", allowed_values=("math", "code"))),
        ("level=3", FieldFilter("level", allowed_values=("3", 3.0))),
        ("rewards.right format.score >=1", FieldFilter("rewards.right format.score", minimum=1)),
        ("ok=true", FieldFilter("ok", allowed_values=("true", True))),
    ],
)
def test_fields_as_they_are_written(text: str, expected: FieldFilter) -> None:
    assert parse_field(text) == expected


@pytest.mark.parametrize("text", ["", "x", "<=3", "x<3", "x=="])
def test_what_is_no_field(text: str) -> None:
    if text == "x==":
        assert parse_field(text).allowed_values == ("=",)
        return
    with pytest.raises(ExportError):
        parse_field(text)


@pytest.mark.parametrize("option", sorted({name for one in command.params for name in one.opts if name[:2] == "--"}))
def test_every_option_has_help_and_is_documented(option: str) -> None:
    docs = (Path(__file__).parents[1] / "docs" / "export.md").read_text(encoding="utf-8")
    helped = next(one for one in command.params if option in one.opts)
    assert getattr(helped, "help", None) or option in ("--mode", "--split", "--seed")
    same = {"--min-difficulty": "difficulty", "--max-difficulty": "difficulty", "--run": "Several databases"}
    assert same.get(option, option) in docs or option in ("--quiet", "--output")


def test_a_dry_run_names_options_and_not_preferences(database: Path) -> None:
    output = run(database, "--dry-run", "--effective-only", code=0).output
    assert "part of a training batch: --effective-only drops them." in output


def test_another_rule_is_set_by_another_command(database: Path) -> None:
    said = run(database, "--dry-run", "--success", "reward >= 0.5", code=2).output
    assert "What has passed is by the success rule of its run: rltracer success DB RUN --rule 'reward >= 1'" in said
