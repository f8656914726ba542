"""The token lens: a page of the tokens of one branch as text, coloured by one of the numbers recorded beside them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rltracer_sqlite.sources.base import SourceError
from rltracer_sqlite.tokens.streams import trained_runs

from .addresses import place
from .figures import counted, number
from .lens_kinds import LENSES, Values, chosen_lens
from .lens_scales import Step
from .lens_tokens import PIECE_CHARACTERS, Shown, shown_token
from .records import remarks_of

if TYPE_CHECKING:
    from datasette.utils import MultiParams

    from rltracer_sqlite.tokens.streams import Tokens
    from rltracer_sqlite.trajectory import Trajectory

PAGE_TOKENS = 2_000
PAGE_CHARACTERS = 100_000
MOST_RUNS = 200  # listed


@dataclass(frozen=True)
class Run:
    """Tokens `first` to `last` that were sampled one after the other."""

    first: int
    last: int
    is_here: bool  # on this page


@dataclass(frozen=True)
class LensPage:
    """What the page of a branch's tokens shows. Without tokens `problem` says why."""

    problem: str | None = None
    lens: str | None = None
    lenses: list[tuple[str, bool]] = field(default_factory=list)  # name, and whether anything is recorded for it
    about: str = ""
    steps: list[Step] = field(default_factory=list)
    counted: str = ""
    has_text: bool = False
    remarks: Sequence[str] = ()
    tokens: list[Shown] = field(default_factory=list)
    total: int = 0
    start: int = 0
    following: int | None = None
    preceding: int | None = None
    runs: list[Run] = field(default_factory=list)
    run_count: int = 0
    has_masked: bool = False  # the trainer left some of the sampled tokens out of the loss


def may_have_tokens(trajectory: Trajectory | None) -> bool:
    """Say whether tokens may be recorded, without reading any file."""
    if trajectory is None or trajectory.read_tokens is list:
        return False
    nodes = trajectory.record.get("nodes")
    if not isinstance(nodes, list):
        return True
    places = trajectory.metadata.get("annotations") or ()
    in_nodes = any(isinstance(node, Mapping) and node.get("token_ids") for node in nodes)
    return in_nodes or any(str(one.get("path")).endswith(".bin") for one in places)


def read_lens(trajectory: Trajectory, branch: int, args: MultiParams) -> LensPage:
    """Return the page of a branch's tokens; `branch` counts from 1. Reads the files that hold their numbers."""
    try:
        branches = trajectory.branch_tokens
    except SourceError as error:
        return LensPage(problem=str(error))
    except OSError as error:
        return LensPage(problem=f"The tokens cannot be read: {error.strerror or error}.")
    tokens = branches[branch - 1] if branch <= len(branches) else None
    if tokens is None or not tokens.ids:
        elsewhere = [str(n) for n, other in enumerate(branches, start=1) if other is not None and other.ids]
        said = f" Branch {', '.join(elsewhere[:20])} has some." if elsewhere else ""
        return LensPage(problem=f"No token ids are recorded for this branch.{said}")
    return _page(tokens, args.get("lens"), place(args.get("start")) or 0, remarks_of(trajectory))


def _page(tokens: Tokens, asked: str | None, start: int, remarks: Sequence[str]) -> LensPage:
    found = {lens.name: lens.read(tokens) for lens in LENSES}
    lens = chosen_lens(asked, found)
    values, about = found[lens.name] or ([], "nothing is recorded for it in this branch")
    scale = lens.scale(values)
    start = min(start, len(tokens) - 1)
    end = _end(tokens, start)
    runs = trained_runs(tokens.mask) if tokens.mask is not None else []
    return LensPage(
        lens=lens.name,
        lenses=[(name, one is not None) for name, one in found.items()],
        about=about,
        steps=_mask_steps(tokens) if lens.name == "mask" else scale.steps() if values else [],
        counted=_counted(tokens, values) if lens.name != "mask" else "",
        has_text=tokens.pieces is not None,
        remarks=remarks,
        tokens=[shown_token(tokens, at, lens.name, values, scale) for at in range(start, end)],
        total=len(tokens),
        start=start,
        following=end if end < len(tokens) else None,
        preceding=max(start - PAGE_TOKENS, 0) if start else None,
        runs=[Run(first, last - 1, start <= first < end) for first, last in runs[:MOST_RUNS]],
        run_count=len(runs),
        has_masked=bool(tokens.is_masked) and any(tokens.is_masked or ()),
    )


def _end(tokens: Tokens, start: int) -> int:
    """Return where a page that starts there ends: by tokens, or by characters where a vocabulary has huge ones."""
    end = min(start + PAGE_TOKENS, len(tokens))
    if tokens.pieces is None:
        return end
    characters = 0
    for at in range(start, end):
        characters += min(len(tokens.pieces[at]), PIECE_CHARACTERS)
        if characters > PAGE_CHARACTERS:
            return at + 1
    return end


def _counted(tokens: Tokens, values: Values) -> str:
    """Say how many values are missing, and where that is to be expected."""
    if not values:
        return ""
    known = sum(value is not None for value in values)
    if tokens.mask is None:
        return f"{number(known)} of {counted(len(tokens), 'token')} with a value, {number(len(tokens) - known)} without"
    sampled = sum(tokens.mask)
    missing = sum(value is None for value, is_sampled in zip(values, tokens.mask, strict=True) if is_sampled)
    others = len(tokens) - sampled
    beside = known - (sampled - missing)
    said = f"missing for {number(missing)} of {counted(sampled, 'sampled token')}"
    rest = f"{number(beside) if beside else 'none'} of {counted(others, 'other')} with one"
    return f"{said}; {rest}" if others else said


def _mask_steps(tokens: Tokens) -> list[Step]:
    if tokens.mask is None:
        return []
    sampled = sum(tokens.mask)
    flags = tokens.is_masked or [None] * len(tokens)
    left_out = sum(bool(flag) for flag, is_sampled in zip(flags, tokens.mask, strict=True) if is_sampled)
    steps = [Step("t", f"sampled, and trained on: {number(sampled - left_out)}")]
    steps += [Step("t x", f"left out of the loss by the trainer: {number(left_out)}")] if tokens.is_masked else []
    return [*steps, Step("m", f"not sampled: {number(len(tokens) - sampled)}")]
