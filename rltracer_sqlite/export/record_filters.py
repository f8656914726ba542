"""Filters by what no index holds: the records of the trajectories that are left are read, and those ruled out noted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .conditions import Condition, accepted
from .filters import FieldFilter, value_at_path
from .preferences import ExportPreferences
from .records import FILE_ORDER, LOCATED, Located, Placed, read_rows, records
from .runs import OpenRun, Progress
from .scope import CANDIDATES, parameters, staged
from .scratch import Scratch


def examine_records(
    scratch: Scratch,
    run: OpenRun,
    preferences: ExportPreferences,
    found: list[Condition],
    filters: Sequence[FieldFilter],
    progress: Progress | None = None,
) -> dict[str, bool]:
    """Note in `unfit` what these filters rule out; return for each of their paths whether a record has a value there.

    Nothing is told where no record is left to be read.
    """
    _, condition, values = staged(scratch, run, found)
    values = {**parameters(run, preferences), **values}
    where = f"where m.run = :number and g.fits and {accepted(preferences)} and {condition}"
    shards = "cross join source.shards s on s.id = t.shard_id"
    question = f"select {LOCATED} {CANDIDATES} {shards} {where} order by {FILE_ORDER}"
    cursor = scratch.copied("candidates", Located._fields, question, run, values)
    total = scratch.count("candidates")
    seen = dict.fromkeys((one.path for one in filters), False) if total else {}

    def unfit() -> Iterator[tuple[int, str, int]]:
        rows: Iterator[Placed] = ((Located(*row), None) for row in cursor)
        for number, ((place, _), record) in enumerate(read_rows(run, rows, records(run.source)), start=1):
            if progress is not None:
                progress("Reading records", number, total)
            for path in [path for path, recorded in seen.items() if not recorded]:
                seen[path] = value_at_path(record, path) is not None
            failed = next((one for one in filters if not one.accepts(record)), None)
            if failed is not None:
                yield run.number, str(failed), place.id

    scratch.insert("insert or ignore into unfit (run, stage, id) values (?, ?, ?)", unfit())
    return seen
