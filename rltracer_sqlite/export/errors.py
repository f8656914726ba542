"""What is raised for an export that cannot be made as asked."""

from __future__ import annotations


class ExportError(ValueError):
    """An export that cannot be made as asked, in a sentence that says what to do."""
