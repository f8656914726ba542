"""The mappings that come with the package, each read when it is asked for."""

from __future__ import annotations

from functools import cache, partial
from pathlib import Path

from .mapping import Mapping
from .mapping_file import read_mapping
from .source import TableSource

FOLDER = Path(__file__).parent / "presets"
# The order in which a place is tried: conventions that many share come last.
PRESETS = (
    "verl", "trl", "ms-swift", "nemo-rl", "nemo-gym", "skyrl", "areal", "roll", "open-instruct", "chat",
)  # fmt: skip


@cache
def preset(name: str) -> Mapping:
    """Return a mapping that comes with the package."""
    return read_mapping(FOLDER / f"{name}.toml")


def source(name: str, tokenizer: str | None = None) -> TableSource:
    """Return the source of a mapping that comes with the package."""
    mapping = preset(name)
    others = tuple(preset(other) for other in PRESETS if other != name) if mapping.generic else ()
    return TableSource(mapping, tokenizer, others)


verl = partial(source, "verl")
trl = partial(source, "trl")
ms_swift = partial(source, "ms-swift")
nemo_rl = partial(source, "nemo-rl")
nemo_gym = partial(source, "nemo-gym")
skyrl = partial(source, "skyrl")
areal = partial(source, "areal")
roll = partial(source, "roll")
open_instruct = partial(source, "open-instruct")
chat = partial(source, "chat")
