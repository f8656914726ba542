"""`rltracer roots`: the folders that an index may lead to on this machine."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import click

from . import CONTEXT, Group
from .places import RUN
from .say import say
from .visible import printable

if TYPE_CHECKING:
    from ..sources.places import Root


@click.group("roots", cls=Group, invoke_without_command=True, context_settings=CONTEXT)
@click.pass_context
def command(context: click.Context) -> None:
    """List, add, remove or prune the folders and URLs that an index may lead to.

    An index names the folder or the URL of each run, and an index may come from anybody. So a run is read only when
    its place is on this list, inside one that is, or in the folder of the index itself. Indexing a run adds it.
    """
    if context.invoked_subcommand is None:
        from ..remembered_roots import list_problem, remembered_roots, roots_file

        if problem := list_problem():
            raise click.ClickException(printable(problem))
        roots = remembered_roots()
        for root in roots:
            click.echo(printable(str(root)))
        if gone := [root for root in roots if _is_gone(root)]:
            those = "One of them is" if len(gone) == 1 else f"{len(gone):,} of them are"
            say(f"{those} not there now; rltracer roots prune takes what is gone off the list.", err=True)
        if not roots:
            say(f"No roots yet. The list is {roots_file()}.", err=True)


@command.command()
@click.argument("folder", type=RUN)
def add(folder: Root) -> None:
    """Trust FOLDER, which may be a URL, and all that is in it."""
    from ..remembered_roots import remember_root
    from ..sources import missing

    if isinstance(folder, Path) and not folder.exists():
        raise click.ClickException(printable(missing(folder)))
    _write(lambda: remember_root(folder))


@command.command()
@click.argument("folder", type=RUN)
def remove(folder: Root) -> None:
    """Trust FOLDER no more."""
    from ..remembered_roots import forget_root

    if not _write(lambda: forget_root(folder)):
        raise click.ClickException(f"{printable(str(folder))} is not on the list.")


@command.command()
def prune() -> None:
    """Take the folders that are not there any more off the list. URLs stay."""
    from ..remembered_roots import forget_root, remembered_roots

    for root in filter(_is_gone, remembered_roots()):
        _write(lambda root=root: forget_root(root))  # type: ignore[misc]
        click.echo(printable(str(root)))


def _is_gone(root: Root) -> bool:
    return isinstance(root, Path) and not root.exists()


def _write(change: Callable[[], bool | None]) -> bool | None:
    try:
        return change()
    except OSError as error:
        raise click.ClickException(printable(f"The list of roots cannot be written: {error}.")) from None
