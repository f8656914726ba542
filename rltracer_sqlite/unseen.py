"""Characters that a browser or a picture drops, obeys or hides, in text that others have named: shown as symbols."""

from __future__ import annotations

import re
from collections.abc import Callable

# Control characters, a lone carriage return, line separators, zero-width and bidirectional marks, tag characters, and
# halves of surrogate pairs, which cannot be sent as UTF-8 at all.
INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000e0000-\U000e007f]"
)
LONE_RETURN = re.compile("\r(?!\n)")
# For ASCII, translating and comparing is ten times as fast as searching.
CONTROLS = {code: "?" for code in (*range(32), 127) if chr(code) not in "\t\n\r"}


def plain(text: object) -> str:
    """Return text whose invisible characters are symbols: for titles, attributes and pictures, without mark-up."""
    return shown("" if text is None else str(text), LONE_RETURN, lambda found: symbol(found[0]))


def shown(text: str, returns: re.Pattern[str], mark: Callable[[re.Match[str]], str]) -> str:
    """Return text with a mark for each invisible character, and for each carriage return that `returns` finds."""
    if not text.isascii() or text.translate(CONTROLS) != text:
        text = INVISIBLE.sub(mark, text)
    return returns.sub(mark, text) if "\r" in text else text


def symbol(character: str) -> str:
    """Return the printable stand-in of an invisible character: ␛ for a C0 control, else U+202E in brackets."""
    code = ord(character)
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"⟨U+{code:04X}⟩"
