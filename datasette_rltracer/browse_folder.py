"""The folder that `rltracer serve` looks through, for each Datasette that is configured with one.

The configuration comes from whoever starts the server, and no address can lead out of the folder.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from datasette.utils.asgi import NotFound, Request

from rltracer_sqlite.browse import Found, find_runs, run_folder_path
from rltracer_sqlite.sources.base import SourceError

from .access import permitted_index
from .browse_config import browse_config, browsed_database
from .browse_reader import Reader

if TYPE_CHECKING:
    from datasette.app import Datasette

SHOWN = ("trajectories", "runs", "steps", "shards", "problems")


class Browser:
    """The folder that is looked through, what was found in it, and what reads its steps."""

    def __init__(self, index: Path, config: Mapping[str, Any]) -> None:
        self.root, self.database = Path(config["root"]).resolve(), str(config["database"])
        self.tokenizer = config.get("tokenizer")
        self.reader = Reader(index, self.root, self.tokenizer, bool(config.get("fts")))
        self._found: Found | None = None
        self._finding = asyncio.Lock()

    async def runs(self, again: bool = False) -> Found:
        """Return the runs below the folder as they were when somebody last looked; `again`: look now."""
        async with self._finding:
            if self._found is None or again:
                self._found = await asyncio.to_thread(find_runs, self.root)
            return self._found

    def folder(self, path: str) -> Path:
        """Return the folder, or the file, of a run. Raises NotFound for what is no run below the folder."""
        try:
            folder = self.root if self.root.is_file() else run_folder_path(self.root, path)
        except SourceError as error:
            raise NotFound(str(error)) from None
        return folder

    def place(self, path: str) -> Path:
        """Return where a run is, by its path as it was listed."""
        return self.root if self.root.is_file() else (self.root / path)

    def name(self, path: str) -> str:
        """Return what a run is called: its path, or the folder's name where it is the folder itself."""
        return self.root.name or str(self.root) if path == "." else path


_browsers: WeakKeyDictionary[Datasette, Browser] = WeakKeyDictionary()


async def permitted_browser(datasette: Datasette, request: Request) -> tuple[Browser, str]:
    """Return the browser and the name of its database, which has to be the one in the address.

    Raises NotFound or Forbidden.
    """
    database = await permitted_index(datasette, request, *SHOWN)
    browser = browser_of(datasette)
    if database != browser.database:
        raise NotFound("No runs are offered for this database.")
    return browser, database


def browser_of(datasette: Datasette) -> Browser:
    """Return the browser of a Datasette. Raises NotFound where none is configured."""
    if datasette not in _browsers:
        config, database = browse_config(datasette), browsed_database(datasette)
        index = datasette.databases[database].path if database is not None else None
        if config is None or index is None:
            raise NotFound("No runs are offered here.")
        _browsers[datasette] = Browser(Path(index), config)
    return _browsers[datasette]


async def run_id(datasette: Datasette, database: str, root: Path) -> int | None:
    """Return the number of the run at a place in the index, or None where it has none."""
    found = await datasette.databases[database].execute("select id from runs where root = :root", {"root": str(root)})
    return found.rows[0]["id"] if found.rows else None
