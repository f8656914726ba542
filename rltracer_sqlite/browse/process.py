"""The environment of the processes that are started while somebody looks through a folder of runs."""

from __future__ import annotations

import os
from pathlib import Path

PACKAGES = Path(__file__).resolve().parents[2]


def safe_environment() -> dict[str, str]:
    """Return the environment for `python -m …` in which the current folder holds no modules.

    The current folder is often that of the runs, which may come from anybody; Python 3.11 and later can leave it out
    of the places where modules are looked for (PYTHONSAFEPATH).
    """
    environment = {**os.environ, "PYTHONSAFEPATH": "1"}
    if PACKAGES.name != "site-packages":
        # A checkout that is not installed would not be found any more.
        given = environment.get("PYTHONPATH")
        environment["PYTHONPATH"] = os.pathsep.join([*([given] if given else []), str(PACKAGES)])
    return environment
