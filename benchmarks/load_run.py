"""The growing run of a load, and what its readers ask for."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from rltracer_sqlite.sample import write_sample

WORDS = ("triangle", "python", "zaun", "port")
PER_STEP = 400  # trajectories of a step of the growing run


class Kind(NamedTuple):
    """A kind of request: how often it is asked for, its addresses, and what stands in each of its answers."""

    weight: int
    address: Callable[[random.Random, Run], str]
    holds: bytes


# Mostly pages, as people do.
KINDS = {
    "overview": Kind(2, lambda chance, run: "/-/rltracer/load/", b'data-part="runs"'),
    "run": Kind(2, lambda chance, run: "/-/rltracer/load/run/1", b'data-part="steps"'),
    "step": Kind(6, lambda chance, run: f"/-/rltracer/load/step/1/{run.any_step(chance)}", b'data-part="groups"'),
    "group": Kind(
        6, lambda chance, run: f"/-/rltracer/load/group/{chance.randint(1, run.groups)}", b'data-part="trajectories"'
    ),
    "trajectory": Kind(
        10, lambda chance, run: f"/-/rltracer/load/trajectory/{chance.randint(1, run.first)}", b">conversation</b>"
    ),
    "record": Kind(
        2, lambda chance, run: f"/-/rltracer/load/trajectory/{chance.randint(1, run.first)}/record", b'{"id":"'
    ),
    "is there news": Kind(
        10, lambda chance, run: f"/-/rltracer/load/live/step/1/{run.any_step(chance)}", b'"trajectories": '
    ),
    "table": Kind(
        4, lambda chance, run: f"/load/trajectories?_sort_desc=reward&step={run.any_step(chance)}",
        b"sorted by reward descending",
    ),
    "facets": Kind(
        3, lambda chance, run: "/load/trajectories.json?_facet=env&_facet=stop_condition&_facet=step&_size=0",
        b'"name": "step", "type": "column"',
    ),
    "pass rates": Kind(
        2, lambda chance, run: "/load/prompt_groups?_facet_passrate=pass_rate&_size=20", b'id="facet-pass_rate"'
    ),
    "search": Kind(4, lambda chance, run: f"/-/rltracer/load/search?q={chance.choice(WORDS)}", b' can be searched'),
    "export": Kind(
        1, lambda chance, run: f"/load/trajectories.sft?step={run.any_step(chance)}&_per_prompt=2", b'{"messages":['
    ),
}  # fmt: skip


@dataclass
class Run:
    """The growing run: its folder, and how far it is."""

    folder: Path
    texts: list[str]
    written: int = 0
    first: int = 1  # trajectories that are in the index for sure
    groups: int = 1

    @property
    def step(self) -> int:
        """Return a step that has been read for sure."""
        return max((self.first - 1) // PER_STEP, 1)

    def any_step(self, chance: random.Random) -> int:
        """Return one of the steps that have been read for sure."""
        return chance.randint(1, self.step)

    def write(self, count: int) -> None:
        """Append trajectories, each with an id of its own."""
        for _ in range(count):
            text, step = self.texts[self.written % len(self.texts)], self.written // PER_STEP + 1
            file = self.folder / f"rollouts/step_{step}/train/all/traces.jsonl"
            file.parent.mkdir(parents=True, exist_ok=True)
            with file.open("a", encoding="utf-8") as stream:
                stream.write(text.replace("ID-OF-THIS-ONE", f"{self.written:032x}"))
            self.written += 1


def sample_texts(folder: Path) -> list[str]:
    """Return the lines of the sample run's training steps, with a mark where their ids were."""
    write_sample(folder)
    texts = []
    for file in sorted(folder.rglob("train/all/traces.jsonl")):
        for line in file.read_text(encoding="utf-8").splitlines(keepends=True):
            record = json.loads(line)
            for trace in record.get("traces") or [record]:
                line = line.replace(trace["id"], "ID-OF-THIS-ONE")
            if len(record.get("traces") or [record]) == 1:
                texts.append(line)
    return texts
