"""The per-token lists of a row: ids, mask, logprobs and advantages, without their padding."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from ...amounts import plural
from ...tokens.streams import Tokens, trained_runs
from ..base import Entry
from ..values import integer_in_text, number
from .rows import RowError

Numbers = list["float | None"]


@dataclass
class TokenNumbers:
    """What a row records of each of its tokens. `ids` are empty where they were not asked for."""

    ids: list[int]
    prompt: int  # how many of the ids are the prompt's, where the columns tell
    mask: list[bool]
    logprobs: Numbers | None
    advantages: Numbers | None

    def streams(self) -> Tokens | None:
        """Return them in the form that all sources share; None without ids."""
        if not self.ids:
            return None
        return Tokens(self.ids, mask=self.mask, logprobs=self.logprobs, advantages=self.advantages)


def read_tokens(
    get: Callable[[str], Any], with_ids: bool, remarks: list[str], are_content: bool = False
) -> TokenNumbers | None:
    """Return the per-token lists of a row, by the role that names each; None where it has none.

    A list of another length than the others is left out, and `remarks` says so. Raises RowError where `are_content`
    and the ids are none.
    """
    mask, ids, prompt = get("mask"), [], 0
    if with_ids or not isinstance(mask, list) or get("prompt_ids") is not None:
        try:
            before = _ids(get, "prompt_ids")
            ids, prompt = before + _ids(get, "completion_ids"), len(before)
        except RowError as error:
            if are_content:
                raise
            remarks.append(str(error))  # the text is there all the same
    flags = [bool(one) for one in mask] if isinstance(mask, list) else None
    if flags is not None and ids and len(flags) != len(ids):
        if prompt and len(flags) == len(ids) - prompt:
            flags = [False] * prompt + flags
        else:
            remarks.append(f"mask: {plural(len(flags), 'value')} for {plural(len(ids), 'token')}")
            # Where ids are not the content they may not have been read at all: the mask alone tells, then as now.
            flags, ids, prompt = (None, ids, prompt) if are_content else (flags, [], 0)
    length = len(ids) if ids else len(flags or ())
    if not length:
        return None
    if flags is None:
        flags = [False] * prompt + [True] * (length - prompt)
    found = {name: _stream(get(name), name, prompt, length, remarks) for name in ("logprobs", "advantage")}
    end = min(integer_in_text(get("length")) or length, length)  # what is behind it is padding
    logprobs, advantages = found["logprobs"], found["advantage"]
    return TokenNumbers(ids[:end], prompt, flags[:end], logprobs and logprobs[:end], advantages and advantages[:end])


def _ids(get: Callable[[str], Any], name: str) -> list[int]:
    value = get(name)
    if value is None:
        return []
    if not isinstance(value, list) or not all(type(one) is int for one in value):
        raise RowError(f"{name}: expected a list of token ids")
    return value


def _stream(value: Any, name: str, prompt: int, length: int, remarks: list[str]) -> Numbers | None:
    if not isinstance(value, list) or not value:
        return None
    # A finite float minus itself is zero; anything else goes the long way.
    values = [one if type(one) is float and one - one == 0.0 else number(one) for one in value]
    if len(values) == length:
        return values
    if len(values) == length - prompt:
        return [None] * prompt + values
    remarks.append(f"{name}: {plural(len(values), 'value')} for {plural(length, 'token')}")
    return None


def identify_by_ids(entry: Entry, prompt: list[int], tokens: TokenNumbers | None) -> None:
    """Let the ids of its prompt identify a trajectory whose words are not known."""
    try:
        packed = array("q", prompt).tobytes()
    except OverflowError:
        raise RowError("a token id that is no token id") from None
    # Hashed with a mark of its own, so that it never meets the key of a text.
    entry.prompt_key = blake2b(b"token ids\0" + packed, digest_size=32).hexdigest()
    entry.preview = f"no tokenizer: {plural(len(prompt), 'prompt token')}"
    entry.turns = len(trained_runs(tokens.mask)) if tokens else 0
