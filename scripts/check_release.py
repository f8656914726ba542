"""Check the distributions of a release: contents, metadata, tag, the same bytes twice, and a wheel that works.

python scripts/check_release.py                    # builds into a temporary folder with uv, twice
python scripts/check_release.py dist --tag v0.1.0  # also that dist/ holds these bytes, and that the tag fits
python scripts/check_release.py --python python3.10 --python python3.14
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from distributions import LEFT_ALONE, ROOT, sdist_faults, tag_fits, version_of, wheel_faults
from installed_wheel import faults_on


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("dist", nargs="?", type=Path, help="a folder with the two files that will be published")
    parser.add_argument("--tag", help="the tag of the release")
    parser.add_argument("--python", action="append", help="a Python to try the wheel on, once or more; else this one")
    parser.add_argument("--no-install", action="store_true", help="do not install the wheel")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        scratch = Path(temporary)
        first, second = build(scratch / "first"), build(scratch / "second")
        faults = differences("two builds", first, second)
        if options.dist:
            faults += differences(str(options.dist), first, files_of(options.dist))
        sdist, wheel = first
        faults += [f"sdist: {fault}" for fault in sdist_faults(sdist)]
        faults += [f"wheel: {fault}" for fault in wheel_faults(wheel)]
        if options.tag is not None and not tag_fits(options.tag, version_of(wheel)):
            faults.append(f"the tag {options.tag!r} is not the version {version_of(wheel)} or v{version_of(wheel)}")
        faults += strict_faults(first)
        for number, python in enumerate([] if options.no_install else options.python or [sys.executable]):
            faults += faults_on(python, wheel, scratch / f"installed-{number}")
        for fault in faults:
            print(fault, file=sys.stderr)
        if not faults:
            print(f"{sdist.name} and {wheel.name} may be published")
    return int(bool(faults))


def build(folder: Path) -> tuple[Path, Path]:
    """Build from a copy of this tree, as if it stood elsewhere and was checked out at another time."""
    shutil.copytree(ROOT, folder / "tree", ignore=LEFT_ALONE, copy_function=shutil.copy)
    # With the back end at hand, none has to be fetched.
    at_hand = ["--no-build-isolation"] if find_spec("hatchling") else []
    command: list[str | Path] = ["uv", "build", "--quiet", *at_hand, "--out-dir", folder / "dist"]
    subprocess.run(command, cwd=folder / "tree", check=True)
    return files_of(folder / "dist")


def files_of(dist: Path) -> tuple[Path, Path]:
    """Return the one source distribution and the one wheel of a folder."""
    found = [*dist.glob("*.tar.gz"), *dist.glob("*.whl")]
    if len(found) != 2 or found[1].suffix != ".whl":
        raise SystemExit(f"{dist} holds {[path.name for path in found]}, not one source distribution and one wheel")
    return found[0], found[1]


def differences(what: str, one: tuple[Path, Path], other: tuple[Path, Path]) -> list[str]:
    """Return a sentence for each distribution whose bytes differ."""
    pairs = zip(one, other, strict=True)
    return [f"{what}: {b.name} differs from {a.name} built again" for a, b in pairs if a.read_bytes() != b.read_bytes()]


def strict_faults(distributions: tuple[Path, Path]) -> list[str]:
    """Return what `twine check --strict` says against the metadata and the README as PyPI renders it."""
    done = subprocess.run(["twine", "check", "--strict", *distributions], capture_output=True, text=True)
    return [] if done.returncode == 0 else [f"twine check --strict: {done.stdout}{done.stderr}"]


if __name__ == "__main__":
    sys.exit(main())
