"""Tables of rows that a declarative mapping describes: most systems' rollouts, without code of their own."""

from __future__ import annotations

from pathlib import Path

from .mapping import Mapping, MappingError
from .source import TableSource


def mapping_source(path: str | Path, tokenizer: str | None = None) -> TableSource:
    """Return the source of a mapping in a TOML file. Raises MappingError naming the file, the line and the key."""
    from .mapping_file import read_mapping

    return TableSource(_own(read_mapping(Path(path)), str(path)), tokenizer, is_own=True)


def mapping_source_from_text(text: str, tokenizer: str | None = None) -> TableSource:
    """Return the source of a mapping's TOML text, as an index keeps it (`source.mapping.text`). Raises MappingError."""
    from .mapping_file import parse_mapping

    return TableSource(parse_mapping(text, "the mapping in the index"), tokenizer)


def _own(mapping: Mapping, file: str) -> Mapping:
    from ..installed import source_names
    from .toml import line_of

    if mapping.name in source_names():
        line = line_of(mapping.text, ("name",))
        raise MappingError(
            f"{file}, line {line}, key name: {mapping.name!r} is a built-in source; choose another name."
        )
    return mapping


__all__ = ["Mapping", "MappingError", "TableSource", "mapping_source", "mapping_source_from_text"]
