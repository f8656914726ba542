"""The source for the files of prime-rl and verifiers."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from ...amounts import plural
from ..base import START, Entry, Locator, NotRollouts, Position, Scanned, Shard, SourceError, Update
from ..other_files import is_other
from ..places import Root
from .choice import choose
from .layout import BINARY, TOKEN_LAYOUTS, find_shards

if TYPE_CHECKING:
    from ...tokens.tokenizer import TextTokenizer
    from ...trajectory import Trajectory
    from .token_scan import Tally


PROBED = 20  # findings of a file in no place of its own, before it is another system's


class PrimeRLSource:
    """prime-rl's rollouts in every layout they have had, its token shards, and verifiers' evaluations.

    `tokenizer` is a tokenizer.json or its folder, for files that hold token ids; `layout` is "traces" or "tokens"
    where a run holds both and the choice is not to be made by itself.
    """

    name = "prime-rl"

    def __init__(self, tokenizer: str | None = None, layout: str | None = None) -> None:
        self.tokenizer, self.layout = tokenizer, layout

    def __reduce__(self) -> tuple[Any, ...]:
        # A tokenizer is loaded again where it is needed.
        return type(self), (self.tokenizer, self.layout)

    def recognises(self, root: Root) -> bool:
        """Say whether a file lies in one of the known layouts, or begins with a known record.

        Raises SourceError for a tokenizer that is not there: before anything is indexed with it.
        """
        _ = self.text_tokenizer
        shards = [shard for shard in self.shards(root) if not is_other(shard)]
        by_place = any(shard.layout not in ("file", "evals") for shard in shards)
        return by_place or any(self._is_rollouts(root, shard) for shard in shards)

    def _is_rollouts(self, root: Root, shard: Shard) -> bool:
        try:
            # Problems alone are no sign: another system's lines would give them too.
            # A scan of token shards remembers what it has said, and looking at them is not to count as saying it.
            scan = self.scan if self.has_lines(shard) else self.scan_part
            first = list(islice(scan(root, shard), PROBED))
            # A MessagePack of micro batches that is cut off in its first one is told by its beginning.
            cut_off = shard.path.endswith(".bin") and any(isinstance(one, Position) and one.waiting for one in first)
            return cut_off or any(isinstance(found, (Entry, Update)) for found in first)
        except (NotRollouts, SourceError, OSError):
            return False

    def shards(self, root: Root) -> Iterable[Shard]:
        return choose(find_shards(root), self.layout)

    def scan(self, root: Root, shard: Shard, start: Position = START) -> Iterator[Scanned]:
        return self.joined(shard, start, self.scan_part(root, shard, start))

    def has_lines(self, shard: Shard) -> bool:
        return not _holds_tokens(shard.layout, shard.path)

    def scan_part(self, root: Root, shard: Shard, start: Position = START, stop: int | None = None) -> Iterator[Any]:
        # Only reading pays for the import of a decoder.
        if self.has_lines(shard):
            from .scan import line_findings

            return line_findings(root, shard, start, stop)
        from .token_scan import token_findings

        return token_findings(root, shard, start, self.text_tokenizer)

    def joined(self, shard: Shard, start: Position, found: Iterable[Any]) -> Iterator[Scanned]:
        if self.has_lines(shard):
            from .scan import joined_lines

            return joined_lines(shard, start, found)
        from .token_scan import joined_samples

        return joined_samples(found, self.tally)

    def load(self, root: Root, locators: Sequence[Locator]) -> Trajectory:
        remark = ""
        try:
            tokenizer = self.text_tokenizer
        except SourceError as error:  # the record is there all the same, with its ids
            tokenizer, remark = None, str(error)
        if _holds_tokens(locators[0].layout, locators[0].path):
            from .token_load import load_token_trajectory

            trajectory = load_token_trajectory(root, locators, tokenizer)
        else:
            from .load import load_lines

            trajectory = load_lines(root, locators, tokenizer)
        if remark:
            trajectory.metadata.setdefault("remarks", []).append(remark)
        return trajectory

    def conversations(self, root: Root, locators: Iterable[Locator]) -> Iterator[Trajectory]:
        """Decode the messages of many trajectories in the order of their files, without their token arrays."""
        from .conversations import read_conversations

        return read_conversations(root, locators, self.load)

    def records(self, root: Root, locators: Iterable[Locator]) -> Iterator[dict[str, Any]]:
        """Decode many records in the order of their files, without their token arrays."""
        from .conversations import read_records

        return read_records(root, locators, self.load)

    def notes(self) -> list[str]:
        """Return what scanning left out on purpose, in words."""
        copies = self.__dict__["tally"].copies if "tally" in self.__dict__ else 0
        return [f"{plural(copies, 'padding copy')} of micro batches skipped"] if copies else []

    @cached_property
    def tally(self) -> Tally:
        from .token_scan import Tally

        return Tally()

    @cached_property
    def text_tokenizer(self) -> TextTokenizer | None:
        if self.tokenizer is None:
            return None
        from ...tokens.tokenizer import load_tokenizer

        return load_tokenizer(self.tokenizer)


def _holds_tokens(layout: str, path: str) -> bool:
    return layout in TOKEN_LAYOUTS or path.endswith(BINARY)
