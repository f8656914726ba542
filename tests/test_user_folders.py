"""RLTRACER_HOME: the list of roots and all that is kept to save time lie in it, and nothing anywhere else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from rltracer_sqlite import RLTracer
from rltracer_sqlite.user_folders import cache_folder, config_folder
from tests.commands import rltracer


def test_nothing_is_left_outside_of_rltracer_home(demo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, user = tmp_path / "home", tmp_path / "user"
    for name, value in {"RLTRACER_HOME": home, "HOME": user, "XDG_CACHE_HOME": user, "XDG_CONFIG_HOME": user}.items():
        monkeypatch.setenv(name, str(value))
    tokenizer = demo / "run" / "tokenizer"
    assert rltracer("inspect", demo / "run", "--step", 8, "--tokenizer", tokenizer).returncode == 0
    RLTracer(demo / "run").step(1).prompts()
    rltracer("roots", "add", demo)
    assert not user.exists()
    assert {path.name for path in home.iterdir()} == {"cache", "roots.txt"}
    assert {path.suffix for path in (home / "cache").iterdir()} >= {".sqlite"}


@pytest.mark.skipif(os.name != "posix", reason="other systems have other folders")
def test_without_it_they_lie_in_the_folders_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RLTRACER_HOME")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    assert Path(tmp_path) in cache_folder().parents
    assert cache_folder() != config_folder()
