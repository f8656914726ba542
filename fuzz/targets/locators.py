"""Locators as a hostile index may hold them, over a run with a file of every kind."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from rltracer_sqlite.sources import source_named
from rltracer_sqlite.sources.base import Locator, LocatorError, NotRollouts, Source
from tests.layouts import append, message, trace
from tests.layouts.seekable import seal
from tests.token_layouts import export_line, micro_batch, question, write_bin, write_torch

from ..scratch import scratch
from ..target import Target

SOURCES = ("prime-rl", "chat", "verl", "workflow")
SECRET = "a text outside of the run"
FIELDS = ("uid", "path", "layout", "byte_offset", "byte_length", "item", "line", "producer")


@cache
def run() -> Path:
    """Write a run, with a secret and a link to it beside and inside of it, and return its folder."""
    outside = scratch("locators")
    root = outside / "run"
    record = trace([message("user", "q"), message("assistant", "a")], id="a", rewards={"r": 1.0})
    append(root / "a.jsonl", record, record)
    append(root / "b.jsonl", record)
    seal(root / "b.jsonl", 100)
    write_bin(root / "rank_0.bin", [micro_batch("g20", [question("4"), question("5")])])
    write_torch(root / "rank_0.pt", [[question("4")]])
    (root / "rank_0.jsonl").write_text(json.dumps(export_line(question("4"))) + "\n")
    (root / "c.json").write_text('[{"prompt":"q","completion":"a","reward":1}]')
    (root / "folder").mkdir()
    (outside / "secret.jsonl").write_text(json.dumps(trace([message("user", SECRET)], id="a")) + "\n")
    (root / "link.jsonl").symlink_to(outside / "secret.jsonl")
    return root


def check(data: bytes) -> None:
    """Any locator gives a trajectory of the run, or a sentence."""
    try:
        head, several = data[0], json.loads(data[1:])
    except (ValueError, IndexError, RecursionError):
        return
    values = [one for one in several if isinstance(one, dict)] if isinstance(several, list) else []
    if not values:
        return
    locators = [_locator(one) for one in values[:4]]
    source: Source = source_named(SOURCES[head % len(SOURCES)])
    try:
        shown = source.load(run(), locators)
        _ = shown.branch_tokens
    except (LocatorError, NotRollouts) as error:
        assert str(error)
        return
    assert SECRET not in str(shown.messages) + str(shown.record)
    assert shown.metadata["uid"] == locators[0].uid


def _locator(given: dict[str, Any]) -> Locator:
    # The index's columns have types: SQLite would not hold a list. A strict table makes these of any value.
    numbers = {"byte_offset": 0, "byte_length": 1, "item": None, "line": None}
    texts = {"uid": "a", "path": "a.jsonl", "layout": "traces", "producer": None}
    found: dict[str, Any] = {}
    for name, default in numbers.items():
        value = given.get(name, default)
        found[name] = value if type(value) is int and abs(value) < 2**63 else default
    for name, text in texts.items():
        value = given.get(name, text)
        found[name] = value.encode("utf-8", "replace").decode() if isinstance(value, str) else text
    return Locator(**found)


@cache
def seeds() -> list[bytes]:
    """Return the locators of everything in the run, and some that lead out of it."""
    places = [
        {"path": "a.jsonl", "layout": "traces"}, {"path": "b.jsonl", "layout": "traces"},
        {"path": "rank_0.bin", "layout": "micro_batches"},
        {"path": "rank_0.pt", "layout": "micro_batches"}, {"path": "rank_0.jsonl", "layout": "token_exports"},
        {"path": "c.json", "layout": "json"}, {"path": "link.jsonl", "layout": "traces"},
        {"path": "../secret.jsonl", "layout": "traces"},
        {"path": "folder", "layout": "traces"}, {"path": "a.jsonl", "layout": "parquet", "line": 1},
        {"path": "a.jsonl", "layout": "sqlite", "line": 1}, {"path": "/etc/passwd", "layout": "traces"},
    ]  # fmt: skip
    length = (run() / "a.jsonl").stat().st_size // 2 - 1
    found = []
    for number, place in enumerate(places):
        full = {"uid": "a", "byte_offset": 0, "byte_length": length, "item": None, "line": 1, "producer": None, **place}
        found.append(bytes([number % len(SOURCES)]) + json.dumps([full]).encode())
        found.append(
            b"\0" + json.dumps([full, {**full, "path": "rank_0.bin", "producer": "batches", "item": 0}]).encode()
        )
    return found + [b"\0" + json.dumps([_whole("rank_0.bin", item)]).encode() for item in (0, 1, 2, None)]


def _whole(name: str, item: int | None) -> dict[str, Any]:
    size = (run() / name).stat().st_size
    return {
        "uid": f"{name}@1.{item}",
        "path": name,
        "layout": "micro_batches",
        "byte_offset": 1,
        "byte_length": size - 1,
        "item": item,
    }


WORDS = (
    *FIELDS,
    "a.jsonl",
    "b.jsonl",
    "rank_0.bin",
    "rank_0.pt",
    "../secret.jsonl",
    "link.jsonl",
    "parquet",
    "sqlite",
    "json",
    "lines",
    "columns",
    "a.jsonl@0",
)
TARGETS = {"locators": Target("locators", "locators of a hostile index", check, seeds, "json", WORDS)}
