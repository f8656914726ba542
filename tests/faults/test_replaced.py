"""Files of an indexed run that have something else in their place: everything that reads them says so in a sentence."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from datasette.app import Datasette

from tests.commands import Done, indexed, rltracer
from tests.layouts import append, message, seal, trace
from tests.table_answers import trl_text

PATIENCE = 60  # seconds; what waits for a pipe waits for ever
pytestmark = pytest.mark.threat("T1")


def prime_rl(root: Path) -> None:
    said = [message("user", "6 * 7?"), message("assistant", "42")]
    records = [trace(said, id=name, rewards={"r": 1.0}, token_ids=True) for name in "abc"]
    append(root / "rollouts/step_1/train/all/traces.jsonl", *records)


def sealed(root: Path) -> None:
    prime_rl(root)
    seal(root / "rollouts/step_1/train/all/traces.jsonl")


def parquet(root: Path) -> None:
    pytest.importorskip("pyarrow")
    trl_text(root)


RUNS: dict[str, Callable[[Path], Any]] = {"lines": prime_rl, "sealed": sealed, "Parquet": parquet}


def replaced_by(make: Callable[[Path], Any]) -> Callable[[Path], Any]:
    def replace(path: Path) -> None:
        path.unlink()
        make(path)

    return replace


REPLACED: dict[str, Callable[[Path], Any]] = {
    "gone": Path.unlink,
    "a folder": replaced_by(Path.mkdir),
    "a named pipe": replaced_by(os.mkfifo),
    "a link to itself": replaced_by(lambda path: path.symlink_to(path.name)),
    "a device": replaced_by(lambda path: path.symlink_to("/dev/zero")),
    "shorter": lambda path: os.truncate(path, path.stat().st_size // 2),
    "other bytes": lambda path: path.write_bytes(path.read_bytes()[::-1]),
}


@pytest.fixture(autouse=True)
def patience() -> Iterator[None]:
    def give_up(number: int, frame: Any) -> None:
        raise TimeoutError("it waits for something that does not come")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(PATIENCE)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def told(done: Done) -> Done:
    """Return what a command has left, which a failure has a sentence for."""
    assert done.returncode == 0 or done.stderr.startswith("Error: "), done
    assert "Traceback" not in done.stdout + done.stderr
    return done


def check_everything(database: Path, root: Path, out: Path, is_lost: bool) -> None:
    """Read an index whose files have been replaced in every way there is."""
    shown = told(rltracer("inspect", database, "--trajectory", 1))
    exported = told(rltracer("export", database, "--keep-errors", "-o", out))
    if is_lost:
        assert (shown.returncode, exported.returncode) == (1, 1)
        assert not out.exists()
    told(rltracer("search", database, "a*"))
    asyncio.run(check_pages(database, is_lost))
    for place in (database, root):
        told(rltracer("inspect", place))
    for command in ([database, root], [database, root, "--rebuild"]):
        told(indexed(*command))
    told(rltracer("fts", database, "--rebuild"))
    told(rltracer("inspect", database, "--trajectory", 1))


async def check_pages(database: Path, is_lost: bool) -> None:
    datasette = Datasette([str(database)])
    pages = "/-/rltracer/x/"
    for page in ("trajectory/1", "trajectory/1?view=raw", "trajectory/1?view=tokens", "trajectory/1.json"):
        response = await datasette.client.get(pages + page)
        assert response.status_code in ((404, 409, 422, 403) if is_lost else (200, 404, 409, 422)), response.text
    for page in (
        f"{pages}run/1",
        f"{pages}group/1",
        f"{pages}prompt/1/1",
        f"{pages}search?q=a*",
        "/x/trajectories.sft?run_id=1",
    ):
        assert (await datasette.client.get(page)).status_code < 500


@pytest.mark.parametrize("change", REPLACED.values(), ids=REPLACED)
@pytest.mark.parametrize("write", RUNS.values(), ids=RUNS)
def test_the_files_of_a_run(tmp_path: Path, write: Callable[[Path], Any], change: Callable[[Path], Any]) -> None:
    root, database = tmp_path / "run", tmp_path / "x.sqlite"
    write(root)
    assert indexed(database, root, "--fts").returncode == 0
    for path in [path for path in root.rglob("*") if path.is_file()]:
        change(path)
    check_everything(database, root, tmp_path / "out.jsonl", is_lost=change is not REPLACED["shorter"])


@pytest.mark.parametrize("change", REPLACED.values(), ids=REPLACED)
@pytest.mark.parametrize("is_file", [True, False], ids=["a file", "a folder"])
def test_the_place_of_a_run(tmp_path: Path, is_file: bool, change: Callable[[Path], Any]) -> None:
    """What the user's list of roots leads to may have been replaced: other runs are read all the same."""
    prime_rl(tmp_path / "run")
    root, database = tmp_path / "run", tmp_path / "x.sqlite"
    if is_file:
        root = shutil.copy(tmp_path / "run/rollouts/step_1/train/all/traces.jsonl", tmp_path / "one.jsonl")
    assert indexed(database, root, "--fts").returncode == 0
    if not is_file:
        shutil.rmtree(root)
        root.write_text("no run\n")
    change(root)
    check_everything(database, root, tmp_path / "out.jsonl", is_lost=change is not REPLACED["shorter"])
    prime_rl(tmp_path / "another")
    assert indexed(tmp_path / "y.sqlite", tmp_path / "another").returncode == 0
    assert rltracer("inspect", tmp_path / "y.sqlite", "--trajectory", 1).returncode == 0
