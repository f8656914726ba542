"""Measure the reading pages on 25,000 trajectories with the Datasette that is installed: server time per page.

    python -m benchmarks.reading [FOLDER]

makes the index and a run with records of one megabyte in FOLDER first (default: a temporary one). The limits are those
of the project; a page beyond its limit is an error. What Datasette alone takes is the time of its page of settings,
which has the same frame and asks no database.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import tempfile
import time
from pathlib import Path

import datasette as installed
from datasette.app import Datasette

from tests.index_factory import make_large_index
from tests.indexing import index, value
from tests.layouts.records import episode, message, nodes_of, tool_call, trace

REPEATS = 40
WORDS = "The pump in bay seven runs hot after an hour, so look at the valve before the filter is changed again. "
MEGA = 1_000_000
LIMITS = {"large": 1000.0, "trajectory": 60.0, "group": 120.0, "step": 300.0}


def record(number: int, text_share: float, size: int = 1_000_000) -> str:
    """Return a record of about `size` bytes, of which `text_share` is text and the rest token arrays."""
    turns = 30
    text = WORDS * int(size * text_share / turns / len(WORDS) / 2)
    messages = [message("system", WORDS * 3), message("user", WORDS * 10)]
    for turn in range(turns):
        call = tool_call(f"c{turn}", "shell", {"command": WORDS[:60]})
        messages.append(message("assistant", text, reasoning_content=WORDS * 2, tool_calls=[call]))
        messages.append(message("tool", text, tool_call_id=f"c{turn}"))
    nodes = nodes_of(messages)
    tokens = int(size * (1 - text_share) / len(nodes) / 21)
    for node in nodes:
        node["token_ids"], node["mask"] = list(range(100_000, 100_000 + tokens)), [True] * tokens
        node["logprobs"] = [-0.1234567] * tokens
    found = trace(nodes=nodes, id=f"{number:032x}", rewards={"right": {"score": float(number % 2), "weight": 1.0}})
    return json.dumps(episode([found], env="bench", step=1, group=f"g{text_share}-{size}"))


def make(folder: Path) -> Path:
    """Write the index, if it is not there: two steps of 1,500 groups, and two groups of 16 long trajectories."""
    path = folder / "reading.sqlite"
    if path.exists():
        return path
    make_large_index(path, steps=2, prompts_per_step=1500, rollouts=8)
    for name, share, count, size in (
        ("tokens", 0.15, 16, MEGA),
        ("text", 0.98, 16, MEGA),
        ("large", 0.5, 1, 50 * MEGA),
    ):
        file = folder / name / "rollouts/step_1/train/all/traces.jsonl"
        file.parent.mkdir(parents=True)
        file.write_text("".join(f"{record(number, share, size)}\n" for number in range(count)))
        index(path, folder / name)
    return path


async def measure(path: Path) -> bool:
    """Print the time of each page and return whether each is within its limit."""
    datasette = Datasette([str(path)], settings={"suggest_facets": False, "max_returned_rows": 2000})
    base = f"/-/rltracer/{path.stem}"
    pages = {"Datasette alone": "/-/settings"}
    for name in ("tokens", "text"):
        run = value(path, "select id from runs where name = ?", (name,))
        first = value(path, "select min(id) from trajectories where run_id = ?", (run,))
        size = value(path, "select byte_length from trajectories where id = ?", (first,))
        group = value(path, "select prompt_group_id from trajectories where id = ?", (first,))
        pages[f"trajectory, {size / 1e6:.1f} MB, mostly {name}"] = f"{base}/trajectory/{first}"
        pages[f"trajectory, {size / 1e6:.1f} MB, mostly {name}, raw"] = f"{base}/trajectory/{first}?view=raw"
        pages[f"group of 16 x {size / 1e6:.1f} MB, mostly {name}"] = f"{base}/group/{group}"
    large = value(path, "select max(id) from trajectories")
    pages["large trajectory, 50 MB, half of it text"] = f"{base}/trajectory/{large}"
    pages["group of 8 without a file"] = f"{base}/group/1"
    pages["step of 1,500 groups, 200 shown"] = f"{base}/step/1/1"
    pages["step of 1,500 groups, all shown"] = f"{base}/step/1/1?_size=1500"
    pages["step, filtered and sorted"] = f"{base}/step/1/1?pass_rate__gt=0&pass_rate__lt=0.5&_sort=pass_rate"
    pages["run"] = f"{base}/run/1"
    pages["overview"] = base
    print(f"Datasette {installed.__version__}, {value(path, 'select count(*) from trajectories'):,} trajectories")
    print(f"{'median':>8} {'p95':>8} {'CPU':>8}   {'size':>9}  page")
    frame, ok = 0.0, True
    for name, url in pages.items():
        times, busy, size = await _times(datasette, url)
        median, late = statistics.median(times), sorted(times)[int(len(times) * 0.95)]
        frame = frame or median
        limit = next((limit for kind, limit in LIMITS.items() if name.startswith(kind)), None)
        ok = ok and (limit is None or late <= limit)
        share = f"  Datasette alone {frame / median:4.0%}" if name != "Datasette alone" else ""
        said = f"  limit {limit:.0f} ms{'' if late <= limit else ' EXCEEDED'}" if limit else ""
        print(f"{median:5.1f} ms {late:5.1f} ms {busy:5.1f} ms  {size:>9,}  {name}{share}{said}")
    return ok


async def _times(datasette: Datasette, url: str) -> tuple[list[float], float, int]:
    """Return the wall times, the mean processor time of one request, and the size of the page."""
    times, busy = [], 0.0
    for number in range(REPEATS + 3):
        begin, used = time.perf_counter(), time.process_time()
        response = await datasette.client.get(url)
        if response.status_code != 200:
            raise SystemExit(f"{url}: {response.status_code} {response.text[:300]}")
        if number >= 3:  # the first ones compile templates and open connections
            times.append(1000 * (time.perf_counter() - begin))
            busy += 1000 * (time.process_time() - used)
    return times, busy / REPEATS, len(response.content)


def main() -> None:
    """Make the index where it is missing, measure, and fail where a page is too slow."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = asked.folder or Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        if not asyncio.run(measure(make(folder))):
            raise SystemExit("a page is slower than its limit")


if __name__ == "__main__":
    main()
