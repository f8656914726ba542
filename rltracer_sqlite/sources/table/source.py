"""The source that reads any system's table by a mapping."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from ..base import START, Locator, Position, Scanned, Shard, SourceError
from .files import find_tables
from .mapping import Mapping

if TYPE_CHECKING:
    from ...model import Trajectory
    from ...tokens.tokenizer import TextTokenizer


class TableSource:
    """Rows read by a mapping. `others` are mappings whose files this one leaves alone."""

    def __init__(self, mapping: Mapping, tokenizer: str | None = None, others: tuple[Mapping, ...] = ()) -> None:
        self.mapping, self.tokenizer, self.others = mapping, tokenizer, others
        self.name = mapping.name
        self.step_kind = mapping.step_kind
        self._before: dict[str, str] | None = None  # shard -> the one before it in its folder

    def recognises(self, root: Path) -> bool:
        """Say whether a file at `root` begins with records of the mapping's shapes."""
        from .recognise import recognised

        return recognised(root, self.mapping, self.others)

    def shards(self, root: Path) -> Iterable[Shard]:
        """List the files whose names the mapping accepts. Opens none of them."""
        found = list(find_tables(root, self.mapping))
        self._before = _predecessors(found)
        return found

    def scan(self, root: Path, shard: Shard, start: Position = START) -> Iterator[Scanned]:
        """Read one shard. Raises NotRollouts where it holds none, SourceError where a library is missing."""
        from .scan import scan_table

        before = self._predecessor(root, shard) if self.mapping.repeats else None
        return scan_table(root, shard, start, self.mapping, self._text_tokenizer, before)

    def load(self, root: Path, locators: Sequence[Locator]) -> Trajectory:
        """Decode one trajectory from its row. Raises LocatorError."""
        from .load import load_table_row

        return load_table_row(root, locators[0], self.mapping, self._text_tokenizer)

    def _predecessor(self, root: Path, shard: Shard) -> str | None:
        if self._before is None:
            self.shards(root)
        return (self._before or {}).get(shard.path)

    @cached_property
    def _text_tokenizer(self) -> TextTokenizer | None:
        from ...tokens.tokenizer import TokenizerError, load_tokenizer

        try:
            return load_tokenizer(self.tokenizer) if self.tokenizer else None
        except TokenizerError as error:
            raise SourceError(str(error)) from None


def _predecessors(shards: list[Shard]) -> dict[str, str]:
    """Return for each shard the one before it in its folder."""
    last: dict[str, str] = {}
    before = {}
    for shard in shards:
        folder = str(PurePosixPath(shard.path).parent)
        if folder in last:
            before[shard.path] = last[folder]
        last[folder] = shard.path
    return before
