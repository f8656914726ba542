"""Mappings: as TOML that anybody may have written, and as proposed for any file."""

from __future__ import annotations

from rltracer_sqlite.sources.base import Shard, SourceError
from rltracer_sqlite.sources.table import MappingError, mapping_source_from_text
from rltracer_sqlite.sources.table.built_in import FOLDER, PRESETS
from rltracer_sqlite.sources.table.guess import guess_mapping
from rltracer_sqlite.sources.table.mapping import KINDS, LAYOUTS, ROLES

from ..invariants import entries, scanned
from ..scratch import scratch
from ..target import Target
from .tables import check_load, table_seeds, words

ROWS = (
    b'{"prompt":"q","completion":"a","reward":1,"step":2,"id":"x","n":[1,2],"o":{"a":0.5}}\n'
    b'{"messages":[{"role":"user","content":"q"},{"role":"assistant","content":"a"}],"reward":[0.5,1],"tools":"[]"}\n'
    b'{"prompt":["a","b"],"completion":["c","d"],"reward":{"x":1},"prompt_ids":[1],"completion_ids":[2],"step":"7"}\n'
)


def check_mapping(data: bytes) -> None:
    """A mapping is refused in a sentence, or reads rows into entries that can be loaded."""
    try:
        source = mapping_source_from_text(data.decode("utf-8", "replace"))
    except MappingError as error:
        assert str(error).startswith("the mapping in the index")
        return
    root, shard = scratch("mappings"), Shard("a.jsonl", "a.jsonl", "lines")
    (root / "a.jsonl").write_bytes(ROWS)
    source.recognises(root)
    assert all(shard.path for shard in source.shards(root))
    for entry in entries(scanned(source, root, shard)):
        check_load(source, root, shard, entry)


def mapping_seeds() -> list[bytes]:
    """Return the built-in mappings, and short ones that fit the rows."""
    short = (
        b'name="a"\ntitle="t"\n[files]\npaths=["*.jsonl"]\n[content]\nkind="text"\nprompt="prompt"\ncompletion="completion"\n'
        b'[columns]\nreward="reward"\nid="id"\nstep={column="step"}\n[rewards]\ncolumns=["reward"]\ninside="o"\n'
    )
    messages = (
        b'name="b"\n[content]\nkind="messages"\nmessages="messages"\n[columns]\nreward={column="reward", sum=true}\n'
    )
    columns = b'name="c"\nlayout="columns"\n[content]\nkind="rendered"\nprompt="prompt"\ncompletion="completion"\n'
    return [short, messages, columns, *((FOLDER / f"{name}.toml").read_bytes() for name in PRESETS)]


def check_guess(data: bytes) -> None:
    """What is proposed for a file is a mapping, and reads that file; or it is said why there is none."""
    head, content = data[0] if data else 0, data[1:]
    file = scratch("guess") / ("a.json" if head >= 128 else "a.jsonl")
    file.write_bytes(content)
    try:
        guess = guess_mapping(file)
    except SourceError as error:
        assert str(error)
        return
    try:
        source = mapping_source_from_text(guess.toml)
    except MappingError as error:
        # A file in which nothing looks like a conversation gets a mapping for a person to complete.
        assert any("not complete" in note for note in guess.notes), (guess.toml, error)
        return
    shard = Shard(file.name, file.name, "json" if head >= 128 else "lines")
    for entry in entries(scanned(source, file.parent, shard))[:20]:
        check_load(source, file.parent, shard, entry)


KEYS = (
    *ROLES, *KINDS, *LAYOUTS, "name", "title", "layout", "explode", "[files]", "paths", "table", "[content]", "kind",
    "messages",
    "prompt", "completion", "segments", "role", "text", "roles", "family", "[columns]", "column", "sum", "like",
    "values",
    "[rewards]", "inside", "numbers", "[[shape]]", "[[variant]]", "[[aside]]", "has", "lacks", "{step}", "{split}",
    "{}", "*",
    '"', "'''", "= [", "= {", "\n",
)  # fmt: skip
TARGETS = {
    "mappings": Target(
        "mappings", "mappings in TOML that anybody may have written", check_mapping, mapping_seeds, "text", KEYS
    ),
    "guess": Target("guess", "mappings proposed for any file", check_guess, table_seeds, "json", words()),
}
