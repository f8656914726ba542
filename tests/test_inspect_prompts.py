"""Which prompt `rltracer inspect --prompt` means: a number, the beginning of a key, or that of a text."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from rltracer_sqlite.index.meant import KEY, NUMBER, TEXT, prompts_meant
from tests.commands import indexed, rltracer, sentence
from tests.index_factory import make_index
from tests.indexing import rows
from tests.layouts import append, message, trace


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an index of three prompts whose keys begin with digits that are numbers too."""
    folder = tmp_path_factory.mktemp("prompts")
    texts = ["Count to ten.", "Count the apples.", "Write a poem."]
    for step, said in ((1, texts), (2, texts[1:])):
        for number, text in enumerate(said):
            record = trace([message("user", text), message("assistant", "!")], id=f"{step}-{number}", reward=number)
            append(folder / f"run/rollouts/step_{step}/train/all/traces.jsonl", record)
    indexed(folder / "x.sqlite", folder / "run")
    keys = ["2" * 8 + "0" * 56, "1" + "a" * 63, "1" + "b" * 63]
    with closing(sqlite3.connect(folder / "x.sqlite")) as connection:
        connection.executemany("update prompts set key = ? where id = ?", [(keys[n], n + 1) for n in range(3)])
        connection.execute("update prompts set id = 22222222 where id = 3")
        connection.execute("update prompt_groups set prompt_id = 22222222 where prompt_id = 3")
        connection.commit()
    return folder / "x.sqlite"


@pytest.mark.parametrize(
    ("asked", "step", "by", "numbers"),
    [
        ("1", None, NUMBER, [1]),  # two keys begin with it
        ("1", 2, NUMBER, []),
        ("2222222", None, NUMBER, []),  # the beginning of a key, of seven digits
        ("22222222", 1, NUMBER, [22222222]),
        ("222222220", None, KEY, [1]),
        ("1a", None, KEY, [2]),
        ("1A", None, TEXT, []),
        ("write  a", None, TEXT, [22222222]),
        ("Count", None, TEXT, [1, 2]),
        ("Count", 2, TEXT, [2]),
        ("Count the ap…", 1, TEXT, [2]),
        ("", None, TEXT, []),
        ("9" * 5000, None, TEXT, []),
    ],
)
def test_a_number_a_key_or_a_text_means_prompts(
    database: Path, asked: str, step: int | None, by: str, numbers: list[int]
) -> None:
    with closing(sqlite3.connect(database)) as connection:
        meant = prompts_meant(connection, 1, asked, step)
    assert (meant.by, meant.numbers) == (by, numbers)


def test_a_number_that_is_the_beginning_of_a_key_too_is_told(database: Path) -> None:
    assert (
        "22222222 by its number, not by its key (222222220000)"
        in rltracer("inspect", database, "--prompt", "22222222").stderr
    )
    assert rltracer("inspect", database, "--prompt", "1").stderr == ""


def test_several_prompts_of_a_text_are_listed(database: Path) -> None:
    done = rltracer("inspect", database, "--prompt", "count")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.splitlines() == [
        "Error: 2 prompts begin with 'count': give one by its number, or more of the text.",
        "  1  Count to ten.",
        "  2  Count the apples.",
    ]
    assert rltracer("inspect", database, "--prompt", "count", "--step", 2).stdout.startswith("prompt 2  1aaaaaaaaaaa  ")


@pytest.mark.parametrize("count", [4, 10, 13])
def test_every_prompt_of_a_text_is_listed_or_counted(tmp_path: Path, count: int) -> None:
    index = make_index(tmp_path / "x.sqlite", [{"prompt": f"Count to {number}."} for number in range(count)])
    lines = rltracer("inspect", index, "--prompt", "count").stderr.splitlines()
    assert lines[0].startswith(f"Error: {count} prompts begin with 'count': ")
    assert [line.split(maxsplit=1) for line in lines[1:11]] == [
        [str(number + 1), f"Count to {number}."] for number in range(min(count, 10))
    ]
    assert lines[11:] == (["  … and 3 more"] if count == 13 else [])


def test_prompts_of_a_text_that_look_the_same_have_their_splits(tmp_path: Path) -> None:
    records = [{"prompt": f"Count to ten.{' ' * number}", "split": split} for number, split in enumerate("ab")]
    index = make_index(tmp_path / "x.sqlite", [*records, {"prompt": "Count on.", "split": "a"}])
    with closing(sqlite3.connect(index)) as connection, connection:
        connection.execute("update prompts set preview = trim(preview)")  # their pictures may differ
    assert rltracer("inspect", index, "--prompt", "count").stderr.splitlines()[1:] == [
        "  1  a  Count to ten.",
        "  2  b  Count to ten.",
        "  3  a  Count on.",
    ]


def test_no_number_leads_to_another_prompt(demo: Path) -> None:
    index = demo / "x.sqlite"
    known = set(rows(index, "select step, prompt_id from prompt_groups"))
    steps = {number: [step for step, one in sorted(known) if one == number] for number in range(1, 23)}
    with closing(sqlite3.connect(index)) as connection:
        for step in range(1, 9):
            for number in range(24):
                meant = prompts_meant(connection, 1, str(number), step).numbers
                assert meant == ([number] if (step, number) in known else [])
    step, number = next((step, number) for step in range(1, 9) for number in steps if step not in steps[number])
    said = sentence(rltracer("inspect", index, "--step", step, "--prompt", number))
    assert said.startswith(f"Step {step} has no prompt {number}; it is only in steps ")


def test_a_trajectory_says_its_success_and_how_its_group_is_seen(demo: Path) -> None:
    index = demo / "x.sqlite"
    [(identity, prompt, group, step, success)] = rows(
        index,
        """
        select t.id, g.prompt_id, g.id, t.step, t.success
        from trajectories t join prompt_groups g on g.id = t.prompt_group_id where t.success = 0 limit 1
        """,
    )
    lines = rltracer("inspect", index, "--trajectory", identity).stdout.splitlines()
    assert lines[1] == f"prompt {prompt} · prompt group {group} · its trajectories: --prompt {prompt} --step {step}"
    assert lines[2] == "failed (metrics.correct_final_label >= 1)"
    told = json.loads(rltracer("inspect", index, "--trajectory", identity, "--json").stdout)["metadata"]
    assert (told["success"], told["prompt_id"], told["prompt_group_id"]) == (success, prompt, group)
    shown = rltracer("inspect", index, "--prompt", prompt, "--step", step).stdout
    assert any(line.split()[0] == str(identity) for line in shown.splitlines())


def test_lists_need_no_root_and_records_do(demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RLTRACER_HOME", str(tmp_path / "home"))
    index = tmp_path / "elsewhere.sqlite"
    index.write_bytes((demo / "x.sqlite").read_bytes())
    for asked in ([], ["--step", 8], ["--prompt", 14], ["--hardest"], ["--step", 8, "--prompt", 14], ["--problems"]):
        assert rltracer("inspect", index, *asked).returncode == 0, asked
    done = rltracer("inspect", index, "--trajectory", 1)
    assert "is not among the folders that may be read here" in done.stderr
    assert done.stdout.startswith("trajectory 1 · ")  # what the index knows needs no root either
    assert done.returncode == 1
