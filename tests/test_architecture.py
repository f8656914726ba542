"""The packages lie as docs/architecture.md says: no import runs upwards, and the library knows no Datasette."""

from __future__ import annotations

import ast
import re
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import rltracer_sqlite

LIBRARY = Path(rltracer_sqlite.__file__).parent
PLUGIN = "datasette_rltracer"
MODULES = sorted(path.relative_to(LIBRARY.parent) for path in LIBRARY.rglob("*.py"))


@cache
def imported(module: Path) -> list[str]:
    """Return the full names of what a module imports, at its top or when it is called, but not for types alone."""
    found: list[str] = []
    pending: list[ast.AST] = [ast.parse((LIBRARY.parent / module).read_text(encoding="utf-8"))]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.ImportFrom):
            above = module.parts[: len(module.parts) - node.level] if node.level else ()
            base = ".".join([*above, *([node.module] if node.module else [])])
            found += [f"{base}.{name.name}" for name in node.names]
        elif isinstance(node, ast.Import):
            found += [name.name for name in node.names]
        is_for_types = isinstance(node, ast.If) and getattr(node.test, "id", "") == "TYPE_CHECKING"
        pending += [] if is_for_types or isinstance(node, ast.expr) else ast.iter_child_nodes(node)
    return found


def part_of(name: str) -> str | None:
    """Return the package or module directly in the library that a name belongs to."""
    parts = name.split(".")
    is_part = len(parts) > 1 and ((LIBRARY / parts[1]).is_dir() or (LIBRARY / f"{parts[1]}.py").is_file())
    return parts[1] if parts[0] == LIBRARY.name and is_part else None


def arrows() -> dict[str, set[str]]:
    """Return what each package or module directly in the library imports of the others."""
    found: dict[str, set[str]] = {}
    for module in MODULES:
        own = module.parts[1].removesuffix(".py")
        if own != "__init__":
            others = {other for name in imported(module) if (other := part_of(name)) is not None}
            found.setdefault(own, set()).update(others - {own})
    return found


def test_no_import_of_the_library_runs_upwards() -> None:
    TopologicalSorter(arrows()).prepare()  # raises CycleError, which names the circle


@pytest.mark.parametrize("package", [LIBRARY.name, PLUGIN])
def test_no_modules_import_one_another_in_a_circle(package: str) -> None:
    folder = LIBRARY.parent
    modules = [path.relative_to(folder) for path in sorted((folder / package).rglob("*.py"))]
    names = {".".join(module.with_suffix("").parts).removesuffix(".__init__"): module for module in modules}
    del names[package]  # hands on what others hold
    arrows = {
        name: {used if used in names else used.rpartition(".")[0] for used in imported(module)} & names.keys()
        for name, module in names.items()
    }
    assert any(arrows.values())
    TopologicalSorter(arrows).prepare()


def test_sources_know_no_index() -> None:
    below, pending, known = set(), ["sources"], arrows()
    while pending:
        part = pending.pop()
        pending += known.get(part, set()) - below
        below.add(part)
    assert {"tokens", "trajectory"} < below
    assert not below & {"index", "roots", "adapter", "export", "cli"}


def test_the_library_knows_no_datasette() -> None:
    assert not [module for module in MODULES if any(name.startswith("datasette") for name in imported(module))]


def test_each_module_says_what_it_is_for() -> None:
    sources = {module: (LIBRARY.parent / module).read_text(encoding="utf-8") for module in MODULES}
    assert not [module for module, source in sources.items() if source and not ast.get_docstring(ast.parse(source))]


def test_the_map_leads_to_modules_that_are_there() -> None:
    root = LIBRARY.parent
    page = (root / "docs/architecture.md").read_text(encoding="utf-8")
    named = {name for name in re.findall(r"`([\w/]+\.py)`", page) if "NAME" not in name}
    assert len(named) > 50
    packages = (LIBRARY.name, PLUGIN, "scripts", "tests")
    modules = [path.as_posix() for package in packages for path in (root / package).rglob("*.py")]
    assert not [name for name in named if not any(module.endswith(f"/{name}") for module in modules)]
