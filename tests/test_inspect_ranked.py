"""The hardest prompts in the terminal: of some steps, with their ends, and why others are not scored."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from tests.commands import indexed, rltracer, sentence
from tests.index_factory import make_index
from tests.indexing import rows, value
from tests.layouts import append, message, trace
from tests.small_runs import TRACES

HIGH_AND_LOW = ("highest", "lowest")


def test_a_ranked_prompt_names_its_best_and_worst_trajectory_as_its_own_list_does(demo: Path) -> None:
    database = demo / "x.sqlite"
    told = list(map(json.loads, rltracer("inspect", database, "--hardest", 99, "--json").stdout.splitlines()))
    head, *shown = rltracer("inspect", database, "--hardest", 99).stdout.splitlines()[-len(told) - 1 :]
    assert head.split() == ["prompt", "split", "scored", "pass", "rate", "best", "worst", "preview"]
    for row, line in zip(told, shown, strict=True):
        *_, best, worst = rltracer("inspect", database, "--prompt", row["prompt_id"]).stdout.splitlines()
        equal = f"trajectory {row['highest']}"
        of_prompt = [equal, "equal"] if row["best"] is None else [f"trajectory {row['best']}", str(row["worst"])]
        assert of_prompt[0] in (worst if row["best"] is None else best)
        assert row["best"] is None or f"trajectory {row['worst']}," in worst
        assert line.split()[4:6] == [of_prompt[0].split()[1], of_prompt[1]]


# The words of a caption, and of the range: those of the steps alone are ranked, with their best and worst.
@pytest.mark.parametrize(
    ("options", "steps", "words"),
    [
        (["--step", 3], (3, 3), "in step 3"),
        (["--steps", "3"], (3, 3), "in step 3"),
        (["--steps", "5-7"], (5, 7), "over steps 5 to 7"),
        (["--steps", "-2"], (0, 2), "over steps up to 2"),
        (["--steps", "4-", "--split", "train"], (4, 8), "over steps from 4 on"),
    ],
)
def test_the_hardest_of_some_steps_are_listed(
    demo: Path, options: list[object], steps: tuple[int, int], words: str
) -> None:
    database = demo / "x.sqlite"
    train = "and split = 'train'" if "train" in options else ""
    known = rows(
        database,
        f"""
        select prompt_id, split, sum(successes) * 1.0 / sum(scored) as rate, count(distinct step)
        from prompt_groups where step between {steps[0]} and {steps[1]} {train} group by prompt_id, split
        having sum(scored) > 0 order by rate, sum(scored) desc, prompt_id, split
        """,
    )
    done = rltracer("inspect", database, "--hardest", 99, *options, "--json").stdout.splitlines()
    told = [json.loads(line) for line in done]
    assert [(row["prompt_id"], row["split"], row["pass_rate"], row["steps"]) for row in told] == known
    for row in told:
        of_prompt = f"prompt_id = {row['prompt_id']} and g.split = '{row['split']}'"
        rewards = rows(
            database,
            f"""
            select avg(reward), max(reward), min(reward) from trajectories t join prompt_groups g
            on g.id = t.prompt_group_id where {of_prompt} and g.step between {steps[0]} and {steps[1]}
            """,
        )[0]
        ends = [value(database, f"select reward from trajectories where id = {row[end]}") for end in HIGH_AND_LOW]
        assert (row["reward_mean"], *ends) == pytest.approx(rewards)
    shown = " ".join(rltracer("inspect", database, "--hardest", 99, *options).stdout.split())
    assert shown.startswith(f"{len(known)} scored prompts, hardest first, {words}; split")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--hardest", "--step", "99"], "The run has no step 99; it has steps 1–8."),
        (["--steps", "40-"], "The run has no steps from 40 on; it has steps 1–8."),
        (["--prompt", 13, "--steps", "9-12"], "The run has no steps 9 to 12; it has steps 1–8."),
        (["--prompt", 13, "--steps", "8"], "The run has no prompt 13 with step 8; it is only in steps 2, 4, 6–7."),
        (["--easiest", "--step", "not recorded"], "The run has no trajectory without a step; it has steps 1–8."),
    ],
)
def test_steps_that_are_not_there_are_said(demo: Path, options: list[object], said: str) -> None:
    assert sentence(rltracer("inspect", demo / "x.sqlite", *options)) == said


def test_a_range_narrows_the_steps_of_a_run_and_of_a_prompt(demo: Path) -> None:
    for asked, found in (([], {5, 6, 7}), (["--prompt", 14], {5, 7})):
        lines = rltracer("inspect", demo / "x.sqlite", *asked, "--steps", "5-7", "--json").stdout.splitlines()
        assert {json.loads(line)["step"] for line in lines} == found
    assert "--steps and --step ask" in sentence(rltracer("inspect", demo / "x.sqlite", "--steps", 5, "--step", 5), 2)


# Of each prompt its value at metrics.right and its reward.
RULE = "Success: metrics.right >= 1"
COMMAND = "rltracer success '{}/an index.sqlite'"
UNSCORED = {
    "some": (
        [(1, 1), (None, 1), (None, 0), (None, None)],
        f"{RULE}; 3 prompts not scored: 2 have rewards, but no metrics.right, and 1 has no reward. "
        f"Set another rule with: {COMMAND} --rule 'reward >= 1'",
    ),
    "one with a reward": (
        [(1, 1), (None, 1)],
        f"{RULE}; 1 prompt not scored: it has rewards, but no metrics.right. "
        f"Set another rule with: {COMMAND} --rule 'reward >= 1'",
    ),
    "two without": ([(1, 1), (None, None), (None, None)], f"{RULE}; 2 prompts not scored: they have no reward."),
    "none": ([(1, 1)], f"{RULE}; every prompt is scored."),
}


@pytest.mark.parametrize("name", UNSCORED)
def test_prompts_without_a_score_are_told_by_what_they_lack(tmp_path: Path, name: str) -> None:
    prompts, said = UNSCORED[name]
    made = [
        {"prompt": f"p{place}", "metrics.right": right, "reward": reward}
        for place, (right, reward) in enumerate(prompts)
    ]
    database = make_index(tmp_path / "an index.sqlite", made, ("metrics.right", 1.0))
    shown = " ".join(rltracer("inspect", database, "--hardest", 9).stdout.split())
    assert f"; 0 never passed, 1 always did {said.format(tmp_path)} prompt split " in shown


@pytest.mark.parametrize("is_indexed", [True, False])
def test_the_command_that_sets_another_rule_is_one_to_paste(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_indexed: bool
) -> None:
    """No line break stands in it however narrow the terminal is, and it scores what was not scored."""
    monkeypatch.setenv("COLUMNS", "40")
    for name, scores in (("judged", {"correct_final_label": 1.0}), ("rewarded", {})):
        record = trace([message("user", name), message("assistant", "42")], id=name, reward=1.0, metrics=scores)
        append(tmp_path / "a run" / TRACES.format(1), record)
    place = tmp_path / ("an index.sqlite" if is_indexed else "a run")
    if is_indexed:
        assert indexed(place, tmp_path / "a run").returncode == 0
    shown = rltracer("inspect", place, "--hardest", 9, is_terminal=True).stdout.splitlines()
    [command] = [line.strip() for line in shown if line.startswith("  rltracer success ")]
    assert rltracer(*shlex.split(command)[1:]).returncode == 0
    again = " ".join(rltracer("inspect", place, "--hardest", 9).stdout.split())
    assert "Success: reward >= 1; every prompt is scored." in again


def test_where_no_prompt_is_scored_the_sentence_says_what_they_lack(tmp_path: Path) -> None:
    made = [{"prompt": "p", "metrics.right": None, "reward": 1.0}]
    database = make_index(tmp_path / "an index.sqlite", made, ("metrics.right", 1.0))
    assert sentence(rltracer("inspect", database, "--hardest")) == (
        "No prompt is scored by the run's success rule, metrics.right >= 1: the only prompt has rewards, but no "
        f"metrics.right. rltracer success '{database}' --rule 'reward >= 1' sets another rule."
    )


# Of each prompt how many of its two trajectories pass; without a number the other end is left out.
@pytest.mark.parametrize(
    ("passed", "hardest", "easiest"),
    [
        ([2, 0, 1, 2], [2, 3], [1, 4, 3]),
        ([2, 2], "0 of 2 Every scored prompt always passed.", [1, 2]),
        ([0], [1], "0 of 1 No scored prompt ever passed."),
    ],
    ids=["some", "all pass", "none passes"],
)
def test_without_a_number_the_answer_to_the_opposite_question_is_left_out(
    tmp_path: Path, passed: list[int], hardest: list[int] | str, easiest: list[int] | str
) -> None:
    made = [{"prompt": f"p{n}", "reward": float(one < count)} for n, count in enumerate(passed) for one in (0, 1)]
    database = make_index(tmp_path / "x.sqlite", made)
    for order, found in (("hardest", hardest), ("easiest", easiest)):
        listed = [
            json.loads(line) for line in rltracer("inspect", database, f"--{order}", "--json").stdout.splitlines()
        ]
        assert [one["prompt_id"] for one in listed] == ([] if isinstance(found, str) else found)
        assert len(rltracer("inspect", database, f"--{order}", 9, "--json").stdout.splitlines()) == len(passed)
        if isinstance(found, str):
            done = rltracer("inspect", database, f"--{order}")
            assert (done.returncode, done.stdout.splitlines()[-1]) == (0, found[7:])
            assert done.stdout.startswith(found[:6])


def test_a_prompt_of_an_environment_without_a_name_has_its_ends(tmp_path: Path) -> None:
    database = make_index(tmp_path / "x.sqlite", [{"env": "", "reward": reward} for reward in (0.0, 1.0)])
    [row] = map(json.loads, rltracer("inspect", database, "--hardest", 1, "--json").stdout.splitlines())
    assert (row["env"], row["best"], row["worst"]) == ("", 2, 1)


def test_the_rule_of_a_run_among_several_is_set_by_its_number(tmp_path: Path) -> None:
    """A run that has this number for a name would be taken for it: then it is set by its name."""
    for name, of_run in (("7", 1), ("1", "'first run'")):
        made = [{"run": run, "reward": None} for run in ("first run", name)]
        database = make_index(tmp_path / f"{name}.sqlite", made)
        said = sentence(rltracer("inspect", database, "--run", "first run", "--hardest"))
        command = f"rltracer success {database} {of_run} --rule 'PATH >= NUMBER'"
        assert said.endswith(f"{command} sets another rule."), (name, said)
