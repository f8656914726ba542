"""The example package of docs/writing-a-source.md: small, found by its entry point, and usable like any source."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from rltracer_sqlite.sources import source_for, source_named, source_names

EXAMPLE = Path(__file__).parents[1] / "docs" / "example-source"
DOCS = (EXAMPLE.parent / "writing-a-source.md").read_text(encoding="utf-8")
LOG = "# reward=1 step=3\nuser: q\nassistant: a\n\n"


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Install the example as pip would: its module, and the entry points that its pyproject.toml names."""
    site = tmp_path / "site"
    info = site / "rltracer_source_chatlog-0.1.0.dist-info"
    info.mkdir(parents=True)
    shutil.copy(EXAMPLE / "rltracer_source_chatlog.py", site)
    project = (EXAMPLE / "pyproject.toml").read_text(encoding="utf-8")
    group, name, reference = re.findall(r'entry-points\."([^"]+)"\]\n(\w+) = "([^"]+)"', project)[0]
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: rltracer-source-chatlog\nVersion: 0.1.0\n")
    (info / "entry_points.txt").write_text(f"[{group}]\n{name} = {reference}\n")
    monkeypatch.syspath_prepend(str(site))
    return site


def test_an_installed_source_is_found_by_its_entry_point(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "a.chatlog").write_text(LOG)
    assert source_names()[-1] == "chatlog"
    assert source_for(tmp_path / "run").name == source_named("chatlog").name == "chatlog"


def test_its_own_test_passes(installed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(EXAMPLE))
    import test_rltracer_source_chatlog as own  # type: ignore[import-not-found]

    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    own.test_a_log_can_be_indexed_and_read(tmp_path / "one")
    own.test_a_log_that_grows_is_read_on(tmp_path / "two")


def test_it_is_as_short_as_it_says_and_stands_in_the_docs() -> None:
    code = (EXAMPLE / "rltracer_source_chatlog.py").read_text(encoding="utf-8")
    assert len([line for line in code.splitlines() if line.strip()]) <= 40
    assert code in DOCS, "run: cog -r docs/writing-a-source.md"
