"""Load a server as fifty readers would, while `--watch` indexes a growing run: errors, times and memory.

    python -m benchmarks.load --minutes 10 --out load.json

Makes a run out of the texts of the sample, watches it with `rltracer-index --watch --fts`, serves the index with the
installed Datasette, and sends requests of every kind over as many connections as there are readers, one after the
other and without a pause. One more reader begins an export and then reads no more. Needs Linux for the memory.
The exit code is 1 where a request failed, or its answer lacks what was asked for. A refusal (429 or 503) is counted by
itself: it is an answer.
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path

from benchmarks.load_report import Measured, as_text, described
from benchmarks.load_run import KINDS, Run, sample_texts
from rltracer_sqlite.browse.process import safe_environment

REFUSED = (429, 503)
STALLED = "/load/trajectories.sft?_per_prompt=all"
WATCH = "from rltracer_sqlite.cli.index import main; main()"
TIMEOUT = 60.0  # seconds until an answer that has not come is an error


def main() -> None:
    """Run the load and print what was measured."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--readers", type=int, default=50)
    parser.add_argument("--trajectories", type=int, default=4_000, help="in the run when the load begins")
    parser.add_argument("--rate", type=int, default=20, help="trajectories that are written each second")
    parser.add_argument("--out", type=Path, help="a file for the numbers as JSON")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="rltracer-load-") as folder:
        measured = load(Path(folder), options)
    report = described(measured, options)
    print(as_text(report, KINDS))
    if options.out:
        options.out.write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
    sys.exit(1 if report["errors"] else 0)


def load(folder: Path, options: argparse.Namespace) -> Measured:
    """Make the run, watch it, serve it and read it for as long as was asked for."""
    run, measured, database = Run(folder / "run", sample_texts(folder / "sample")), Measured(), folder / "load.sqlite"
    run.write(options.trajectories)
    watch = [sys.executable, "-c", WATCH, str(database), str(run.folder), "--watch", "--fts", "--quiet"]
    with process(watch, folder / "watch.log") as watcher:
        until(lambda: in_index(database, "trajectories_text_digests") >= options.trajectories, watcher)
        run.first, run.groups = in_index(database, "trajectories"), in_index(database, "prompt_groups")
        port = free_port()
        serve = [sys.executable, "-m", "datasette", "serve", str(database), "--port", str(port)]
        with process([*serve, "--setting", "suggest_facets", "off"], folder / "serve.log") as server:
            until(lambda: answers(port), server)
            end = time.monotonic() + options.minutes * 60
            others = [
                threading.Thread(target=keep_writing, args=(run, options.rate, database, measured, end)),
                threading.Thread(
                    target=keep_weighing, args=({"server": server, "watcher": watcher}, database, measured, end)
                ),
                threading.Thread(target=stall, args=(port, measured, end)),
            ]
            readers = [
                threading.Thread(target=keep_reading, args=(port, run, measured, number, end))
                for number in range(options.readers)
            ]
            for thread in [*others, *readers]:
                thread.start()
            for thread in [*others, *readers]:
                thread.join()
            for name, one in (("server", server), ("watcher", watcher)):
                if one.poll() is not None:
                    measured.errors[name][f"ended with exit code {one.returncode}"] += 1
    for name in ("watch", "serve"):
        if "Traceback" in (text := (folder / f"{name}.log").read_text(errors="replace")):
            measured.errors[name][text[text.index("Traceback") :][-400:]] += 1
    return measured


def keep_reading(port: int, run: Run, measured: Measured, number: int, end: float) -> None:
    """Send one request after the other."""
    chance = random.Random(number)
    kinds, weights = list(KINDS), [kind.weight for kind in KINDS.values()]
    connection = HTTPConnection("127.0.0.1", port, timeout=TIMEOUT)
    while time.monotonic() < end:
        [kind] = chance.choices(kinds, weights)
        address, started = KINDS[kind].address(chance, run), time.perf_counter()
        try:
            connection.request("GET", address)
            answer = connection.getresponse()
            body = answer.read()
        except (OSError, HTTPException) as error:
            measured.errors[kind][f"{type(error).__name__}: {error} at {address}"] += 1
            connection.close()
            continue
        if answer.status in REFUSED:
            measured.refused[kind] += 1
        elif answer.status != 200:
            measured.errors[kind][f"{answer.status} at {address}: {body[:200]!r}"] += 1
        elif KINDS[kind].holds not in body:
            measured.errors[kind][f"{KINDS[kind].holds!r} is not in {address}"] += 1
        else:
            measured.seconds[kind].append(time.perf_counter() - started)
    connection.close()


def keep_writing(run: Run, rate: int, database: Path, measured: Measured, end: float) -> None:
    """Write so many trajectories each second, and now and then wait until the last one is in the index."""
    while time.monotonic() < end:
        started = time.monotonic()
        run.write(rate)
        while (known := in_index(database, "trajectories")) < run.written and time.monotonic() < end:
            time.sleep(0.05)
        measured.lags.append(time.monotonic() - started)
        run.first = known
        time.sleep(max(0.0, 1.0 - (time.monotonic() - started)))


def keep_weighing(
    processes: dict[str, subprocess.Popen[bytes]], database: Path, measured: Measured, end: float
) -> None:
    """Note the memory of processes, and the size of the database's write-ahead log, every second."""
    began = time.monotonic()
    while time.monotonic() < end:
        for name, one in processes.items():
            measured.memory[name].append(((time.monotonic() - began) / 60, resident(one.pid)))
        with suppress(OSError):
            measured.largest_log = max(measured.largest_log, Path(f"{database}-wal").stat().st_size)
        time.sleep(1.0)


def stall(port: int, measured: Measured, end: float) -> None:
    """Begin an export of everything, read a little and then no more; note whether the server ends it."""
    began = time.monotonic()
    with closing(socket.create_connection(("127.0.0.1", port))) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.sendall(f"GET {STALLED} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
        connection.recv(1000)
        while time.monotonic() < end:
            time.sleep(1.0)
            if has_ended(port, connection):
                measured.stalled = f"ended by the server after {time.monotonic() - began:.0f} s"
                return


def has_ended(port: int, connection: socket.socket) -> bool:
    """Say whether the other side has given a connection up, without reading from it."""
    local = connection.getsockname()[1]
    # State 01 is an established connection; see proc(5).
    for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
        parts = line.split()
        if int(parts[1].split(":")[1], 16) == port and int(parts[2].split(":")[1], 16) == local:
            return parts[3] != "01"
    return True


@contextmanager
def process(command: list[str], log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a command; it is asked to stop at the end."""
    with log.open("wb") as output:
        started = subprocess.Popen(command, stdout=output, stderr=output, env=safe_environment())
        try:
            yield started
        finally:
            started.terminate()
            started.wait()


def until(condition: Callable[[], bool], watched: subprocess.Popen[bytes]) -> None:
    """Wait for a condition as long as a process lives."""
    while not condition():
        if watched.poll() is not None:
            raise SystemExit(f"{watched.args!r} ended with exit code {watched.returncode}.")
        time.sleep(0.1)


def in_index(database: Path, table: str) -> int:
    """Return the number of rows of a table; 0 where it is not there yet."""
    try:
        with closing(sqlite3.connect(f"file:{database}?mode=ro", uri=True)) as connection:
            return int(connection.execute(f"select count(*) from {table}").fetchone()[0])
    except sqlite3.OperationalError:
        return 0


def answers(port: int) -> bool:
    """Say whether the server is there."""
    with closing(socket.socket()) as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def free_port() -> int:
    """Return a port that nobody listens on."""
    with closing(socket.socket()) as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def resident(pid: int) -> float:
    """Return the megabytes of memory that a process has now; 0 where it has ended."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1000 for line in status.splitlines() if line.startswith("VmRSS")), 0.0)


if __name__ == "__main__":
    main()
