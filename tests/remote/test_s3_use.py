"""Commands, Python and pages over a run behind s3://, as over any other."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from rltracer_sqlite import PrimeRLAdapter, RLTracer
from rltracer_sqlite.adapter import open_run
from rltracer_sqlite.cli import group
from rltracer_sqlite.remembered_roots import remember_root, remembered_roots
from rltracer_sqlite.roots import RootNotAllowed
from rltracer_sqlite.sources.remote import RemoteRoot
from tests.remote.s3_runs import ALL, ROOT, lines, refresh
from tests.remote.s3_server import S3Server


def run(*arguments: object) -> Result:
    return CliRunner().invoke(group, [str(argument) for argument in arguments])


def test_the_commands_take_a_url(s3: S3Server, database: Path, tmp_path: Path) -> None:
    s3.put(f"my-run/{ALL}", lines(range(5)))
    indexed = run("index", database, ROOT, "--success", "reward>=1", "--fts")
    assert "my-run: 5 trajectories" in indexed.output
    assert "5 of 5 trajectories" in indexed.output
    assert str(remembered_roots()[0]) == ROOT
    assert "6 * 7?" in run("inspect", "--run", ROOT, "--step", "1").output
    assert "6 * 7?" in run("inspect", "--run", database, "--step", "1").output
    for place in (database, ROOT):
        out = tmp_path / "out.jsonl"
        assert run("export", place, "-o", out, "--acceptance", "any", "--per-prompt", "all").exit_code == 0
        assert len(out.read_text().splitlines()) == 5
    assert run("analyze", ROOT, "-o", tmp_path / "analysis").exit_code == 0
    assert "not on this machine" in run("serve", "--run", ROOT).output
    assert b"hush" not in database.read_bytes()
    assert run("roots", "remove", ROOT).exit_code == 0
    assert "not among the folders" in str(run("inspect", "--run", database, "--trajectory", "1").exception)


def test_a_password_in_a_url_is_a_wrong_argument(s3: S3Server, database: Path) -> None:
    result = run("index", database, "s3://key:hush@runs/my-run")
    assert (result.exit_code, "hush" in result.output, database.exists()) == (2, False, False)
    assert "names a user or a password" in " ".join(result.output.split())
    assert s3.asked() == []


def test_python_reads_a_url(s3: S3Server, database: Path) -> None:
    s3.put(f"my-run/{ALL}", lines(range(5)))
    remember_root(RemoteRoot(ROOT))
    tracer = RLTracer(PrimeRLAdapter(rollout_dir=ROOT, index_path=database))
    assert len(tracer.steps()) == 1
    [group] = tracer.step(1).prompts()
    assert group.trajectory(0).load().messages[-1]["content"] == "42"
    s3.put("my-run/step_2/train/all/traces.jsonl", lines(range(5, 8)))
    assert len(tracer.step(2).prompts()[0]) == 3
    assert [len(step.prompts()[0]) for step in RLTracer(ROOT).steps()] == [5, 3]
    assert [len(step.prompts()[0]) for step in RLTracer(database).steps()] == [5, 3]


def test_a_page_reads_urls_that_were_allowed_only(s3: S3Server, database: Path) -> None:
    datasette = pytest.importorskip("datasette.app").Datasette
    s3.put(f"my-run/{ALL}", lines(range(5), "forty-two"))
    refresh(database)  # the library alone remembers no root; the command does

    async def page(config: dict[str, Any]) -> str:
        served = datasette([str(database)], metadata={"plugins": {"datasette-rltracer": config}})
        await served.invoke_startup()
        return str((await served.client.get("/-/rltracer/x/trajectory/1")).text)

    s3.requests.clear()
    assert "not among the folders" in asyncio.run(page({}))
    assert s3.asked() == []
    assert "forty-two" in asyncio.run(page({"roots": ["s3://runs"]}))
    assert len(s3.asked()) == 1


def test_another_index_of_somebody_leads_nowhere(s3: S3Server, database: Path) -> None:
    s3.put(f"my-run/{ALL}", lines(range(5)))
    refresh(database)
    with pytest.raises(RootNotAllowed, match="rltracer roots add 's3://runs/my-run'"):
        open_run(database).load_trajectory(1)
