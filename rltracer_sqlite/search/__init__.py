"""Full text search: building it, asking it, and finding the places that match.

`refresh` builds it: `jobs` says what there is to read, `ahead`, `shard_texts` and `record_texts` read it, and `write`
takes it in; `characters` of scripts without spaces are words of their own. A `query` within a `scope` gives what is
`found`, and as `hits`, `snippets` and `best` where it stands.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .best import Snippet, best_snippet
from .document import Document, Place, document
from .found import NEWEST_FIRST, count_found, find, found_rows, found_summary, searched
from .hits import Hit, read_hits
from .matches import Match, Matches, search_text
from .query import QueryError, as_phrase, full_text_query
from .scope import SearchScope
from .snippets import find_matches
from .tables import SEARCH_SETTINGS, TEXT_TABLE, has_old_text, has_text, open_searchable, remove_text, text_coverage

if TYPE_CHECKING:
    from .refresh import TextRefreshed, refresh_text

BUILDING = ("TextRefreshed", "refresh_text")

__all__ = [
    "NEWEST_FIRST",
    "SEARCH_SETTINGS",
    "TEXT_TABLE",
    "Document",
    "Hit",
    "Match",
    "Matches",
    "Place",
    "QueryError",
    "SearchScope",
    "Snippet",
    "TextRefreshed",
    "as_phrase",
    "best_snippet",
    "count_found",
    "document",
    "find",
    "find_matches",
    "found_rows",
    "found_summary",
    "full_text_query",
    "has_old_text",
    "has_text",
    "open_searchable",
    "read_hits",
    "refresh_text",
    "remove_text",
    "search_text",
    "searched",
    "text_coverage",
]


def __getattr__(name: str) -> Any:
    # What builds the full text costs as much to import as all the rest, and whoever searches does not need it.
    if name not in BUILDING:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(".refresh", __name__), name)
