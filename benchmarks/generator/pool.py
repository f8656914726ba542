"""Snippets tokenized once: joining snippets joins their token ids, so that large runs are made quickly."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.random import Generator, default_rng
from numpy.typing import NDArray

from .snippets import KINDS, MIXTURES

Ids = NDArray[np.int32]
VOCABULARY = 151_643  # Qwen3's ordinary tokens
PER_KIND = 1200
KEPT_TEXTS = 50_000


class Pool:
    """A fixed number of snippets of each kind, and their token ids.

    With a Qwen3 tokenizer.json the ids are real and decode to the text. Without one they are random, a fourth as
    many as the text has characters.
    """

    def __init__(self, seed: int, tokenizer: str | None) -> None:
        self.texts = {
            kind: [make(default_rng([seed, 7, place, number])) for number in range(PER_KIND)]
            for place, (kind, make) in enumerate(KINDS.items())
        }
        self.tokenizer = None
        if tokenizer:
            from tokenizers import Tokenizer

            self.tokenizer = Tokenizer.from_file(tokenizer)
        self.ids = {kind: self._tokenize(seed, kind) for kind in KINDS}
        self.known: dict[str, Ids] = {}

    def _tokenize(self, seed: int, kind: str) -> list[Ids]:
        texts = self.texts[kind]
        if self.tokenizer:
            encoded = self.tokenizer.encode_batch(texts, add_special_tokens=False)
            return [np.array(one.ids, dtype=np.int32) for one in encoded]
        rng = default_rng([seed, 8, len(kind)])
        return [rng.integers(0, VOCABULARY, max(1, len(text) // 4)).astype(np.int32) for text in texts]

    def encode(self, text: str) -> Ids:
        """Return the token ids of a short text between snippets, such as a role's name."""
        if text in self.known:
            return self.known[text]
        if self.tokenizer:
            ids = np.array(self.tokenizer.encode(text, add_special_tokens=False).ids, dtype=np.int32)
        else:
            seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=4).digest(), "big")
            ids = default_rng(seed).integers(0, VOCABULARY, max(1, len(text) // 4)).astype(np.int32)
        if len(self.known) < KEPT_TEXTS:
            self.known[text] = ids
        return ids

    def snippet(self, kind: str, number: int) -> tuple[str, Ids]:
        """Return one snippet and its ids."""
        return self.texts[kind][number], self.ids[kind][number]

    def draw(self, rng: Generator, mixture: str, tokens: int) -> tuple[str, Ids]:
        """Return a text of at least `tokens` tokens, and its ids."""
        kinds, shares = MIXTURES[mixture]
        texts: list[str] = []
        ids: list[Ids] = []
        while sum(len(part) for part in ids) < tokens:
            kind = kinds[int(rng.choice(len(kinds), p=shares))]
            text, part = self.snippet(kind, int(rng.integers(PER_KIND)))
            texts.append(text)
            ids.append(part)
        return "".join(texts), np.concatenate(ids)
