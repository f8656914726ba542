"""Where prime-rl and verifiers put their files: shards, steps and splits from paths, without opening anything.

A path only suggests what a file holds; what each line is, its content decides (`record_types`). The layouts are those
of prime-rl from 2025-12 to 2026-09 and of verifiers' evaluations; docs/formats.md lists them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ..base import PACKED, Shard, SourceError
from ..other_files import is_other, is_skipped, other_shard
from ..places import CLOSED, FOLDER, LINK, SKIPPED_FOLDERS, Root, base_folder, kept_name, real_place, walk

# Folders beside the rollouts that hold weights, logs or unfinished work, and often very many files.
PASSED_OVER = SKIPPED_FOLDERS | {"broadcasts", "live"}

LAYOUTS: list[tuple[str, re.Pattern[str]]] = [
    (
        "traces",
        re.compile(
            r"(?:^|/)step_(?P<step>\d{1,15})/(?P<split>train|eval)/(?P<part>all|effective)/(?:[^/]+/)?traces\.jsonl$"
        ),
    ),
    ("rollouts", re.compile(r"(?:^|/)step_(?P<step>\d{1,15})/(?P<split>train|eval)_rollouts(?:_[^/]+)?\.jsonl$")),
    ("stream", re.compile(r"(?:^|/)traces/stream/\d+\.jsonl$")),
    ("stream", re.compile(r"(?:^|/)traces/annotations/(?P<producer>[^/]+)/\d+\.jsonl$")),
    ("stream", re.compile(r"(?:^|/)annotations/(?P<producer>[^/]+)\.jsonl$")),
    ("evals", re.compile(r"(?:^|/)evals/step_(?P<step>\d{1,15})/[^/]+/results\.jsonl$")),
    ("evals", re.compile(r"(?:^|/)(?:outputs|evals)/(?:[^/]+/)*(?:results|traces)\.jsonl$")),
    ("token_exports", re.compile(r"(?:^|/)(?:token_exports/)?(?:step_(?P<step>\d{1,15})/)?rank_\d+\.jsonl$")),
    ("training_batch", re.compile(r"(?:^|/)step_(?P<step>\d{1,15})/(?:train_)?rollouts\.bin$")),
    ("batches", re.compile(r"(?:^|/)batches/step_(?P<step>\d{1,15})/(?:[^/]+/)?(?:rank_)?\d+\.(?:bin|pt)$")),
    ("micro_batches", re.compile(r"(?:^|/)step_(?P<step>\d{1,15})/rank_\d+\.(?:bin|pt)$")),
    ("parquet", re.compile(r"(?:^|/)step_(?P<step>\d{1,15})/(?:accepted/)?[^/]+\.parquet$")),
]
# Packed token ids without text, in the order in which they are preferred where they hold the same samples.
TOKEN_LAYOUTS = ("training_batch", "batches", "micro_batches", "token_exports", "parquet")
BINARY = (".bin", ".pt", ".parquet")


def find_shards(root: Root) -> Iterator[Shard]:
    """List the shards at `root`, a folder or one file: records before later facts about them, steps in their order."""
    base = base_folder(root)
    if root.is_file():
        yield shard_of(base, root.name)
        return
    if not root.is_dir():
        raise SourceError(f"{root} " + ("is neither a file nor a folder." if root.exists() else "does not exist."))
    found: dict[str, Shard] = {}
    for shard in _listed(root, base):
        # While a chunk is being sealed both of its forms exist; the plain one is whole in any case.
        if shard.path not in found or not shard.file.endswith(PACKED):
            found[shard.path] = shard
    yield from sorted(found.values(), key=_reading_order)


def _listed(root: Root, base: Root) -> Iterator[Shard]:
    """Yield a shard for each file that may be one, packed or not, and for what has to be told as not readable or read.

    Weights and optimizer states are called .bin and .pt too: only a known place makes them rollouts.
    """
    for path, what in walk(root, PASSED_OVER):
        if what == CLOSED:
            yield shard_of(base, path)  # opening it will fail, and say why
        elif what == FOLDER:
            if (shard := shard_of(base, path)).layout != "file":
                yield shard  # a folder in the place of a file
        elif what == LINK:
            if isinstance(root, Path) and not real_place(root / path).is_relative_to(real_place(root)):
                yield shard_of(base, path)  # opening it will fail, and say why; what is inside is found at its place
        elif (found := _of_file(base, path)) is not None:
            yield found


def _of_file(base: Root, path: str) -> Shard | None:
    plain = path.removesuffix(PACKED)
    if not plain.endswith((".jsonl", *BINARY)):
        return other_shard(path, "prime-rl")
    if is_skipped(path):
        return None
    shard = shard_of(base, path)
    return other_shard(path, "prime-rl") if shard.layout == "file" and plain.endswith(BINARY) else shard


def shard_of(base: Root, file: str) -> Shard:
    """Return the shard that a file is, with what its place in a layout says."""
    file = kept_name(file)
    path = file.removesuffix(PACKED)
    # The folders above `base` count too: a person may point at one step, or at one file.
    place = f"{base.absolute().as_posix()}/{path}"
    for layout, pattern in LAYOUTS:
        if match := pattern.search(place):
            named = match.groupdict()
            split = named.get("split") or ("eval" if layout == "evals" and named.get("step") else None)
            producer = named.get("producer") or ("effective" if named.get("part") == "effective" else None)
            step = int(named["step"]) if named.get("step") else None
            return Shard(path, file, layout, step, split, producer)
    return Shard(path, file, "file")


def _reading_order(shard: Shard) -> tuple[bool, int, int, str]:
    # Records before later facts about them, steps in their order.
    preference = TOKEN_LAYOUTS.index(shard.layout) if shard.layout in TOKEN_LAYOUTS else 0
    return (
        is_other(shard) or shard.producer is not None,
        preference,
        -1 if shard.step is None else shard.step,
        shard.path,
    )
