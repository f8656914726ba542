"""Training data out of runs: select in SQL, read only what was selected, write rows."""

from __future__ import annotations

from .errors import ExportError
from .exporter import ExportResult, FunnelStage, TraceDataExporter
from .filters import DifficultyFilter, FieldFilter
from .preferences import Acceptance, ExportMode, ExportPreferences, Order
from .runs import TableRows, TraceRunSpec

__all__ = [
    "Acceptance",
    "DifficultyFilter",
    "ExportError",
    "ExportMode",
    "ExportPreferences",
    "ExportResult",
    "FieldFilter",
    "FunnelStage",
    "Order",
    "TableRows",
    "TraceDataExporter",
    "TraceRunSpec",
]
