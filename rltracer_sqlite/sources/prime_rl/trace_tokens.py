"""The tokens along each branch of a trace, with what the stream's updates and the trainer's batches add to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...tokens.streams import Tokens, branch_tokens, merge_tokens
from ...tokens.tokenizer import TextTokenizer
from ..base import Locator
from ..places import Root
from .graph import branch_paths
from .layout import BINARY


def trace_tokens(
    root: Root,
    trace: dict[str, Any],
    locators: Sequence[Locator],
    annotations: Sequence[tuple[Locator, dict[str, Any]]],
    tokenizer: TextTokenizer | None,
) -> list[Tokens | None]:
    """Return the tokens of each branch; None for one without recorded ids. Reads the batches that name the trace."""
    nodes = trace.get("nodes")
    if not isinstance(nodes, list):
        return []
    plain = [node if isinstance(node, dict) else {} for node in nodes]
    branches = [branch_tokens(plain, path) for path in branch_paths(nodes)]
    for _, later in annotations:
        for number, streams in _update_branches(later):
            if 0 <= number < len(branches) and (known := branches[number]) is not None:
                branches[number] = known.with_streams(streams)
    for locator in locators:
        if locator.path.endswith(BINARY):
            branches = _with_batch(root, locator, branches)
    return [tokens and tokens.with_pieces(tokenizer) for tokens in branches]


def _update_branches(later: dict[str, Any]) -> list[tuple[int, dict[str, Any]]]:
    """Return (branch number, streams) of an update record of the stream layout."""
    recorded = later.get("branches")
    found = []
    for position, branch in enumerate(recorded if isinstance(recorded, list) else ()):
        if isinstance(branch, dict):
            number = branch.get("index", position)
            found.append((number if isinstance(number, int) else position, branch))
    return found


def _with_batch(root: Root, locator: Locator, branches: list[Tokens | None]) -> list[Tokens | None]:
    """Lay the numbers of a trainer's sequence over the branch that it is of."""
    from .token_load import annotation_tokens

    number, later = annotation_tokens(root, locator)
    if number is None:  # without a recorded branch, the ids tell: merging leaves other branches as they are
        return [tokens and merge_tokens(tokens, later) for tokens in branches]
    if 0 <= number < len(branches):
        known = branches[number]
        branches[number] = merge_tokens(known, later) if known is not None else later
    return branches
