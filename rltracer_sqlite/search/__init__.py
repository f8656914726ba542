"""Full text search: building it, asking it, and finding the places that match."""

from __future__ import annotations

from .document import Document, Place, document
from .matches import Snippet, best_snippet, find_matches
from .query import QueryError, full_text_query
from .refresh import TextRefreshed, refresh_text
from .tables import SEARCH_SETTINGS, TEXT_TABLE, has_text, remove_text, text_coverage

__all__ = [
    "SEARCH_SETTINGS",
    "TEXT_TABLE",
    "Document",
    "Place",
    "QueryError",
    "Snippet",
    "TextRefreshed",
    "best_snippet",
    "document",
    "find_matches",
    "full_text_query",
    "has_text",
    "refresh_text",
    "remove_text",
    "text_coverage",
]
