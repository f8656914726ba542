"""datadev's RL data: a JSONL file whose line number is what `task.data.idx` of a trace means."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..amounts import plural
from ..arguments import shown
from .errors import ExportError
from .rows import DATADEV_COLUMNS

CHUNK_BYTES = 1 << 20


class DatadevRows:
    """The rows of an RL data file by their number, counted from 0 over the lines that are not empty.

    Only the places of the wanted rows are kept. Raises ExportError.
    """

    def __init__(self, path: Path, wanted: list[int]) -> None:
        self.path = path
        if not path.is_file():
            raise ExportError(f"{path} does not exist: rl_data_path is the JSONL file that the prompts came from.")
        self.places: dict[int, tuple[int, int]] = {}
        self.count = 0
        remaining = set(wanted)
        for number, offset, length in self._lines():
            self.count = number + 1
            if number in remaining:
                self.places[number] = (offset, length)
        self.file = path.open("rb")

    def __enter__(self) -> DatadevRows:
        return self

    def __exit__(self, *error: object) -> None:
        self.file.close()

    def row(self, number: Any) -> dict[str, Any]:
        """Return a row, with all of its columns checked. Raises ExportError."""
        if isinstance(number, bool) or not isinstance(number, int) or number not in self.places:
            if number is None:
                raise ExportError(f"A selected trace has no task.data.idx, so its row in {self.path} is not known.")
            raise ExportError(f"task.data.idx is {shown(number)}, and {self.path} has {plural(self.count, 'row')}.")
        offset, length = self.places[number]
        self.file.seek(offset)
        where = f"row {number:,} of {self.path}"
        try:
            # Python's own reader keeps whole numbers of any size as they are.
            row = json.loads(self.file.read(length))
        except (ValueError, RecursionError) as error:
            raise ExportError(f"{where} is no JSON: {error}.") from None
        return _checked(row, where)

    def _lines(self) -> Iterator[tuple[int, int, int]]:
        """Yield (number, offset, length) of each line that is not empty."""
        number = offset = 0
        with self.path.open("rb", buffering=CHUNK_BYTES) as file:
            for line in file:
                if not line.isspace():
                    yield number, offset, len(line)
                    number += 1
                offset += len(line)


def _checked(row: Any, where: str) -> dict[str, Any]:
    if not isinstance(row, dict):
        raise ExportError(f"{where} is no JSON object.")
    missing = [column for column in DATADEV_COLUMNS if column not in row]
    if missing:
        raise ExportError(f"{where} has no {', '.join(missing)}; RL data needs {', '.join(DATADEV_COLUMNS)}.")
    prompt = row["prompt"]
    if not isinstance(prompt, list) or not all(isinstance(message, dict) for message in prompt):
        raise ExportError(f"The prompt of {where} is no list of messages.")
    if not isinstance(row["tools"], list):
        raise ExportError(f"The tools of {where} are no list.")
    return row
