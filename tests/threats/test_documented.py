"""docs/security.md and the tests: each numbered line has a test that carries its number, and each number is a line."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).resolve().parents[1]
DOCUMENT = TESTS.parent / "docs" / "security.md"


def carried() -> Iterator[str]:
    """Yield the numbers that tests carry, in their names or by the marker `threat`."""
    for file in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                continue
            if named := re.match(r"test_t(\d+)_", node.name):
                yield f"T{named[1]}"
            for mark in node.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) == "pytest.mark.threat":
                    yield from (str(ast.literal_eval(argument)) for argument in mark.args)


def test_each_line_has_a_test_and_each_test_a_line() -> None:
    lines = re.findall(r"^\* \*\*(T\d+)\*\* ", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(lines) == len(set(lines)) > 30
    assert set(carried()) == set(lines)
