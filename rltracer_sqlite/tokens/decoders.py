"""What of a tokenizer.json the `tokenizers` library is given: what decoding needs, if it ends and stays small."""

from __future__ import annotations

import json
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

MAX_GROWTH = 16  # times as many bytes as the tokens have; published decoders make a mark a space
MATCHED = {"BPEDecoder": "suffix", "CTC": "word_delimiter_token"}  # what these decoders replace by a space
PLAIN = frozenset({"ByteFallback", "ByteLevel", "Fuse", "Metaspace", "Strip", "WordPiece"})  # at most a space per token


def vetted(path: Path) -> str:
    """Return the JSON of a tokenizer that decodes as the one in a file does. Raises OSError, or ValueError in words.

    It is written anew, so that the library reads what was looked at here, whatever two readers of JSON make of a file.
    What only encoding needs is left out: it may hold expressions that take for ever, or all memory, to compile.
    """
    recorded = json.loads(path.read_bytes())
    if not isinstance(recorded, dict):
        raise ValueError("it is no object")
    needed = {name: recorded.get(name) for name in ("version", "added_tokens", "decoder", "model")}
    if (growth := prod(map(_growth, _steps(needed["decoder"])))) > MAX_GROWTH:
        raise ValueError(f"it makes a text {growth:.0f} times as long as its tokens")
    if isinstance(model := needed["model"], dict) and "merges" in model:
        needed["model"] = {**model, "merges": []}
    return json.dumps({**needed, "added_tokens": needed["added_tokens"] or []})


def _steps(decoder: Any) -> Iterator[dict[str, Any]]:
    pending = [] if decoder is None else [decoder]
    while pending:
        step = pending.pop()
        if isinstance(step, dict) and step.get("type") == "Sequence" and isinstance(step.get("decoders"), list):
            pending += step["decoders"]
        elif isinstance(step, dict) and step.get("type") in ("Replace", *MATCHED, *PLAIN):
            yield step
        else:
            raise ValueError("it decodes in a way that is not known here")


def _growth(step: dict[str, Any]) -> float:
    """Return by how much a decoder can multiply the length of a text."""
    if step["type"] in PLAIN:
        return 1
    if step["type"] == "Replace":
        pattern, by = step.get("pattern"), step.get("content")
        if isinstance(pattern, dict) and "Regex" in pattern:
            raise ValueError("it decodes by regular expressions, which is not done for a file that may be anybody's")
        found = pattern.get("String") if isinstance(pattern, dict) else None
    else:
        found, by = step.get(MATCHED[step["type"]]), " "
    if not (isinstance(found, str) and isinstance(by, str) and found):
        raise ValueError("it replaces what is no text, or by what is none")
    return max(1, len(by.encode("utf-8", "replace")) / len(found.encode("utf-8", "replace")))
