"""What typings/ says of Datasette is there in the one that is installed, with the parameters that it names."""

from __future__ import annotations

import ast
import importlib
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest

from datasette_rltracer.compat import IS_1

TYPINGS = Path(__file__).resolve().parents[2] / "typings"
OF_0_65 = {"permission_allowed", "ensure_permissions"}
OF_1 = {
    "allowed",
    "get_resource_metadata",
    "set_resource_metadata",
    "get_column_metadata",
    "set_column_metadata",
    "JumpSQL",
    "Resource",
    "DatabaseResource",
    "TableResource",
}
ELSEWHERE = OF_0_65 if IS_1 else OF_1


def functions() -> Iterator[tuple[str, str, list[str]]]:
    """Yield (module, name, parameters) of each function and method."""
    for path in sorted(TYPINGS.rglob("*.pyi")):
        module = ".".join(path.relative_to(TYPINGS).with_suffix("").parts).removesuffix(".__init__")
        for node in ast.parse(path.read_text("utf-8")).body:
            inner = node.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_") else [node]
            for one in inner:
                if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef) and one.name != "__init__":
                    name = f"{node.name}.{one.name}" if isinstance(node, ast.ClassDef) else one.name
                    parameters = [a.arg for a in one.args.args + one.args.kwonlyargs if a.arg not in ("self", "cls")]
                    yield module, name, parameters


@pytest.mark.parametrize(("module", "name", "parameters"), list(functions()))
def test_a_function_takes_what_its_types_name(module: str, name: str, parameters: list[str]) -> None:
    if ELSEWHERE & set(name.split(".")):
        pytest.skip("only the other line of Datasette has it")
    found = importlib.import_module(module)
    for part in name.split("."):
        found = getattr(found, part)
    if isinstance(found, property):
        return
    taken = inspect.signature(found).parameters
    takes_any_keyword = any(one.kind is one.VAR_KEYWORD for one in taken.values())
    assert takes_any_keyword or set(parameters) <= set(taken)
