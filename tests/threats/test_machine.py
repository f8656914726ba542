"""The terminal, folders that others can write to, and files that are data: none of them steers what is done."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import rltracer_sqlite.cli
from rltracer_sqlite.cli.visible import UNSEEN, json_line, printable
from rltracer_sqlite.export.write import replacing
from rltracer_sqlite.index.database import IndexFileError
from rltracer_sqlite.index.lock import WriterLock
from rltracer_sqlite.remembered_roots import list_problem, remember_root, remembered_roots, roots_file
from rltracer_sqlite.replacing import replacing as replaced
from rltracer_sqlite.sources.base import LocatorError
from rltracer_sqlite.sources.table.parquet import NumberedRows
from rltracer_sqlite.tokens.tokenizer import TokenizerError, load_tokenizer
from tests.commands import called, indexed
from tests.layouts import append, message, tool_call, trace

STEERING = "\x1b]0;x\x07\x9b31m\u202e\u2066\u061c\u2028\U000e0041\x7f\x08"


def shown(text: str) -> None:
    """Check that a terminal is given nothing that it would obey or hide."""
    assert not UNSEEN.search(text.replace("\n", "").replace("\t", "")), ascii(text)


@pytest.fixture
def hostile(tmp_path: Path) -> tuple[Path, Path]:
    """Return a run and its index in which every text and name would steer a terminal."""
    said = [
        message("user", STEERING + "q"),
        message("assistant", STEERING, reasoning_content=STEERING, tool_calls=[tool_call("c", STEERING, STEERING)]),
    ]
    found = trace(
        said, id=STEERING, rewards={STEERING: 1.0}, metrics={STEERING: 1.0}, info={STEERING: STEERING},
        errors=[{"type": STEERING, "message": STEERING}], stop_condition=STEERING, agent=STEERING,
    )  # fmt: skip
    run = tmp_path / f"run{STEERING[:6]}"
    append(run / "step_1/train/all/traces.jsonl", found, "{broken" + STEERING)
    database = tmp_path / "x.sqlite"
    assert indexed(database, run, "--name", STEERING, "--fts").returncode == 0
    return run, database


COMMANDS: dict[str, list[str]] = {
    "index": ["index", "{db}", "{run}"],
    "inspect the run": ["inspect", "--run", "{db}"],
    "inspect a step": ["inspect", "--run", "{db}", "--step", "1"],
    "inspect a prompt": ["inspect", "--run", "{db}", "--step", "1", "--prompt", ""],
    "inspect a trajectory": ["inspect", "--run", "{db}", "--trajectory", "1", "--full"],
    "a trajectory as JSON": ["inspect", "--run", "{db}", "--trajectory", "1", "--json"],
    "a step as JSON": ["inspect", "--run", "{db}", "--step", "1", "--json"],
    "another run": ["inspect", "--run", "{db}", "--name", STEERING + "x"],
    "a name that is not there": ["inspect", "--run", "/nowhere/" + STEERING],
    "success": ["success", "{db}"],
    "analyze": ["analyze", "{db}", "-o", "{tmp}/analysis"],
    "fts": ["fts", "{db}"],
    "a search": ["search", "{db}", "q"],
    "a search as JSON": ["search", "{db}", "q", "--json"],
    "a search that cannot be meant": ["search", "{db}", '"' + STEERING],
    "export": ["export", "{db}", "--mode", "sft", "-o", "{tmp}/" + STEERING[:6] + ".jsonl"],
    "a dry run": ["export", "{db}", "--mode", "sft", "--dry-run"],
    "roots": ["roots"],
    "sources": ["sources"],
    "a guess": ["sources", "guess", "{run}/step_1/train/all/traces.jsonl"],
    "a mapping that is none": ["index", "{tmp}/y.sqlite", "{run}", "--mapping", "{tmp}/" + STEERING + ".toml"],
    "metadata": ["metadata", "{db}"],
    "plot": ["plot", "{db}", "reward", "-o", "{tmp}/" + STEERING[:6] + ".html"],
}


@pytest.mark.parametrize("arguments", COMMANDS.values(), ids=COMMANDS)
def test_t31_no_command_steers_the_terminal(hostile: tuple[Path, Path], tmp_path: Path, arguments: list[str]) -> None:
    run, database = hostile
    places = {"{db}": str(database), "{run}": str(run), "{tmp}": str(tmp_path)}
    given = arguments
    for name, place in places.items():
        given = [argument.replace(name, place) for argument in given]
    done = called(rltracer_sqlite.cli.main, *given)
    shown(done.stdout)
    shown(done.stderr)


@pytest.mark.threat("T31")
def test_json_for_a_terminal_is_the_same_json() -> None:
    value = {"text": STEERING + "é😀\ud800"}
    shown(json_line(value))
    assert json.loads(json_line(value)) == value
    assert printable("é😀\n") == "é😀\n"


# Folders that others can write to


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    (tmp_path / "victim").write_text("precious")
    return tmp_path / "victim"


def through_a_lock(place: Path, victim: Path) -> None:
    (place / "x.sqlite-lock").symlink_to(victim)
    with pytest.raises(IndexFileError), WriterLock(place / "x.sqlite", "indexing"):
        pass


def through_an_export(place: Path, victim: Path) -> None:
    (place / f".rows.jsonl.{os.getpid()}.part").symlink_to(victim)
    with replacing(place / "rows.jsonl") as file:
        file.write(b"rows")
    assert (place / "rows.jsonl").read_bytes() == b"rows"


def through_a_replacement(place: Path, victim: Path) -> None:
    (place / f".chart.svg.{os.getpid()}.part").symlink_to(victim)
    (place / "chart.svg").symlink_to(victim)
    with replaced(place / "chart.svg") as file:
        file.write(b"chart")
    assert (place / "chart.svg").read_bytes() == b"chart"


def through_the_list_of_roots(place: Path, victim: Path) -> None:
    roots_file().with_name(f".roots.txt.{os.getpid()}.part").symlink_to(victim)
    remember_root(place)
    assert remembered_roots() == [place]


WAYS = (through_a_lock, through_an_export, through_a_replacement, through_the_list_of_roots)


@pytest.mark.parametrize("way", WAYS)
def test_t53_a_link_in_a_shared_folder_is_never_written_through(
    tmp_path: Path, victim: Path, way: Callable[[Path, Path], None]
) -> None:
    (tmp_path / "shared").mkdir()
    way(tmp_path / "shared", victim)
    assert victim.read_text() == "precious"


def everybodys_file(home: Path) -> None:
    roots_file().chmod(0o666)


def everybodys_folder(home: Path) -> None:
    home.chmod(0o777)


@pytest.mark.parametrize("spoil", [everybodys_file, everybodys_folder])
def test_t54_a_list_that_everybody_can_write_to_is_not_used(
    own_home: Path, tmp_path: Path, spoil: Callable[[Path], None]
) -> None:
    remember_root(tmp_path)
    spoil(own_home)
    assert remembered_roots() == []
    done = called(rltracer_sqlite.cli.main, "roots")
    assert (done.returncode, "everybody may write" in done.stderr) == (1, True)
    with pytest.raises(OSError, match="everybody may write"):
        remember_root(tmp_path)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_t54_a_list_of_another_user_is_not_used(
    tmp_path: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember_root(tmp_path)
    os.chown(roots_file(), 12345, 12345)
    monkeypatch.setattr(os, "geteuid", lambda: 54321)
    assert "another user" in str(list_problem())
    monkeypatch.setattr(os, "geteuid", lambda: 12345)
    assert list_problem() is None


def test_t60_a_decoder_with_a_regular_expression_is_refused(tmp_path: Path) -> None:
    replace = {"type": "Replace", "pattern": {"Regex": "(a+)+c"}, "content": "x"}
    written: dict[str, Any] = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": None, "post_processor": None,
        "decoder": {"type": "Sequence", "decoders": [{"type": "Fuse"}, replace]},
        "model": {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "a"},
    }  # fmt: skip
    (tmp_path / "tokenizer.json").write_text(json.dumps(written))
    with pytest.raises(TokenizerError, match="regular expressions"):
        load_tokenizer(str(tmp_path)).decode([0] * 60)


@pytest.mark.threat("T62")
def test_no_template_language_is_imported_for_templates() -> None:
    line = "import sys, rltracer_sqlite.retemplate, rltracer_sqlite.tokens.templates; print('jinja2' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", line], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_t5_a_row_of_a_large_row_group_is_read_with_few_others(tmp_path: Path) -> None:
    pyarrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    # 20,000 rows of 100 kB are a file of some kilobytes, and 2 GB of text.
    texts = pyarrow.DictionaryArray.from_arrays([0] * 20_000, ["x" * 100_000])
    numbers = pyarrow.array(range(20_000))
    parquet.write_table(pyarrow.table({"text": texts, "n": numbers}), tmp_path / "a.parquet", row_group_size=20_000)
    rows = NumberedRows(tmp_path)
    assert [rows.row("a.parquet", number).cells["n"] for number in (9_000, 9_001, 9_500, 3, 4)] == [
        9000,
        9001,
        9500,
        3,
        4,
    ]
    assert rows._window is not None
    assert len(rows._window.rows) <= 64
    for number in (-1, 20_000):
        with pytest.raises(LocatorError, match="has no row"):
            rows.row("a.parquet", number)
