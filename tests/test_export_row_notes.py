"""What is said of the rows of an export besides their number, and which trajectories to look at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.export import ExportPreferences, FieldFilter, TraceDataExporter
from rltracer_sqlite.export.met import Met
from rltracer_sqlite.export.settings import renamed
from tests.commands import rltracer
from tests.export_runs import indexed, rollout, spec, write_steps
from tests.indexing import index
from tests.layouts import message, trace
from tests.summed_rewards import write_swift
from tests.test_export_distinct import said_alike

Record = dict[str, Any]
BESIDE = message("assistant", "42", reasoning_content="6 times 7.")
WITHIN = message("assistant", "<think>6 times 7.</think>42")
PROMPTED = message("assistant", "6 times 7.</think>42")
IN_PARTS = message("assistant", [{"type": "text", "text": "<think>6 times 7.</think>42"}])


def answered(*messages: Record) -> list[Record]:
    """Return rollouts of one prompt, each with one of these messages at the end; the first is the best."""
    rewards = [{"reward": {"score": 1.0 - n / 10, "weight": 1.0}} for n in range(len(messages))]
    asked = message("user", "6 * 7? Think in <think> tags.")
    return [trace([asked, said], id=f"t{n}", rewards=rewards[n]) for n, said in enumerate(messages)]


def notes(runs: Any, tmp_path: Path, **preferences: Any) -> list[str]:
    """Return the sentences on the rows of an export of everything."""
    wanted = ExportPreferences(**{"acceptance": "any", "per_prompt": None, **preferences})
    written = TraceDataExporter(runs, wanted).write(tmp_path / "o.jsonl").summary["row_notes"]
    assert TraceDataExporter(runs, wanted).preview(1)[0]["row_notes"] == written
    return list(written)


@pytest.mark.parametrize(
    ("messages", "said"),
    [
        ([WITHIN, BESIDE], "1 of 2 rows holds <think> in the content of an answer, as recorded (trajectory 1); 1 has"),
        ([WITHIN, PROMPTED], "2 of 2 rows hold <think> in the content of an answer, as recorded (trajectories 1, 2);"),
        ([IN_PARTS], "1 of 1 row holds <think> in the content of an answer, as recorded (trajectory 1); none has"),
        (
            [BESIDE, message("assistant", "42")],
            "1 of 2 rows has reasoning_content beside the content of an answer (trajectory 1), which ms-swift drops.",
        ),
    ],
    ids=["both", "within", "in parts", "beside"],
)
def test_reasoning_within_the_content_is_told(tmp_path: Path, messages: list[Record], said: str) -> None:
    told = notes(spec(indexed(tmp_path, {1: answered(*messages)})), tmp_path)
    of_reasoning = [note for note in told if "reasoning_content" in note]
    assert [note.startswith(said) for note in of_reasoning] == [True]


def test_reasoning_within_the_content_is_told_of_pairs(tmp_path: Path) -> None:
    told = notes(spec(indexed(tmp_path, {1: answered(BESIDE, WITHIN)})), tmp_path, mode="preference")
    said = "1 of 1 row holds <think> in the content of an answer, as recorded (trajectory 2); 1 has reasoning_content."
    assert said in told


@pytest.mark.parametrize(
    ("roles", "mode", "said"),
    [
        (
            ["developer"],
            "sft",
            "1 of 2 rows holds messages of the role developer (trajectory 1), which prime-rl refuses",
        ),
        (["developer", "critic"], "sft", "1 of 2 rows holds messages of the roles developer, critic (trajectory 1), "),
        (["developer"], "rl", "1 of 2 rows holds messages of the role developer (trajectory 1), which"),
        (["developer"], "preference", "1 of 1 row holds messages of the role developer (trajectory 1), which"),
        ([f"role{n:02}" for n in range(40)], "sft", "1 of 2 rows holds messages of the roles others, role00, role01,"),
        (["system", "tool", "user"], "sft", None),
    ],
    ids=["one", "two", "rl", "pairs", "many", "usual"],
)
def test_roles_that_not_every_trainer_knows_are_told(
    tmp_path: Path, roles: list[str], mode: str, said: str | None
) -> None:
    begun = [message(role, "Be brief.") for role in roles]
    records = answered(message("assistant", "42"), message("assistant", "43"))
    for record in records[: 2 if mode == "preference" else 1]:
        record |= {"nodes": trace([*begun, message("user", "?"), message("assistant", f"{record['id']}")])["nodes"]}
    told = notes(spec(indexed(tmp_path, {1: records})), tmp_path, mode=mode, rl_from_trace=True)
    assert [note.startswith(said or "") for note in told if "prime-rl" in note] == ([True] if said else [])


def partly_passed(tmp_path: Path, names: tuple[str, str] = ("accuracy", "format")) -> Path:
    """Return an index with a rule on two rewards together, of which the second rollout has one alone."""
    rewards = {names[0]: [1.0, 0.0, 0.0, 1.0], names[1]: [1.0, 1.0, 0.0, 0.0]}
    index(tmp_path / "x.sqlite", write_swift(tmp_path / "summed", rewards, steps=1))
    return tmp_path / "x.sqlite"


@pytest.mark.parametrize(
    ("preferences", "said"),
    [
        ({}, "Of 3 selected trajectories that passed by reward >= 1 (the sum of accuracy and format), 2 have 0 or less "
             "in one of them (trajectories 2, 4): accuracy in 1, format in 1; the field filter "
             "rewards.accuracy.score>=1 leaves those of accuracy out."),
        ({"field_filters": (FieldFilter("rewards.format.score", 1),)},
         "Of 2 selected trajectories that passed by reward >= 1 (the sum of accuracy and format), 1 has 0 or less in "
         "one of them (trajectory 2): accuracy in 1; the field filter rewards.accuracy.score>=1 leaves such out."),
        ({"mode": "preference", "field_filters": (FieldFilter("rewards.accuracy.score", maximum=0),)},
         "Of 1 chosen answer that passed by reward >= 1 (the sum of accuracy and format), 1 has 0 or less in one of "
         "them (trajectory 2): accuracy in 1; the"),
        ({"mode": "rl", "acceptance": "correct", "rl_from_trace": True, "seed": 1},
         "Of 1 selected trajectory that passed by reward >= 1 (the sum of accuracy and format), 1 has"),
        ({"acceptance": "incorrect"}, None),
        ({"field_filters": (FieldFilter("rewards.accuracy.score", 1), FieldFilter("rewards.format.score", 1))}, None),
    ],
    ids=["sft", "filtered", "pairs", "rl", "failed", "both"],
)  # fmt: skip
def test_what_passed_by_a_sum_without_one_of_its_rewards_is_told(
    tmp_path: Path, preferences: dict[str, Any], said: str | None
) -> None:
    wanted = ExportPreferences(**{"per_prompt": None, **preferences})
    told = TraceDataExporter(partly_passed(tmp_path), wanted).inspect()["row_notes"]  # no record is read for it
    assert [note.startswith(said or "") for note in told if "passed by reward" in note] == ([True] if said else [])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Format Reward", ": Format Reward in 1, format in 1; --field 'rewards.Format Reward.score>=1' leaves those"),
        ("it's", ": it's in 1, format in 1.\n"),
    ],
)
def test_the_filter_of_a_note_can_be_given(tmp_path: Path, name: str, said: str) -> None:
    database = partly_passed(tmp_path, (name, "format"))
    asked = ["export", database, "--per-prompt", "all", "-o", tmp_path / "o.jsonl"]
    assert said in rltracer(*asked).stderr
    if " " in name:
        assert "1 has 0 or less" in rltracer(*asked, "--field", f"rewards.{name}.score>=1").stderr


def part(kind: str, held: Any, key: str | None = None) -> Record:
    return {"type": kind, key or kind: held}


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([part("image_url", {"url": "data:image/png;base64,AA=="})], "image_url with a data URL"),
        ([part("image", "/data/a.png")], "image with an address or a path"),
        ([part("input_audio", {"data": "AA=="})], "input_audio"),
        ([{"image": 1}], "a part without a type"),
        ([part("image", "https://a"), part("image", "b"), part("audio", 1)], "image with an address or a path, audio."),
        ([part("x" * 50, 1)], f"{'x' * 29}…."),
        ([part(f"k{number:03}", 1) for number in range(40)], "others, "),
        ([part("text", "no image")], None),
    ],
    ids=["url", "path", "object", "no type", "two kinds", "long", "many kinds", "text"],
)  # fmt: skip
def test_parts_that_are_no_text_are_told(tmp_path: Path, parts: list[Any], said: str | None) -> None:
    asked = message("user", [{"type": "text", "text": "What is it?"}, *parts])
    database = indexed(tmp_path, {1: [trace([asked, message("assistant", "a cat")], id="a")]})
    for preferences in ({}, {"mode": "rl", "rl_from_trace": True}):
        of_parts = [
            note for note in notes(spec(database), tmp_path, **preferences) if " parts that are no text" in note
        ]
        start = f"1 of 1 row holds images or other parts that are no text, as recorded (trajectory 1): {said}"
        assert [note.startswith(start) for note in of_parts] == ([] if said is None else [True])


def test_images_in_the_prompt_of_a_pair_are_told_once(tmp_path: Path) -> None:
    asked = message("user", [part("image_url", {"url": "data:image/png;base64,AA=="})])
    rewards = [{"reward": {"score": score, "weight": 1.0}} for score in (1.0, 0.0)]
    said = [trace([asked, message("assistant", f"{n}")], id=f"{n}", rewards=rewards[n]) for n in range(2)]
    told = notes(spec(indexed(tmp_path, {1: said})), tmp_path, mode="preference")
    assert [
        note
        for note in told
        if note.startswith("1 of 1 row holds images or other parts that are no text, as recorded (trajectory 1)")
    ]


@pytest.mark.parametrize(
    ("contents", "name", "is_told"),
    [
        ([["a"], "b"], "o.jsonl", True),
        ([["a"], "b"], "o.parquet", False),
        ([["a"], ["b"]], "o.jsonl", False),
        (["a", "b"], "o.jsonl", False),
    ],
    ids=["both", "parquet", "parts", "text"],
)
def test_contents_of_two_types_are_told(tmp_path: Path, contents: list[Any], name: str, is_told: bool) -> None:
    pytest.importorskip("pyarrow")
    roles = zip(("user", "assistant"), contents, strict=True)
    said = [message(role, c if isinstance(c, str) else [{"type": "text", "text": c[0]}]) for role, c in roles]
    exporter = TraceDataExporter(
        spec(indexed(tmp_path, {1: [trace(said, id="a")]})), ExportPreferences(acceptance="any")
    )
    told = exporter.write(tmp_path / name).summary["row_notes"]
    assert [note.startswith("Content is a list of parts in 1 message and text in 1,") for note in told] == [
        True
    ] * is_told


@pytest.mark.parametrize(
    ("roles", "said"),
    [
        (["environment"], "1 of 1 row ends with a message of the role environment, and no answer"),
        (["tool", "environment", "environment"], "3 of 3 rows end with a message of the roles environment, tool, and"),
        (["r" * 50], f"1 of 1 row ends with a message of the role {'r' * 29}…, and no answer"),
    ],
    ids=["one", "two", "long"],
)
def test_the_roles_that_stand_at_the_end_are_named(tmp_path: Path, roles: list[str], said: str) -> None:
    asked, answer = message("user", "6 * 7?"), message("assistant", "42")
    records = [trace([asked, answer, message(role, f"{n}")], id=f"t{n}") for n, role in enumerate(roles)]
    assert notes(spec(indexed(tmp_path, {1: records})), tmp_path)[0].startswith(said)


def test_how_many_rows_are_distinct_and_which_are_not(tmp_path: Path) -> None:
    database = indexed(tmp_path, {1: [*said_alike("42", "a", "b"), *said_alike("43", "x", passed=False)]})
    [said] = notes(spec(database), tmp_path)
    assert said == "2 of 3 rows are distinct; distinct=True leaves out the other one (trajectory 2)."
    told = rltracer("export", database, "-o", tmp_path / "o.jsonl").stderr
    assert "Note: 1 of 2 rows is distinct; --distinct replaces the other one where it can (trajectory 2).\n" in told
    assert rltracer("export", database, "--dry-run").stderr == ""  # it reads no record


def test_a_trajectory_of_several_indexes_has_the_name_of_its_run(tmp_path: Path) -> None:
    found = [indexed(tmp_path, {1: said_alike("42", f"{name}1", f"{name}2")}, name) for name in ("one", "two")]
    [said] = notes(found, tmp_path)
    assert said.endswith("leaves out the other 3 (trajectories 2 of one, 1 of two, 2 of two).")


def test_a_trajectory_of_a_folder_is_found_by_its_number(tmp_path: Path) -> None:
    root = write_steps(tmp_path / "run", {1: [rollout("a"), rollout("b", stop_condition="max_turns")]})
    [note] = notes(root, tmp_path)
    assert note.startswith("1 selected trajectory was cut off by a limit (trajectory 2)")
    assert "max_turns" in rltracer("inspect", root, "--trajectory", 2).stdout


@pytest.mark.parametrize(
    ("trajectories", "said"),
    [
        ("", ""),
        ("7 7", " (trajectory 7)"),
        ("3 7 7 12", " (trajectories 3, 7, 12)"),
        ("3 7 12 13 14", " (trajectories 3, 7, 12, …)"),
    ],
)
def test_a_few_trajectories_are_shown(trajectories: str, said: str) -> None:
    met = Met()
    for one in trajectories.split():
        met.add([one])
    assert (met.count, met.where) == (len(trajectories.split()), said)


@pytest.mark.parametrize(
    ("sentence", "said"),
    [
        ("drop_truncated drops them.", "--no-truncated drops them."),
        ("acceptance='passed' and distinct=True", "--acceptance passed and --distinct"),
        ("a distinct acceptance", "a distinct acceptance"),
        ("/data/drop_truncated and _acceptance='passed'", "/data/drop_truncated and _acceptance='passed'"),
        ("unknown_name and other='passed'", "unknown_name and other='passed'"),
    ],
)
def test_preferences_are_named_as_the_reader_calls_them(sentence: str, said: str) -> None:
    options = {"drop_truncated": "--no-truncated", "acceptance": "--acceptance", "distinct": "--distinct"}
    assert renamed(sentence, lambda name, to: f"{options[name]} {to}".strip() if name in options else None) == said


def test_a_role_with_a_line_break_makes_no_line_of_its_own(tmp_path: Path) -> None:
    said = [message("user", [part("a\nb", 1)]), message("assistant", "42"), message("x\nNote: \u202e", "!")]
    database = indexed(tmp_path, {1: [trace(said, id="a")]})
    told = rltracer("export", database, "--acceptance", "any", "-o", tmp_path / "o.jsonl").stderr
    assert "of the role x␊Note: \\u202e, and no answer" in told
    assert ": a␊b. TRL" in told
    assert all(line.startswith("Note: ") for line in told.splitlines())
