"""A virtual environment for each contender, so that none pays for another's packages."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import venv
from pathlib import Path

OURS = "ours"
PEER = "rltracer"
PEER_WITH_TOKENS = "rltracer-tokens"
# What a user would install; rltracer is the peer, with the parser that makes it fast.
PACKAGES = {
    PEER: ["rltracer==0.1.0", "orjson"],
    PEER_WITH_TOKENS: ["rltracer==0.1.0", "orjson", "transformers", "msgpack", "numpy", "jinja2"],
    "duckdb": ["duckdb"],
    "jq": ["jq"],
    "generator": ["numpy", "orjson", "msgspec", "tokenizers"],
}
SOURCES = ["pyproject.toml", "README.md", "LICENSE", "rltracer_sqlite", "datasette_rltracer"]


def make_environment(folder: Path, name: str, checkout: Path) -> Path:
    """Return the folder of an environment, making it when it is not there; ours is installed anew each time."""
    place = folder / name
    if not place.exists():
        venv.create(place, with_pip=True)
        if name != OURS:
            install(place, PACKAGES[name])
    if name == OURS:
        install_checkout(place, checkout, folder / "source")
    return place


def install(environment: Path, packages: list[str]) -> None:
    """Install packages with the environment's own pip. Raises CalledProcessError."""
    pip = [str(environment / "bin" / "pip"), "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *packages], check=True, stdout=sys.stderr)


def install_checkout(environment: Path, checkout: Path, copy: Path) -> None:
    """Install a checkout as a user's wheel would be: not editable, compiled, with its dependencies only."""
    # Built from a copy, so that no build folder is left behind in the checkout.
    shutil.rmtree(copy, ignore_errors=True)
    copy.mkdir()
    for name in SOURCES:
        source = checkout / name
        if source.is_dir():
            shutil.copytree(source, copy / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy / name)
    install(environment, [str(copy)])
    install(environment, ["--force-reinstall", "--no-deps", str(copy)])


def versions(environment: Path) -> dict[str, str]:
    """Return the installed packages and the Python and SQLite of an environment."""
    program = (
        "import json, platform, sqlite3\nfrom importlib.metadata import distributions\n"
        "found = {d.metadata['Name'].lower(): d.version for d in distributions()}\n"
        "print(json.dumps({**found, 'python': platform.python_version(), 'sqlite': sqlite3.sqlite_version}))"
    )
    done = subprocess.run([environment / "bin" / "python", "-c", program], check=True, capture_output=True, text=True)
    found: dict[str, str] = json.loads(done.stdout)
    return found
