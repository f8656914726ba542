"""The commands as a person types them: output, exit codes, start-up."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from rltracer_sqlite.cli import group
from rltracer_sqlite.cli.index import command, parse_steps, parse_success
from rltracer_sqlite.cli.visible import printable
from tests.indexing import rows, value


@pytest.fixture(scope="module")
def sample(demo: Path) -> Path:
    return demo / "run"


def run(*arguments: object) -> Result:
    return CliRunner().invoke(group, [str(argument) for argument in arguments], catch_exceptions=False)


def indexed(sample: Path, database: Path, *options: str) -> Result:
    return CliRunner().invoke(command, [str(database), str(sample), *options], catch_exceptions=False)


def test_the_summary_says_what_was_found_and_how_to_open_it(sample: Path, tmp_path: Path) -> None:
    database = tmp_path / "x.sqlite"
    result = indexed(sample, database)
    assert result.exit_code == 0
    count = value(database, "select count(*) from trajectories")
    assert f"{count:,} trajectories" in result.stdout
    assert "0 problems\n  success: metrics.correct_final_label >= 1\n" in result.stdout
    assert f"datasette {database} --setting suggest_facets off" in result.stdout
    assert result.stderr == ""  # no progress bar in a pipe


def test_quiet_says_nothing(sample: Path, tmp_path: Path) -> None:
    result = indexed(sample, tmp_path / "x.sqlite", "--quiet")
    assert (result.exit_code, result.output) == (0, "")


def test_rebuild_makes_the_same_index_and_leaves_nothing_beside(sample: Path, tmp_path: Path) -> None:
    database = tmp_path / "x.sqlite"
    indexed(sample, database)
    before = rows(database, "select uid, reward, success from trajectories order by uid")
    assert indexed(sample, database, "--rebuild").exit_code == 0
    assert rows(database, "select uid, reward, success from trajectories order by uid") == before
    assert [path.name for path in tmp_path.iterdir()] == ["x.sqlite"]


def test_a_success_rule_applies_to_what_is_indexed(sample: Path, tmp_path: Path) -> None:
    database = tmp_path / "x.sqlite"
    indexed(sample, database)
    indexed(sample, database, "--success", "reward>=0.75")
    assert (
        rows(database, "select sum(success), sum(reward >= 0.75), count(success) - count(reward) from trajectories")[0][
            :2
        ]
        == (value(database, "select sum(reward >= 0.75) from trajectories"),) * 2
    )
    assert value(database, "select sum(successes) from prompt_groups") == value(
        database, "select sum(successes) from steps"
    )


def test_several_runs_share_a_database(sample: Path, tmp_path: Path) -> None:
    import shutil

    shutil.copytree(sample, tmp_path / "again" / "run")
    result = CliRunner().invoke(command, [str(tmp_path / "x.sqlite"), str(sample), str(tmp_path / "again" / "run")])
    assert result.exit_code == 0
    names = [name for (name,) in rows(tmp_path / "x.sqlite", "select name from runs order by id")]
    assert names == ["run", "run (2)"]
    assert value(tmp_path / "x.sqlite", "select count(*) from prompts") == value(
        tmp_path / "x.sqlite", "select count(distinct prompt_id) from prompt_groups where run_id = 1"
    )


@pytest.mark.parametrize(
    ("text", "inside", "outside"),
    [("1-3", [1, 2, 3, None], [0, 4]), ("21", [21], [20, 22]), ("40-", [40, 9999], [39]), ("-5", [0, 5], [6])],
)
def test_ranges_of_steps(text: str, inside: list[int | None], outside: list[int]) -> None:
    chosen = parse_steps(text)
    assert all(chosen(step) for step in inside)
    assert not any(chosen(step) for step in outside)


@pytest.mark.parametrize(
    "arguments", [("--steps", "x"), ("--steps", "5-2"), ("--success", "reward>1"), ("--success", "a>=b")]
)
def test_wrong_arguments_are_one_sentence_and_exit_code_2(
    sample: Path, tmp_path: Path, arguments: tuple[str, str]
) -> None:
    result = indexed(sample, tmp_path / "x.sqlite", *arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output
    assert not (tmp_path / "x.sqlite").exists()


def test_success_rules_are_paths_and_numbers() -> None:
    assert parse_success("rewards.r.score >= -0.5e1") == ("rewards.r.score", -5.0)


def test_inspect_goes_down_to_a_trajectory(sample: Path, tmp_path: Path) -> None:
    database = tmp_path / "x.sqlite"
    indexed(sample, database)
    assert "step 8" in run("inspect", "--run", database).stdout
    listed = [json.loads(line) for line in run("inspect", "--run", database, "--step", 8, "--json").stdout.splitlines()]
    key = listed[0]["prompt"]
    some = run("inspect", "--run", database, "--step", 8, "--prompt", key[:10], "--json").stdout.splitlines()
    identity = json.loads(some[0])["id"]
    shown = run("inspect", "--run", database, "--trajectory", identity).stdout
    assert "── #1 " in shown
    assert "bytes" in shown
    loaded = json.loads(run("inspect", "--run", database, "--trajectory", identity, "--json").stdout)
    assert loaded["metadata"]["id"] == identity


def test_inspect_takes_a_run_folder(sample: Path) -> None:
    assert "15 prompts in step 8" in run("inspect", "--run", sample, "--step", 8).stdout


def test_roots_are_remembered_and_forgotten(sample: Path, tmp_path: Path) -> None:
    indexed(sample, tmp_path / "x.sqlite")
    assert run("roots").stdout == f"{sample.resolve()}\n"
    assert run("roots", "remove", sample).exit_code == 0
    assert run("roots", "remove", sample).exit_code == 1
    assert run("roots", "add", sample).exit_code == 0
    assert run("roots").stdout == f"{sample.resolve()}\n"


def test_control_characters_cannot_steer_a_terminal() -> None:
    assert printable("a\x1b[2Jb\x00\u202ec\x9b\n") == "a␛[2Jb␀\\u202ec\\u009b\n"


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv[1:] = ['--help']\nfrom rltracer_sqlite.cli.index import main\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
    )
    names = ("datasette", "sqlite_utils", "msgspec", "orjson", "tokenizers", "sqlite3")
    heavy = f"print([name for name in {names} if name in sys.modules])"
    ended = subprocess.run([sys.executable, "-c", code + heavy], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "[]"


def test_a_query_imports_nothing_heavy(sample: Path, tmp_path: Path) -> None:
    indexed(sample, tmp_path / "x.sqlite")
    code = (
        "import sys; from rltracer_sqlite.cli import main\n"
        f"sys.argv[1:] = ['inspect', '--run', {str(tmp_path / 'x.sqlite')!r}, '--step', '8']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "print([name for name in ('datasette', 'sqlite_utils', 'tokenizers', 'zstandard') if name in sys.modules])"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ended.stdout.splitlines()[-1] == "[]"


def test_a_rebuild_keeps_what_it_was_not_asked_about(sample: Path, tmp_path: Path) -> None:
    import shutil

    other = tmp_path / "other" / "run"
    shutil.copytree(sample, other)
    database = tmp_path / "x.sqlite"
    CliRunner().invoke(command, [str(database), str(sample), str(other)], catch_exceptions=False)
    before = database.read_bytes()
    result = CliRunner().invoke(group, ["index", str(database), str(sample), "--rebuild"])
    assert "name these runs too" in str(result.exception)
    assert database.read_bytes() == before


def test_a_rebuild_that_finds_nothing_leaves_the_old_index(sample: Path, tmp_path: Path) -> None:
    import shutil

    changed, database = tmp_path / "run", tmp_path / "x.sqlite"
    shutil.copytree(sample, changed)
    indexed(changed, database)
    before = database.read_bytes()
    for file in changed.rglob("traces.jsonl"):
        file.write_bytes(b"{}\n")
    result = indexed(changed, database, "--rebuild")
    assert result.exit_code == 1
    assert "no rollout record" in result.stderr
    assert database.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run", "x.sqlite"]
