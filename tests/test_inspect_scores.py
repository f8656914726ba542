"""Prompts and their scores in `rltracer inspect`: those of a step, the hardest, the best and the worst rollouts."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.commands import rltracer, sentence
from tests.indexing import rows, value


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
    assert " ".join(" ".join(shown[:4]).split()).startswith(
        f"3 of {len(known)} scored prompts, hardest first, over all steps; splits eval, train; 2 never passed, 1 "
        "always did Success: metrics.correct_final_label >= 1; 6 prompts not scored: they have no reward."
    )
    assert [int(line.split()[0]) for line in shown[-3:]] == [number for number, _, _ in known[:3]]


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
    done = rltracer("inspect", database, "--easiest", 9, *chosen, "--json")
    told = list(map(json.loads, done.stdout.splitlines()))
    assert [(fact["prompt_id"], fact["pass_rate"]) for fact in told] == known
    assert {(fact["split"], fact["env"]) for fact in told} == {("train", "word-problems")}
    shown = " ".join(rltracer("inspect", database, "--easiest", 9, *chosen).stdout.split())
    assert shown.startswith(
        "5 scored prompts, easiest first, over all steps; split train; env word-problems; 1 never passed, 1 always did "
        "Success: metrics.correct_final_label >= 1; every prompt is scored. prompt"
    )


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
    assert lines[-1] == "  no best or worst of all: all 16 rewards are 0.000, as of trajectory 17"
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
