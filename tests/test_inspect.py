"""`rltracer inspect`: steps, prompts and trajectories as the index knows them, on lines that fit."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.cli.columns import width_of, wrapped
from tests.commands import indexed, rltracer, sentence
from tests.indexing import rows, value
from tests.layouts import append, message, trace
from tests.test_index_summary import TRACES, make_run


def test_steps_are_listed_with_what_the_index_knows(demo: Path) -> None:
    database = demo / "x.sqlite"
    done = rltracer("inspect", database)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 3 + value(database, "select count(*) from steps")
    listed = [json.loads(line) for line in rltracer("inspect", "--run", database, "--json").stdout.splitlines()]
    assert [tuple(fact.values()) for fact in listed] == rows(
        database,
        """
        select step, split, trajectories, scored, prompt_groups, pass_rate,
            (select count(reward) from trajectories t where t.step = s.step and t.split = s.split), reward_mean,
            0, 0, ''
        from steps s order by step, split
        """,
    )
    assert f"{listed[-1]['pass_rate']:.3f}" in done.stdout.splitlines()[-1]


def test_prompts_of_a_step_are_listed_by_split_with_their_rates(demo: Path) -> None:
    database = demo / "x.sqlite"
    lines = rltracer("inspect", database, "--step", 8, "--json").stdout.splitlines()
    known = {
        (f"{key}:{task}" + ("" if split == "train" else f"@{split}"), split): (count, rate, mean)
        for key, task, split, count, rate, mean in rows(
            database,
            """
            select p.key, p.task, t.split, count(*), sum(success) * 1.0 / count(success), avg(reward)
            from trajectories t join prompt_groups g on g.id = t.prompt_group_id join prompts p on p.id = g.prompt_id
            where t.step = 8 group by p.id, t.split
            """,
        )
    }
    assert {split for _, split in known} == {"train", "eval"}
    assert len(lines) == len(known)
    for fact in map(json.loads, lines):
        count, rate, mean = known[fact["prompt"], fact["split"]]
        assert (fact["trajectories"], fact["pass_rate"]) == (count, rate)
        assert fact["reward_mean"] == pytest.approx(mean)
    shown = rltracer("inspect", database, "--step", 8).stdout
    assert shown.startswith(
        "15 prompts in step 8, in the order they were read; splits eval, train\n"
        "Success: metrics.correct_final_label >= 1; 4 of 58 trajectories unscored.\n"
    )
    assert "  eval  " in shown


def test_what_has_vanished_is_told_beside_its_step(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", 3)
    append(run / "rollouts" / TRACES.format(4), trace([message("user", "?"), message("assistant", "!")], id="b"))
    indexed(tmp_path / "x.sqlite", run)
    (run / "rollouts" / TRACES.format(3)).unlink()
    indexed(tmp_path / "x.sqlite", run)
    done = rltracer("inspect", tmp_path / "x.sqlite")
    assert [line.strip() for line in done.stdout.splitlines()[4:-1]] == [
        "1 of 1 file gone since it was read; 1 of 1 trajectory cannot be", "opened"
    ]  # fmt: skip
    command = f"rltracer inspect {tmp_path / 'x.sqlite'} --problems"
    assert done.stderr == f"run: 1 of 2 files gone since it was read, of step 3: {command} lists them.\n"


def test_a_folder_of_which_nothing_was_read_lists_its_steps(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", 3, 4)
    assert rltracer("inspect", run).stdout.splitlines()[2].split() == ["step", "3", *"–" * 5]
    assert rltracer("inspect", run, "--step", 3).returncode == 0
    assert rltracer("inspect", run).stdout.splitlines()[3].split()[:5] == ["step", "3", "train", "1", "1"]


def test_a_folder_says_how_its_unread_steps_are_read(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", 3)
    assert "not been read yet: --step N reads one, rltracer-index" in rltracer("inspect", run).stdout
    assert rltracer("inspect", run, "--step", 3).returncode == 0
    assert "have not been read" not in rltracer("inspect", run).stdout


def test_the_hardest_prompts_are_listed(demo: Path) -> None:
    database = demo / "x.sqlite"
    known = rows(
        database,
        """
        select prompt_id, split, pass_rate from prompt_pass_rates where scored > 0
        order by pass_rate, scored desc, prompt_id, split
        """,
    )
    for options, count in ((["--hardest"], 10), (["--hardest", 3], 3)):
        told = [json.loads(line) for line in rltracer("inspect", database, *options, "--json").stdout.splitlines()]
        assert [(fact["prompt_id"], fact["split"], fact["pass_rate"]) for fact in told] == known[:count]
    shown = rltracer("inspect", database, "--hardest", 3).stdout.splitlines()
    assert " ".join(shown[:3]).startswith(
        f"3 of {len(known)} scored prompts, hardest first, over all steps; splits eval, train "
        "16 of 22 prompts are scored; 6 have no score by metrics.correct_final_label >= 1 (rltracer success sets "
    )
    assert [int(line.split()[0]) for line in shown[4:]] == [number for number, _, _ in known[:3]]


def test_the_easiest_prompts_of_a_split_and_an_environment_are_listed(demo: Path) -> None:
    database = demo / "x.sqlite"
    known = rows(
        database,
        """
        select prompt_id, pass_rate from prompt_pass_rates
        where scored > 0 and split = 'train' and env = 'word-problems'
        order by pass_rate desc, scored desc, prompt_id
        """,
    )
    chosen = ["--split", "train", "--env", "word-problems"]
    told = [
        json.loads(line) for line in rltracer("inspect", database, "--easiest", *chosen, "--json").stdout.splitlines()
    ]
    assert [(fact["prompt_id"], fact["pass_rate"]) for fact in told] == known
    assert {(fact["split"], fact["env"]) for fact in told} == {("train", "word-problems")}
    shown = " ".join(rltracer("inspect", database, "--easiest", *chosen).stdout.split())
    assert shown.startswith(
        "5 scored prompts, easiest first, over all steps; split train; env word-problems Success: "
        "metrics.correct_final_label >= 1; every prompt is scored. prompt"
    )


@pytest.mark.parametrize("chosen", [{"split": "eval"}, {"env": "pictures"}, {"split": "train", "env": "shell-jobs"}])
def test_every_list_takes_a_split_and_an_environment(demo: Path, chosen: dict[str, str]) -> None:
    database = demo / "x.sqlite"
    options = [part for name, text in chosen.items() for part in (f"--{name}", text)]
    where = " and ".join(f"t.{name} = '{text}'" for name, text in chosen.items())

    def told(*asked: object) -> list[dict[str, Any]]:
        return [
            json.loads(line)
            for line in rltracer("inspect", database, *asked, *options, "--json").stdout.split("\n")[:-1]
        ]

    of_steps = f"select step, split, count(*), avg(success) from trajectories t where {where} group by step, split"
    facts = ("step", "split", "trajectories", "pass_rate")
    assert [tuple(one[name] for name in facts) for one in told()] == rows(database, of_steps)
    of_prompts = f"""
        select g.prompt_id, t.split, count(*), avg(t.success) from trajectories t
        join prompt_groups g on g.id = t.prompt_group_id where {where} and t.step = 8 group by 1, 2
    """
    facts = ("prompt_id", "split", "trajectories", "pass_rate")
    assert sorted(tuple(one[name] for name in facts) for one in told("--step", 8)) == rows(database, of_prompts)
    prompt = rows(database, of_prompts)[0][0]
    for number in {one["id"] for one in told("--step", 8, "--prompt", prompt)}:
        assert value(database, f"select count(*) from trajectories t where {where} and id = {number}") == 1
    assert {one["prompt_id"] for one in told("--prompt", prompt)} == {prompt}
    shown = rltracer("inspect", database, *options).stdout.splitlines()[0]
    assert all(f"; {'split' if name == 'split' else 'env'} {text}" in shown for name, text in chosen.items())


def test_the_best_and_the_worst_of_all_steps_are_told_with_their_step_and_split(demo: Path) -> None:
    database = demo / "x.sqlite"
    *_, best, worst = rltracer("inspect", database, "--prompt", 14).stdout.splitlines()
    of_prompt = "prompt_group_id in (select id from prompt_groups where prompt_id = 14)"
    for line, which, reward in ((best, "best", "max(reward)"), (worst, "worst", "min(reward)")):
        told = re.fullmatch(
            rf"  {which} of all: trajectory (\d+), reward (\S+) \(as (\d+) others\), step (\d+), train", line
        )
        assert told, line
        assert told[2] == f"{value(database, f'select {reward} from trajectories where {of_prompt}'):.3f}"
        facts = rows(database, f"select reward, step, {of_prompt} from trajectories where id = {told[1]}")[0]
        assert (f"{facts[0]:.3f}", str(facts[1]), facts[2]) == (told[2], told[4], 1)
        same = f"select count(*) - 1 from trajectories where {of_prompt} and reward = {facts[0]}"
        assert value(database, same) == int(told[3])


def test_equal_rewards_have_no_best_and_no_worst(demo: Path) -> None:
    lines = rltracer("inspect", demo / "x.sqlite", "--prompt", 9).stdout.splitlines()
    assert lines[-1] == "  no best or worst of all: all 16 rewards are 0.000"
    assert all(line.endswith("0.000   all rewards equal") for line in lines[3:-1])
    told = rltracer("inspect", demo / "x.sqlite", "--prompt", 9, "--json").stdout.splitlines()
    assert [(row["best"], row["worst"], row["highest_count"]) for row in map(json.loads, told)] == [(None, None, 4)] * 4


def test_a_prompt_is_chosen_by_its_number_or_its_key(demo: Path) -> None:
    database = demo / "x.sqlite"
    number, key = rows(
        database, "select p.id, key from prompts p join prompt_groups g on g.prompt_id = p.id where step = 8 limit 1"
    )[0]
    known = rows(
        database,
        """
        select step, split, count(*), avg(success) from trajectories
        where prompt_group_id in (select id from prompt_groups where prompt_id = ?) group by step, split
        """,
        (number,),
    )
    by_step = []
    for asked in (number, key[:10]):
        lines = rltracer("inspect", database, "--prompt", asked, "--json").stdout.splitlines()
        facts = ("step", "split", "trajectories", "pass_rate")
        assert [tuple(json.loads(line)[name] for name in facts) for line in lines] == known
        by_step.append(rltracer("inspect", database, "--step", 8, "--prompt", asked).stdout)
    assert len(known) > 1
    assert by_step[0] == by_step[1] != ""
    shown = rltracer("inspect", database, "--prompt", number).stdout.splitlines()
    assert shown[0].startswith(f"prompt {number}  {key[:12]}  ")
    assert len(shown) == 5 + len(known)


def test_the_best_and_the_worst_of_a_prompt_are_named_and_come_first_and_last(demo: Path) -> None:
    database = demo / "x.sqlite"
    for group in map(json.loads, rltracer("inspect", database, "--prompt", 14, "--json").stdout.splitlines()):
        rewards = rows(
            database,
            f"""
            select t.reward, t.id from trajectories t join prompt_groups g on g.id = t.prompt_group_id
            where g.prompt_id = 14 and t.step = {group["step"]}
            """,
        )
        told = dict(map(reversed, rewards))
        assert (told[group["best"]], told[group["worst"]]) == (max(rewards)[0], min(rewards)[0])
        shown = rltracer("inspect", database, "--prompt", 14, "--step", group["step"], "--json").stdout.splitlines()
        assert [json.loads(line)["reward"] for line in shown] == sorted(told.values(), reverse=True)
        # Of equal rewards the first and the last of the list, as on the pages.
        assert [json.loads(shown[end])["id"] for end in (0, -1)] == [group["best"], group["worst"]]


@pytest.mark.parametrize("option", ["--hardest", "--easiest"])
def test_what_follows_an_optional_number_may_be_the_index(demo: Path, option: str) -> None:
    database = demo / "x.sqlite"
    expected = rltracer("inspect", database, option)
    assert expected.returncode == 0
    assert rltracer("inspect", option, database) == expected
    assert "take a whole number, not 'some'" in sentence(rltracer("inspect", option, "some", database), 2)
    assert "'1.5' is not a whole number." in sentence(rltracer("inspect", option, "1.5", database), 2)
    assert "some does not exist" in sentence(rltracer("inspect", option, "some"))


def test_a_run_is_headed_by_its_name_and_by_its_folder_as_far_as_that_fits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, run = tmp_path / "x.sqlite", make_run(tmp_path / ("folder" * 9), 3)
    indexed(database, run, "--name", "of its own")
    for columns, said in (
        ("300", f"of its own, {run}: 1 step; split train"),
        ("60", "of its own, …erfolderfolderfolderfolder: 1 step; split train"),
        ("40", "of its own: 1 step; split train"),
    ):
        monkeypatch.setenv("COLUMNS", columns)
        assert rltracer("inspect", database).stdout.splitlines()[0] == said


@pytest.mark.parametrize("steps", [[3], [3, 5, 8]])
def test_the_headings_of_a_list_of_runs_are_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, steps: list[int]
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    database, long = tmp_path / "x.sqlite", "a-name-that-takes-more-than-there-is-room-for"
    for number, name in enumerate(("a", "b", long)):
        indexed(database, *[make_run(tmp_path / name, step) for step in steps])
        if number:
            listed = rltracer("inspect", database).stdout.splitlines()
            [head] = [line for line in listed if line.startswith("  run  ")]
            assert head.split()[:2] == ["run", "name"]
            assert head.endswith("  steps")
            row = listed[listed.index(head) + 1]
            assert head.index("steps") == row.rindex("  ") + 2


def test_an_index_of_several_runs_lists_them(demo: Path, tmp_path: Path) -> None:
    make_run(tmp_path / "small", 3)
    database = tmp_path / "x.sqlite"
    indexed(database, demo / "run", tmp_path / "small")
    first, second = map(json.loads, rltracer("inspect", database, "--json").stdout.splitlines())
    scored, successes = rows(
        database, "select count(success), sum(success) from trajectories where run_id = 1 and split = 'train'"
    )[0]
    assert (first["run"], first["steps"], first["trajectories"]) == ("run", [*range(1, 9)], 368)
    assert (first["scored"], first["successes"], first["pass_rate"]) == (scored, successes, successes / scored)
    assert first["split"] == "train"
    assert (second["run"], second["steps"], second["trajectories"], second["reward_mean"]) == ("small", [3], 1, 1)
    lines = rltracer("inspect", database).stdout.splitlines()
    assert lines[0].endswith("x.sqlite: 2 runs; --run NAME or its number shows one")
    assert lines[1] == "Scored, pass rate and reward are of the split named, over all its steps."
    assert " ".join(lines[2:4]) == (
        "System: prime-rl. Success: metrics.correct_final_label >= 1 (run 1), reward >= 1 (run 2)."
    )
    assert lines[-1].split() == ["2", "small", "1", "train", "1", "1.000", "1.000", "3"]
    [_, small] = map(json.loads, rltracer("inspect", database, "--json", "--split", "eval").stdout.splitlines())
    assert (small["trajectories"], small["pass_rate"], small["split"]) == (0, None, None)
    said = sentence(rltracer("inspect", database, "--env", "nope"))
    assert said.startswith("None of the 2 runs has a trajectory with env nope. They have env not recorded, ")
    assert rltracer("inspect", database, "--run", "2").stdout.splitlines()[3].split()[:2] == ["step", "3"]


def test_a_trajectory_is_found_by_its_recorded_id_or_its_beginning(demo: Path, tmp_path: Path) -> None:
    database = demo / "x.sqlite"
    uid = value(database, "select uid from trajectories where id = 17")
    for asked in (17, uid, uid[:12]):
        assert rltracer("inspect", database, "--trajectory", asked).stdout.startswith(f"trajectory 17 · {uid} ·")
    assert sentence(rltracer("inspect", database, "--trajectory", "zz")) == (
        "The index has no trajectory zz; it has 368, from 1 to 368."
    )
    runs = make_run(tmp_path / "a"), make_run(tmp_path / "b")  # with trajectories of the same id
    indexed(tmp_path / "x.sqlite", *runs)
    said = sentence(rltracer("inspect", tmp_path / "x.sqlite", "--trajectory", "goo"))
    assert said == "Several trajectories have the id goo: give one by number, 1, 2."


def test_a_trajectory_and_problems_need_no_run(tmp_path: Path) -> None:
    database = tmp_path / "x.sqlite"
    for name in ("a", "b"):
        run = make_run(tmp_path / name)
        file = run / "rollouts" / TRACES.format(1)
        file.write_bytes(file.read_bytes() + b"no JSON\n")
        assert indexed(database, run).returncode == 0
    lines = rltracer("inspect", database, "--problems", "--json").stdout.splitlines()
    assert [json.loads(line)["run"] for line in lines] == ["a", "b"]
    assert rltracer("inspect", database, "--problems").stdout.endswith("\n2 problems\n")
    assert rltracer("inspect", database, "--problems", "--run", "b").stdout.endswith("\n1 problem\n")
    assert f"/{tmp_path.name}/b: 1 step; split train\n" in rltracer("inspect", database, "--run", "b").stdout
    for options in ([], ["--name", "b"], ["--run", "2"]):
        told = json.loads(rltracer("inspect", database, "--trajectory", 2, "--json", *options).stdout)
        assert told["metadata"]["id"] == 2
    done = rltracer("inspect", database, "--run", "a", "--trajectory", 2)
    how = f"rltracer inspect {database} --trajectory 2"
    assert sentence(done) == f"Trajectory 2 is not of this run but of the run b. Show it with: {how}"


def test_lines_fit_the_terminal(demo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    identities = [identity for (identity,) in rows(demo / "x.sqlite", "select min(id) from trajectories group by env")]
    for columns in (60, 80):
        monkeypatch.setenv("COLUMNS", str(columns))
        for options in ([], ["--step", 8], *(["--trajectory", identity] for identity in identities)):
            lines = rltracer("inspect", demo / "x.sqlite", *options).stdout.splitlines()
            assert max(map(width_of, lines)) <= columns


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("one two three", ["one two", "three"]),
        ("  indented", ["  indent", "ed"]),
        ("日本語日本語", ["日本語日", "本語"]),
        ("a\n\nb", ["a", "", "b"]),
        ("0123456701234567", ["01234567", "01234567"]),
    ],
)
def test_lines_are_broken_by_their_columns(text: str, lines: list[str]) -> None:
    assert list(wrapped(text, 8)) == lines


def test_messages_and_bytes_are_numbered_as_on_the_page(demo: Path) -> None:
    offset, length = rows(demo / "x.sqlite", "select byte_offset, byte_length from trajectories where id = 9")[0]
    shown = rltracer("inspect", demo / "x.sqlite", "--trajectory", 9).stdout
    assert f" bytes {offset:,} – {offset + length - 1:,} ── #1 " in " ".join(shown.split())
    assert shown.index("── #1 ") < shown.index("── #2 ")
    assert "── #0 " not in shown
