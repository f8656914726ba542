"""Two conversations side by side: what they begin with alike, where they part, and which turns answer each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from typing import Any

from rltracer_sqlite.comparison import Signature, parting, same_messages
from rltracer_sqlite.messages import content_text

from .beside import beside
from .conversation import Page, Turn, paired_results, read_page
from .text import Text

Messages = Sequence[Mapping[str, Any]]
MOST_MATCHED = 64  # blocks of a turn that are looked for in any place of the other


@dataclass(frozen=True)
class Block:
    """One text of a turn. `same`: the other side says the same; `shared` characters are the same before they part."""

    kind: str  # reasoning, text, image, call, argument or result
    label: str
    text: Text | None
    image: str | None = None
    same: bool = False
    shared: int | None = None


@dataclass(frozen=True)
class Side:
    """A turn as it is shown in a column."""

    number: int
    role: str
    kind: str
    blocks: list[Block]
    elsewhere: int | None = None  # a message of the other side that says the same, in another place


@dataclass(frozen=True)
class Row:
    """What stands side by side; None where only the other has a turn. `first`: it is here that the two part.

    `ended`: the side that has none has none further down either.
    """

    left: Side | None
    right: Side | None
    same: bool = False
    first: bool = False
    ended: bool = False


@dataclass(frozen=True)
class Alignment:
    """Two conversations: `shared` messages at the beginning are the same and stand in `prefix`."""

    shared: int
    characters: int  # of the shared messages
    roles: list[str]  # of the shared messages, repeated ones once
    prefix: Page[Turn]
    prefix_sides: list[Side]
    rows: list[Row]
    left: Page[Turn]
    right: Page[Turn]

    @property
    def identical(self) -> bool:
        """Say whether there is no difference at all."""
        return self.left.messages == self.right.messages == self.shared


def align(left: Messages, right: Messages) -> Alignment:
    """Return two branches side by side, as far as a page goes.

    Ids of tool calls differ by chance, so they count for nothing.
    """
    shared = _shared(left, right)
    prefix = read_page(left[:shared])
    pages = read_page(left, shared), read_page(right, shared)
    rows = _ended(list(_rows(*map(_sides, pages))), pages)
    first = next((number for number, row in enumerate(rows) if not row.same), None)
    if first is not None:
        rows[first] = _parted(replace(rows[first], first=True))
    return Alignment(
        shared=shared,
        characters=sum(len(content_text(message.get("content"))) for message in left[:shared]),
        roles=list(dict.fromkeys(str(message.get("role") or "no role") for message in left[:shared])),
        prefix=prefix,
        prefix_sides=_sides(prefix),
        rows=rows,
        left=pages[0],
        right=pages[1],
    )


def _shared(left: Messages, right: Messages) -> int:
    """Return how many messages the two have in common at their beginning, whole calls with all their results only."""
    shared = same_messages(left, right)
    for messages in (left, right):
        for (call, _), answer in sorted(paired_results(messages).items(), reverse=True):
            if call < shared <= answer:
                shared = call
    return shared


def _sides(page: Page[Turn]) -> list[Side]:
    return [Side(turn.number, turn.role, turn.kind, list(_blocks(turn))) for turn in page.turns]


def _blocks(turn: Turn, result: bool = False) -> Iterator[Block]:
    for thought in turn.reasoning:
        yield Block("reasoning", "reasoning", thought)
    for part in turn.parts:
        kind = "result" if result or turn.kind == "tool" else "text"
        yield Block("image" if part.image else kind, part.label or "", part.text, part.image)
    for call in turn.calls:
        yield Block("call", call.name or "tool without a name", None)
        for argument in call.arguments.named:
            yield Block("argument", argument.name, argument.text)
        if call.arguments.text:
            yield Block("argument", call.arguments.remark or "", call.arguments.text)
        if call.result:
            yield from _blocks(call.result, True)


def _rows(left: list[Side], right: list[Side]) -> Iterator[Row]:
    keys = [_key(side) for side in left], [_key(side) for side in right]
    ours, theirs = _found_again(left, keys[0], right, keys[1]), _found_again(right, keys[1], left, keys[0])
    for a, b in beside(*keys):
        if a is None or b is None:
            yield Row(None if a is None else ours[a], None if b is None else theirs[b])
        elif keys[0][a] == keys[1][b]:
            yield Row(left[a], right[b], True)
        else:
            yield _compared(ours[a], theirs[b])


def _found_again(
    sides: list[Side], keys: list[Signature], others: list[Side], other_keys: list[Signature]
) -> list[Side]:
    """Return turns with the first message of the other side that says the same."""
    known = {key: other.number for key, other in zip(reversed(other_keys), reversed(others), strict=True)}
    return [replace(side, elsewhere=known.get(key)) for side, key in zip(sides, keys, strict=True)]


def _ended(rows: list[Row], pages: tuple[Page[Turn], Page[Turn]]) -> list[Row]:
    """Return rows with those marked where one side has no message any more, and not only none in this place."""
    last = [max((at for at, row in enumerate(rows) if getattr(row, side)), default=-1) for side in ("left", "right")]
    goes_on = [page.following is not None for page in pages]
    return [
        replace(row, ended=any(at > end and not more for end, more in zip(last, goes_on, strict=True)))
        for at, row in enumerate(rows)
    ]


def _key(side: Side) -> Signature:
    blocks = ((b.kind, b.label, b.text and (b.text.text, b.text.characters), b.image) for b in side.blocks)
    return (side.role, *blocks)


def _compared(left: Side, right: Side) -> Row:
    """Return two turns with what both of them say marked as the same."""
    ones, others = list(left.blocks), list(right.blocks)
    one_keys, other_keys = ([(b.kind, b.label, b.text, b.image) for b in blocks] for blocks in (ones, others))
    for a, b in _same(one_keys, other_keys):
        ones[a], others[b] = replace(ones[a], same=True), replace(others[b], same=True)
    return Row(replace(left, blocks=ones), replace(right, blocks=others))


def _same(ones: Sequence[object], others: Sequence[object]) -> list[tuple[int, int]]:
    """Return the places of what is the same in two turns.

    Of very many blocks only those in the same place, from the beginning or from the end, are: matching calls of the
    same name in any order takes the cube of their number.
    """
    if max(len(ones), len(others)) <= MOST_MATCHED:
        blocks = SequenceMatcher(None, ones, others, autojunk=False).get_matching_blocks()
        return [(a + step, b + step) for a, b, size in blocks for step in range(size)]
    length = min(len(ones), len(others))
    first = next((at for at in range(length) if ones[at] != others[at]), length)
    begun = [(at, at) for at in range(length) if ones[at] == others[at]]
    if len(ones) == len(others):
        return begun
    ended = [(len(ones) - at, len(others) - at) for at in range(1, length - first + 1) if ones[-at] == others[-at]]
    return max(begun, [*begun[:first], *ended], key=len)


def _parted(row: Row) -> Row:
    """Return a row whose first texts that differ are told apart from where they part."""
    if row.left is None or row.right is None:
        return row
    ones, others = list(row.left.blocks), list(row.right.blocks)
    for number, (one, other) in enumerate(zip(ones, others, strict=False)):
        if one.same and other.same:
            continue
        if one.text is not None and other.text is not None and (one.kind, one.label) == (other.kind, other.label):
            shared = parting(one.text.text, other.text.text)
            ones[number], others[number] = replace(one, shared=shared), replace(other, shared=shared)
        break
    return replace(row, left=replace(row.left, blocks=ones), right=replace(row.right, blocks=others))
