"""Lines among or instead of records that are none: told once, or a file put aside."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.sources.base import Entry, NotRollouts, Position, Problem, Shard
from tests.layouts import line, trace
from tests.record_scans import SAID, scanned

# Lines that are no records

UNKNOWN = Shard("notes.jsonl", "notes.jsonl", "file")


def test_lines_that_are_no_records_are_told_once(tmp_path: Path) -> None:
    notes = [line({"note": number}) for number in range(3)]
    found = scanned(tmp_path, line(trace(SAID)), *notes, b"\n", line(trace(SAID)))
    [problem] = [part for part in found if isinstance(part, Problem)]
    assert (problem.line, problem.reason) == (2, "3 lines that are no rollout records (the first: keys: note)")
    assert len([part for part in found if isinstance(part, Entry)]) == 2


@pytest.mark.parametrize("header", [{"version": 1}, {"name": "x", "value": 5}])
def test_a_header_does_not_hide_the_records_behind_it(tmp_path: Path, header: Any) -> None:
    found = scanned(tmp_path, line(header), line(trace(SAID)), shard=UNKNOWN)
    assert [type(part) for part in found] == [Problem, Entry, Position]


@pytest.mark.parametrize("count", [1, 99, 100, 5000])
def test_a_file_of_other_lines_is_put_aside_after_its_first_lines(tmp_path: Path, count: int) -> None:
    with pytest.raises(NotRollouts, match="keys: text"):
        scanned(tmp_path, *[line({"text": "x"})] * count, shard=UNKNOWN)


@pytest.mark.parametrize("blank", [b"\n", b"\r\n", b"  \t\n", b"\n\n\n"])
def test_blank_lines_count_as_lines_only(tmp_path: Path, blank: bytes) -> None:
    found = scanned(tmp_path, blank, line(trace(SAID)).rstrip(b"\n") + b"\r\n")
    assert [part.line for part in found if isinstance(part, Entry)] == [blank.count(b"\n") + 1]
