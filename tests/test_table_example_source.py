"""The example package of docs/writing-a-source.md: small, installed by pip, found by its entry point, and usable."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

from rltracer_sqlite.sources import source_for, source_named, source_names
from tests.indexing import index, value

EXAMPLE = Path(__file__).parents[1] / "docs" / "example-source"
DOCS = (EXAMPLE.parent / "writing-a-source.md").read_text(encoding="utf-8")
LOG = "# reward=1 step=3\nuser: q\nassistant: a\n\n"
# From a copy, since building leaves files; without a network, so with the setuptools that is here.
PIP = ("-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--target")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the example into a folder of its own, and return it."""
    try:
        version("pip")
        fits = int(version("setuptools").split(".")[0]) >= 77
    except PackageNotFoundError:
        fits = False
    if not fits:
        pytest.skip("pip and setuptools 77 are needed to build the example without a network")
    folder = tmp_path_factory.mktemp("example")
    shutil.copytree(EXAMPLE, folder / "source", ignore=shutil.ignore_patterns("build", "*.egg-info", "__pycache__"))
    done = subprocess.run([sys.executable, *PIP, folder / "site", folder / "source"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder / "site"


@pytest.fixture
def installed(site: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE))  # its own test
    monkeypatch.syspath_prepend(str(site))  # comes first


@pytest.mark.usefixtures("installed")
def test_an_installed_source_is_found_by_its_entry_point(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "a.chatlog").write_text(LOG)
    assert source_names()[-1] == "chatlog"
    found = source_for(tmp_path / "run")
    assert found.name == source_named("chatlog").name == "chatlog"
    assert Path(str(sys.modules[type(found).__module__].__file__)).parent.name == "site"
    index(tmp_path / "run.sqlite", tmp_path / "run")
    assert value(tmp_path / "run.sqlite", "select reward from trajectories where step = 3") == 1.0


@pytest.mark.usefixtures("installed")
def test_its_own_test_passes(tmp_path: Path) -> None:
    import test_rltracer_source_chatlog as own  # type: ignore[import-not-found]

    for name in ("test_a_log_can_be_indexed_and_read", "test_a_log_that_grows_is_read_on"):
        (tmp_path / name).mkdir()
        getattr(own, name)(tmp_path / name)


def test_it_is_as_short_as_it_says_and_stands_in_the_docs() -> None:
    code = (EXAMPLE / "rltracer_source_chatlog.py").read_text(encoding="utf-8")
    assert len([line for line in code.splitlines() if line.strip()]) <= 40
    assert code in DOCS, "run: cog -r docs/writing-a-source.md"
