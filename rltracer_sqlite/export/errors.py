"""What is raised for an export that cannot be made as asked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


class ExportError(ValueError):
    """An export that cannot be made as asked, in a sentence that says what to do.

    `funnel` are the stages of a selection that has too little for its target, as `inspect` has them.
    """

    def __init__(self, message: str, funnel: Sequence[Mapping[str, Any]] = ()) -> None:
        super().__init__(message)
        self.funnel = funnel
