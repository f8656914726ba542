"""Full text search: building it, asking it, and finding the places that match."""

from __future__ import annotations

from .ask import Among, Match, count_searched, find, open_searchable, search_text
from .document import Document, Place, document
from .found import NEWEST_FIRST, found_rows, found_summary
from .hits import Hit, read_hits
from .matches import Snippet, best_snippet, find_matches
from .query import QueryError, full_text_query
from .refresh import TextRefreshed, refresh_text
from .tables import SEARCH_SETTINGS, TEXT_TABLE, has_text, remove_text, text_coverage

__all__ = [
    "NEWEST_FIRST",
    "SEARCH_SETTINGS",
    "TEXT_TABLE",
    "Among",
    "Document",
    "Hit",
    "Match",
    "Place",
    "QueryError",
    "Snippet",
    "TextRefreshed",
    "best_snippet",
    "count_searched",
    "document",
    "find",
    "find_matches",
    "found_rows",
    "found_summary",
    "full_text_query",
    "has_text",
    "open_searchable",
    "read_hits",
    "refresh_text",
    "remove_text",
    "search_text",
    "text_coverage",
]
