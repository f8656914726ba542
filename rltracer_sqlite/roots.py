"""Which folders and URLs an index may lead to: never those that the database alone names.

A database is input like any other, and may come from somebody else. So a run's folder is read only when it lies in a
configured root, in a folder that this user once indexed on this machine (`remembered_roots`), or in the database's own
folder. A remote run is read only when its URL, or one that it lies below, is configured or was once indexed by this
user.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from .arguments import can_be_path
from .remembered_roots import remembered_roots
from .sources.base import LocatorError, SourceError
from .sources.places import Root, place, real_place
from .sources.remote import RemoteRoot
from .sources.remote_requests import redacted

MAX_TOKENIZER = 64 << 20  # bytes of a tokenizer.json; the largest published ones have about half of that


class RootNotAllowed(LocatorError):
    """A run's folder that nobody on this machine has vouched for."""


class Roots:
    """The folders and URLs that may be read."""

    def __init__(self, allowed: Iterable[Root]) -> None:
        self.allowed = [real_place(path) for path in allowed]

    @classmethod
    def for_database(cls, database: str | Path | None, configured: str | Sequence[str] | None = None) -> Roots:
        """Return the roots for an index file: configured ones, else the user's list and the database's own folder."""
        if configured is not None:
            # One path written without the brackets of a list is one path, and not the root folder among its letters.
            listed = [configured] if isinstance(configured, str) else configured
            return cls(root for text in listed if (root := _configured(text)) is not None)
        own = [Path(database).resolve().parent] if database else []
        # A database that was saved to the home folder must not lead to all that is in it.
        home = Path(os.path.expanduser("~")).resolve()
        return cls([*remembered_roots(), *(folder for folder in own if folder not in (home, Path(folder.anchor)))])

    def check(self, root: str | Root) -> Root:
        """Return a run's folder, resolved. Raises RootNotAllowed where no allowed folder is it or holds it."""
        resolved = self.located(root)
        if self._holds(resolved):
            return resolved
        shown = redacted(str(root))
        raise RootNotAllowed(
            f"This index points to {shown!r}, which is not among the folders that may be read here. "
            f"If you trust it: rltracer roots add {shown!r}"
        )

    @staticmethod
    def located(root: str | Root) -> Root:
        """Return a run's folder, resolved, whether or not it may be read. Raises RootNotAllowed for what is none."""
        shown = redacted(str(root))
        if not can_be_path(str(root)):
            raise RootNotAllowed(f"This index points to {shown!r}, which is no folder.")
        try:
            return place(root).resolve()
        except SourceError as error:
            raise RootNotAllowed(f"This index points to a place that is not read: {error}") from None
        except (OSError, RuntimeError, TypeError, ValueError):
            raise RootNotAllowed(f"This index points to {shown!r}, which is no folder.") from None

    def check_tokenizer(self, place: str | Path) -> Path:
        """Return the tokenizer.json that an index names, by itself or by its folder, resolved.

        Raises LocatorError where it is in no allowed folder and not allowed itself, is missing or is too large.
        """
        try:
            file = tokenizer_file(Path(place))
            size = file.stat().st_size if file.is_file() else None
        except (OSError, RuntimeError, TypeError, ValueError):
            raise LocatorError(f"The tokenizer {str(place)!r} of this index cannot be read.") from None
        if not self._holds(file):
            raise RootNotAllowed(
                f"This index names the tokenizer {str(place)!r}, which is not among what may be read here. "
                f"If you trust it: rltracer roots add {str(file)!r}"
            )
        if size is None:
            raise LocatorError(f"There is no tokenizer.json at {str(place)!r} any more.")
        if size > MAX_TOKENIZER:
            raise LocatorError(f"The tokenizer {str(place)!r} has {size:,} bytes; at most {MAX_TOKENIZER:,} are read.")
        return file

    def _holds(self, resolved: Root) -> bool:
        is_remote = isinstance(resolved, RemoteRoot)
        comparable = (root for root in self.allowed if isinstance(root, RemoteRoot) == is_remote)
        return any(resolved == root or resolved.is_relative_to(root) for root in comparable)


def _configured(text: str) -> Root | None:
    try:
        root = place(text)
    except (SourceError, TypeError):
        return None  # allows nothing: what would have been read by it is refused in a sentence
    return root.expanduser() if isinstance(root, Path) else root


def tokenizer_file(place: Path) -> Path:
    """Return the tokenizer.json at a place, itself or its folder, with every link followed."""
    place = place.expanduser()
    return (place / "tokenizer.json" if place.is_dir() else place).resolve()


def allowed_tokenizer(place: str | None, roots: Roots) -> tuple[str | None, str | None]:
    """Return the tokenizer of a run as it may be used, or None and why not: an index is no more trusted in this."""
    try:
        return (str(roots.check_tokenizer(place)) if place else None), None
    except LocatorError as error:
        return None, str(error)
