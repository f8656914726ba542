"""Check the JavaScript that is kept in this repository against its hashes, or make it anew from its pinned packages.

python scripts/vendored.py             # are the files those of scripts/vendored/SHA256SUMS?
python scripts/vendored.py --rebuild   # do the same files come out of what package-lock.json pins by hash?
python scripts/vendored.py --update    # after a change of versions: writes the files and their hashes
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "scripts" / "vendored"
SUMS = FOLDER / "SHA256SUMS"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rebuild", action="store_true", help="make the files anew before they are checked")
    parser.add_argument("--update", action="store_true", help="make the files anew and write their hashes")
    options = parser.parse_args()
    if options.rebuild or options.update:
        # No package runs a script of its own while it is installed.
        subprocess.run(["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"], cwd=FOLDER, check=True)
        subprocess.run(["node", "build.mjs"], cwd=FOLDER, check=True)
    if options.update:
        SUMS.write_text("".join(f"{digest(name)}  {name}\n" for name in recorded()), encoding="utf-8")
    changed = [name for name, expected in recorded().items() if digest(name) != expected]
    for name in changed:
        print(f"{name} is not the file whose hash stands in {SUMS.relative_to(ROOT)}", file=sys.stderr)
    return int(bool(changed))


def recorded() -> dict[str, str]:
    """Return the vendored files, and the licences beside them, with the SHA-256 that each has to have."""
    lines = (line.split("  ", 1) for line in SUMS.read_text(encoding="utf-8").splitlines())
    return {name: expected for expected, name in lines}


def digest(name: str) -> str:
    """Return the SHA-256 of a file of this repository."""
    return hashlib.sha256((ROOT / name).read_bytes()).hexdigest()


if __name__ == "__main__":
    sys.exit(main())
