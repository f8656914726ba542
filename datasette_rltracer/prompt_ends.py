"""What the page of a prompt shows of its best and its worst answer, and the prompt itself, which their records have."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any

from rltracer_sqlite.index.lists import count_gone
from rltracer_sqlite.index.over_steps import End, ends_of
from rltracer_sqlite.index.queries import trajectory_row

from .addresses import compare_url, step_url, trajectory_url
from .bounds import ask
from .group_records import LAST_WORDS_LIMIT, read_records
from .group_rows import ending_words
from .prompt_chosen import Chosen
from .queries import bounded


async def ends_context(chosen: Chosen, groups: Sequence[Mapping[str, Any]], readable: Sequence[int]) -> dict[str, Any]:
    """Return the best and the worst trajectory with their last words, the prompt, and what cannot be opened."""
    ends: Sequence[End] = ends_of(groups) or ()
    where = chosen.where
    numbers = list(dict.fromkeys(end.trajectory for end in ends))

    def find(connection: sqlite3.Connection) -> tuple[list[dict[str, Any]], tuple[int, int, bool]]:
        rows = [bounded(row) for number in numbers if (row := trajectory_row(connection, number))]
        return rows, count_gone(connection, chosen.run, chosen.among, (), [chosen.prompt])

    rows, gone = await ask(*where, find)
    reads_words = sum(row["byte_length"] for row in rows) <= LAST_WORDS_LIMIT
    of_ends = await read_records(*where, None, numbers, reads_words)
    read = of_ends if of_ends.prompt is not None else await read_records(*where, None, readable, False)
    known = {row["id"]: row for row in rows}
    here = numbers[0] if numbers else readable[0] if readable else None
    return {
        "prompt": read.prompt,
        "expected": read.expected,
        "without_text": read.why,
        "here": lambda **query: trajectory_url(*where, here or 0, **query),
        "record_url": trajectory_url(*where, here, "/record") if here else None,
        "gone": gone,
        "is_level": len(ends) > 0 and ends[0].reward == ends[1].reward,
        "ends": [
            _end(chosen, which, end, known[end.trajectory], of_ends.words.get(end.trajectory))
            for which, end in zip(("best", "worst"), ends, strict=False)
            if end.trajectory in known
        ][: len(numbers)],
        "has_words": any(of_ends.words.values()),
        "compare_url": compare_url(*where, *numbers) if len(numbers) == 2 and ends[0].reward > ends[1].reward else None,
    }


def _end(chosen: Chosen, which: str, end: End, row: dict[str, Any], words: Any) -> dict[str, Any]:
    split = [] if end.split is None else [("split", end.split)]
    return {
        **row,
        "which": which,
        "same": end.same,
        "others": end.others,
        "url": trajectory_url(*chosen.where, end.trajectory),
        "step_url": step_url(*chosen.where, chosen.run, end.step, split),
        "ending": ending_words(row),
        "last_words": words,
    }
