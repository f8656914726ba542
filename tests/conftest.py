"""What every test has: a home of its own, places for a run and its index, and the versions in the header."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from tempfile import mkdtemp
from types import CodeType
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# No test depends on a clock: a busy machine is slow at any of them.
settings.register_profile("no clock", deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("no clock")

MEMORY = 2 << 30  # bytes, several times what the tests need, that have to be free for temporary files to be in memory


def pytest_configure() -> None:
    """Move to memory, and import Datasette before the tests do: it leaves a connection open as it is imported."""
    work_in_memory()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        import datasette.app  # noqa: F401


def work_in_memory() -> None:
    """Have temporary files in memory where Linux has some for that: on a disk thousands of commits wait for it.

    A TMPDIR of one's own is left as it is.
    """
    memory = Path("/dev/shm")
    if "TMPDIR" not in os.environ and os.access(memory, os.W_OK) and shutil.disk_usage(memory).free > MEMORY:
        os.environ["TMPDIR"] = str(memory)
        tempfile.tempdir = None  # it is asked for anew


def pytest_report_header() -> str:
    packages = []
    for name in ("datasette", "sqlite-utils", "msgspec"):
        try:
            packages.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            packages.append(f"{name} not installed")
    return f"SQLite {sqlite3.sqlite_version}, " + ", ".join(packages)


@pytest.fixture(scope="session", autouse=True)
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return where the homes of the tests are: itself a home for what is made once for many of them."""
    homes = tmp_path_factory.mktemp("homes")
    with pytest.MonkeyPatch.context() as patch:
        live_in(homes, patch)
        yield homes


def live_in(home: Path, patch: pytest.MonkeyPatch) -> None:
    patch.setenv("RLTRACER_HOME", str(home))
    patch.setenv("XDG_CACHE_HOME", str(home / "cache"))


@pytest.fixture(autouse=True)
def own_home(homes: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the user's list of roots and caches out of the tests, and the tests out of them."""
    home = Path(mkdtemp(dir=homes))
    live_in(home, monkeypatch)
    return home


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Return where a test may write a run."""
    return tmp_path / "run"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """Return where a test may index a run."""
    return tmp_path / "x.sqlite"


@pytest.fixture(scope="session")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the demo, `run`, and the index of it, `x.sqlite`, for tests that only read them."""
    from rltracer_sqlite.sample import write_sample
    from tests.commands import indexed

    folder = tmp_path_factory.mktemp("demo")
    write_sample(folder / "run")
    assert indexed(folder / "x.sqlite", folder / "run").returncode == 0
    return folder


@pytest.fixture(scope="session", autouse=True)
def left_by_datasette() -> Iterator[None]:
    """Close the connections that Datasette leaves to the collector; ours fail the test."""
    from datasette import app, database, utils
    from datasette.utils import sqlite

    class Left(sqlite3.Connection):
        def __del__(self) -> None:
            with suppress(sqlite3.ProgrammingError):  # it was never opened
                self.close()

    class Sqlite:
        connect = staticmethod(partial(sqlite3.connect, factory=Left))

        def __getattr__(self, name: str) -> Any:
            return getattr(sqlite3, name)

    with pytest.MonkeyPatch.context() as patch:
        for module in (app, database, utils, sqlite):
            patch.setattr(module, "sqlite3", Sqlite())
        yield


class Told(sqlite3.Connection):
    """A connection that warns when it is dropped and was not closed, as every one does since Python 3.13."""

    def __del__(self) -> None:
        with suppress(sqlite3.ProgrammingError):  # it was closed, or never opened
            _ = self.total_changes
            warnings.warn(f"unclosed database in {self!r}", ResourceWarning, stacklevel=2, source=self)
            self.close()


@pytest.fixture(scope="session", autouse=True)
def unclosed_is_told(left_by_datasette: None) -> Iterator[None]:
    """Let every Python warn of the connections that are not closed, which fails a test."""
    with pytest.MonkeyPatch.context() as patch:
        if sys.version_info < (3, 13):
            patch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Told))
        yield


@pytest.fixture(scope="session", autouse=True)
def templates_compiled_once() -> Iterator[None]:
    """Keep compiled templates from one Datasette to the next: most of a first page's time goes into compiling them."""
    from datasette import hookimpl
    from datasette.plugins import pm
    from jinja2 import BytecodeCache
    from jinja2.bccache import Bucket

    compiled: dict[tuple[str, str], CodeType] = {}

    class Memory(BytecodeCache):
        def load_bytecode(self, bucket: Bucket) -> None:
            bucket.code = compiled.get((bucket.key, bucket.checksum))

        def dump_bytecode(self, bucket: Bucket) -> None:
            assert bucket.code is not None
            compiled[bucket.key, bucket.checksum] = bucket.code

    class Plugin:
        __name__ = "rltracer_tests_templates"

        @hookimpl
        def prepare_jinja2_environment(self, env):  # type: ignore[no-untyped-def]
            env.bytecode_cache = Memory()

    plugin = Plugin()
    pm.register(plugin, "rltracer-tests-templates")
    yield
    pm.unregister(plugin)
