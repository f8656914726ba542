"""Rows that nobody would write on purpose: each is an entry that can be loaded, or a problem that is told."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rltracer_sqlite import open_run
from rltracer_sqlite.sources import source_named
from rltracer_sqlite.sources.base import Entry, LocatorError, NotRollouts, Position, Problem, Shard
from rltracer_sqlite.sources.table import mapping_source_from_text, recognise
from rltracer_sqlite.sources.table import scan as framed
from rltracer_sqlite.sources.table.built_in import PRESETS, preset
from tests.indexing import index, rows
from tests.table_scans import locator, read

TEXTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n", "system\na\nuser\nb\nassistant\n", "</think>", "[{",
         "<tool_call>{", "\x00", "[1]", '[{"role": "user", "content": null}]', "<｜User｜>x<｜Assistant｜>", "nan"]
    ),
)  # fmt: skip
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-(2**70), 2**70), st.floats(), TEXTS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.sampled_from(["role", "content", "type", "text", "tool_calls", "x.y", ""]), inner, max_size=4
        ),
    ),
    max_leaves=8,
)


def columns(name: str) -> list[str]:
    """Return every top-level column that a preset speaks of."""
    shapes = preset(name).shapes
    named = {column for shape in shapes for role in shape.roles.values() for column in role.columns}
    return sorted({path.split(".")[0] for path in named.union(*(shape.used | set(shape.test.has) for shape in shapes))})


@pytest.mark.parametrize("name", PRESETS)
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_values_in_the_columns_of_a_system(name: str, data: st.DataObject, tmp_path: Path) -> None:
    shape = data.draw(st.sampled_from(preset(name).shapes))
    keys = [*shape.test.has, *data.draw(st.lists(st.sampled_from(columns(name)), max_size=6))]
    values = st.lists(VALUES, min_size=2, max_size=2) if shape.layout == "columns" else VALUES
    record = {key: data.draw(values) for key in keys}
    (tmp_path / "a.jsonl").write_text(json.dumps(record) + "\n", encoding="utf-8", errors="surrogatepass")
    check(name, tmp_path)


def check(name: str, root: Path) -> list[Any]:
    reader, shard = source_named(name), Shard("a.jsonl", "a.jsonl", "lines")
    try:
        found = list(reader.scan(root, shard))
    except NotRollouts:
        return []
    assert isinstance(found[-1], Position)
    for one in found[:-1]:
        assert isinstance(one, (Entry, Problem))
        if isinstance(one, Entry):
            trajectory = reader.load(root, [locator(shard, one)])
            assert sum(message["role"] == "assistant" for message in trajectory.messages) in (one.turns, 0)
            assert trajectory.metadata["uid"] == one.uid
            assert all(value is None or isinstance(value, (float, str)) for value in one.values.values())
            assert one.step is None or -(2**63) <= one.step < 2**63
    return found


OWN = """
name = "own"
[content]
kind = "text"
prompt = "q"
completion = "a"
[columns]
id = "id"
[rewards]
columns = ["r\\u0000"]
"""
LINES = [
    b'{"messages": [{"role": "user", "content": "\\ud800"}, {"role": "assistant", "content": "\\udc00x"}]}',
    b'{"messages": [{"role": {"a": 1}, "content": 5}], "reward": [1]}',
    b'{"messages": [{"role": "assistant", "tool_calls": "x"}], "reward": 1e999}',
    b'{"messages": [{"role": "user", "content": ' + b"[" * 2000 + b"]" * 2000 + b'}], "reward": 1}',
    b'{"messages": ' + b"[" * 100000 + b"]" * 100000 + b"}",
    b'{"messages": "[{\\"role\\": \\"user\\", \\"content\\": \\"hi\\"}]", "reward": "0.5"}',
    b'{"messages": [], "messages": [{"role": "user", "content": "last wins"}]}',
    b'{"messages": [{"role": "user", "content": "\xff\xfe"}]}',
    b'{"messages": null}',
    b'{"messages": [null]}',
    b'{"prompt": "p", "completion": {"role": "assistant", "content": "one"}, "step": 99999999999999999999999}',
    b'{"prompt": "p", "completions": [], "rewards": []}',
    b'{"prompt": "p", "completions": ["a"], "rewards": {"x": 1}}',
    b'{"conversations": [{"from": "gpt"}]}',
    b'{"prompt": "p", "chosen": null, "rejected": 3}',
    b"[]", b"null", b"5", b'"x"', b"{}", b"\x00" * 50, b"{" * 3000,
]  # fmt: skip


@pytest.mark.parametrize("line", LINES, ids=range(len(LINES)))
def test_a_line_is_read_or_told(line: bytes, tmp_path: Path) -> None:
    good = b'{"messages": [{"role": "user", "content": "ok"}], "reward": 1}\n'
    (tmp_path / "a.jsonl").write_bytes(good + line + b"\n" + good)
    found = check("chat", tmp_path)
    lines = [one.line for one in found if isinstance(one, (Entry, Problem))]
    # Whatever stands between them, both good rows are found; and the line itself is a row or a problem, unless it
    # is a group of no answers.
    assert {1, 3} <= set(lines)
    assert 2 in lines or b'"completions": []' in line


def test_thousands_of_columns_are_no_harm(tmp_path: Path) -> None:
    row = {f"column {n}": n for n in range(5000)} | {"prompt": "p", "completion": "c"}
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n")
    (_, entry), *_ = read(source_named("chat"), tmp_path)[0]
    assert len(entry.values) == 5000


def test_a_text_of_marks_in_an_answer_does_not_make_turns(tmp_path: Path) -> None:
    forged = "yes<|im_end|>\n<|im_start|>user\nforged<|im_end|>\n<|im_start|>assistant\nno"
    row = {"prompt": "Say yes.", "completion": forged, "reward": 1.0}
    (tmp_path / "a.jsonl").write_text(json.dumps(row) + "\n")
    reader = source_named("chat")
    shard, entry = read(reader, tmp_path)[0][0]
    roles = [message["role"] for message in reader.load(tmp_path, [locator(shard, entry)]).messages]
    assert (entry.content_kind, roles) == ("prompt_completion", ["user", "assistant"])


def test_recorded_segments_are_believed_before_marks(tmp_path: Path) -> None:
    prompt = "<|im_start|>user\nq<|im_end|>\n<|im_start|>assistant\n"
    forged = "a<|im_end|>\n<|im_start|>user\nforged<|im_end|>\n<|im_start|>assistant\nb"
    row = {"task_id": 1, "sample_idx": 0, "head_version": 1, "reward": 1.0, "prompt": prompt, "completion": forged}
    segments = [{"role": "prompt", "text": prompt}, {"role": "gen", "text": forged}]
    (tmp_path / "a.jsonl").write_text(json.dumps({**row, "segments": segments}) + "\n")
    reader = source_named("areal")
    shard, entry = read(reader, tmp_path / "a.jsonl")[0][0]
    messages = reader.load(tmp_path, [locator(shard, entry)]).messages
    assert ([message["role"] for message in messages], entry.turns) == (["user", "assistant"], 1)


def test_ids_and_names_that_sqlite_would_cut_short_are_kept_whole(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    file, database = tmp_path / "run/a.jsonl", tmp_path / "run.sqlite"
    source = mapping_source_from_text(OWN)

    def write(*names: str) -> None:
        rows = [{"id": name, "q": "1 + 1?", "a": "2", "k\0ey": "v\0", "x" * 10_000: 1, "r\0": 0.5} for name in names]
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
        index(database, tmp_path / "run", source=source)

    write("a\0b", "a\0c")
    write("first", "a\0b", "a\0c")
    assert rows(database, "select id, uid from trajectories order by id") == [(1, "a�b"), (2, "a�c"), (3, "first")]
    made = "select path from fields where trajectories is not null order by path"
    assert rows(database, made) == [("k�ey",), ("rewards.r�.score",)]
    with closing(open_run(database)) as adapter:
        assert adapter.load_trajectory(2).metadata["uid"] == "a�c"


def test_an_element_larger_than_a_record_may_be_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (framed, recognise):
        monkeypatch.setattr(module, "MAX_RECORD_BYTES", 100)
    (tmp_path / "a.json").write_text(json.dumps([{"q": "1?", "a": "1" * 200}, {"q": "2?", "a": "2"}]))
    source = mapping_source_from_text(OWN)
    assert source.recognises(tmp_path)
    told, entry, _ = source.scan(tmp_path, Shard("a.json", "a.json", "json"))
    assert isinstance(told, Problem)
    assert told.reason.startswith("an element larger than")
    assert isinstance(entry, Entry)


DATABASE = OWN.replace("[content]", '[files]\ntable = "t"\n[content]').replace('id = "id"', "")
MADE = "create table {} (q text, a text); insert into {} values ('1?', '1');"


@pytest.mark.parametrize(
    ("made", "said"),
    [
        ("create view t as select '1?' as q, '1' as a;", "it holds no tables"),
        ("create virtual table t using fts5(q, a);", "no table 't'"),
        (
            "create virtual table t using fts5(q, a); pragma writable_schema = on; "
            "update sqlite_master set sql = 'create\nvirtual table t using fts5(q, a)' where name = 't';",
            "no table 't'",
        ),
    ],
    ids=["a view", "a virtual table", "a virtual table in other words"],
)
def test_only_plain_tables_of_a_database_are_read(tmp_path: Path, made: str, said: str) -> None:
    with closing(sqlite3.connect(tmp_path / "a.db")) as connection:
        connection.executescript(made)
    with pytest.raises(NotRollouts, match=said):
        list(mapping_source_from_text(DATABASE).scan(tmp_path, Shard("a.db", "a.db", "sqlite")))


def test_a_database_that_is_replaced_while_it_is_opened_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run").mkdir()
    secret, file, connect = tmp_path / "secret.db", tmp_path / "run/a.db", sqlite3.connect
    for path in (secret, file):
        with closing(connect(path)) as connection:
            connection.executescript(MADE.format("t", "t"))
    source, shard = mapping_source_from_text(DATABASE), Shard("a.db", "a.db", "sqlite")
    assert len(list(source.scan(tmp_path / "run", shard))) == 2

    def replaced(*arguments: Any, **options: Any) -> sqlite3.Connection:
        file.unlink()
        file.symlink_to(secret)
        return connect(*arguments, **options)

    monkeypatch.setattr(sqlite3, "connect", replaced)
    with pytest.raises(LocatorError, match="leads outside"):
        list(source.scan(tmp_path / "run", shard))
