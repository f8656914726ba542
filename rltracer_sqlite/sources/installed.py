"""The sources that are installed, in the order in which they are asked."""

from __future__ import annotations

from collections.abc import Iterator

GROUP = "rltracer.sources"
TABLES = "rltracer_sqlite.sources.table.built_in"
# In the order in which they are asked: a chat file is what is left when no system knows its own.
BUILT_IN = {
    "prime-rl": "rltracer_sqlite.sources.prime_rl:PrimeRLSource",
    "workflow": "rltracer_sqlite.sources.workflow:WorkflowSource",
    "verl": f"{TABLES}:verl",
    "trl": f"{TABLES}:trl",
    "ms-swift": f"{TABLES}:ms_swift",
    "nemo-rl": f"{TABLES}:nemo_rl",
    "nemo-gym": f"{TABLES}:nemo_gym",
    "skyrl": f"{TABLES}:skyrl",
    "areal": f"{TABLES}:areal",
    "roll": f"{TABLES}:roll",
    "open-instruct": f"{TABLES}:open_instruct",
    "chat": f"{TABLES}:chat",
}


def source_names() -> list[str]:
    """Return the names of the installed sources."""
    return [name for name, _ in references()]


def references() -> Iterator[tuple[str, str]]:
    """Yield the name of each source, and where it is: `module:attribute`."""
    yield from BUILT_IN.items()
    # Reading every installed package's entry points costs more than a query; only a foreign source needs it.
    from importlib.metadata import entry_points

    yield from ((entry.name, entry.value) for entry in entry_points(group=GROUP) if entry.name not in BUILT_IN)
