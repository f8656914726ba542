"""Scanning the trainer-side files of prime-rl, which hold packed token ids instead of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from ...tokens.streams import trained_runs
from ...tokens.templates import UNTOLD
from ...tokens.tokenizer import TextTokenizer
from ...tool_names import called_tools, names_json
from ..base import START, Entry, Misfit, Position, Problem, Scanned, Shard, Update
from ..files import LFS_POINTER, open_shard, refuse_pointer
from ..places import Root
from ..values import integer, kept_text, place_uid, recorded_uid, short
from .same_samples import KnownSamples
from .samples import Batch, Sample, finite
from .token_prompts import PromptReader
from .token_readers import read_shard

LEAST_UNMARKED = 64  # token ids without a special one that say something about a tokenizer
VALUES = (
    *("temperature", "task_type", "seed", "task_rewards", "length_penalties", "rank", "micro_step"),
    *("trace_id", "branch_index"),
)


@dataclass
class Tally:
    """What a scan found besides rows. Share one between the shards of a run, to say a thing once per run."""

    sequences: int = 0
    copies: int = 0  # padding copies of micro batches, skipped
    duplicates: int = 0  # sequences that are known from another shard of the same step
    said: set[str] = field(default_factory=set)

    def add(self, other: Tally) -> None:
        """Add what another scan counted."""
        self.sequences += other.sequences
        self.copies += other.copies
        self.duplicates += other.duplicates


def scan_token_shard(
    root: Root,
    shard: Shard,
    start: Position = START,
    tokenizer: TextTokenizer | None = None,
    *,
    known: KnownSamples | None = None,
    traces_hold_records: bool = False,
    tally: Tally | None = None,
) -> Iterator[Scanned]:
    """Yield an Entry per packed sequence of a `.bin`, `.pt`, `.parquet` or token-export `.jsonl` shard.

    `known` holds the samples of the shards that come first (`same_samples`): what is known there becomes an Update
    of it. With `traces_hold_records` a sequence that names its trace becomes an Update of that trace. Raises
    NotRollouts for a file of another kind, and SourceError where a library is missing.

    A msgpack or JSONL shard goes on from any Position that a scan yielded. A `.pt` or `.parquet` shard is read from
    its beginning whatever `start` says, since such a file only ever changes as a whole.
    """
    scan, last = _Scan(shard, tokenizer, known, traces_hold_records, tally or Tally()), None
    with open_shard(root, shard.path) as reader:
        refuse_pointer(reader.pread(len(LFS_POINTER), 0))
        for found in read_shard(reader, shard.path, start, tokenizer):
            if isinstance(found, Batch):
                yield from scan.batch(found)
            else:
                yield found
                last = found if isinstance(found, Position) else last
    if start == START and last is not None and not last.waiting and (misfit := scan.without_marks()):
        yield misfit
        yield last  # a place to commit it


def token_findings(
    root: Root, shard: Shard, start: Position, tokenizer: TextTokenizer | None
) -> Iterator[Scanned | Tally]:
    """Yield what a scan of a run's shard does, the samples of the shards `beside` it being known; then its tally."""
    first = [Shard(path, path, shard.layout) for path in shard.beside]
    known = known_samples(root, first, tokenizer) if first else None
    tally, annotates = Tally(), shard.producer is not None
    yield from scan_token_shard(root, shard, start, tokenizer, known=known, traces_hold_records=annotates, tally=tally)
    yield tally


def joined_samples(found: Iterable[Scanned | Tally], tally: Tally) -> Iterator[Scanned]:
    """Yield what the shards of a run give, what is said once per run only once; their tallies are added to `tally`."""
    for one in found:
        if isinstance(one, Tally):
            tally.add(one)
            continue
        if isinstance(one, Misfit):
            if "misfit" in tally.said:
                continue
            tally.said.add("misfit")
        yield one


def known_samples(root: Root, shards: Sequence[Shard], tokenizer: TextTokenizer | None = None) -> KnownSamples:
    """Return the samples of these shards, for scanning others of the same step that hold them again."""

    def read() -> Iterator[tuple[str, Sample]]:
        for shard in shards:
            with open_shard(root, shard.path) as reader:
                batches = read_shard(reader, shard.path, tokenizer=tokenizer)
                for batch in (found for found in batches if isinstance(found, Batch)):
                    for sample in batch.samples:
                        yield place_uid(shard.path, batch.offset, sample.item), sample

    return KnownSamples(read)


class _Scan:
    def __init__(
        self,
        shard: Shard,
        tokenizer: TextTokenizer | None,
        known: KnownSamples | None,
        traces_hold_records: bool,
        tally: Tally,
    ) -> None:
        self.shard, self.tokenizer, self.known, self.tally = shard, tokenizer, known, tally
        self.traces_hold_records = traces_hold_records
        self.prompts = PromptReader(tokenizer)
        self.first: Batch | None = None
        self.unmarked = 0  # token ids, until a special token is among them

    def batch(self, batch: Batch) -> Iterator[Entry | Update | Problem]:
        self.tally.copies += batch.is_copy
        if batch.remarks:
            remarks = "; ".join(dict.fromkeys(batch.remarks))
            yield Problem(batch.line, batch.offset, batch.length, f"read in part: {remarks}")
        for sample in batch.samples:
            if not sample.ids:
                continue
            yield from self._misfit(sample, batch)
            self._look_for_marks(sample, batch)
            self.tally.sequences += 1
            yield self._update(sample, batch) or self._entry(sample, batch)

    def _misfit(self, sample: Sample, batch: Batch) -> Iterator[Problem]:
        """Say once that the tokenizer is another one than the policy's."""
        tokenizer = self.tokenizer
        if tokenizer is None or "misfit" in self.tally.said:
            return
        first = not self.prompts.known
        if first or max(sample.ids) >= tokenizer.size:
            reason = tokenizer.misfit(sample.ids)
            if reason:
                self.tally.said.add("misfit")
                yield Misfit(batch.line, batch.offset, batch.length, reason)

    def _look_for_marks(self, sample: Sample, batch: Batch) -> None:
        if self.tokenizer is None or (self.first is not None and not self.unmarked):
            return
        self.first = self.first or batch
        has_marks = sample.text is not None or not self.tokenizer.special_ids.isdisjoint(sample.ids)
        self.unmarked = 0 if has_marks else self.unmarked + len(sample.ids)

    def without_marks(self) -> Misfit | None:
        """Return that no turn begins or ends anywhere, as the tokenizer has it: there is one in every whole shard."""
        if (
            self.tokenizer is None
            or self.first is None
            or self.unmarked < LEAST_UNMARKED
            or "misfit" in self.tally.said
        ):
            return None
        if not (marks := len(self.tokenizer.special_ids)):
            return None
        self.tally.said.add("misfit")
        reason = self.tokenizer.unmarked(self.unmarked, marks)
        return Misfit(self.first.line, self.first.offset, self.first.length, reason)

    def _update(self, sample: Sample, batch: Batch) -> Update | None:
        if self.traces_hold_records and (trace_id := recorded_uid(sample.trace_id)):
            uid, effective, ship_step = trace_id, 1, self.shard.step
        else:
            match = self.known.match(sample) if self.known else None
            if match is None:
                return None
            self.tally.duplicates += 1
            uid, effective, ship_step = match, None, None
        return Update(
            uid,
            batch.offset,
            batch.length,
            batch.line,
            sample.item,
            effective=effective,
            advantage=sample.first_advantage(),
            ship_step=ship_step,
            logprob_mean=sample.logprob_mean(),
        )

    def _entry(self, sample: Sample, batch: Batch) -> Entry:
        prompt = self.prompts.read(sample)
        runs = trained_runs(sample.mask) if sample.mask else []
        entry = Entry(place_uid(self.shard.path, batch.offset, sample.item), batch.offset, batch.length, batch.line)
        entry.item = sample.item
        entry.prompt_key, entry.preview, entry.content_kind = prompt.key, prompt.preview, prompt.content_kind
        recorded = sample.facts.get("export_step", sample.facts.get("step"))
        entry.step = self.shard.step if self.shard.step is not None else integer(recorded)
        entry.split, entry.env = self.shard.split, short(sample.env)
        entry.reward, entry.advantage = sample.reward, sample.first_advantage()
        entry.logprob_mean = sample.logprob_mean()
        entry.turns, entry.branches = len(runs), 1
        if called := self.prompts.calls(sample, runs, prompt.family):
            entry.tool_calls, entry.tools = len(called), names_json(called_tools(called))
        elif prompt.content_kind in UNTOLD:
            entry.tool_calls = None
        if sample.mask is not None:
            entry.completion_tokens = sum(end - start for start, end in runs)
            entry.prompt_tokens = runs[-1][0] if runs else None
        entry.effective = None if self.shard.path.endswith(".parquet") else 1  # the others are what a trainer got
        example = sample.facts.get("problem_id")
        entry.data_idx = short(example) if isinstance(example, str) else integer(example)
        entry.values = _values(sample)
        return entry


def _values(sample: Sample) -> dict[str, float | str | None]:
    """Return what can be selected by besides what has a column of its own."""
    recorded = {**sample.facts, "trace_id": sample.trace_id, "branch_index": sample.branch_index}
    values: dict[str, float | str | None] = {}
    for name in VALUES:
        value, path = recorded.get(name), f"info.{name}"
        if isinstance(value, str):
            values[path] = kept_text(value)
        elif (number := finite(value)) is not None:
            values[path] = number
    return values
