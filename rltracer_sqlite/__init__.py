"""An index of locators over the rollouts of a reinforcement-learning run, and the way through it.

The names below are the library's public ones; each is imported when it is first used, so that a command
which needs one of them does not pay for the others.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

_PLACES = {
    "Acceptance": "export",
    "Adapter": "adapter",
    "DifficultyFilter": "export",
    "ExportError": "export",
    "ExportMode": "export",
    "ExportPreferences": "export",
    "FieldFilter": "export",
    "IndexedAdapter": "adapter",
    "LocatorError": "sources.base",
    "Match": "search",
    "PrimeRLAdapter": "adapter",
    "PromptGroup": "model",
    "QueryError": "search",
    "RLTracer": "model",
    "RolloutStep": "model",
    "SourceError": "sources.base",
    "TraceDataExporter": "export",
    "TraceRunSpec": "export",
    "Trajectory": "model",
    "TrajectoryRef": "model",
    "open_run": "adapter",
    "search_text": "search",
}
__all__ = sorted(_PLACES)


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f".{_PLACES[name]}", __name__), name)


def __dir__() -> list[str]:
    return __all__
