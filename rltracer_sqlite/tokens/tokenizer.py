"""Text from token ids: a local tokenizer.json read as data, never as code and never over the network."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from ..amounts import plural
from ..errors import SourceError
from .bytetable import MAX_TOKEN, read_byte_table
from .decoders import vetted

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
INSTALL = "pip install 'datasette-rltracer[primerl]'"
MISFIT_SHARE = 0.05  # so much of a text in replacement characters says that its ids mean something else
MISFIT_LEAST = 8  # of them: fewer come from characters that were cut off at either end, or stood in the text
OWN = "Choose the policy's own with --tokenizer."
PREFIX = 4  # tokens before a token that are enough for a decoder to know its surroundings
WAIT = 16  # tokens that may make a character together: bytes that are no text would be waited for without end
LOOK_AHEAD = 256  # characters


class TokenizerError(SourceError):
    """A tokenizer that cannot be used, in a sentence that says what to do."""


class Engine(Protocol):
    """One way of turning ids into text."""

    size: int
    added: dict[str, int]
    special_ids: frozenset[int]

    def knows(self, token_id: int) -> bool: ...

    def decode(self, ids: Sequence[int]) -> str: ...

    def pieces(self, ids: Sequence[int]) -> list[str]: ...


def load_tokenizer(path: str | Path) -> TextTokenizer:
    """Return the tokenizer of a local tokenizer.json, or of the folder that holds one. It is read on first use.

    Raises TokenizerError when there is no such file.
    """
    place = Path(path).expanduser()
    file = place / "tokenizer.json" if place.is_dir() else place
    if not file.is_file():
        raise TokenizerError(
            f"There is no tokenizer.json at {place}. Give that file or the folder that holds it: "
            "the name of a model is not looked up."
        )
    return TextTokenizer(file)


class TextTokenizer:
    """Turns token ids into text. Ids that its vocabulary lacks become U+FFFD, and are counted by `unknown`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[type[TextTokenizer], tuple[Path]]:
        return TextTokenizer, (self.path,)

    @property
    def name(self) -> str:
        """Return what a person would call it: the folder of a tokenizer.json, else the file."""
        return self.path.parent.name if self.path.name == "tokenizer.json" else self.path.name

    @property
    def size(self) -> int:
        """Return the largest id of the vocabulary, plus one."""
        return self._engine.size

    @property
    def special_ids(self) -> frozenset[int]:
        """Return the ids of the tokens that carry structure and no text, such as <|im_end|>."""
        return self._engine.special_ids

    def id_of(self, text: str) -> int | None:
        """Return the id of an added token such as "<tool_call>", or None where it is not a single token."""
        return self._engine.added.get(text)

    def decode(self, ids: Sequence[int]) -> str:
        """Return the text of the ids, special tokens included."""
        return self._engine.decode(ids)

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """Return a text per id; joined they are exactly `decode(ids)`.

        A character that several tokens make together stands at the last of them, and the others are empty.
        """
        return self._engine.pieces(ids)

    def unknown(self, ids: Sequence[int]) -> int:
        """Return how many of the ids are outside the vocabulary."""
        knows = self._engine.knows
        return sum(not knows(token_id) for token_id in ids)

    def misfit(self, ids: Sequence[int]) -> str | None:
        """Return a sentence saying why this tokenizer cannot be the one behind the ids, or None."""
        unknown = self.unknown(ids)
        if unknown:
            found = f"{unknown:,} of {plural(len(ids), 'token id')} outside its vocabulary of {self.size:,}"
        else:
            text = self.decode(ids)
            broken = text.count(REPLACEMENT)
            if broken < MISFIT_LEAST or broken <= MISFIT_SHARE * len(text):
                return None
            found = f"{broken:,} of {len(text):,} characters that it gives are no valid text"
        return f"The tokenizer {self.path} does not fit these files: {found}. {OWN}"

    def unmarked(self, ids: int, marks: int) -> str:
        """Return a sentence saying that none of so many ids is one of its so many special tokens."""
        found = f"none of {plural(ids, 'token id')} is one of its {plural(marks, 'special token')}, which mark turns"
        return f"The tokenizer {self.path} seems not to fit these files: {found}. {OWN}"

    @cached_property
    def _engine(self) -> Engine:
        with _refused_in_a_sentence(self.path):
            table = read_byte_table(self.path)
        return table if table is not None else LibraryEngine(self.path)


@contextmanager
def _refused_in_a_sentence(path: Path) -> Iterator[None]:
    """Raise TokenizerError for whatever reading a tokenizer, or the `tokenizers` library, raises."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:  # a panic of Rust is no Exception
        raise TokenizerError(f"{path} cannot be read as a tokenizer: {error}.") from None


class LibraryEngine:
    """The `tokenizers` library, for every kind of tokenizer that is no byte-level BPE."""

    def __init__(self, path: Path) -> None:
        try:
            from tokenizers import Tokenizer
        except ImportError:
            raise TokenizerError(f"This kind of tokenizer needs the tokenizers package: {INSTALL}.") from None
        self.path = path
        with _refused_in_a_sentence(path):
            self.tokenizer: Any = Tokenizer.from_str(vetted(path))
            vocabulary = self.tokenizer.get_vocab(with_added_tokens=True)
            if (longest := max(map(len, map(str.encode, vocabulary)), default=0)) > MAX_TOKEN:
                raise ValueError(f"it has a token of {longest:,} bytes")
        self.known = frozenset(vocabulary.values())
        self.size = max(self.known, default=-1) + 1
        decoder = self.tokenizer.get_added_tokens_decoder()
        self.added = {token.content: token_id for token_id, token in decoder.items()}
        self.special_ids = frozenset(token_id for token_id, token in decoder.items() if token.special)

    def knows(self, token_id: int) -> bool:
        return token_id in self.known

    def decode(self, ids: Sequence[int]) -> str:
        return "".join(self._text(run) if known else REPLACEMENT * len(run) for known, run in self._runs(ids))

    def pieces(self, ids: Sequence[int]) -> list[str]:
        pieces: list[str] = []
        for known, run in self._runs(ids):
            pieces += self._pieces(run) if known else [REPLACEMENT] * len(run)
        return pieces

    def _runs(self, ids: Sequence[int]) -> list[tuple[bool, list[int]]]:
        # The library leaves unknown ids out without a word, so they never reach it.
        runs: list[tuple[bool, list[int]]] = []
        for token_id in ids:
            known = token_id in self.known
            if not runs or runs[-1][0] != known:
                runs.append((known, []))
            runs[-1][1].append(token_id)
        return runs

    def _text(self, ids: list[int]) -> str:
        with _refused_in_a_sentence(self.path):
            return str(self.tokenizer.decode(ids, skip_special_tokens=False))

    def _pieces(self, ids: list[int]) -> list[str]:
        pieces: list[str] = []
        # What is decoded together begins behind a whole piece, PREFIX tokens or more before the next one.
        ends, before = deque([0]), ""
        for end in range(1, len(ids) + 1):
            after = self._text(ids[ends[0] : end])
            complete = after.startswith(before) and not after.endswith(REPLACEMENT)
            if not complete and end < len(ids) and end - ends[-1] < WAIT:
                pieces.append("")  # part of a character: the token that completes it gets it
                continue
            if not after.startswith(before):  # earlier bytes come out otherwise with these
                pieces[ends[0] :], before = [""] * (end - 1 - ends[0]), ""
            pieces.append(after[len(before) :])
            ends.append(end)
            while len(ends) > 1 and (not complete or ends[1] <= end - PREFIX):
                ends.popleft()
            before = self._text(ids[ends[0] : end])
        return _aligned(pieces, self._text(ids))


def _aligned(pieces: list[str], whole: str) -> list[str]:
    """Return the pieces with what a decoder does only to a whole text (such as dropping a space) put right."""
    aligned, at = [], 0
    for piece in pieces:
        fits = next((form for form in (piece, piece.lstrip(), piece.strip()) if whole.startswith(form, at)), "")
        if not fits and (text := piece.strip()) and (found := whole.find(text, at, at + LOOK_AHEAD)) >= 0:
            fits = whole[at : found + len(text)]  # what lies between came out otherwise than from its tokens alone
        aligned.append(fits)
        at += len(fits)
    if aligned:
        aligned[-1] += whole[at:]
    return aligned
