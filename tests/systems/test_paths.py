"""Paths as Linux, macOS and Windows read them: a name that a database holds leads nowhere outside its run."""

from __future__ import annotations

import ntpath
from pathlib import Path, PureWindowsPath

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rltracer_sqlite.browse.find import place_of
from rltracer_sqlite.export.write import ExportError, refuse_target
from rltracer_sqlite.sources.files import is_name_inside
from rltracer_sqlite.sources.prime_rl.layout import shard_of
from rltracer_sqlite.sources.table.built_in import PRESETS, preset
from rltracer_sqlite.sources.table.files import candidates


@pytest.mark.parametrize(
    ("path", "posix", "windows"),
    [
        ("rollouts/step_1/train/all/traces.jsonl", True, True),
        ("Größe & Maß/日本語.jsonl", True, True),
        ("console/auxiliary/nullable/com/com10.jsonl", True, True),
        ("/etc/passwd", False, False),
        ("", False, False),
        ("a\0b", False, False),
        ("C:/Windows/win.ini", True, False),
        ("c:relative.jsonl", True, False),
        ("C:\\Windows\\win.ini", True, False),
        ("\\\\server\\share\\a.jsonl", True, False),
        ("//server/share/a.jsonl", False, False),
        ("\\\\?\\C:\\a.jsonl", True, False),
        ("..\\..\\secret.jsonl", True, False),
        ("traces.jsonl:hidden", True, False),
        ("env:math.jsonl", True, False),
        ("NUL", True, False),
        ("con.jsonl", True, False),
        ("step_1/Aux/traces.jsonl", True, False),
        ("step_1/aux .txt", True, False),
        ("lpt1", True, False),
        ("COM¹.jsonl", True, False),
        ("conin$", True, False),
    ],
)
def test_a_name_below_a_folder(path: str, posix: bool, windows: bool) -> None:
    assert (is_name_inside(path, windows=False), is_name_inside(path, windows=True)) == (posix, windows)


PARTS = st.sampled_from(["..", ".", "a", "C:", "\\", "/", "//", "nul", "con", ".jsonl", ":", " ", "\\\\?\\", "com1"])


@settings(max_examples=60)
@given(st.lists(PARTS | st.text(max_size=3), max_size=6).map("".join))
@example("\\a")
def test_on_windows_only_dots_can_lead_out(path: str) -> None:
    if not is_name_inside(path, windows=True) or ".." in path.split("/"):
        return
    base = PureWindowsPath("C:\\runs\\one")
    full = PureWindowsPath(ntpath.normpath(base / path))
    assert full == base or full.is_relative_to(base)


class WindowsFolder(PureWindowsPath):
    """A folder as it is named on Windows."""

    def absolute(self) -> WindowsFolder:
        return self

    def is_file(self) -> bool:
        return False


def test_a_layout_is_known_below_a_drive() -> None:
    base = WindowsFolder("C:\\Users\\me\\runs\\one")
    shard = shard_of(base, "rollouts/step_12/train/all/traces.jsonl.zst")  # type: ignore[arg-type]
    assert (shard.path, shard.layout, shard.step, shard.split) == (
        "rollouts/step_12/train/all/traces.jsonl", "traces", 12, "train",
    )  # fmt: skip
    inside = WindowsFolder("D:\\runs\\one\\rollouts\\step_3")
    assert shard_of(inside, "train/all/traces.jsonl").step == 3  # type: ignore[arg-type]
    assert place_of(WindowsFolder("D:\\runs"), "one/rollouts/step_3/train/all/traces.jsonl").folder == "one"  # type: ignore[arg-type]


def test_shard_paths_have_forward_slashes(tmp_path: Path) -> None:
    file = tmp_path / "rollout" / "7" / "a.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text("{}\n")
    found = {shard.path for name in PRESETS for shard in candidates(tmp_path, preset(name))}
    assert found == {"rollout/7/a.jsonl"}


def test_an_export_is_kept_out_of_a_run_by_any_spelling(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "Run").mkdir()
    (tmp_path / "run").mkdir(exist_ok=True)
    monkeypatch.setattr(Path, "samefile", lambda self, other: str(self).lower() == str(other).lower())
    with pytest.raises(ExportError, match="never written to"):
        refuse_target(tmp_path / "run" / "rows.jsonl", [str(tmp_path / "Run")])
    refuse_target(tmp_path / "runs.jsonl", [str(tmp_path / "Run")])
