"""The tokenizer that an index names: read only where it may be, and never missed so much that the ids are gone too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rltracer_sqlite.adapter import open_run
from rltracer_sqlite.cli.index import command
from rltracer_sqlite.index.database import open_index
from rltracer_sqlite.loading import load_trajectory
from rltracer_sqlite.remembered_roots import remembered_roots
from rltracer_sqlite.roots import MAX_TOKENIZER, RootNotAllowed, Roots
from rltracer_sqlite.sources.base import LocatorError
from rltracer_sqlite.trajectory import Trajectory
from tests.indexing import value
from tests.layouts import append, message, nodes_of, trace
from tests.token_layouts import encode, micro_batch, question, write_bin, write_tokenizer

ASKED = "<|im_start|>user\nWhat is 2 + 2?<|im_end|>\n"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_tokenizer(tmp_path / "tokenizer")
    write_bin(tmp_path / "shards/rollouts/step_0/rank_0.bin", [micro_batch("g20", [question()])])
    asked = nodes_of([message("user", "What is 2 + 2?")])
    append(tmp_path / "traces/rollouts/step_1/train/all/traces.jsonl", trace(nodes=[{**asked[0], **arrays()}]))
    return tmp_path


def arrays() -> dict[str, Any]:
    ids = encode(ASKED)
    return {"token_ids": ids, "mask": [False] * len(ids), "is_content": [True] * len(ids), "logprobs": []}


def indexed(folder: Path, run: str, tokenizer: Path | str | None = None) -> Path:
    database = folder / f"{run}.sqlite"
    options = ["--tokenizer", str(tokenizer or folder / "tokenizer"), "--quiet"]
    result = CliRunner().invoke(command, [str(database), str(folder / run), *options], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return database


def load(database: Path, *allowed: Path) -> Trajectory:
    connection = open_index(database)
    try:
        trajectory = load_trajectory(connection, 1, Roots(allowed) if allowed else Roots.for_database(None))
        assert trajectory.tokens is not None
        return trajectory
    finally:
        connection.close()


def pieces(trajectory: Trajectory) -> str | None:
    assert trajectory.tokens is not None
    return None if trajectory.tokens.pieces is None else "".join(trajectory.tokens.pieces)


@pytest.mark.parametrize("run", ["traces", "shards"])
@pytest.mark.parametrize("place", ["tokenizer", "tokenizer/tokenizer.json", "link"])
def test_indexing_with_a_tokenizer_allows_it(folder: Path, run: str, place: str) -> None:
    (folder / "link").symlink_to("tokenizer")
    database = indexed(folder, run, folder / place)
    assert (pieces(load(database)) or "").startswith(ASKED)
    assert remembered_roots() == [folder / run, folder / "tokenizer/tokenizer.json"]


def test_a_relative_place_is_kept_as_an_absolute_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    database = indexed(folder, "traces", "tokenizer")
    assert value(database, "select tokenizer from runs") == str(folder / "tokenizer")


@pytest.mark.threat("T10")
@pytest.mark.parametrize("run", ["traces", "shards"])
def test_a_tokenizer_outside_the_roots_is_not_read(folder: Path, run: str) -> None:
    trajectory = load(indexed(folder, run), folder / run)
    assert pieces(trajectory) is None
    assert len(trajectory.tokens.ids) >= len(encode(ASKED))  # type: ignore[union-attr]
    [sentence] = [one for one in trajectory.metadata["remarks"] if "names the tokenizer" in one]
    assert f"rltracer roots add '{folder}/tokenizer/tokenizer.json'" in sentence


@pytest.mark.parametrize("run", ["traces", "shards"])
@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"no JSON", "cannot be read as a tokenizer"),
        (b"[]", "cannot be read"),
        (
            b'{"model": {"type": "BPE", "vocab": {"%b": 0}}, "decoder": {"type": "ByteLevel"}}' % (b"y" * 5000),
            "5,000 b",
        ),
        (None, "any more"),
    ],
)
def test_one_that_is_none_leaves_the_ids(folder: Path, run: str, content: bytes | None, said: str) -> None:
    database, file = indexed(folder, run), folder / "tokenizer/tokenizer.json"
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    trajectory = load(database)
    assert pieces(trajectory) is None
    assert any(said in one for one in trajectory.metadata["remarks"])


def test_a_library_user_is_not_led_elsewhere_either(folder: Path) -> None:
    database = indexed(folder, "traces")
    from rltracer_sqlite.remembered_roots import forget_root

    assert pieces(open_run(database).load_trajectory(1)) == ASKED
    assert forget_root(folder / "tokenizer/tokenizer.json")
    (folder / "elsewhere").mkdir()
    moved = database.rename(folder / "elsewhere" / "x.sqlite")
    assert pieces(open_run(moved).load_trajectory(1)) is None


def test_without_a_tokenizer_there_is_nothing_to_remark(folder: Path) -> None:
    database = indexed(folder, "traces")
    assert "remarks" not in load(database).metadata


@pytest.mark.parametrize("place", ["a\0b", "/etc/passwd", "tokenizer/../../x", "loop", "runs/out", "~", ""])
def test_places_outside_are_refused(folder: Path, place: str) -> None:
    (folder / "loop").symlink_to("loop")
    (folder / "runs").mkdir()
    (folder / "runs/out").symlink_to("/etc")
    with pytest.raises(LocatorError):
        Roots([folder / "runs"]).check_tokenizer(place if place.startswith(("/", "~")) else f"{folder}/{place}")


def test_a_link_out_of_the_roots_is_refused(folder: Path) -> None:
    (folder / "runs/own").mkdir(parents=True)
    (folder / "runs/own/tokenizer.json").symlink_to(folder / "tokenizer/tokenizer.json")
    with pytest.raises(RootNotAllowed):
        Roots([folder / "runs"]).check_tokenizer(folder / "runs/own")


@pytest.mark.threat("T60")
def test_a_huge_one_is_refused(folder: Path) -> None:
    with (folder / "tokenizer/tokenizer.json").open("wb") as file:
        file.truncate(MAX_TOKENIZER + 1)
    with pytest.raises(LocatorError, match="at most"):
        Roots([folder]).check_tokenizer(folder / "tokenizer")


def test_a_missing_one_changes_nothing(folder: Path) -> None:
    database = folder / "x.sqlite"
    result = CliRunner().invoke(command, [str(database), str(folder / "traces"), "--tokenizer", "gpt2"])
    assert "There is no tokenizer.json at gpt2" in str(result.exception)
    assert not database.exists()
