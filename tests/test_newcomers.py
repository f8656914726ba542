"""What a person types who has read the README alone, and what is said where that is not quite right."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rltracer_sqlite import RLTracer, Trajectory, open_run
from rltracer_sqlite.cli.plot import CHARTS
from rltracer_sqlite.sources.base import LocatorError
from tests.commands import rltracer, sentence
from tests.index_factory import make_index


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["inspect"], 2, "Give one index or run"),
        (["inspect", "{db}", "--run", "{db}"], 1, "It holds: run"),
        (["inspect", "{run}", "--run", "{db}"], 1, "is a run itself, and no index"),
        (["inspect", "{db}", "--run", "run", "--name", "run"], 2, "--run and --name say the same"),
        (["inspect", "{two}", "--trajectory", "999"], 1, "The index has no trajectory 999; it has 2, from 1 to 2."),
        (["inspect", "{db}", "--prompt", "9999"], 1, "The run has no prompt 9999; it has 22 prompts, 1–22."),
        (
            ["inspect", "{db}", "--step", "8", "--prompt", "9999"],
            1,
            "Step 8 has no prompt 9999; it has 15 prompts, 1, 5–8,",
        ),
        (["inspect", "{two}", "--step", "1"], 1, "It holds: a, b. Give one with --run."),
        (
            ["inspect", "{db}", "--prompt", "13", "--step", "8"],
            1,
            "Step 8 has no prompt 13; it is only in steps 2, 4, 6–7.",
        ),
        (["inspect", "{db}", "--prompt", "1", "--trajectory", "3"], 2, "--prompt and --trajectory ask for different"),
        (["inspect", "{db}", "--hardest", "--problems"], 2, "--hardest and --problems ask for different things"),
        (["inspect", "{two}", "--name", "c"], 1, "has no run 'c'. It holds: a, b."),
        (["inspect", "{db}", "--step", "99"], 1, "The run has no step 99; it has 1–8."),
        (
            ["inspect", "{db}", "--hardest", "--env", "no"],
            1,
            "env code-explained, pictures, shell-jobs, word-problems.",
        ),
        (
            ["inspect", "{db}", "--step", "7", "--split", "eval"],
            1,
            "It has steps 4, 8 with split eval, and split train with step 7.",
        ),
        (
            ["inspect", "{db}", "--prompt", "14", "--split", "eval"],
            1,
            "The run has no prompt 14 with split eval; it is only in split train.",
        ),
        (["inspect", "{db}", "--split", "eval", "--trajectory", "3"], 2, "--split and --trajectory ask for different"),
        (["inspect", "nope.sqlite"], 1, "Make it with: rltracer-index nope.sqlite RUN"),
        (["export", "nope.sqlite", "--dry-run"], 1, "Make it with: rltracer-index nope.sqlite RUN"),
        (["export", "{db}", "--dry-run", "--run", "c"], 1, "has no run 'c'. It holds: run"),
        (["export", "{db}", "--dry-run", "--field", "a~b"], 2, "a~b"),
        (["export", "{db}", "--dry-run", "--min-pass-rate", "7"], 2, "--min-pass-rate is 7.0"),
        (["analyze", "nope.sqlite"], 1, "Make it with: rltracer-index nope.sqlite RUN"),
        (["analyze", "{db}", "--success", "reward>1"], 2, "Cannot read the rule"),
        (["analyze", "{db}", "--run", "c"], 1, "has no run 'c'"),
        (["analyze", "{db}", "--success", "metrics.foo"], 1, "No value is recorded"),
        (["success", "{db}", "c"], 1, "has no run 'c'"),
        (["success", "{db}", "--rule", "a>b"], 2, "Cannot read the rule"),
        (["plot", "{run}", "pass-rate", "-o", "x.html"], 1, "Make one of it with: rltracer-index run.sqlite {run}"),
        (["plot", "{two}", "pass-rate", "-o", "x.html"], 1, "It holds: a, b. Give one with --run."),
        (["plot", "{db}", "pass-rate", "-o", "x.html", "--run", "c"], 1, "has no run 'c'"),
        (["plot", "{db}", "pass-rate", "-o", "x.gif"], 2, "must end with"),
        (["fts", "{run}"], 1, "Make one of it with"),
        (["sources", "show", "nope"], 1, "is not installed here"),
        (["sources", "guess", "nope.jsonl"], 1, "The file nope.jsonl does not exist."),
        (["sources", "guess", "{link}"], 1, "{link} is a link to 'nowhere', where there is nothing."),
        (["serve", "--browse-root", "{link}"], 1, "{link} is a link to 'nowhere', where there is nothing."),
        (["roots", "add", "{link}"], 1, "{link} is a link to 'nowhere', where there is nothing."),
        (["analyze", "{link}"], 1, "{link} is a link to 'nowhere', where there is nothing."),
        (["success", "{run}", "{db}"], 2, "DATABASE comes first: rltracer success {db} {run}"),
        (["serve"], 2, "Give the folder of your runs"),
        (["serve", "--run", "nope"], 1, "does not exist"),
        (["roots", "add", "nope"], 1, "The file or folder nope does not exist."),
        (["retemplate", "a", "-o", "b", "--template", "nope.json", "--source", "c", "d"], 1, "nope.json"),
    ],
    ids=lambda given: "-".join(given).replace("/", " ") if isinstance(given, list) else "",
)
def test_wrong_arguments_are_2_and_faults_1(
    demo: Path, two_runs: Path, tmp_path: Path, arguments: list[str], code: int, said: str
) -> None:
    (tmp_path / "link").symlink_to("nowhere")
    names = {"db": demo / "x.sqlite", "run": demo / "run", "two": two_runs, "link": tmp_path / "link"}
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
    assert re.fullmatch(
        r"<PromptGroup '[0-9a-f]{12}' of step 8: 4 trajectories, pass rate 0\.500, '.{10,50}'>", repr(group)
    )
    assert repr(reference) == f"<TrajectoryRef {reference.id} of {str(demo / 'run')!r}>"
    assert re.fullmatch(rf"<Trajectory {reference.id}: 3 messages, reward .*, step 8, split .*>", str(reference.load()))
    hostile = Trajectory([], {"id": 1, "env": "\x1b[2J" + "x" * 10_000, "reward": [1] * 10_000}, raw=b"x" * 10_000)
    assert len(repr(hostile)) < 200
    assert "\x1b" not in repr(hostile)


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda tracer: tracer.step(99), "the run has no step 99; it has 1–8"),
        (
            lambda tracer: tracer.step(8).prompt("x"),
            r"no prompt of step 8 begins with 'x'; it has 15 prompts: '\w{16}', ",
        ),
        (
            lambda tracer: tracer.step(8).prompt("f"),
            r"3 prompts of step 8 begin with 'f': 'f\w{15}', 'f\w{15}', 'f\w{15}'",
        ),
        (lambda tracer: tracer.trajectory(999).load(), "The index has no trajectory 999; it has 368, from 1 to 368"),
    ],
    ids=["step", "prompt", "prompts", "trajectory"],
)
def test_python_says_which_there_are(demo: Path, ask: Callable[[RLTracer], object], said: str) -> None:
    with pytest.raises((KeyError, LocatorError), match=said) as error:
        ask(RLTracer(demo / "x.sqlite"))
    assert len(str(error.value)) < 160


def test_a_dry_run_of_an_export_imports_nothing_that_reads_records(demo: Path) -> None:
    code = (
        f"import sys; sys.argv[1:] = ['export', {str(demo / 'x.sqlite')!r}, '--dry-run']\n"
        "from rltracer_sqlite.cli import main\n"
        "try:\n    main()\nfinally:\n    print(*sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[1], capture_output=True, text=True)
    assert "Selected " in done.stdout, done.stderr
    read = ("rltracer_sqlite.export.picked_rows", "rltracer_sqlite.messages", "urllib.request", "datasette")
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
