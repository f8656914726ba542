"""The plugin is there whichever of Datasette and its own modules is imported first."""

from __future__ import annotations

import subprocess
import sys

import pytest

QUESTION = """
import {first}
import datasette_rltracer
from datasette.plugins import pm
print(len(pm.get_hookcallers(datasette_rltracer)))
"""


@pytest.mark.parametrize(
    "first", ["datasette.app", "datasette.plugins", "datasette_rltracer", "datasette_rltracer.edge"]
)
def test_its_hooks_are_known_in_any_order_of_imports(first: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", QUESTION.format(first=first)], capture_output=True, text=True, check=True
    )
    assert int(done.stdout) > 10
