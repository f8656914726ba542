"""Files of a run that its source does not read, and that could hold rollouts by their names: each is told, with why.

They come with what is walked for the source in any case; nothing is asked of the file system for them.
"""

from __future__ import annotations

import re
from pathlib import PurePosixPath

from .base import PACKED, Shard
from .places import kept_name

LAYOUT = "other"  # of the shards that such files are
READ = (".jsonl", ".json", ".parquet", ".db", ".sqlite", ".sqlite3")  # kinds that a source or a mapping can read
NOT_READ = (".ndjson", ".csv", ".tsv", ".arrow", ".feather", ".msgpack", ".pkl", ".pickle")
ARCHIVES, PACKINGS = (".zip", ".tar", ".tgz"), (".gz", ".xz", ".bz2", ".lz4")
# Metrics and indexes of lines, as prime-rl writes them, and what is hidden.
SKIPPED_FILES = re.compile(r"(\.index\.jsonl|^metrics\.jsonl|^index\.jsonl|^\..*)$")
# Settings, vocabularies, indexes of weights and states of a trainer, as Hugging Face's libraries, prime-rl and
# verifiers call them.
SETTINGS = re.compile(
    r"(?:^|/)configs?/|(?:^|/)(?:[^/]*config[^/]*|[^/]*\.index|tokenizer|special_tokens_map|added_tokens|vocab"
    r"|chat_template|trainer_state|training_info|metadata|plan|orchestrator|trainer|inference"
    r"|wandb-[^/]*)\.json$"
)
# Known and not read yet, as sources.table.refused tells them by their content: what they are, and what is their run's.
UNREAD: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("Inspect AI logs", re.compile(r"(?:^|/)(?:[^/]+\.eval|\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d[^/]*\.json)$")),
    ("rollouts of slime or miles", re.compile(r"(?:^|/)rollout_data/(?:eval_)?\d+\.pt$")),
    (
        "trials of Harbor",
        re.compile(r"(?:^|/)(?:[^/]+/agent/trajectory\.json|[^/]+__[A-Za-z0-9]{5,12}/(?:config|result)\.json)$"),
    ),
    ("tables of W&B", re.compile(r"(?:^|/)files/media/table/(?:[^/]+/)*[^/]+\.table\.json$")),
    ("rollout summaries of the Tinker cookbook", re.compile(r"(?:^|/)[^/]+_rollout_summaries\.jsonl$")),
    ("trajectories of SWE-agent", re.compile(r"(?:^|/)[^/]+\.traj(?:\.json)?$")),
)
UNREAD_ENDINGS = (".eval", ".pt", ".json", ".jsonl", ".traj")
ENDINGS = (*READ, *NOT_READ, *ARCHIVES, *PACKINGS, *UNREAD_ENDINGS, PACKED)
NOT_NAMED = (
    "named as no file of {source}; to read one, index it by itself: rltracer-index another.sqlite FILE (with --mapping "
    "my.toml for a format of your own)"
)


def is_skipped(path: str) -> bool:
    """Say whether a file is never looked at, whatever its ending: by its name it has nothing to do with rollouts."""
    return SKIPPED_FILES.search(path.rpartition("/")[2].removesuffix(PACKED)) is not None


def unread_kind(path: str) -> tuple[str, re.Match[str]] | None:
    """Return what a file of a known system that is not read yet is, and where its place begins; None for others."""
    if not path.endswith(UNREAD_ENDINGS):
        return None
    return next(((what, match) for what, pattern in UNREAD if (match := pattern.search(path))), None)


def why_aside(path: str, source: str) -> str:
    """Return why a file that a source does not read is left aside; "" where nothing of its name speaks of rollouts."""
    if not path.endswith(ENDINGS) or is_skipped(path):
        return ""
    if (kind := unread_kind(path)) is not None:
        return f"{kind[0]}, which this version does not read yet"
    plain = path.removesuffix(PACKED)
    if plain.endswith(READ):
        return "" if SETTINGS.search(plain) else NOT_NAMED.format(source=source)
    if plain.endswith(NOT_READ):
        return "a kind of file that is not read; write it as JSON lines or as Parquet"
    inner = PurePosixPath(plain).stem
    is_packed = plain.endswith(ARCHIVES) or (plain.endswith(PACKINGS) and inner.endswith((*READ, *NOT_READ, *ARCHIVES)))
    return "packed as nothing here is read; unpack it, or pack it as .zst" if is_packed else ""


def other_shard(file: str, source: str) -> Shard | None:
    """Return the shard that a file is which a source does not read; None where its name speaks of no rollouts."""
    if not (why := why_aside(file, source)):
        return None
    file = kept_name(file)
    return Shard(file.removesuffix(PACKED), file, LAYOUT, aside=why)


def is_other(shard: Shard) -> bool:
    """Say whether a shard is a file that its source knows nothing of."""
    return shard.layout == LAYOUT
