"""One token on the page of the token lens: its text, its look, and all that is recorded of it in one line."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from markupsafe import Markup, escape

from .figures import counted, number
from .lens_kinds import Values
from .lens_scales import Scale
from .text import exact, plain

if TYPE_CHECKING:
    from rltracer_sqlite.tokens.streams import Tokens

PIECE_CHARACTERS = 2_000  # of one token
NAMED_CHARACTERS = 60  # of one token, in its title

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


@dataclass(frozen=True)
class Shown:
    """One token on the page."""

    number: int  # in the branch, counted from 0
    look: str
    title: str
    html: Markup


def shown_token(tokens: Tokens, at: int, lens: str, values: Values, scale: Scale) -> Shown:
    """Return the token of a number, coloured by the value that a lens has for it."""
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
