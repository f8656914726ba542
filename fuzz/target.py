"""What a fuzz target is, and the registry of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module


@dataclass(frozen=True)
class Target:
    """One idea to fuzz: any bytes may be given to `check`, which raises where what must always hold does not."""

    name: str
    says: str  # what is checked, in a few words
    check: Callable[[bytes], None]
    seeds: Callable[[], list[bytes]]  # made by code: small inputs that are well formed, or nearly so
    kind: str = "bytes"  # how an input can be changed and stay meaningful: bytes, text, json, msgpack
    words: tuple[str, ...] = ()  # what such inputs are made of


MODULES = {
    "framing": "framing",
    "json": "framing",
    "cutting": "cutting",
    "traces": "traces",
    "growth": "traces",
    "zstd": "zstd",
    "micro-batches": "tokens",
    "token-exports": "tokens",
    "pickle": "torch",
    "torch": "torch",
    "templates": "templates",
    "tokenizer": "tokenizer",
    "tables": "tables",
    "rollouts": "rollouts",
    "mappings": "mappings",
    "guess": "mappings",
    "parquet": "parquet",
    "sqlite": "sqlite",
    "workflow": "tables",
    "locators": "locators",
    "preferences": "preferences",
    "search": "search",
    "urls": "urls",
    "index": "index",
    "shown": "shown",
}
"""The module below fuzz.targets that defines each target."""


def target_named(name: str) -> Target:
    """Return a target by its name. Raises KeyError."""
    found: dict[str, Target] = import_module(f"fuzz.targets.{MODULES[name]}").TARGETS
    return found[name]
