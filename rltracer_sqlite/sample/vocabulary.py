"""A small tokenizer learnt from the sample's own texts: byte-level byte-pair encoding with ChatML's markers.

The method is that of Sennrich et al. (https://arxiv.org/abs/1508.07909) over bytes, as GPT-2 and Qwen use it; the
file is a `tokenizer.json` of the `tokenizers` library, which reads it and gives the same ids.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import cache
from heapq import heapify, heappop, heappush
from itertools import pairwise
from typing import Any

from ..tokens.bytetable import byte_alphabet

# A word with what stands before it, a digit, a run of signs, or white space: close to Qwen's pattern, in what
# Python's regular expressions and those of the library have in common.
WORDS = r"[^\r\n\w]?[^\W\d_]+|\d| ?(?:[^\s\w]|_)+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
SPECIALS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
TAGS = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")
ADDED = (*SPECIALS, *TAGS)

Pair = tuple[int, int]


CHARACTERS = byte_alphabet()
# Ids as in GPT-2 and Qwen: the printable bytes first.
BYTE_IDS = {byte: number for number, byte in enumerate(sorted(range(256), key=lambda byte: CHARACTERS[byte]))}


class Vocabulary:
    """Tokens by their ids: the 256 bytes, the merges in the order in which they were learnt, the markers."""

    def __init__(self, merges: Iterable[Pair]) -> None:
        self.tokens = [bytes([byte]) for byte in BYTE_IDS]
        self.ranks: dict[Pair, int] = {}
        for pair in merges:
            self.ranks[pair] = len(self.tokens)
            self.tokens.append(self.tokens[pair[0]] + self.tokens[pair[1]])
        self.added = {text: len(self.tokens) + number for number, text in enumerate(ADDED)}
        self._word = cache(self._merged)

    def encode(self, text: str) -> list[int]:
        """Return the ids of a text. A marker in it is one token."""
        ids: list[int] = []
        for part in re.split("(" + "|".join(map(re.escape, ADDED)) + ")", text):
            if part in self.added:
                ids.append(self.added[part])
            else:
                for word in re.findall(WORDS, part):
                    ids += self._word(word)
        return ids

    def pieces(self, ids: Iterable[int]) -> list[bytes]:
        """Return the bytes of each id."""
        added = {number: text.encode() for text, number in self.added.items()}
        return [added[number] if number in added else self.tokens[number] for number in ids]

    def record(self) -> dict[str, Any]:
        """Return the content of a tokenizer.json."""
        names = ["".join(CHARACTERS[byte] for byte in token) for token in self.tokens]
        flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
        split = {"type": "Split", "pattern": {"Regex": WORDS}, "behavior": "Isolated", "invert": False}
        level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": False, "use_regex": False}
        return {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": [
                {"id": number, "content": text, **flags, "special": text in SPECIALS}
                for text, number in self.added.items()
            ],
            "normalizer": None,
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": [split, level]},
            "post_processor": None,
            "decoder": level,
            "model": {
                "type": "BPE",
                "dropout": None,
                "unk_token": None,
                "continuing_subword_prefix": "",
                "end_of_word_suffix": "",
                "fuse_unk": False,
                "byte_fallback": False,
                "ignore_merges": False,
                "vocab": {name: number for number, name in enumerate(names)},
                "merges": [[names[left], names[right]] for left, right in self.ranks],
            },
        }

    def _merged(self, word: str) -> list[int]:
        ids = [BYTE_IDS[byte] for byte in word.encode()]
        while len(ids) > 1:
            rank, pair = min((self.ranks.get(pair, len(self.tokens)), pair) for pair in pairwise(ids))
            if rank == len(self.tokens):
                break
            ids = _replaced(ids, pair, rank)
        return ids


def learn(texts: Iterable[str], merges: int) -> Vocabulary:
    """Return the vocabulary of that many merges: each joins the pair of tokens that is most frequent by then."""
    counted: Counter[str] = Counter()
    for text in texts:
        counted.update(re.findall(WORDS, text))
    words = [[BYTE_IDS[byte] for byte in word.encode()] for word in counted]
    counts = list(counted.values())
    frequency: Counter[Pair] = Counter()
    places: defaultdict[Pair, set[int]] = defaultdict(set)
    for number, word in enumerate(words):
        _count(word, number, counts[number], frequency, places)
    # Counts change after a pair was queued, so an entry is good only where it still tells the count.
    queue = [(-count, pair) for pair, count in frequency.items()]
    heapify(queue)
    learnt: list[Pair] = []
    while queue and len(learnt) < merges:
        count, pair = heappop(queue)
        if frequency[pair] != -count or not count:
            continue
        changed: set[Pair] = set()
        for number in sorted(places[pair]):
            changed |= _count(words[number], number, -counts[number], frequency, places)
            words[number] = _replaced(words[number], pair, len(BYTE_IDS) + len(learnt))
            changed |= _count(words[number], number, counts[number], frequency, places)
        learnt.append(pair)
        for other in changed:
            heappush(queue, (-frequency[other], other))
    return Vocabulary(learnt)


def _count(
    word: list[int], number: int, count: int, frequency: Counter[Pair], places: defaultdict[Pair, set[int]]
) -> set[Pair]:
    """Add a word's pairs, or take them away by a negative count, and return them."""
    pairs = list(pairwise(word))
    for pair in pairs:
        frequency[pair] += count
        (places[pair].add if count > 0 else places[pair].discard)(number)
    return set(pairs)


def _replaced(ids: list[int], pair: Pair, joined: int) -> list[int]:
    replaced: list[int] = []
    for token in ids:
        # What was joined just now cannot be the left half again, since it has a new id.
        if replaced and (replaced[-1], token) == pair:
            replaced[-1] = joined
        else:
            replaced.append(token)
    return replaced
