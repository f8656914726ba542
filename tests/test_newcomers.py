"""What a person types who has read the README alone, and what is said where that is not quite right."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rltracer_sqlite.cli
import rltracer_sqlite.cli.index
from rltracer_sqlite import RLTracer, Trajectory, open_run
from rltracer_sqlite.browse.find import several_runs
from rltracer_sqlite.cli.columns import width_of, wrapped
from rltracer_sqlite.cli.plot import CHARTS
from rltracer_sqlite.cli.prompts import chosen
from rltracer_sqlite.sample import write_sample
from tests.index_factory import make_index
from tests.indexing import rows, value
from tests.layouts import append, message, trace
from tests.test_bad_input import Done, called, sentence

GOOD = trace(
    [message("user", "6 * 7?"), message("assistant", "42")], id="good", rewards={"r": 1.0}, metrics={"exact": 1.0}
)
TRACES = "step_{}/train/all/traces.jsonl"


def index(*arguments: object) -> Done:
    return called(rltracer_sqlite.cli.index.main, *arguments)


def rltracer(*arguments: object) -> Done:
    return called(rltracer_sqlite.cli.main, *arguments)


def make_run(folder: Path, *steps: int) -> Path:
    for step in steps or (1,):
        append(folder / "rollouts" / TRACES.format(step), GOOD)
    return folder


# Indexing


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (1, 0, 3, 2)])
def test_bad_runs_are_named_and_good_ones_indexed(tmp_path: Path, order: tuple[int, ...]) -> None:
    (tmp_path / "empty").mkdir()
    runs = [make_run(tmp_path / "good"), tmp_path / "empty", tmp_path / "gone", make_run(tmp_path / "good2")]
    done = index(tmp_path / "x.sqlite", *(runs[number] for number in order))
    assert done.returncode == 1
    assert sorted(done.stderr.splitlines()) == [f"Error: {runs[1]} is empty.", f"Error: {runs[2]} does not exist."]
    assert "good: 1 trajectory, 1 prompt group, 1 step, 0 problems" in done.stdout
    assert value(tmp_path / "x.sqlite", "select count(*) from trajectories") == 2


def test_a_folder_of_runs_is_not_merged_into_one(tmp_path: Path) -> None:
    for name in ("a", "b"):
        make_run(tmp_path / "runs" / name, 1, 2)
    done = index(tmp_path / "x.sqlite", tmp_path / "runs")
    assert done.returncode == 1
    assert f"is no run, and holds 2 of them: a, b. Give {tmp_path}/runs/* instead" in done.stderr
    assert "rltracer serve --browse-root" in done.stderr
    assert not (tmp_path / "x.sqlite").exists()
    assert "holds 2 of them" in sentence(index(tmp_path / "x.sqlite", tmp_path / "runs", "--watch"))
    for _ in range(2):  # what is indexed so can be read on without its name
        assert index(tmp_path / "x.sqlite", tmp_path / "runs", *([] if _ else ["--name", "one"])).returncode == 0
    assert "Give one of them instead" in sentence(rltracer("inspect", tmp_path / "runs"))
    for line in (["inspect", tmp_path / "runs"], ["analyze", tmp_path / "runs", "-o", tmp_path / "analysis"]):
        assert "holds 2 of them: a, b" in sentence(rltracer(*line))


@pytest.mark.parametrize(
    ("files", "found"),
    [
        (["a/rollouts/step_1/train/all/traces.jsonl", "b/step_1/train/all/traces.jsonl"], ["a", "b"]),
        (["a/traces/stream/00000.jsonl", "b/monitors/file/traces/stream/00000.jsonl.zst"], ["a", "b"]),
        (["x/a/step_0/rank_0.bin", "y/b/step_0/rank_0.bin"], ["x/a", "y/b"]),
        # One run in several folders: its steps, its ranks, its splits, its parts, its evaluations, an old copy in it.
        (["step_1/train/all/traces.jsonl", "step_2/train/all/traces.jsonl"], []),
        (["early/step_1/train/all/traces.jsonl", "late/step_2/train/all/traces.jsonl"], []),
        (["node_0/token_exports/step_1/rank_0.jsonl", "node_1/token_exports/step_1/rank_1.jsonl"], []),
        (["orchestrator/step_1/train/all/traces.jsonl", "trainer/token_exports/step_1/rank_0.jsonl"], []),
        (["evals/gsm8k--m/a1/results.jsonl", "evals/gsm8k--m/b2/results.jsonl"], []),
        (["outputs/evals/math--m/a1/results.jsonl", "outputs/evals/code--m/b2/results.jsonl"], []),
        (["step_1/train/all/traces.jsonl", "old/step_1/train/all/traces.jsonl"], []),
        (["a/data.jsonl", "b/data.jsonl"], []),
    ],
)
def test_one_run_may_lie_in_several_folders(tmp_path: Path, files: list[str], found: list[str]) -> None:
    for file in files:
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).touch()
    assert several_runs(tmp_path) == found


@pytest.mark.parametrize(
    ("asked", "said"), [("99", "no step 99; it has 1–3, 7."), ("4-6", "no steps 4-6; it has"), ("9-", "no steps 9-;")]
)
def test_steps_that_a_run_has_not_are_answered_with_those_it_has(tmp_path: Path, asked: str, said: str) -> None:
    run = make_run(tmp_path / "run", 1, 2, 3, 7)
    done = index(tmp_path / "x.sqlite", run, "--steps", asked)
    assert (done.returncode, done.stdout) == (1, "")
    assert said in done.stderr
    assert not (tmp_path / "x.sqlite").exists()


def test_swapped_arguments_are_seen(tmp_path: Path) -> None:
    run, database = make_run(tmp_path / "run"), tmp_path / "x.sqlite"
    for _ in range(2):  # a new name, then a database
        done = index(run, database)
        assert done.returncode == 2
        assert f"DATABASE comes first: rltracer-index {database} {run}" in done.stderr
        assert index(database, run).returncode == 0
    file = run / "rollouts" / TRACES.format(1)
    assert "DATABASE comes first" in index(file, database).stderr
    assert "DATABASE comes first" in index("s3://bucket/run", database).stderr


def test_what_the_rule_does_not_score_is_counted_and_its_environments_named(tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run")
    for number, env in enumerate(["maths", "code", "code"]):
        scores = {"metrics": {"correct_final_label": 1.0}} if env == "maths" else {}
        record = trace(
            [message("user", env), message("assistant", "42")], id=f"t{number}", info={"env_name": env}, **scores
        )
        append(folder / "rollouts" / TRACES.format(1), record)
    lines = index(tmp_path / "x.sqlite", folder).stdout.splitlines()
    assert lines[0] == "run: 4 trajectories, 3 unscored, 3 prompt groups, 1 step, 0 problems"
    assert lines[1] == "  success: metrics.correct_final_label >= 1"
    assert lines[2].startswith("  unscored: no trajectory of code")
    assert lines[2].endswith(" records metrics.correct_final_label; --success sets another rule")
    assert "unscored" not in index(tmp_path / "y.sqlite", make_run(tmp_path / "all")).stdout


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_summary_is_broken_on_a_terminal_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_terminal: bool
) -> None:
    run = make_run(tmp_path / ("long" * 15))
    monkeypatch.setenv("COLUMNS", "60")
    monkeypatch.setattr("rltracer_sqlite.cli.report.writes_to_terminal", lambda: is_terminal)
    lines = index(tmp_path / "x.sqlite", run).stdout.splitlines()
    assert any(line.startswith(f"  datasette {tmp_path}/x.sqlite --setting ") for line in lines)
    told = [line for line in lines if not line.startswith("  datasette ")]
    assert (max(map(len, told)) <= 60) == is_terminal


def test_a_rule_that_scores_nothing_is_one_warning(tmp_path: Path) -> None:
    done = index(tmp_path / "x.sqlite", make_run(tmp_path / "run"), "--success", "metrics.foo>=1")
    assert done.returncode == 0
    assert "unscored:" not in done.stdout
    assert done.stderr.startswith("Warning: No value is recorded under metrics.foo; ")
    assert len(done.stderr.splitlines()) == 1
    names = [name for (name,) in rows(tmp_path / "x.sqlite", "select path from fields where path like 'metrics.%'")]
    assert any(name in done.stderr for name in names)


# Inspecting


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("demo")
    write_sample(folder / "run")
    assert index(folder / "x.sqlite", folder / "run").returncode == 0
    return folder


def test_steps_are_listed_with_what_the_index_knows(demo: Path) -> None:
    database = demo / "x.sqlite"
    done = rltracer("inspect", database)
    assert done.returncode == 0
    assert len(done.stdout.splitlines()) == 2 + value(database, "select count(*) from steps")
    listed = [json.loads(line) for line in rltracer("inspect", "--run", database, "--json").stdout.splitlines()]
    assert [tuple(fact.values()) for fact in listed] == rows(
        database,
        "select step, split, trajectories, prompt_groups, pass_rate, reward_mean from steps order by step, split",
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
    assert shown.startswith("15 prompts in step 8\n")
    assert "  eval  " in shown


def test_a_folder_of_which_nothing_was_read_lists_its_steps(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", 3, 4)
    assert rltracer("inspect", run).stdout.splitlines()[2].split() == ["step", "3", *"–" * 5]
    assert rltracer("inspect", run, "--step", 3).returncode == 0
    assert rltracer("inspect", run).stdout.splitlines()[2].split()[:5] == ["step", "3", "train", "1", "1"]


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
    assert shown[0].startswith("3 prompts, hardest first")
    assert [int(line.split()[0]) for line in shown[2:]] == [number for number, _, _ in known[:3]]


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
    assert len(shown) == 2 + len(known)


def test_a_number_that_is_the_beginning_of_a_key_too_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    groups = [{"prompt_id": 7, "prompt": "ab" * 32}, {"prompt_id": 8, "prompt": "7c" * 32}]
    assert chosen("7", groups) == groups[:1]
    assert "Prompt 7 by its number, not by its key (7c7c7c7c7c7c)" in capsys.readouterr().err
    assert chosen("9" * 5000, groups) == []
    assert chosen("7c", groups) == chosen("8", groups) == groups[1:]
    assert capsys.readouterr().err == ""


def test_a_trajectory_and_problems_need_no_run(tmp_path: Path) -> None:
    database = tmp_path / "x.sqlite"
    for name in ("a", "b"):
        run = make_run(tmp_path / name)
        file = run / "rollouts" / TRACES.format(1)
        file.write_bytes(file.read_bytes() + b"no JSON\n")
        assert index(database, run).returncode == 0
    lines = rltracer("inspect", database, "--problems", "--json").stdout.splitlines()
    assert [json.loads(line)["run"] for line in lines] == ["a", "b"]
    assert rltracer("inspect", database, "--problems").stdout.endswith("\n2 problems\n")
    assert rltracer("inspect", database, "--problems", "--run", "b").stdout.endswith("\n1 problem\n")
    assert str(tmp_path / "b") in rltracer("inspect", database, "--run", "b").stdout
    for options in ([], ["--name", "b"], ["--run", "2"]):
        told = json.loads(rltracer("inspect", database, "--trajectory", 2, "--json", *options).stdout)
        assert told["metadata"]["id"] == 2
    done = rltracer("inspect", database, "--run", "a", "--trajectory", 2)
    assert sentence(done) == "Trajectory 2 is in the run b, which this one is not."


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
    assert f"bytes {offset:,} – {offset + length - 1:,}\n" in shown
    assert shown.index("── #1 ") < shown.index("── #2 ")
    assert "── #0 " not in shown


def test_problems_are_counted_and_listed(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run")
    file = run / "rollouts" / TRACES.format(1)
    file.write_bytes(file.read_bytes() + b"no JSON\n")
    done = index(tmp_path / "x.sqlite", run)
    assert "1 step, 1 problem\n" in done.stdout
    assert f"  rltracer inspect {tmp_path / 'x.sqlite'} --problems" in done.stdout
    for place in (run, tmp_path / "x.sqlite"):
        told = rltracer("inspect", place, "--problems").stdout
        assert "line 2: " in told.replace("\n", " ")
        assert told.endswith("\n1 problem\n")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["inspect"], 2, "Give one index or run"),
        (["inspect", "{db}", "--run", "{db}"], 2, "It holds: run"),
        (["inspect", "{run}", "--run", "{db}"], 2, "Give one index or run"),
        (["inspect", "{db}", "--run", "run", "--name", "run"], 2, "Give one index or run"),
        (["inspect", "{two}", "--trajectory", "999"], 1, "The index has no trajectory 999."),
        (["inspect", "{db}", "--prompt", "9999"], 1, "The run has no prompt '9999'"),
        (["inspect", "{db}", "--step", "8", "--prompt", "9999"], 1, "Step 8 has no prompt '9999'"),
        (["inspect", "{two}"], 2, "It holds: a, b. Give one with --name."),
        (["inspect", "{two}", "--name", "c"], 2, "has no run 'c'. It holds: a, b."),
        (["inspect", "{db}", "--step", "99"], 1, "The run has no step 99; it has 1–8."),
        (["inspect", "nope.sqlite"], 1, "Make it with: rltracer-index nope.sqlite RUN"),
        (["export", "nope.sqlite", "--dry-run"], 1, "Make it with: rltracer-index nope.sqlite RUN"),
        (["export", "{db}", "--dry-run", "--run", "c"], 2, "has no run 'c'. It holds: run"),
        (["export", "{db}", "--dry-run", "--field", "a~b"], 2, "a~b"),
        (["export", "{db}", "--dry-run", "--min-pass-rate", "7"], 2, "pass_rate"),
        (["analyze", "nope.sqlite"], 1, "Make it with: rltracer-index nope.sqlite RUN"),
        (["analyze", "{db}", "--success", "reward>1"], 2, "Cannot read the rule"),
        (["analyze", "{db}", "--run", "c"], 2, "has no run 'c'"),
        (["analyze", "{db}", "--success", "metrics.foo"], 1, "No value is recorded"),
        (["success", "{db}", "c"], 2, "has no run 'c'"),
        (["success", "{db}", "--rule", "a>b"], 2, "Cannot read the rule"),
        (["plot", "{run}", "pass-rate", "-o", "x.html"], 1, "Make one of it with: rltracer-index run.sqlite {run}"),
        (["plot", "{two}", "pass-rate", "-o", "x.html"], 2, "It holds: a, b. Give one with --run."),
        (["plot", "{db}", "pass-rate", "-o", "x.html", "--run", "c"], 2, "has no run 'c'"),
        (["plot", "{db}", "pass-rate", "-o", "x.gif"], 2, "must end with"),
        (["fts", "{run}"], 1, "Make one of it with"),
        (["sources", "show", "nope"], 2, "is not installed here"),
        (["sources", "guess", "nope.jsonl"], 1, "nope.jsonl does not exist."),
        (["serve"], 2, "Give the folder of your runs"),
        (["serve", "--run", "nope"], 1, "does not exist"),
        (["roots", "add", "nope"], 1, "nope does not exist."),
        (["retemplate", "a", "-o", "b", "--template", "nope.json", "--source", "c", "d"], 1, "nope.json"),
    ],
    ids=lambda given: "-".join(given).replace("/", " ") if isinstance(given, list) else "",
)
def test_wrong_arguments_are_2_and_faults_1(
    demo: Path, two_runs: Path, arguments: list[str], code: int, said: str
) -> None:
    names = {"db": demo / "x.sqlite", "run": demo / "run", "two": two_runs}
    assert said.format(**names) in sentence(rltracer(*(text.format(**names) for text in arguments)), code)


@pytest.fixture(scope="module")
def two_runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_index(tmp_path_factory.mktemp("two") / "two.sqlite", [{"run": "a"}, {"run": "b"}])


def test_objects_are_printed_in_a_short_line(demo: Path) -> None:
    tracer = RLTracer(open_run(demo / "x.sqlite"))
    group = tracer.step(8).prompts()[0]
    reference = group.trajectory(0)
    assert repr(tracer) == f"<RLTracer of {str(demo / 'run')!r}>"
    assert repr(tracer.step(8)) == f"<RolloutStep: step 8 of {str(demo / 'run')!r}>"
    assert re.fullmatch(r"<PromptGroup '[0-9a-f]{12}' of step 8: 4 trajectories, '.{10,50}'>", repr(group))
    assert repr(reference) == f"<TrajectoryRef {reference.id} of {str(demo / 'run')!r}>"
    assert re.fullmatch(rf"<Trajectory {reference.id}: 3 messages, reward .*, step 8, split .*>", str(reference.load()))
    hostile = Trajectory([], {"id": 1, "env": "\x1b[2J" + "x" * 10_000, "reward": [1] * 10_000}, raw=b"x" * 10_000)
    assert len(repr(hostile)) < 200
    assert "\x1b" not in repr(hostile)


def test_a_dry_run_of_an_export_imports_nothing_that_reads_records(demo: Path) -> None:
    code = (
        f"import sys; sys.argv[1:] = ['export', {str(demo / 'x.sqlite')!r}, '--dry-run']\n"
        "from rltracer_sqlite.cli import main\n"
        "try:\n    main()\nfinally:\n    print(*sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[1], capture_output=True, text=True)
    assert "Selected " in done.stdout, done.stderr
    read = ("rltracer_sqlite.export.materialize", "rltracer_sqlite.messages", "urllib.request", "datasette")
    assert not set(read) & set(done.stdout.splitlines()[-1].split())


def test_an_analysis_says_what_it_replaces_and_counts_windows_of_steps(demo: Path, tmp_path: Path) -> None:
    folder = tmp_path / "analysis"
    first = rltracer("analyze", demo / "x.sqlite", "-o", folder, "--window", 8).stdout
    assert " in 1 window of steps (eval, train)\n" in first
    assert f"Written to {folder}: report.md" in first
    assert (
        f"Written to {folder} in place of an earlier analysis: "
        in rltracer("analyze", demo / "x.sqlite", "-o", folder).stdout
    )


def test_the_help_of_plot_names_the_charts_on_one_line() -> None:
    help_text = rltracer("plot", "--help").stdout
    assert "DATABASE CHART\n" in help_text
    for chart in CHARTS:
        assert chart.replace("_", "-") in help_text
