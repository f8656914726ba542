"""What every test has: a home of its own, and the versions in the header."""

from __future__ import annotations

import sqlite3
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest


def pytest_report_header() -> str:
    packages = []
    for name in ("datasette", "sqlite-utils", "msgspec"):
        try:
            packages.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            packages.append(f"{name} not installed")
    return f"SQLite {sqlite3.sqlite_version}, " + ", ".join(packages)


@pytest.fixture(autouse=True)
def own_home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Keep the user's list of roots and caches out of the tests, and the tests out of them."""
    home = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("RLTRACER_HOME", str(home))
    monkeypatch.setenv("XDG_CACHE_HOME", str(home / "cache"))
    return home
