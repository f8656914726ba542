"""Each mapping that comes with the package, on small files written as its system writes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from rltracer_sqlite.messages import prompt_context, prompt_key
from rltracer_sqlite.search.document import document, messages_text
from rltracer_sqlite.sources import source_named
from rltracer_sqlite.sources.files import open_shard
from rltracer_sqlite.sources.table import TableSource
from rltracer_sqlite.sources.table.built_in import FOLDER, PRESETS, preset
from tests.table_rows import Row
from tests.table_samples import SAMPLES
from tests.table_scans import locator, read


@pytest.fixture(params=SAMPLES)
def sample(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[TableSource, Path, list[Row]]:
    if request.param.startswith("trl"):
        pytest.importorskip("pyarrow")
    name, write = SAMPLES[request.param]
    return source_named(name), tmp_path, write(tmp_path)


def test_entries_are_what_was_written(sample: tuple[TableSource, Path, list[Row]]) -> None:
    reader, root, rows = sample
    entries = [entry for _, entry in read(reader, root)[0]]
    assert [(e.reward, e.step, e.split, e.content_kind) for e in entries] == [
        (row.reward, row.step, row.split, row.kind) for row in rows
    ]
    for entry, row in zip(entries, rows, strict=True):
        assert {name: getattr(entry, name) for name in row.more} == row.more


def test_messages_are_what_was_written(sample: tuple[TableSource, Path, list[Row]]) -> None:
    reader, root, rows = sample
    for (shard, entry), row in zip(read(reader, root)[0], rows, strict=True):
        trajectory = reader.load(root, [locator(shard, entry)])
        assert trajectory.messages == row.messages
        assert trajectory.branches == ([row.messages] if row.messages else [])
        assert trajectory.metadata["reward"] == row.reward
        assert entry.content_kind == "token_ids" or entry.turns == sum(m["role"] == "assistant" for m in row.messages)


def test_messages_alone_are_those_of_the_whole_row(sample: tuple[TableSource, Path, list[Row]]) -> None:
    reader, root, rows = sample
    for (shard, entry), row in zip(read(reader, root)[0], rows, strict=True):
        with open_shard(root, shard.path) as opened:
            found = reader.messages(root, opened)(locator(shard, entry))
        assert found == row.messages
        assert messages_text(found) == document(reader.load(root, [locator(shard, entry)])).text


def test_prompts_are_those_of_the_messages(sample: tuple[TableSource, Path, list[Row]]) -> None:
    reader, root, rows = sample
    for (_, entry), row in zip(read(reader, root)[0], rows, strict=True):
        if row.messages:
            assert entry.prompt_key == prompt_key(prompt_context(row.messages))
        assert entry.preview


def test_a_place_is_recognised_and_each_uid_is_one(sample: tuple[TableSource, Path, list[Row]]) -> None:
    reader, root, rows = sample
    entries = read(reader, root)[0]
    assert reader.recognises(root)
    assert len({entry.uid for _, entry in entries}) == len(rows)
    assert all(entry.uid.startswith(f"{shard.path}@") for shard, entry in entries)


def test_what_is_no_rollout_is_said(tmp_path: Path) -> None:
    for name in ("nemo-gym", "skyrl", "open-instruct"):
        SAMPLES[name][1](tmp_path / name)
    said = [read(source_named(name), tmp_path / name)[2] for name in ("nemo-gym", "skyrl", "open-instruct")]
    assert [len(one) for one in said] == [1, 1, 1]
    assert ["inputs" in said[0][0], "metrics" in said[1][0], "tokenizer" in said[2][0]] == [True, True, True]


def test_every_preset_is_listed_and_tested() -> None:
    assert sorted(PRESETS) == sorted(path.stem for path in FOLDER.glob("*.toml"))
    assert {preset(name).name for name in PRESETS} == {name for name, _ in SAMPLES.values()}
    assert all(preset(name).title and preset(name).text for name in PRESETS)
