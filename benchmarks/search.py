"""Measure the full text: how fast it is built, and how fast a page of a search over 100,000 trajectories answers.

    python -m benchmarks.search [FOLDER]

makes a run of 100,000 trajectories in FOLDER first (default: a temporary one), out of the texts of Python's own
library, whose words are as many and as unequal as those of rollouts. What misses its limit is an error. Building is
compared with what SQLite alone does with such texts once they are decoded: as it comes, and without merging, as here.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sqlite3
import statistics
import sys
import sysconfig
import tempfile
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import datasette as installed
from datasette.app import Datasette

from rltracer_sqlite.index.database import finish_writing, open_for_writing
from rltracer_sqlite.roots import Roots
from rltracer_sqlite.search import refresh_text, remove_text
from rltracer_sqlite.search.characters import TOKENIZER
from rltracer_sqlite.search.record_texts import decode_record, record_text
from rltracer_sqlite.search.write import MERGING
from tests.indexing import index

TRAJECTORIES, STEPS = 100_000, 50
REPEATS = 10
LIMIT = 500.0  # milliseconds for a page of a search
BUILDS = 3
RATE = 50.0  # MB of text a second that are wanted of a build
SLOW = "  TOO SLOW"
SEARCHES = {
    "a rare phrase": '"the assertion failed loudly"',
    "a common phrase": '"in the"',
    "a common word": "self",
    "a beginning": "test*",
    "with a filter": "import&success=1&step__gte=25",
}


def texts() -> list[str]:
    """Return pieces of about 1,200 characters of Python's own library."""
    library = Path(sysconfig.get_paths()["stdlib"])
    pieces: list[str] = []
    for file in sorted(library.rglob("*.py")):
        whole = file.read_text(encoding="utf-8", errors="replace")
        pieces += [whole[start : start + 1200] for start in range(0, len(whole), 1200)]
    return pieces


def record(number: int, chance: random.Random, pieces: list[str]) -> str:
    """Return a trace of four messages and some 3,000 characters."""
    thought, result = chance.choice(pieces), chance.choice(pieces)
    if chance.random() < 0.05:
        result += " the assertion failed loudly"
    call = {"id": "c", "name": "bash", "arguments": json.dumps({"command": result[:120]})}
    said = [
        {"role": "user", "content": pieces[number // 8 % 250][:600]},
        {"role": "assistant", "reasoning_content": thought[:700], "tool_calls": [call]},
        {"role": "tool", "content": result, "tool_call_id": "c"},
        {"role": "assistant", "content": thought[700:]},
    ]
    nodes = [{"message": one, "parent": place - 1 if place else None} for place, one in enumerate(said)]
    score = float(chance.random() < 0.4)
    return json.dumps({"id": f"t{number}", "nodes": nodes, "rewards": {"ok": {"score": score, "weight": 1.0}}})


def make(folder: Path) -> Path:
    """Write the run and its index, if they are not there."""
    path = folder / "search.sqlite"
    if not path.exists():
        chance, pieces = random.Random(7), texts()
        chance.shuffle(pieces)
        for step in range(STEPS):
            file = folder / f"run/rollouts/step_{step}/train/all/traces.jsonl"
            file.parent.mkdir(parents=True, exist_ok=True)
            numbers = range(step * TRAJECTORIES // STEPS, (step + 1) * TRAJECTORIES // STEPS)
            file.write_text("".join(f"{record(number, chance, pieces)}\n" for number in numbers), encoding="utf-8")
        index(path, folder / "run")
    return path


def building(path: Path) -> int:
    """Print how fast the full text is built and SQLite alone takes such texts, in turn; return 1 where it is slow."""
    decoded = list(some_texts(path.parent))
    kinds = {"SQLite alone": {}, "SQLite alone, merging nothing": MERGING}
    ours, ratios = [], {kind: [] for kind in kinds}
    for _ in range(BUILDS):
        ours.append(build(path))
        for kind, options in kinds.items():
            ratios[kind].append(ours[-1] / floor(path.parent, decoded, options))
    rate = statistics.median(ours)
    print(f"built at {rate:.0f} MB of text a second ({min(ours):.0f} to {max(ours):.0f}){'' if rate >= RATE else SLOW}")
    for kind, found in ratios.items():
        print(f"  {statistics.median(found):.2f} of the rate of {kind} ({min(found):.2f} to {max(found):.2f})")
    return int(rate < RATE)


def build(path: Path) -> float:
    """Return how many megabytes of text a second the full text is built of."""
    connection = open_for_writing(path)
    remove_text(connection)
    cpu = time.process_time()
    done = refresh_text(connection, Roots([path.parent]))
    cpu = time.process_time() - cpu
    finish_writing(connection)
    size = done.bytes / 1e6
    print(f"{size:.0f} MB of text in {done.seconds:.1f} s, {size / cpu:.0f} MB a second of processors")
    return size / done.seconds


def floor(folder: Path, decoded: list[str], options: dict[str, int]) -> float:
    """Return how many megabytes a second SQLite alone takes of texts that are decoded."""
    target = folder / "floor.sqlite"
    target.unlink(missing_ok=True)
    with closing(sqlite3.connect(target)) as connection:
        connection.execute(f"create virtual table t using fts5(body, content='', tokenize=\"{TOKENIZER}\")")
        connection.executemany("insert into t (t, rank) values (?, ?)", options.items())
        started = time.perf_counter()
        connection.executemany("insert into t (body) values (?)", ((text,) for text in decoded))
        connection.commit()
        seconds = time.perf_counter() - started
    target.unlink()
    return sum(len(text.encode()) for text in decoded) / 1e6 / seconds


def some_texts(folder: Path) -> Iterator[str]:
    for file in sorted((folder / "run").rglob("traces.jsonl"))[:10]:
        for line in file.read_bytes().splitlines():
            decoded = decode_record(line)
            yield record_text(decoded, None, decoded.id, "") or "" if decoded else ""


async def pages(path: Path) -> int:
    """Print the median time of each search, and return how many took longer than they may."""
    datasette, late = Datasette([str(path)], settings={"suggest_facets": False}), 0
    for name, query in SEARCHES.items():
        times = []
        for _ in range(REPEATS):
            started = time.perf_counter()
            response = await datasette.client.get(f"/-/rltracer/search/search?q={query}")
            times.append((time.perf_counter() - started) * 1000)
            assert response.status_code == 200, response.text[:300]
        median = statistics.median(times)
        late += median > LIMIT
        print(f"{name:>16}: {median:6.1f} ms, slowest {max(times):6.1f} ms{SLOW if median > LIMIT else ''}")
    return late


def main(folder: Path) -> int:
    """Measure building and searching; return how many pages took longer than they may."""
    path = make(folder)
    print(f"SQLite {sqlite3.sqlite_version}, Datasette {installed.__version__}, {TRAJECTORIES:,} trajectories")
    return building(path) + asyncio.run(pages(path))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    if given := parser.parse_args().folder:
        given.mkdir(parents=True, exist_ok=True)
        sys.exit(main(given))
    with tempfile.TemporaryDirectory() as temporary:
        sys.exit(main(Path(temporary)))
