"""What the documentation names is there: modules, commands with their options, extras, targets of make."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from rltracer_sqlite.cli import COMMANDS, group
from rltracer_sqlite.cli.index import command as index_command
from rltracer_sqlite.cli.serve import command as serve_command

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")] + sorted(DOCS.rglob("*.md"))
TEXTS = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in PAGES}
HERE = [ROOT, ROOT / "rltracer_sqlite", ROOT / "datasette_rltracer", ROOT / "rltracer_sqlite/sources"]
# Options of Datasette, pytest and others, and of the programs of this repository.
OF_OTHERS = {
    "--crossdb",
    "--durations",
    "--engine",
    "--help",
    "--immutable",
    "--root",
    "--setting",
    "--strict",
    "--uds",
    "--update",
    "--version",
}
each_page = pytest.mark.parametrize("name", sorted(TEXTS))


def prose(text: str) -> str:
    """Return a page without its blocks of code and the comments that generate some of it."""
    return re.sub(r"<!--.*?-->", "", re.sub(r"^```.*?^```", "", text, flags=re.M | re.S), flags=re.S)


@each_page
def test_named_modules_exist(name: str) -> None:
    for path in re.findall(r"`([\w./-]+/[\w.-]+\.(?:py|mjs|sql|toml|yml|md|js))`", prose(TEXTS[name])):
        if path.startswith(".github/") and not (ROOT / ".github").exists():
            continue  # a source distribution has no workflows
        assert any(list(folder.glob(path.replace("NAME", "*"))) for folder in [*HERE, (ROOT / name).parent]), path


def commands(text: str) -> Iterator[tuple[click.Command, str]]:
    """Yield each command of ours that a page shows, with the rest of its line."""
    joined = re.sub(r"\s*\\\n\s*", " ", text)
    for program, rest in re.findall(r"(?:^|[`$> (])(rltracer(?:-index|-viz)?) ([^`\n]*)", joined, re.M):
        rest = re.split(r" [|#&]|  +[a-z]", rest)[0]
        word = (rest.split() or [""])[0]
        if program != "rltracer":
            yield (index_command if program == "rltracer-index" else serve_command), rest
        elif word in COMMANDS:
            found = group.get_command(click.Context(group), word)
            assert found is not None
            yield found, rest


def options(command: click.Command) -> set[str]:
    """Return the options of a command and of those below it."""
    own = {option for parameter in command.params for option in parameter.opts + parameter.secondary_opts}
    below = command.commands.values() if isinstance(command, click.Group) else ()
    return own.union({"--help"}, *map(options, below))


@each_page
def test_options_exist(name: str) -> None:
    for command, rest in commands(TEXTS[name]):
        assert set(re.findall(r"(?<=\s)--?[a-z][\w-]*", rest)) <= options(command), rest


@each_page
def test_options_of_no_shown_command_exist(name: str) -> None:
    found = [*(group.get_command(click.Context(group), word) for word in COMMANDS), index_command, serve_command]
    known = OF_OTHERS.union(*(options(command) for command in found if command))
    spans = " ".join(re.findall(r"`([^`\n]+)`", prose(TEXTS[name])))
    assert set(re.findall(r"(?:^|(?<=\s))--[a-z][\w-]*", spans)) <= known


@each_page
def test_extras_and_targets_of_make_exist(name: str) -> None:
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    made = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
    for extras in re.findall(r"(?:datasette-rltracer|\.)\[([\w, -]+)\]'", TEXTS[name]):
        assert all(re.search(rf"^{extra.strip()} = \[", project, re.M) for extra in extras.split(",")), extras
    for line in re.findall(r"(?:^|`)make ([a-z][^`\n;A-Z#]*)", TEXTS[name], re.M):
        assert set(line.split()) <= made, line
