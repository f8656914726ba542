"""Parquet files that are damaged or made to do harm."""

from __future__ import annotations

from functools import cache

from rltracer_sqlite.sources import source_named
from rltracer_sqlite.sources.base import Shard
from rltracer_sqlite.sources.prime_rl import PrimeRLSource
from tests.table_rows import CONTEXT, write_parquet

from ..invariants import entries, scanned
from ..scratch import scratch
from ..target import Target
from .tables import check_load

MOST = 200


def check(data: bytes) -> None:
    """A file is read or refused in a sentence, and what was found in it loads as it was counted."""
    head, root = data[0] if data else 0, scratch("parquet")
    (root / "step_1.parquet").write_bytes(data[1:])
    if head % 3 == 2:
        early = Shard("step_1.parquet", "step_1.parquet", "parquet", 1, "train")
        source = PrimeRLSource()
        for entry in entries(scanned(source, root, early))[:MOST]:
            assert source.load(root, [place(entry, early)]).metadata["uid"] == entry.uid
        return
    table, shard = source_named(("trl", "chat")[head % 3]), Shard("step_1.parquet", "step_1.parquet", "parquet")
    for entry in entries(scanned(table, root, shard))[:MOST]:
        check_load(table, root, shard, entry)


@cache
def seeds() -> list[bytes]:
    """Return tables of texts, of messages and of token ids."""
    folder = scratch("parquet-seeds")
    said = [*CONTEXT, {"role": "assistant", "content": "42"}]
    tables = [
        [{"prompt": "q", "completion": "a", "step": 1, "advantage": 0.5, "accuracy": 1.0}] * 3,
        [{"messages": said, "reward": 0.5}, {"messages": said[:2], "reward": None}],
        [{"input_tokens": [1, 2], "output_tokens": [3], "advantages": 0.5, "rewards": 1.0, "problem_id": 3, "step": 1}],
    ]
    found = []
    for number, rows in enumerate(tables):
        write_parquet(folder / "a.parquet", rows)
        found += [bytes([head]) + (folder / "a.parquet").read_bytes() for head in {number, 1}]
    return found


from ..invariants import place_of as place  # noqa: E402

TARGETS = {"parquet": Target("parquet", "Parquet files, damaged or hostile", check, seeds, "bytes", ("PAR1",))}
