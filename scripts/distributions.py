"""What the two distributions of a release may hold and must hold."""

from __future__ import annotations

import re
import shutil
import tarfile
import zipfile
from collections.abc import Mapping
from email.parser import Parser
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = ("datasette_rltracer", "rltracer_sqlite")
MAX_FILE_BYTES = 1_000_000
# What a copy of this tree has no use for.
LEFT_ALONE = shutil.ignore_patterns(".git", ".venv*", "dist", "node_modules", "__pycache__", ".*_cache", ".hypothesis")

# Runs, their indexes, data sets and plots are made, and none belongs into a package.
GENERATED = re.compile(
    r"\.(jsonl|ndjson|zst|gz|bin|pt|parquet|arrow|csv|tsv|npy|npz|pkl|safetensors|sqlite|sqlite3|db|db-wal|db-shm"
    r"|png|jpe?g|gif|webp|svg|pdf|html?|pyc|log)$"
    r"|(^|/)(__pycache__|node_modules|\.venv[^/]*|demo|dist|build|\.hypothesis|\.[a-z]+_cache)/",
    re.IGNORECASE,
)
TEMPLATE = re.compile(r"datasette_rltracer/templates/.+\.html$")
REQUIRED_IN_SDIST = (
    "pyproject.toml", "README.md", "CHANGELOG.md", "LICENSE", "docs/schema.md", "tests/conftest.py", "fuzz/target.py",
)  # fmt: skip


def read_sdist(path: Path) -> dict[str, bytes]:
    """Return the files of a source distribution by their path below its folder. Raises ValueError for odd members."""
    files = {}
    with tarfile.open(path, "r:gz") as archive:
        for member in archive:
            top, _, name = member.name.partition("/")
            if not member.isfile() or top != path.name.removesuffix(".tar.gz") or ".." in name.split("/"):
                raise ValueError(f"{path.name} holds {member.name!r}, which is no plain file below its folder")
            stream = archive.extractfile(member)
            files[name] = stream.read() if stream else b""
    return files


def read_wheel(path: Path) -> dict[str, bytes]:
    """Return the files of a wheel by their path."""
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def package_files(root: Path = ROOT) -> set[str]:
    """Return every file of the two packages in a tree: what a wheel has to hold."""
    files = (path for package in PACKAGES for path in (root / package).rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix() for path in files if "__pycache__" not in path.parts}


def faults(files: Mapping[str, bytes], required: set[str]) -> list[str]:
    """Return a sentence for each file that is missing, too large, or made by a run rather than by hand."""
    found = [f"{name} is missing" for name in sorted(required - files.keys())]
    for name, content in sorted(files.items()):
        if len(content) > MAX_FILE_BYTES:
            found.append(f"{name} has {len(content):,} bytes; at most {MAX_FILE_BYTES:,} are allowed")
        if GENERATED.search(name) and not TEMPLATE.search(name):
            found.append(f"{name} looks generated: runs, indexes, data sets and plots are not distributed")
    return found


def sdist_faults(path: Path) -> list[str]:
    """Return what is wrong with the content of a source distribution."""
    return faults(read_sdist(path), {*REQUIRED_IN_SDIST, *package_files()})


def wheel_faults(path: Path) -> list[str]:
    """Return what is wrong with the content of a wheel, which holds the two packages and its metadata alone."""
    files = read_wheel(path)
    [folder] = {name.split("/")[0] for name in files} - set(PACKAGES) or {"no .dist-info"}
    required = {f"{folder}/{name}" for name in ("METADATA", "RECORD", "entry_points.txt", "licenses/LICENSE")}
    return faults(files, required | package_files())


def version_of(wheel: Path) -> str:
    """Return the version that a wheel's metadata names."""
    [metadata] = [content for name, content in read_wheel(wheel).items() if name.endswith(".dist-info/METADATA")]
    return str(Parser().parsestr(metadata.decode())["Version"])


def tag_fits(tag: str, version: str) -> bool:
    """Say whether a release may have this tag: the version, with or without a v before it."""
    return tag in (version, f"v{version}")
