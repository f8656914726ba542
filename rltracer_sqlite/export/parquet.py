"""Rows to Parquet, with a schema that `datasets` reads: one type per column, whatever the first row looks like.

The rows go to a temporary file first, since only all of them tell the types: whether any message has parts, and
which values of a column are text. What has no common type stands there as JSON.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any

import orjson

from .errors import ExportError
from .lines import Row, line

if TYPE_CHECKING:
    import pyarrow

BATCH_BYTES = 16 << 20
CONVERSATIONS = ("messages", "prompt", "chosen", "rejected")
IMAGE = ("image_url", "image")  # keys of a part: {"url": …}, and text such as a path


def write_parquet(file: IO[bytes], rows: Iterable[Row]) -> None:
    """Write rows to an open file as Parquet. Raises ExportError where pyarrow is not installed."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise ExportError(
            "Parquet needs pyarrow: pip install 'datasette-rltracer[parquet]', or write .jsonl."
        ) from None
    with tempfile.TemporaryFile() as spool:
        shape = Shape()
        for row in rows:
            shape.see(row)
            spool.write(line(row))
        spool.seek(0)
        schema = pyarrow.schema([(name, shape.type_of(name)) for name in shape.columns])
        with pyarrow.parquet.ParquetWriter(file, schema, compression="zstd") as writer:
            for batch in _batches(spool):
                table = pyarrow.Table.from_pylist([shape.fitted(row) for row in batch], schema=schema)
                writer.write_table(table)


def _batches(spool: IO[bytes]) -> Iterator[list[Row]]:
    batch: list[Row] = []
    size = 0
    for encoded in spool:
        batch.append(orjson.loads(encoded))
        size += len(encoded)
        if size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class Shape:
    """What the rows of an export have in common, learned row by row."""

    def __init__(self) -> None:
        self.columns: dict[str, set[str]] = {}
        self.has_parts = False
        self.images: set[str] = set()  # how parts hold them, of IMAGE and "detail"

    def see(self, row: Row) -> None:
        """Take a row into account."""
        for name, value in row.items():
            self.columns.setdefault(name, set()).add(_kind(name, value))
            if name in CONVERSATIONS and isinstance(value, list):
                self._see_parts(value)

    def _see_parts(self, messages: list[dict[str, Any]]) -> None:
        for content in (message.get("content") for message in messages):
            if isinstance(content, list):
                self.has_parts = True
                self.images.update(*(_image_keys(part) for part in content))

    def type_of(self, name: str) -> pyarrow.DataType:
        """Return the Arrow type of a column."""
        import pyarrow as pa

        if name in CONVERSATIONS:
            return pa.list_(self._message())
        if name == "trace_provenance":
            return pa.string()
        kinds = self.columns[name] - {"null"}
        plain = {"text": pa.string(), "integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_()}
        if kinds <= {"integer", "number"} and kinds:
            return plain["integer" if kinds == {"integer"} else "number"]
        return plain.get(next(iter(kinds)), pa.string()) if len(kinds) == 1 else pa.string()

    def _message(self) -> pyarrow.DataType:
        import pyarrow as pa

        # A part of text has null beside it, which some chat templates take for an image: only what was met is there.
        address = pa.struct([(name, pa.string()) for name in ("url", "detail") if name == "url" or name in self.images])
        types = {"image_url": address, "image": pa.string()}
        part = pa.struct(
            [
                ("type", pa.string()),
                ("text", pa.string()),
                *((name, types[name]) for name in IMAGE if name in self.images),
            ]
        )
        function = pa.struct([("name", pa.string()), ("arguments", pa.string())])
        call = pa.struct([("id", pa.string()), ("type", pa.string()), ("function", function)])
        return pa.struct(
            [
                ("role", pa.string()),
                ("content", pa.list_(part) if self.has_parts else pa.string()),
                ("reasoning_content", pa.string()),
                ("tool_calls", pa.list_(call)),
                ("tool_call_id", pa.string()),
                ("name", pa.string()),
            ]
        )

    def fitted(self, row: Row) -> Row:
        """Return a row in the types of its columns."""
        return {name: self._fitted(name, row.get(name)) for name in self.columns}

    def _fitted(self, name: str, value: Any) -> Any:
        if value is None:
            return None
        if name in CONVERSATIONS:
            return [self._fitted_message(message) for message in value]
        kinds = self.columns[name] - {"null"}
        if name != "trace_provenance" and ((len(kinds) == 1 and kinds != {"json"}) or kinds <= {"integer", "number"}):
            return value
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)

    def _fitted_message(self, message: dict[str, Any]) -> dict[str, Any]:
        content = message.get("content")
        if self.has_parts:
            content = [_part(part) for part in (content if isinstance(content, list) else [content or ""])]
        elif not isinstance(content, str):
            content = "" if content is None else json.dumps(content, ensure_ascii=False)
        return {**message, "content": content}


def _part(part: Any) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    if isinstance(part, dict) and set(part) <= {"type", "text"} and all(isinstance(v, str) for v in part.values()):
        return part
    if _image_keys(part):
        return part  # type: ignore[no-any-return]
    # A kind of part that the schema does not know keeps its content as text.
    kind = part.get("type") if isinstance(part, dict) else None
    return {"type": kind if isinstance(kind, str) else "text", "text": json.dumps(part, ensure_ascii=False)}


def _image_keys(part: Any) -> set[str]:
    """Return the keys under which a part holds an image in the forms that the schema knows; of all else none."""
    if not isinstance(part, dict) or not isinstance(part.get("type"), str):
        return set()
    if set(part) == {"type", "image"} and isinstance(part["image"], str):
        return {"image"}
    address = part.get("image_url")
    if set(part) != {"type", "image_url"} or not isinstance(address, dict):
        return set()
    known = {"url"} <= set(address) <= {"url", "detail"} and all(isinstance(value, str) for value in address.values())
    return {"image_url", *address} - {"url"} if known else set()


def _kind(name: str, value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int):
        return "integer" if -(2**63) <= value < 2**63 else "json"
    if isinstance(value, float):
        return "number"
    return "text" if isinstance(value, str) else "json"
