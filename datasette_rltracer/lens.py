"""The token lens: the tokens of one branch as text, coloured by one of the numbers recorded beside them."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from rltracer_sqlite.sources.base import SourceError
from rltracer_sqlite.tokens.streams import trained_runs

from .access import place
from .facts import counted, number
from .lens_scales import ENTROPY, LOGPROB, MISMATCH, Scale, Step, signed_scale
from .text import exact, plain

if TYPE_CHECKING:
    from rltracer_sqlite.model import Trajectory
    from rltracer_sqlite.tokens.streams import Tokens

PAGE_TOKENS = 2_000
PAGE_CHARACTERS = 100_000
PIECE_CHARACTERS = 2_000  # of one token
NAMED_CHARACTERS = 60  # of one token, in its title
MOST_RUNS = 200  # listed
MOST_REMARKS = 5

# A token that is one of these by itself carries structure: no vocabulary learns such a text by merging.
SPECIAL = re.compile(
    r"<[|｜][^<>\s]{1,60}[|｜]>|</?(?:think|tool_call|tool_response|tools|s|bos|eos|pad|unk|mask|sop|eop)>"
    r"|<(?:start|end)_of_(?:turn|image)>|\[/?(?:INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|THINK|ARGS|gMASK|BOS|EOS|PAD)\]"
)

STREAMS = {
    "logprobs": "logprob",
    "advantages": "advantage",
    "trainer_logprobs": "trainer logprob",
    "entropies": "entropy",
    "mismatch_kl": "mismatch KL",
    "importance_ratio": "importance ratio",
}

Values = Sequence["float | None"]


@dataclass(frozen=True)
class Lens:
    """One way to colour tokens. `read` gives a value per token and what it is, or None where nothing is recorded."""

    name: str
    read: Callable[[Tokens], tuple[Values, str] | None]
    scale: Callable[[Values], Scale]


@dataclass(frozen=True)
class Shown:
    """One token on the page."""

    number: int  # in the branch, counted from 0
    look: str
    title: str
    html: Markup


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


def read_lens(trajectory: Trajectory, branch: int, args: Any) -> LensPage:
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
    remarks = [str(remark) for remark in (trajectory.metadata.get("remarks") or ())[:MOST_REMARKS]]
    return _page(tokens, args.get("lens"), place(args.get("start")) or 0, remarks)


def _page(tokens: Tokens, asked: str | None, start: int, remarks: Sequence[str]) -> LensPage:
    found = {lens.name: lens.read(tokens) for lens in LENSES}
    lens = _chosen(asked, found)
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
        tokens=[_shown(tokens, at, lens.name, values, scale) for at in range(start, end)],
        total=len(tokens),
        start=start,
        following=end if end < len(tokens) else None,
        preceding=max(start - PAGE_TOKENS, 0) if start else None,
        runs=[Run(first, last - 1, start <= first < end) for first, last in runs[:MOST_RUNS]],
        run_count=len(runs),
        has_masked=bool(tokens.is_masked) and any(tokens.is_masked or ()),
    )


def _chosen(asked: str | None, found: Mapping[str, Any]) -> Lens:
    by_name = {lens.name: lens for lens in LENSES}
    if asked in by_name:
        return by_name[asked]
    return by_name[next((name for name, one in found.items() if one is not None), "mask")]


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


def _shown(tokens: Tokens, at: int, lens: str, values: Values, scale: Scale) -> Shown:
    piece = tokens.pieces[at] if tokens.pieces is not None else None
    looks = ["k"]
    if lens == "mask":
        looks += ["t"] if tokens.mask is not None and tokens.mask[at] else []
    elif values and (value := values[at]) is not None:
        looks.append(scale.look(value))
    if tokens.mask is not None and not tokens.mask[at]:
        looks.append("m")
    if tokens.is_masked is not None and tokens.is_masked[at]:
        looks.append("x")
    if piece is not None and SPECIAL.fullmatch(piece):
        looks.append("special")
    elif piece == "":
        looks.append("part")
    html = escape(str(tokens.ids[at])) if piece is None else _html(piece)
    return Shown(at, " ".join(looks), _title(tokens, at, piece), html)


def _html(piece: str) -> Markup:
    """Return the text of a token; each line end in it gets an empty element, where lens.css draws a sign."""
    html = exact(piece[:PIECE_CHARACTERS]).replace("\n", Markup("<i></i>\n"))
    left = len(piece) - PIECE_CHARACTERS
    return html + Markup('<em class="more">… {} more</em>').format(counted(left, "character")) if left > 0 else html


def _title(tokens: Tokens, at: int, piece: str | None) -> str:
    """Return all that is recorded of a token, in one line."""
    said = [f"{number(at + 1)} of {number(len(tokens))}"]
    if piece is not None:
        cut = "…" if len(piece) > NAMED_CHARACTERS else ""
        named = plain(piece[:NAMED_CHARACTERS]).replace("\n", "↵").replace("\t", "⇥").replace("\r", "␍")
        said.append(f"“{named}{cut}”" if piece else "part of the next character")
    said.append(f"id {tokens.ids[at]}")
    if tokens.mask is not None:
        said.append("sampled" if tokens.mask[at] else "not sampled")
    for stream, name in STREAMS.items():
        values = getattr(tokens, stream)
        if values is not None and (values[at] is not None or (tokens.mask is not None and tokens.mask[at])):
            said.append(f"{name} {number(values[at]) if values[at] is not None else 'missing'}")
    if tokens.is_masked is not None and (masked := tokens.is_masked[at]) is not None:
        said.append("left out of the loss" if masked else "kept in the loss")
    return " · ".join(said)


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


def _recorded(stream: str, about: str) -> Callable[[Tokens], tuple[Values, str] | None]:
    def read(tokens: Tokens) -> tuple[Values, str] | None:
        values = getattr(tokens, stream)
        return (values, about) if values is not None and any(value is not None for value in values) else None

    return read


def _mismatch(tokens: Tokens) -> tuple[Values, str] | None:
    """Return the log of trainer over sampler for each token, recorded or worked out, else the recorded KL."""
    if tokens.importance_ratio is not None:
        ratios = [math.log(ratio) if ratio and ratio > 0 else None for ratio in tokens.importance_ratio]
        return ratios, "log of the recorded importance ratio: positive where the trainer finds a token more likely"
    if tokens.trainer_logprobs is not None and tokens.logprobs is not None:
        differences = [
            None if new is None or old is None else new - old
            for new, old in zip(tokens.trainer_logprobs, tokens.logprobs, strict=True)
        ]
        return (
            differences,
            "trainer logprob − logprob, worked out here: positive where the trainer finds it more likely",
        )
    return _recorded("mismatch_kl", "mismatch KL between trainer and sampler, as recorded")(tokens)


def _mask(tokens: Tokens) -> tuple[Values, str] | None:
    return ([], "what was trained on") if tokens.mask is not None else None


LENSES = (
    Lens("logprob", _recorded("logprobs", "logprob under the policy that sampled it, nats"), lambda _: LOGPROB),
    Lens(
        "advantage", _recorded("advantages", "advantage; the scale reaches to the largest of this branch"), signed_scale
    ),
    Lens("entropy", _recorded("entropies", "entropy of the trainer's distribution, nats"), lambda _: ENTROPY),
    Lens("mismatch", _mismatch, lambda _: MISMATCH),
    Lens("mask", _mask, lambda _: MISMATCH),
)
LENS_NAMES = tuple(lens.name for lens in LENSES)
