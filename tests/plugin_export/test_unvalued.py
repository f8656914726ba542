"""A filter that keeps what has no value, at a path where nothing has one: it keeps everything, and that is said."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

import pytest
from datasette.app import Datasette

from rltracer_sqlite import TraceDataExporter, TraceRunSpec
from rltracer_sqlite.export import ExportError, ExportPreferences
from rltracer_sqlite.export.filters import parse_field
from tests.commands import indexed, rltracer, sentence
from tests.layouts import append, message, trace
from tests.plugin.conftest import get
from tests.plugin.html import words

READ = "No record that the other conditions leave has a value at"
ALIKE = "metrics.turn. Similar: metrics.turns, metrics.return."
FIELDS = "nowhere. The table fields of the index lists what is recorded."
# What is asked of which run, and what is said of it.
NOTES = [
    ("metrics.turn=not recorded", None, f"{READ} {ALIKE}"),
    ("metrics.turn?<=8", None, f"{READ} {ALIKE}"),
    ("nowhere=a,not recorded", None, f"{READ} {FIELDS}"),
    ("nowhere?>=1", "one", f"{READ} {FIELDS}"),
    ("metrics.turns?<=8", "two", "No record has a value at metrics.turns."),
    ("error_type=not recorded", None, "No record has a value at error_type."),
    ("metrics.turns?<=8", None, None),
    ("metrics.turns=not recorded", None, None),
    ("long?=x", None, None),
]


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return an index of two runs, one of which has a metric, and has a text that is too long for a column."""
    folder = tmp_path_factory.mktemp("unvalued")
    for run, recorded in (("one", {"metrics": {"turns": 1.0, "return": 2.0}, "long": "x" * 9_000}), ("two", {})):
        said = [message("user", "Well?"), message("assistant", run)]
        append(folder / run / "rollouts/step_1/train/all/traces.jsonl", trace(said, id=run, reward=1.0, **recorded))
    assert indexed(folder / "x.sqlite", folder / "one", folder / "two").returncode == 0
    return folder / "x.sqlite"


@pytest.mark.parametrize(("asked", "run", "note"), NOTES)
def test_it_is_told_beside_the_funnel_and_in_the_summary(
    database: Path, tmp_path: Path, asked: str, run: str | None, note: str | None
) -> None:
    said = "" if note is None else f"Note: {note}\n"
    options = ["--run", run] if run else []
    for target in (["--dry-run"], ["-o", tmp_path / "rows.jsonl"]):
        done = rltracer("export", database, *options, "--field", asked, *target)
        assert (done.returncode, done.stderr) == (0, said)
    wanted = ExportPreferences(field_filters=(parse_field(asked),))
    told = TraceDataExporter(TraceRunSpec(database, run=run), wanted).inspect()
    assert told["row_notes"] == told["notes"] == ([] if note is None else [note])


@pytest.mark.asyncio
async def test_it_is_told_on_the_page(database: Path) -> None:
    asked = urlencode({"_preview": "sft", "_field": "metrics.turn?<=8"})
    page = words(await get(Datasette([str(database)]), f"/-/rltracer/x/export?{asked}"))
    assert f"{READ} {ALIKE}" in page


def test_a_value_that_is_needed_and_recorded_nowhere_is_refused_with_the_same_words(database: Path) -> None:
    both = ["--field", "metrics.turn?<=8", "--field", "metrics.turn>=1"]
    assert sentence(rltracer("export", database, "--dry-run", *both)) == f"{READ} {ALIKE}"


def test_a_run_of_which_nothing_is_read_does_not_hide_it(database: Path) -> None:
    specs = [TraceRunSpec(database, run="one", split="eval"), TraceRunSpec(database, run="two")]
    for asked in ("nowhere?<=8", "nowhere<=8"):
        exporter = TraceDataExporter(specs, ExportPreferences(field_filters=(parse_field(asked),)))
        if "?" in asked:
            assert exporter.inspect()["row_notes"] == [f"{READ} {FIELDS}"]
        else:
            with pytest.raises(ExportError, match=r"has a value at nowhere\."):
                exporter.inspect()
