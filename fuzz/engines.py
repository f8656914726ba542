"""Two ways to run a target: atheris, guided by coverage, where it is installed; else changes from a fixed seed."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from random import Random

from .mutation import LONGEST, mutated
from .target import Target


@dataclass
class Ran:
    """What a run did. `crash` is the input that failed, if one did."""

    executions: int = 0
    seconds: float = 0.0
    crash: bytes | None = None
    error: BaseException | None = None


def inputs(target: Target, seed: int) -> Iterator[bytes]:
    """Yield the seeds, then changed ones without end; the same for the same seed."""
    seeds, random = target.seeds(), Random(f"{target.name} {seed}")
    yield from seeds
    while True:
        data = random.choice(seeds)
        if random.random() < 0.1:
            other = random.choice(seeds)
            data = data[: random.randrange(len(data) + 1)] + other[random.randrange(len(other) + 1) :]
        yield mutated(data, random, target.kind, target.words)


def run_random(target: Target, seconds: float | None, executions: int | None = None, seed: int = 0) -> Ran:
    """Run a target on random changes until the time or the number of executions is over, or until it fails."""
    ran, began = Ran(), time.monotonic()
    for data in inputs(target, seed):
        try:
            target.check(data)
        except Exception as error:
            ran.crash, ran.error = data, error
            break
        ran.executions += 1
        ran.seconds = time.monotonic() - began
        if (seconds is not None and ran.seconds >= seconds) or ran.executions == executions:
            break
    return ran


def run_atheris(target_name: str, corpus: Path, seconds: int, found: Path) -> None:
    """Run a target under atheris, which ends the process. Inputs that reach new code are kept in `corpus`."""
    import atheris

    with atheris.instrument_imports(include=["rltracer_sqlite", "datasette_rltracer"]):
        from .target import target_named

        target = target_named(target_name)
        for data in target.seeds():
            target.check(data)  # imports what the target needs while it can be instrumented
    corpus.mkdir(parents=True, exist_ok=True)
    found.mkdir(parents=True, exist_ok=True)
    for data in target.seeds():
        (corpus / sha256(data).hexdigest()[:16]).write_bytes(data)

    def custom(data: bytes, max_size: int, seed: int) -> bytes:
        random = Random(seed)
        if random.random() < 0.5:
            return bytes(atheris.Mutate(data, max_size))
        return mutated(data, random, target.kind, target.words)[:max_size]

    options = ["-timeout=60", "-rss_limit_mb=3000", f"-max_len={LONGEST}", "-print_final_stats=1"]
    arguments = [sys.argv[0], str(corpus), f"-max_total_time={seconds}", f"-artifact_prefix={found}/", *options]
    atheris.Setup(arguments, target.check, custom_mutator=custom)
    atheris.Fuzz()


def has_atheris() -> bool:
    """Say whether atheris is installed here."""
    from importlib.util import find_spec

    return find_spec("atheris") is not None
