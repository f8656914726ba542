"""What makes two records the same one, and two prompts the same prompt."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.sources.base import Entry
from tests.indexing import rows, value
from tests.layouts import line, message, spaced_line, trace, v0_row
from tests.record_scans import FILE, SAID, loaded, scanned

# Identity


@pytest.mark.parametrize(
    "odd", ["a\0b", "x" * 201, "x" * 100_000, "é" * 300, "../../x", "'; drop table runs; --", "\u2028"]
)
def test_odd_ids_identify(tmp_path: Path, odd: str) -> None:
    lines = [line(trace(SAID, id=odd)), line(trace(SAID, id=odd + "y")), line(v0_row(SAID, rollout_id=odd + "z"))]
    loaded(tmp_path, *lines)
    os.utime(tmp_path / "run" / FILE, ns=(1, 1))
    assert len(loaded(tmp_path, *lines)) == 3
    assert value(tmp_path / "x.sqlite", "select max(length(uid)) from trajectories") <= 200


@pytest.mark.parametrize("recorded", [None, "", [], {}])
def test_a_record_without_an_id_is_known_by_its_place(tmp_path: Path, recorded: Any) -> None:
    assert len(loaded(tmp_path, line(trace(SAID, id=recorded)), line(trace(SAID, id=recorded)))) == 2


def test_an_id_that_stands_twice_is_counted_once_and_told(tmp_path: Path) -> None:
    same = [line(trace([message("user", text)], id="same")) for text in ("first", "second")]
    [trajectory] = loaded(tmp_path, *same)
    assert trajectory.messages[0]["content"] == "second"
    [(number, reason)] = rows(tmp_path / "x.sqlite", "select line, reason from problems")
    assert number == 1
    assert "stands again in a later line" in reason


@pytest.mark.parametrize("answer", ["é", {"a": [1, 2.5, None]}, ["x", "y"], 7])
def test_the_writing_of_a_ground_truth_does_not_tell_prompts_apart(tmp_path: Path, answer: Any) -> None:
    asked = {"answer": answer, "prompt": [message("user", "q")]}
    plain, noted = v0_row(SAID, **asked), v0_row(SAID, metrics={"m": float("nan")}, **asked)
    found = scanned(tmp_path, line(plain), spaced_line(plain), line(noted), spaced_line(noted))
    assert len({(part.prompt_key, part.task) for part in found if isinstance(part, Entry)}) == 1
