"""An index of locators over the rollouts of a reinforcement-learning run, and the way through it.

`RLTracer("run.sqlite")`, or the path of a run, leads to its steps, prompt groups and trajectories; `list_runs` lists
the runs of an index, `search_text` finds what messages say, and `TraceDataExporter` writes training data.

The names below are the library's public ones; each is imported when it is first used, so that a command
which needs one of them does not pay for the others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:  # for editors and type checkers, which cannot see what __getattr__ gives
    from .adapter import Adapter as Adapter
    from .adapter import IndexedAdapter as IndexedAdapter
    from .adapter import PrimeRLAdapter as PrimeRLAdapter
    from .adapter import open_run as open_run
    from .export import Acceptance as Acceptance
    from .export import DifficultyFilter as DifficultyFilter
    from .export import ExportError as ExportError
    from .export import ExportMode as ExportMode
    from .export import ExportPreferences as ExportPreferences
    from .export import ExportResult as ExportResult
    from .export import FieldFilter as FieldFilter
    from .export import FunnelStage as FunnelStage
    from .export import Order as Order
    from .export import TraceDataExporter as TraceDataExporter
    from .export import TraceRunSpec as TraceRunSpec
    from .groups import Prompt as Prompt
    from .groups import PromptGroup as PromptGroup
    from .groups import TrajectoryRef as TrajectoryRef
    from .index.database import IndexFileError as IndexFileError
    from .model import RLTracer as RLTracer
    from .model import RolloutStep as RolloutStep
    from .runs import IndexedRun as IndexedRun
    from .runs import WhichRunError as WhichRunError
    from .runs import list_runs as list_runs
    from .search import Match as Match
    from .search import Matches as Matches
    from .search import QueryError as QueryError
    from .search import search_text as search_text
    from .sources.base import LocatorError as LocatorError
    from .sources.base import SourceError as SourceError
    from .trajectory import Trajectory as Trajectory

_NAMES = {
    "adapter": ("Adapter", "IndexedAdapter", "PrimeRLAdapter", "open_run"),
    "export": (
        *("Acceptance", "DifficultyFilter", "ExportError", "ExportMode", "ExportPreferences", "ExportResult"),
        *("FieldFilter", "FunnelStage", "Order", "TraceDataExporter", "TraceRunSpec"),
    ),
    "groups": ("Prompt", "PromptGroup", "TrajectoryRef"),
    "index.database": ("IndexFileError",),
    "model": ("RLTracer", "RolloutStep"),
    "runs": ("IndexedRun", "WhichRunError", "list_runs"),
    "search": ("Match", "Matches", "QueryError", "search_text"),
    "sources.base": ("LocatorError", "SourceError"),
    "trajectory": ("Trajectory",),
}
_PLACES = {name: module for module, names in _NAMES.items() for name in names}
__all__ = sorted(_PLACES)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_PLACES[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
