"""The source that reads any system's table by a mapping."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from ...amounts import plural
from ..base import START, Entry, Locator, Position, Scanned, Shard, SourceError
from ..other_files import is_other
from ..places import Root
from .files import find_tables
from .mapping import Mapping

if TYPE_CHECKING:
    from ...tokens.tokenizer import TextTokenizer
    from ...trajectory import Message, Trajectory
    from ..readers import ByteReader

WHOLE = ("sqlite", "parquet", "json")  # layouts of files that are read as a whole; JSON may be one array


class TableSource:
    """Rows read by a mapping. `others` are mappings whose files this one leaves alone.

    `is_own` says that a person wrote the mapping and is told what it misses.
    """

    def __init__(
        self, mapping: Mapping, tokenizer: str | None = None, others: tuple[Mapping, ...] = (), is_own: bool = False
    ) -> None:
        self.mapping, self.tokenizer, self.others, self.is_own = mapping, tokenizer, others, is_own
        self._root: Root | None = None
        self._several = 0  # rollouts of several outputs, since shards were listed
        self._repeated: list[int] = []  # rows that each file repeats, since then
        self.name = mapping.name
        self.step_kind = mapping.step_kind

    def __reduce__(self) -> tuple[Any, ...]:
        # A tokenizer is loaded again where it is needed.
        return type(self), (self.mapping, self.tokenizer, self.others, self.is_own)

    def recognises(self, root: Root) -> bool:
        """Say whether a file at `root` begins with records of the mapping's shapes."""
        from .recognise import recognised

        return recognised(root, self.mapping, self.others)

    def shards(self, root: Root) -> Iterable[Shard]:
        """List the files whose names the mapping accepts, and those that are left aside. Opens none of them.

        Raises SourceError where a person's own mapping accepts none.
        """
        self._several, self._repeated = 0, []
        if not self.is_own:
            return find_tables(root, self.mapping)
        from .check import nothing_fits

        self._root = root
        shards = list(find_tables(root, self.mapping))
        if all(map(is_other, shards)):
            raise SourceError(nothing_fits(root, self.mapping))
        return shards

    def notes(self) -> list[str]:
        """Return what was read in another way than row by row since the shards were listed.

        Of a person's own mapping also what it misses in the first rows of the place.
        """
        from .check import check_mapping

        count, are = plural(self._several, "rollout"), "is" if self._several == 1 else "are"
        told = (
            [f"{count} of several outputs {are} counted once, with a branch for each output"] if self._several else []
        )
        if self._repeated:
            rows, files = plural(sum(self._repeated), "row"), plural(len(self._repeated), "file")
            told.append(f"{rows} of {files} that stand at the end of the file before are counted once")
        return [*told, *(check_mapping(self._root, self.mapping) if self._root else [])]

    def scan(self, root: Root, shard: Shard, start: Position = START) -> Iterator[Scanned]:
        """Read one shard. Raises NotRollouts where it holds none, SourceError where a library is missing."""
        return self.joined(shard, start, self.scan_part(root, shard, start))

    def has_lines(self, shard: Shard) -> bool:
        """Say whether a shard may be cut behind any newline."""
        return shard.layout not in WHOLE

    def scan_part(self, root: Root, shard: Shard, start: Position = START, stop: int | None = None) -> Iterator[Any]:
        """Read a part of a shard. Raises SourceError where a library is missing."""
        from .scan import table_findings

        return table_findings(root, shard, start, stop, self.mapping, self._text_tokenizer)

    def joined(self, shard: Shard, start: Position, found: Iterable[Any]) -> Iterator[Scanned]:
        """Put the findings of the parts of a shard together. Raises NotRollouts where it holds none."""
        from .joined import joined_records
        from .rollouts import whole_rollouts

        if self.mapping.has_outputs:
            found = self._counted(whole_rollouts(shard, found))
        told = joined_records(start, found, {aside.says for aside in self.mapping.asides})
        return self._without_repeated(told) if self.mapping.repeats else told

    def _counted(self, found: Iterable[Any]) -> Iterator[Any]:
        for one in found:
            self._several += isinstance(one, Entry) and one.branches > 1
            yield one

    def _without_repeated(self, found: Iterable[Scanned]) -> Iterator[Scanned]:
        from .repeats import Repeated

        for one in found:
            if isinstance(one, Repeated):
                self._repeated.append(one.rows)
            yield one

    def load(self, root: Root, locators: Sequence[Locator]) -> Trajectory:
        """Decode one trajectory from its row. Raises LocatorError."""
        from .load import RecordCache, load_table_row

        return load_table_row(locators[0], RecordCache(root, self.mapping), self._text_tokenizer)

    def messages(self, root: Root, reader: ByteReader) -> Callable[[Locator], list[Message]]:
        """Return what reads the messages of a trajectory of an open shard, and nothing else. It raises LocatorError."""
        from .load import RecordCache, load_table_messages

        records = RecordCache(root, self.mapping, reader)
        return lambda locator: load_table_messages(locator, records, self._text_tokenizer)

    def conversations(self, root: Root, locators: Iterable[Locator]) -> Iterator[Trajectory]:
        """Decode many trajectories in the order of their files; a record is read once for all its rows."""
        from .load import RecordCache, load_table_row

        records = RecordCache(root, self.mapping)
        for locator in locators:
            yield load_table_row(locator, records, self._text_tokenizer)

    def records(self, root: Root, locators: Iterable[Locator]) -> Iterator[dict[str, Any]]:
        """Decode many records in the order of their files. Raises LocatorError."""
        return (trajectory.record for trajectory in self.conversations(root, locators))

    @cached_property
    def _text_tokenizer(self) -> TextTokenizer | None:
        from ...tokens.tokenizer import TokenizerError, load_tokenizer

        try:
            return load_tokenizer(self.tokenizer) if self.tokenizer else None
        except TokenizerError as error:
            raise SourceError(str(error)) from None
