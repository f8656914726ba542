"""Token ids without a tokenizer are no training data, and an export says so before it reads or writes anything."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.export import ExportError, ExportPreferences, TraceDataExporter
from tests.commands import indexed, rltracer, sentence, sentence_after_funnel
from tests.export_runs import indexed as indexed_rollouts
from tests.export_runs import inspect, rollout, spec
from tests.layouts import append, message, trace
from tests.table_answers import open_instruct
from tests.token_layouts import micro_batch, question, write_bin, write_tokenizer

NEEDED = "token ids need their tokenizer; index the run again with --tokenizer PATH."
NONE = f"Nothing is left: the condition has text is met by 0 of 2 trajectories. T{NEEDED[1:]}"


def bins(root: Path) -> None:
    samples = [question("4", reward=1.0), question("5", reward=0.0)]
    write_bin(root / "rollouts/step_1/rank_0.bin", [micro_batch("g20", samples)])


@pytest.fixture(params=[open_instruct, bins], ids=["open-instruct", "bins"])
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    write: Callable[[Path], Any] = request.param
    write(tmp_path / "run")
    return tmp_path / "run"


def database(run: Path, *options: object) -> Path:
    place = run.with_name("x.sqlite")
    done = indexed(place, run, *options)
    assert done.returncode == 0, done.stderr
    return place


def dropped(told: dict[str, Any]) -> dict[str, int]:
    return {step["stage"]: step["dropped"] for step in told["funnel"] if step["dropped"]}


def test_a_dry_run_drops_them_in_a_line_of_their_own(run: Path) -> None:
    told = rltracer("export", database(run), "--acceptance", "any", "--dry-run")
    lines = told.stdout.splitlines()
    assert [line.split() for line in lines if line.startswith(("has text", "well formed"))] == [
        ["has", "text", "0", "2"],
        ["well", "formed", "0", "–"],
    ]
    assert (told.returncode, lines[-1]) == (0, NONE)


@pytest.mark.parametrize("dry", [[], ["--dry-run"]], ids=["written", "dry"])
@pytest.mark.parametrize(
    ("options", "before"),
    [
        (["--target", "2"], "2 trajectories asked for, none available. "),
        (["--mode", "rl", "--rl-from-trace", "--target", "1"], "1 row asked for, none available. "),
    ],
    ids=["target", "prompts"],
)
def test_a_target_is_refused_with_the_reason(run: Path, options: list[str], before: str, dry: list[str]) -> None:
    asked = ["--acceptance", "any", "-o", run.with_name("o.jsonl"), *options, *dry]
    assert sentence(rltracer("export", database(run), *asked)) == before + NONE
    assert not list(run.parent.glob("o.jsonl*"))


@pytest.mark.parametrize("run", [open_instruct], indirect=True, ids=["open-instruct"])  # bins have no rewards
def test_pairs_are_refused_with_the_reason(run: Path) -> None:
    asked = ["--acceptance", "any", "--mode", "preference", "-o", run.with_name("o.jsonl")]
    assert sentence(rltracer("export", database(run), *asked)) == NONE
    assert sentence(rltracer("export", database(run), *asked, "--dry-run")) == NONE


def test_what_is_written_without_a_target_is_refused_too(run: Path) -> None:
    asked = ["--acceptance", "any", "-o", run.with_name("o.jsonl")]
    assert sentence(rltracer("export", database(run), *asked)) == NONE


def test_the_tokenizer_of_the_run_gives_all_of_them_text(run: Path) -> None:
    place = database(run, "--tokenizer", write_tokenizer(run.with_name("tokenizer")))
    told = inspect(spec(place), acceptance="any")
    assert (told["selected_count"], dropped(told)) == (2, {})
    done = rltracer("export", place, "--acceptance", "any", "-o", run.with_name("o.jsonl"))
    assert "\nWrote 2 rows" in done.stdout


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    """Return the index of a run of an evaluation with text and of two samples without."""
    said = [message("user", "6 * 7?"), message("assistant", "42")]
    append(tmp_path / "run/rollouts/step_1/eval/all/traces.jsonl", trace(said, id="e"))
    bins(tmp_path / "run")
    return database(tmp_path / "run")


def test_of_some_of_a_run_the_others_are_written_and_a_note_tells(mixed: Path, tmp_path: Path) -> None:
    told = rltracer("export", mixed, "--acceptance", "any", "--split", "any", "-o", tmp_path / "o.jsonl")
    assert told.returncode == 0
    assert f"\n2 trajectories have no text: {NEEDED}\n" in told.stdout
    assert "\nWrote 1 row " in told.stdout
    asked = ["export", mixed, "--acceptance", "any", "--split", "any", "--dry-run", "--target", "2"]
    short = sentence_after_funnel(rltracer(*asked))
    assert short == (
        "2 trajectories asked for, 1 available, of 1 prompt. Of 3 trajectories the condition has text leaves 1. Ask "
        "for fewer, or index the run again with --tokenizer PATH, since token ids have no text."
    )


def test_runs_with_and_without_text_are_counted_together(run: Path, tmp_path: Path) -> None:
    with_text = indexed_rollouts(tmp_path / "other", {1: [rollout("a")]})
    told = TraceDataExporter([spec(with_text), spec(database(run))], ExportPreferences(acceptance="any")).inspect()
    assert (told["selected_count"], dropped(told)) == (1, {"has text": 2})
    assert told["notes"][0] == f"2 trajectories have no text: {NEEDED}"


NAMELESS = [{"id": "x"}]
UNNAMED = "Nothing is left: what the filters leave was left out when it was read: tool call without a name (2)."


def test_what_reading_leaves_out_is_told_where_nothing_is_left(tmp_path: Path) -> None:
    records = [rollout("a"), rollout("b")]
    for record in records:
        record["nodes"][2]["message"]["tool_calls"] = NAMELESS
    place = indexed_rollouts(tmp_path, {1: records})
    exporter = TraceDataExporter(spec(place))
    told, first = exporter.preview(2)
    assert first == []
    assert told["notes"] == ["Left out when they were read for this preview: tool call without a name (2)."]
    assert sentence(rltracer("export", place, "-o", tmp_path / "o.jsonl")) == UNNAMED
    with pytest.raises(ExportError) as refused, exporter.prepared():
        pass
    assert str(refused.value) == UNNAMED
