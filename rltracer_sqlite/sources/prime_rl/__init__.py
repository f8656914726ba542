"""The source for the files of prime-rl and verifiers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..base import START, Locator, NotRollouts, Position, Scanned, Shard, SourceError
from .layout import find_shards

if TYPE_CHECKING:
    from ...model import Trajectory


class PrimeRLSource:
    """prime-rl's rollouts in every layout it has had, and verifiers' evaluations."""

    name = "prime-rl"

    def __init__(self, tokenizer: str | None = None) -> None:
        self.tokenizer = tokenizer

    def recognises(self, root: Path) -> bool:
        """Say whether a file lies in one of the known layouts, or begins with a known record."""
        shards = list(self.shards(root))
        return any(shard.layout != "file" for shard in shards) or any(self._is_rollouts(root, s) for s in shards)

    def _is_rollouts(self, root: Path, shard: Shard) -> bool:
        try:
            for found in self.scan(root, shard):
                if not isinstance(found, Position):
                    return True
        except (NotRollouts, SourceError, OSError):
            return False
        return False

    def shards(self, root: Path) -> Iterable[Shard]:
        return find_shards(root)

    def scan(self, root: Path, shard: Shard, start: Position = START) -> Iterator[Scanned]:
        # Only reading pays for the import of the decoder.
        from .scan import scan_lines

        return scan_lines(root, shard, start)

    def load(self, root: Path, locators: Sequence[Locator]) -> Trajectory:
        from .load import load_lines

        return load_lines(root, locators)
