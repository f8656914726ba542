"""`rltracer inspect --trajectory A --with B`: the facts of both, and where what they say parts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from rltracer_sqlite.cli.columns import width_of
from rltracer_sqlite.comparison import prompts_in_words
from tests.commands import indexed, rltracer, sentence
from tests.layouts import append, episode, message, trace

ASKED = message("user", "How many?")
SAID = [
    [ASKED, message("assistant", "Let me count: one, two, three.")],
    [ASKED, message("assistant", "Let me count: one, two, four.")],
    [ASKED],
    [ASKED, message("assistant", "Let me count: one, two, three.")],
    [message("user", "Who?"), message("assistant", "\x1b[2J")],
]


def ruled(title: str) -> str:
    return f"── {title} " + "─" * (75 - len(title))


@pytest.fixture(scope="module")
def index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("beside")
    for number, messages in enumerate(SAID):
        record = trace(messages, id=f"t{number}", reward=number / 2, stop_condition="a long one " * 9)
        append(folder / "run/rollouts/step_1/train/all/traces.jsonl", record)
    indexed(folder / "x.sqlite", folder / "run")
    return folder / "x.sqlite"


@pytest.mark.parametrize(
    ("other", "end"),
    [
        (
            2,
            [
                "The first message is the same; from #2 on they differ:",
                ruled("trajectory 1, #2 assistant"),
                "…three.",
                ruled("trajectory 2, #2 assistant"),
                "…four.",
            ],
        ),
        (
            3,
            [
                ruled("trajectory 1, #2 assistant"),
                "Let me count: one, two, three.",
                ruled("trajectory 3, #2"),
                "ends before",
            ],
        ),
        (4, ["They say the same, in 2 messages."]),
        (
            5,
            [
                "No message is the same; from #1 on they differ:",
                ruled("trajectory 1, #1 user"),
                "How many?",
                ruled("trajectory 5, #1 user"),
                "Who?",
            ],
        ),
    ],
)
def test_two_trajectories_part_where_they_differ(
    index: Path, other: int, end: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = rltracer("inspect", index, "--trajectory", 1, "--with", other).stdout.splitlines()
    assert "\n".join(lines).partition("\n\nAfter #")[0].endswith("\n".join(["", *end]))
    assert lines[0] == ("Same prompt." if other < 5 else "Different prompts.")
    assert lines[1] == "Success: reward >= 1."
    assert lines[2].split() == ["trajectory", "1", "trajectory", str(other)]
    assert next(line for line in lines if " reward " in line and "≠" in line).split() == [
        "≠",
        "reward",
        "0",
        f"{(other - 1) / 2:g}",
    ]
    assert max(width_of(line) for line in lines if not line.startswith("  rltracer ")) <= 80  # these are copied
    assert "\x1b" not in "".join(lines)


@pytest.mark.parametrize("item", [None, 0])
def test_the_file_and_the_place_in_it_are_told_in_a_narrow_terminal(
    tmp_path: Path, item: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for step in (3, 3, 12):
        record = trace([ASKED])
        file = tmp_path / f"run/rollouts/step_{step}/train/all/traces.jsonl"
        append(file, record if item is None else episode([record], step=step))
    indexed(tmp_path / "x.sqlite", tmp_path / "run")
    inside = "" if item is None else " · trajectory 1 in it"
    for other, name, line in ((2, "train/all", 2), (3, "step_12/…", 1)):
        printed = rltracer("inspect", tmp_path / "x.sqlite", "--trajectory", 1, "--with", other).stdout.splitlines()
        file, record = (next(line for line in printed if line[2:].startswith(word)) for word in ("file", "record"))
        assert file.split()[-2:] == [f"…/{name.replace('12', '3')}/traces.jsonl", f"…/{name}/traces.jsonl"]
        assert record[21:].split("  ")[0] == f"line 1{inside}"
        assert record.rstrip().endswith(f"line {line}{inside}")


def test_two_trajectories_are_compared_for_programs(index: Path) -> None:
    told = json.loads(rltracer("inspect", index, "--trajectory", "t0", "--with", "t1", "--json").stdout)
    assert (told["same_prompt"], told["same_messages"]) == (True, 1)
    other = json.loads(rltracer("inspect", index, "--trajectory", "t0", "--with", "t4", "--json").stdout)
    assert (other["same_prompt"], other["same_messages"]) == (False, 0)
    assert [(one["id"], one["reward"], one["success"], one["messages"]) for one in told["trajectories"]] == [
        (1, 0, 0, 2), (2, 0.5, 0, 2)
    ]  # fmt: skip


def test_prompts_of_the_same_words_and_another_task_are_told_apart(tmp_path: Path) -> None:
    for number, task in enumerate(("one", "other")):
        record = trace(SAID[0], id=f"t{number}", task={"idx": number, "name": task})
        append(tmp_path / "run/rollouts/step_1/train/all/traces.jsonl", record)
    indexed(tmp_path / "x.sqlite", tmp_path / "run")
    lines = rltracer("inspect", tmp_path / "x.sqlite", "--trajectory", 1, "--with", 2).stdout.splitlines()
    assert lines[0] == "Different prompts, in the same words."


@pytest.mark.parametrize(
    ("numbers", "keys", "said"),
    [((1, 1), ("k", "k"), "same prompt"), ((1, 2), ("k", "l"), "different prompts"), ((1, None), ("k", None), "")],
)
def test_whether_two_prompts_are_the_same(
    numbers: tuple[int | None, ...], keys: tuple[str | None, ...], said: str
) -> None:
    assert prompts_in_words(numbers, keys) == said


def test_what_cannot_be_compared_is_refused(index: Path) -> None:
    for options in (["--with", "2"], ["--trajectory", "1", "--with", "2", "--branch", "1"]):
        assert "--with takes --trajectory, and no --branch" in sentence(rltracer("inspect", index, *options), 2)
    assert "no trajectory 99; it has 5" in sentence(rltracer("inspect", index, "--trajectory", "1", "--with", "99"))


@pytest.mark.parametrize("options", [(), ("--full",)])
def test_where_reasoning_ends_can_be_seen(tmp_path: Path, options: tuple[str, ...]) -> None:
    thought = "(reasoning) It is in the evidence.\n<verdict>no</verdict>"
    said = [message("assistant", answer, reasoning_content=thought[12:]) for answer in ("<verdict>yes", "<verdict>no")]
    for number, one in enumerate(said):
        append(tmp_path / "run/rollouts/step_1/train/all/traces.jsonl", trace([ASKED, one], id=f"t{number}"))
    indexed(tmp_path / "x.sqlite", tmp_path / "run")
    alone = rltracer("inspect", tmp_path / "x.sqlite", "--trajectory", 1, *options).stdout.splitlines()
    assert alone[-3:] == [*(f"│ {line}" for line in thought.splitlines()), "<verdict>yes"]
    said_apart = [message("assistant", "yes", reasoning_content="One."), message("assistant", "One.")]
    for number, one in enumerate(said_apart, 2):
        append(tmp_path / "run/rollouts/step_1/train/all/traces.jsonl", trace([ASKED, one], id=f"t{number}"))
    indexed(tmp_path / "x.sqlite", tmp_path / "run")
    beside = rltracer("inspect", tmp_path / "x.sqlite", "--trajectory", 3, "--with", 4, *options).stdout.splitlines()
    title = "trajectory {}, #2 assistant"
    assert beside[-5:] == [ruled(title.format(3)), "│ (reasoning) One.", "yes", ruled(title.format(4)), "One."]


def test_reasoning_that_differs_from_its_beginning_on_is_not_shown_as_cut(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    for number, thought in enumerate(("Three packs.", "Four packs.")):
        said = message("assistant", "So.", reasoning_content=thought)
        append(tmp_path / "run/rollouts/step_1/train/all/traces.jsonl", trace([ASKED, said], id=f"t{number}"))
    indexed(tmp_path / "x.sqlite", tmp_path / "run")
    lines = parting_lines(tmp_path / "x.sqlite", 1, "--with", 2)
    assert lines == ["│ (reasoning) Three packs.", "So.", "│ (reasoning) Four packs.", "So."]


@pytest.fixture(scope="module")
def thoughtful(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the index of trajectories whose answers follow their thoughts in one text."""
    folder = tmp_path_factory.mktemp("thoughtful")
    for number, (thought, answer) in enumerate(
        [("hm " * 200, "It is 3."), ("oh " * 200, "It is 4."), ("hm " * 200, "It is 5."), ("", "It is 6.")]
    ):
        said = message("assistant", f"<think>\n{thought}</think>\n\n{answer}" if thought else answer)
        append(folder / "run/rollouts/step_1/train/all/traces.jsonl", trace([ASKED, said], id=f"t{number}"))
    indexed(folder / "x.sqlite", folder / "run")
    return folder / "x.sqlite"


def parting_lines(index: Path, *asked: object) -> list[str]:
    """Return the lines of what two trajectories say from where they differ, without those above either."""
    lines = rltracer("inspect", index, "--trajectory", *asked).stdout.splitlines()
    return [line for line in lines[lines.index(ruled("trajectory 1, #2 assistant")) :] if not line.startswith("──")]


def test_an_answer_is_seen_behind_the_thoughts_in_its_text(thoughtful: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    lines = parting_lines(thoughtful, 1, "--with", 2)
    left, right = lines[: len(lines) // 2], lines[len(lines) // 2 :]
    for said, thought, answer in ((left, "hm", "It is 3."), (right, "oh", "It is 4.")):
        assert said[0].startswith(f"│ …{thought} {thought} ")
        assert all(line.startswith("│ ") for line in said[:-2])
        assert said[-2:] == ["… 310 characters more; --full shows all", answer]


def test_the_same_thoughts_are_left_out_before_answers_that_differ(thoughtful: Path) -> None:
    assert parting_lines(thoughtful, 1, "--with", 3) == ["…3.", "…5."]


def test_thoughts_differ_from_an_answer_without_any(thoughtful: Path) -> None:
    lines = parting_lines(thoughtful, 1, "--with", 4)
    assert lines[:2] == ["│ <think>", f"│ {'hm ' * 25}hm"]
    assert lines[-3:] == ["… 318 characters more; --full shows all", "It is 3.", "It is 6."]


def test_full_shows_thoughts_as_they_are_in_the_text(thoughtful: Path) -> None:
    lines = parting_lines(thoughtful, 1, "--with", 2, "--full")
    assert lines[:4] == ["<think>", f"{'hm ' * 200}</think>", "", "It is 3."]


def test_an_advantage_that_is_not_recorded_is_derived_as_on_the_page_of_the_group(tmp_path: Path) -> None:
    told = [{"advantage": 0.25}, {}, {}]
    for number, info in enumerate(told):
        record = trace(SAID[number], id=f"t{number}", reward=number / 2, info=info)
        append(tmp_path / "run/rollouts/step_1/train/all/traces.jsonl", record)
    indexed(tmp_path / "x.sqlite", tmp_path / "run")
    done = rltracer("inspect", tmp_path / "x.sqlite", "--trajectory", 1, "--with", 3).stdout
    assert re.search(r"^≠ advantage +\+0.25 +\+0.5 derived$", done, re.MULTILINE)
    assert "A derived advantage is the reward minus the mean of its prompt group." in done
    both = rltracer("inspect", tmp_path / "x.sqlite", "--trajectory", 1, "--with", 3, "--json").stdout
    facts = [(one["advantage"], one["advantage_derived"]) for one in json.loads(both)["trajectories"]]
    assert facts == [(0.25, None), (None, 0.5)]
    assert "derived" not in rltracer("inspect", tmp_path / "x.sqlite", "--trajectory", 1, "--with", 1).stdout
    lines = rltracer("inspect", tmp_path / "x.sqlite", "--trajectory", 3).stdout.splitlines()
    place = lines.index("A derived advantage is the reward minus the mean of its prompt group.")
    assert "advantage +0.5 derived · env" in lines[place - 1]
    alone = json.loads(rltracer("inspect", tmp_path / "x.sqlite", "--trajectory", 3, "--json").stdout)["metadata"]
    assert (alone["advantage"], alone["advantage_derived"]) == (None, 0.5)
    assert "derived" not in rltracer("inspect", tmp_path / "x.sqlite", "--trajectory", 1).stdout


@pytest.fixture(scope="module")
def long_ones(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the index of two trajectories whose second messages call a tool with long arguments, and go on."""
    folder = tmp_path_factory.mktemp("long")
    for number, more in enumerate((3, 1)):
        arguments = json.dumps({"command": f"echo {'same ' * 20}{number} {'x' * 400}"})
        call = message("assistant", tool_calls=[{"id": "c", "name": "bash", "arguments": arguments}])
        record = trace([ASKED, call, *[message("tool", "ok")] * more], id=f"t{number}")
        append(folder / "run/rollouts/step_1/train/all/traces.jsonl", record)
    indexed(folder / "x.sqlite", folder / "run")
    return folder / "x.sqlite"


def test_what_follows_the_first_difference_is_counted_with_how_to_read_it(
    long_ones: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    said = rltracer("inspect", long_ones, "--trajectory", 1, "--with", 2).stdout.splitlines()[-3:]
    assert said == [
        "After #2, trajectory 1 has 3 more messages and trajectory 2 has 1 more message. Read all of it with:",
        f"  rltracer inspect {long_ones} --trajectory 1",
        f"  rltracer inspect {long_ones} --trajectory 2",
    ]


def test_full_shows_the_whole_of_what_differs(long_ones: Path) -> None:
    shortened = rltracer("inspect", long_ones, "--trajectory", 1, "--with", 2).stdout
    assert shortened.count("characters more; --full shows all\n") == 2
    whole = rltracer("inspect", long_ones, "--trajectory", 1, "--with", 2, "--full").stdout
    for number in range(2):
        assert f'→ bash({{"command": "echo {"same " * 20}{number} {"x" * 400}"}})' in whole.splitlines()
    assert "…" not in whole.partition("\n\n")[2]
