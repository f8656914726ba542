"""What cannot be a run of an index: a folder of several runs, one inside of another run, or under the name of another.

It is refused with what to type instead, unless a folder is meant to be one run.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from ..amounts import listed

if TYPE_CHECKING:
    from ..browse.alike import Alike
    from ..index.queries import Run
    from ..sources.base import Source
    from ..sources.places import Root
    from .asked import Options

TELLS_ALL = {"prime-rl", "workflow"}  # sources that tell every file which they do not read
MOST_FOLDERS = 50  # of one folder that are looked into for runs of different systems


def refuse_merging(root: Root, options: Options, database: Path, source: Source, folders: Alike | None = None) -> None:
    """Raise SourceError for a folder of several runs, unless it is named as one or is one in the database already.

    `folders` are those of `alike_folders`, where they are known.
    """
    if options.name is None and not _is_known(root, database):
        refuse_several(root, ". With --name they are read as one run.", folders=folders)
        if options.mapping is None:
            refuse_mixed(root, source)


def _is_known(root: Root, database: Path) -> bool:
    """Say whether a run has been indexed before."""
    from ..sources.places import real_place

    return str(real_place(root)) in {known.root for known in _known(database)}


def _known(database: Path) -> list[Run]:
    """Return the runs of an index, none where there is none yet."""
    from ..index.database import IndexFileError, open_index
    from ..index.queries import runs

    try:
        connection = open_index(database)
    except IndexFileError:
        return []
    with closing(connection):
        return runs(connection)


def refuse_clash(root: Root, others: Sequence[Root], database: Path, name: str | None) -> None:
    """Raise SourceError where another run has the name, or a new run lies in another one or holds one.

    Other runs are those of the database, and the `others` that are about to be.
    """
    from ..index.runs import refuse_name, refuse_nested, run_name
    from ..sources.base import SourceError
    from ..sources.places import place, real_place

    known = _known(database)
    refuse_name(known, root, name)
    places = [(run_name(other), real_place(other)) for other in others]
    for run in known:
        with suppress(SourceError):  # a kind of place that this version does not read
            places.append((run.name, place(run.root)))
    refuse_nested(places, root)


def refuse_several(root: Root, otherwise: str = "", takes_several: bool = True, folders: Alike | None = None) -> None:
    """Raise SourceError where a folder of this machine holds several runs and is none itself.

    `otherwise` is a further sentence, which says what else can be done; `folders` are those of `alike_folders`, where
    they are known.
    """
    from ..sources.base import SourceError

    if not isinstance(root, Path) or not (found := runs_below(root, folders)):
        return
    each = _each(root, found) if takes_several else "one of them"
    count, below = places(root)
    raise SourceError(
        f"The folder {root} is no run, and holds {count:,} of them: {below}. Give {each} instead, or "
        f"look at all of them with: rltracer serve --browse-root {quote(str(root))}{otherwise}"
    )


def places(root: Path) -> tuple[int, str]:
    """Return how many runs a folder of this machine holds, and in words every place in it that holds something."""
    from ..browse.find import find_runs
    from ..browse.listing import places_in_words

    runs = find_runs(root).runs
    read, unread = [run for run in runs if not run.unread], [run for run in runs if run.unread]
    told = [places_in_words(root, read)] if read else []
    told += [f"what this version does not read yet: {places_in_words(root, unread)}"] if unread else []
    return len(read), "; ".join(told)


def beside_unread(root: Root) -> str:
    """Return a sentence on what a folder holds that this version does not read yet; "" for a file or where it is none.

    Why nothing is read there has been said of one file.
    """
    from ..browse.find import HERE, find_runs
    from ..browse.listing import places_in_words
    from ..sources.base import SourceError

    if not isinstance(root, Path) or not root.is_dir():
        return ""
    try:
        unread = [run for run in find_runs(root).runs if run.unread]
    except SourceError:
        return ""
    if sum(run.files for run in unread) < 2:
        return ""
    if [run.path for run in unread] == [HERE]:
        return f" The folder holds {unread[0].files:,} files of this kind."
    return f" The folder holds {places_in_words(root, unread)}."


def runs_below(root: Root, folders: Alike | None = None) -> list[str]:
    """Return the folders of the runs in a folder of this machine that is none itself; [] where it may well be one."""
    if not isinstance(root, Path) or not root.is_dir():
        return []
    from ..browse.find import several_runs

    return several_runs(root) or (folders or alike_folders(root)).runs


def joined(root: Root, found: Sequence[str]) -> str:
    """Return what is said of a folder that is followed as one run where others have come into it beside the first."""
    return (
        f"The folder {root} is followed as one run, and holds {len(found):,} of them by now: {listed(found)}. Their "
        f"trajectories count together; to tell them apart give {_each(root, found)} and another database instead."
    )


def _each(root: Root, found: Sequence[str]) -> str:
    """Return how a command is given all of these folders."""
    depths = {path.count("/") + 1 for path in found}
    return f"{quote(str(root))}/{'/'.join('*' * depths.pop())}" if len(depths) == 1 else "their folders"


def doubt(root: Root, folders: Alike) -> str | None:
    """Return a sentence where a folder is read as one run, and may be several by its folders; None elsewhere."""
    if not folders.doubtful:
        return None
    return (
        f"The folder {root} is read as one run, although {' and '.join(folders.doubtful)} hold files of the same steps."
        " If they are runs of their own, give them instead."
    )


def alike_folders(root: Root) -> Alike:
    """Return the folders in one of this machine that hold files of the same steps, and are called by nothing else."""
    from ..browse.alike import Alike, alike
    from ..browse.conventions import named_by_step
    from ..sources import source_for
    from ..sources.base import SourceError

    if not isinstance(root, Path) or not root.is_dir():
        return Alike([], [])
    found = alike(root)
    try:
        is_meant = any(found) and source_for(root).name in named_by_step()
    except SourceError:
        is_meant = False
    return found if is_meant else Alike([], [])


def refuse_mixed(root: Root, source: Source) -> None:
    """Raise SourceError where the folders in a folder hold runs of different systems: `source` would read one's only.

    Chats are of no system: a run may well have such files beside its own. The sources that tell every file which they
    do not read, as that of prime-rl, are not asked: looking into each folder costs more than their start.
    """
    if not isinstance(root, Path) or not root.is_dir() or source.name in TELLS_ALL:
        return
    from ..sources.base import SourceError

    systems = _systems(root)
    if len(set(systems.values())) < 2:
        return
    folder = quote(str(root))
    raise SourceError(
        f"The folder {root} holds runs of several systems: {places(root)[1]}. Give {folder}/* instead, or "
        f"look at all of them with: rltracer serve --browse-root {folder}. With --name what {source.name} reads is one "
        "run."
    )


def _systems(root: Path) -> dict[str, str]:
    """Return the name of each folder in a folder that holds a run of a known system, with the system."""
    from ..sources import source_for
    from ..sources.base import SourceError
    from ..sources.places import SKIPPED_FOLDERS

    found: dict[str, str] = {}
    for folder in sorted(root.iterdir())[:MOST_FOLDERS]:
        if folder.name in SKIPPED_FOLDERS or folder.is_symlink() or not folder.is_dir():
            continue
        try:
            system = source_for(folder).name
        except (SourceError, OSError):
            continue
        if system != "chat":
            found[folder.name] = system
    return found
