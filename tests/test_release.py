"""A release holds what it should and nothing else, is built to the same bytes, and is published with few rights."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from scripts import distributions, vendored
from scripts.distributions import ROOT, faults, sdist_faults, tag_fits, version_of, wheel_faults

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
with_workflows = pytest.mark.skipif(not WORKFLOWS, reason="a source distribution has no workflows")
SHIPPED = ["datasette_rltracer", "rltracer_sqlite"]
PINNED = re.compile(r"[\w.-]+/[\w.-]+@[0-9a-f]{40}")


def build(tree: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Return a source distribution and a wheel of a tree, built by its own back end."""
    from hatchling import build as backend

    monkeypatch.chdir(tree)
    folder.mkdir()
    return folder / backend.build_sdist(str(folder)), folder / backend.build_wheel(str(folder))


def test_the_same_files_make_the_same_bytes_and_hold_what_they_should(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("hatchling.build")
    copy = tmp_path / "elsewhere"
    shutil.copytree(ROOT, copy, ignore=distributions.LEFT_ALONE)
    for path in copy.rglob("*"):
        os.utime(path, (1_000_000_000, 1_000_000_000))
    (copy / "demo").mkdir()
    for name in ("demo/traces.jsonl", "run.sqlite", "rltracer_sqlite/left.sqlite", "tests/left.sqlite"):
        (copy / name).write_text("made by a run")
    sdist, wheel = build(ROOT, tmp_path / "one", monkeypatch)
    again = build(copy, tmp_path / "two", monkeypatch)
    assert [path.read_bytes() for path in again] == [sdist.read_bytes(), wheel.read_bytes()]
    assert sdist_faults(sdist) == wheel_faults(wheel) == []
    assert {"datasette_rltracer/py.typed", "rltracer_sqlite/py.typed"} <= set(distributions.read_wheel(wheel))
    assert_importable(wheel, tmp_path / "unpacked")
    assert f"## {version_of(wheel)}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def assert_importable(wheel: Path, folder: Path) -> None:
    """Import both packages from a wheel, and read a file of each that is no Python."""
    shutil.unpack_archive(wheel, folder, "zip")
    code = """
import datasette_rltracer, rltracer_sqlite
from importlib.resources import files
from rltracer_sqlite.charts.data import load_spec
assert load_spec("difficulty")
assert "{% block" in files(datasette_rltracer).joinpath("templates/rltracer/browse.html").read_text()
print(datasette_rltracer.__file__, rltracer_sqlite.__file__)
"""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [Path(name).parent for name in done.stdout.split()] == [folder / name for name in SHIPPED]


def test_a_wheel_is_to_hold_both_packages_whole() -> None:
    built = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
    assert built["targets"]["wheel"] == {"packages": SHIPPED}  # and leaves nothing out
    kinds = {Path(name).suffix for name in distributions.package_files()}
    assert {".py", ".typed", ".html", ".css", ".js", ".sql", ".json"} <= kinds


@pytest.mark.parametrize(
    ("name", "size", "said"),
    [
        ("tests/samples/traces.jsonl", 1, "generated"),
        ("rltracer_sqlite/run.sqlite", 1, "generated"),
        ("docs/pass-rate.SVG", 1, "generated"),
        ("demo/run.toml", 1, "generated"),
        ("tests/export.html", 1, "generated"),
        ("tests/large.txt", 1_000_001, "1,000,001 bytes"),
        ("datasette_rltracer/templates/rltracer/page.html", 1, None),
        ("rltracer_sqlite/charts/theme.json", 1_000_000, None),
    ],
)
def test_generated_and_large_files_are_refused(name: str, size: int, said: str | None) -> None:
    found = faults({name: b"x" * size}, set())
    assert [said in fault for fault in found] == [True] if said else found == []


def test_a_missing_file_is_named() -> None:
    assert faults({}, {"LICENSE"}) == ["LICENSE is missing"]


@pytest.mark.parametrize(
    ("tag", "fits"),
    [
        ("0.1.0", True),
        ("v0.1.0", True),
        ("0.1.1", False),
        ("V0.1.0", False),
        ("vv0.1.0", False),
        ("0.1.0 ", False),
        ("", False),
    ],
)
def test_a_tag_is_the_version_or_the_version_behind_a_v(tag: str, fits: bool) -> None:
    assert tag_fits(tag, "0.1.0") == fits


def steps(job: dict[str, Any]) -> list[str]:
    return [str(step.get("uses") or step["run"]) for step in job["steps"]]


@with_workflows
@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_pin_every_action_and_may_only_read(path: Path) -> None:
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    for name, job in workflow["jobs"].items():
        assert job.get("permissions", {}) == ({"id-token": "write"} if name == "publish" else {})
        uses = [step["uses"] for step in job["steps"] if "uses" in step]
        assert all(PINNED.fullmatch(action) for action in uses), uses
        checkouts = [step for step in job["steps"] if step.get("uses", "").startswith("actions/checkout@")]
        assert all(step["with"]["persist-credentials"] is False for step in checkouts)
        # What a person may name, such as a tag, reaches a shell as a variable only.
        assert not [step["run"] for step in job["steps"] if "${{ github" in step.get("run", "")]


@with_workflows
def test_only_a_published_release_is_uploaded_and_only_after_the_checks() -> None:
    workflow = yaml.safe_load((ROOT / ".github/workflows/publish.yml").read_text(encoding="utf-8"))
    # YAML 1.1 reads the key `on` as true.
    assert workflow[True] == {"release": {"types": ["published"]}, "workflow_dispatch": None}
    build, publish = workflow["jobs"]["build"], workflow["jobs"]["publish"]
    assert (publish["needs"], publish["if"]) == ("build", "github.event_name == 'release'")
    assert publish["environment"] == "pypi"
    assert [action.split("@")[0] for action in steps(publish)] == [
        "actions/download-artifact", "pypa/gh-action-pypi-publish",
    ]  # fmt: skip
    done = steps(build)
    [python] = [step for step in build["steps"] if "setup-python" in step.get("uses", "")]
    assert python["with"]["python-version"] == "3.12"
    checks = ["uv build", "twine check --strict dist/*", "python scripts/check_release.py dist"]
    assert [command for command in done if command in checks] == checks
    assert 'check_release.py dist --tag "$TAG"' in " ".join(done)
    assert "upload-artifact" in done[-1]


@with_workflows
def test_the_tests_run_on_every_supported_python() -> None:
    test = yaml.safe_load((ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8"))
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    named = re.findall(r'"Programming Language :: Python :: (3\.\d+)"', pyproject)
    for job in ("test", "systems"):
        assert test["jobs"][job]["strategy"]["matrix"]["python-version"] == named
    assert f'requires-python = ">={named[0]}"' in pyproject


@pytest.mark.parametrize("name", sorted(vendored.recorded()))
def test_a_vendored_file_is_the_one_that_was_built(name: str) -> None:
    assert vendored.digest(name) == vendored.recorded()[name]


def test_every_vendored_file_is_recorded_with_its_licence() -> None:
    assert set(vendored.recorded()) == {
        "datasette_rltracer/static/vega.mjs",
        "datasette_rltracer/static/vega.LICENSES.txt",
        "tests/browser/axe.min.js",
        "tests/browser/axe.LICENSE.txt",
        "tests/browser/axe.LICENSE-3RD-PARTY.txt",
    }


def test_a_changed_vendored_file_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "tests/browser/axe.LICENSE.txt"
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_bytes((ROOT / name).read_bytes() + b" ")
    monkeypatch.setattr(vendored, "ROOT", tmp_path)
    assert vendored.digest(name) != vendored.recorded()[name]
