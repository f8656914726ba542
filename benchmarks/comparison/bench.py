"""The cache folder of a comparison: environments, runs and indexes, each made when it is first needed."""

from __future__ import annotations

import os
import shutil
import sqlite3
from functools import cached_property
from pathlib import Path

from .environments import OURS, PEER, make_environment
from .processes import Command, measure
from .workloads import BIG, append_lines, flush, make_workload, restore, shards

PROGRAMS = Path(__file__).parents[1] / "programs"


class Bench:
    """Where everything lies, and how each side is called."""

    def __init__(self, folder: Path, checkout: Path, tokenizer: Path | None) -> None:
        self.folder, self.checkout, self.tokenizer = folder, checkout, tokenizer
        for name in ("environments", "runs", "work", "home"):
            (folder / name).mkdir(parents=True, exist_ok=True)
        self.environments: dict[str, Path] = {}
        self.indexed: set[tuple[str, str]] = set()

    @property
    def home(self) -> Path:
        """The home folder of the measured programs."""
        return self.folder / "home"

    def environment(self, name: str) -> Path:
        """Return the environment of a contender."""
        if name not in self.environments:
            self.environments[name] = make_environment(self.folder / "environments", name, self.checkout)
        return self.environments[name]

    def python(self, name: str) -> Path:
        """Return the interpreter of a contender's environment."""
        return self.environment(name) / "bin" / "python"

    def run(self, workload: str) -> Path:
        """Return the folder of a run."""
        return make_workload(workload, self.folder / "runs", self.python("generator"), self.tokenizer)

    def program(self, environment: str, name: str, *arguments: str | Path) -> list[str | Path]:
        """Return the call of one of our programs in an environment."""
        return [self.python(environment), PROGRAMS / f"{name}.py", *arguments]

    def database(self, side: str, workload: str) -> Path:
        """Return the place of a side's index of a run."""
        return self.folder / "work" / f"{side}-{workload}.sqlite"

    def fresh(self, side: str, workload: str) -> Path:
        """Remove a side's index of a run; return its place."""
        database = self.database(side, workload)
        for ending in ("", "-wal", "-shm", "-journal"):
            Path(f"{database}{ending}").unlink(missing_ok=True)
        self.indexed.discard((side, workload))
        return database

    def index_command(self, side: str, workload: str, *options: str) -> Command:
        """Return the command that indexes a run from nothing, and then says what the index holds."""
        run, database = self.run(workload), self.database(side, workload)
        if side == OURS:
            call = [self.environment(OURS) / "bin" / "rltracer-index", database, run, "--quiet", *options]
        else:
            call = self.program(PEER, "peer", "index", database, run)
        answer = self.program(OURS, "answers", "ours" if side == OURS else "peer", database)
        return Command(call, answer, before=lambda: self.fresh(side, workload))

    def indexed_database(self, side: str, workload: str) -> Path:
        """Return a side's index of a run, making it when this comparison has not made it yet."""
        if (side, workload) not in self.indexed:
            measure(self.index_command(side, workload), self.home)
            self.indexed.add((side, workload))
        return self.database(side, workload)

    def last_trajectory(self, side: str, workload: str) -> str:
        """Return the id of the trajectory whose record is the last in the run's last file."""
        database = self.indexed_database(side, workload)
        order = "t.step desc, t.line desc" if side == OURS else "step desc, row_i desc"
        table = "trajectories t" if side == OURS else "trajectories"
        condition = "t.split = 'train'" if side == OURS else "shard like '%/train/%'"
        connection = sqlite3.connect(database)
        (identity,) = connection.execute(f"select id from {table} where {condition} order by {order}").fetchone()
        connection.close()
        return str(identity)

    @cached_property
    def growing(self) -> GrowingFile:
        """The one file of the run `big`, to which records are appended."""
        return GrowingFile(self)


class GrowingFile:
    """A large file that gets ten more records, and is put back afterwards."""

    def __init__(self, bench: Bench) -> None:
        self.bench = bench
        self.path = shards(bench.run(BIG))[0]
        self.status = os.stat(self.path)
        # An evaluation's records: their ids are not in the file yet.
        self.more = next(path for path in shards(bench.run("M")) if "eval" in path.parts)

    def prepare(self, side: str) -> Path:
        """Put file and index back to what they were, append ten records, and return the index to bring up to date."""
        self.put_back()
        index = self.bench.indexed_database(side, BIG)
        grown = self.bench.fresh(side, "grown")
        shutil.copyfile(index, grown)
        append_lines(self.path, self.more, 10)
        for path in (grown, self.path):
            flush(path)
        return grown

    def put_back(self) -> None:
        """Cut the file to what it was, its time included."""
        restore(self.path, self.status)
