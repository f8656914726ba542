"""Run ready-for-datasette, the Datasette project's checks of a plugin, against a copy of this tree.

The checks know an action by the name of its version alone. Ours are pinned by commit, with the version behind a #, so
the copy has the version instead. What they run can be cut short with PYTEST_ADDOPTS.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from distributions import LEFT_ALONE, ROOT

PINNED = re.compile(r"@[0-9a-f]{40} # (v\d+)\S*")


def main() -> int:
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "datasette-rltracer"
        shutil.copytree(ROOT, tree, ignore=LEFT_ALONE)
        for path in (tree / ".github/workflows").glob("*.yml"):
            path.write_text(by_version(path.read_text(encoding="utf-8")), encoding="utf-8")
        return subprocess.run(["ready-for-datasette", str(tree)]).returncode


def by_version(workflow: str) -> str:
    """Return a workflow whose actions are named by their major version, as the checks expect it."""
    named = PINNED.sub(lambda match: f"@{match[1]}", workflow)
    return named.replace("gh-action-pypi-publish@v1", "gh-action-pypi-publish@release/v1")


if __name__ == "__main__":
    sys.exit(main())
