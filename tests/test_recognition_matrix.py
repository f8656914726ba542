"""No source claims another system's files: every file of the corpora, and our own, against every source."""

from __future__ import annotations

from pathlib import Path

import pytest

from rltracer_sqlite.sources import source_for, source_named, source_names
from rltracer_sqlite.sources.base import SourceError
from rltracer_sqlite.sources.table.refused import refusal
from tests import layouts
from tests.table_conversations import write_workflow
from tests.table_decoding import READINGS
from tests.table_samples import SAMPLES

CORPORA = layouts.corpora() or Path("absent")
SOURCES = {name: source_named(name) for name in source_names()}
# Folders of the corpora's other systems -> the source that reads them; None: refused.
OWNERS = {
    "areal": "areal", "chat_jsonl": "chat", "ms_swift": "ms-swift", "nemo_gym": "nemo-gym", "nemo_rl": "nemo-rl",
    "open_instruct": "open-instruct", "roll": "roll", "skyrl": "skyrl", "trl": "trl", "verl": "verl",
    "slime": None, "harbor_atif": None, "inspect_ai": None, "trackio": None, "wandb_tables": None,
}  # fmt: skip
needs_corpora = pytest.mark.skipif(not CORPORA.is_dir(), reason="the corpora are not beside this repository")


def claims(place: Path) -> list[str]:
    """Return the sources that recognise a place."""
    found = []
    for name, one in SOURCES.items():
        try:
            if one.recognises(place):
                found.append(name)
        except SourceError:
            continue
    return found


def owner(place: Path) -> str | None:
    """Return the source that the registry chooses for a place; None where it refuses it."""
    try:
        return source_for(place).name
    except SourceError:
        return None


def needs_pyarrow(place: Path) -> None:
    if place.suffix == ".parquet" or any(place.rglob("*.parquet")):
        pytest.importorskip("pyarrow")


@needs_corpora
@pytest.mark.parametrize("system", OWNERS)
def test_a_file_of_another_system_is_claimed_by_its_own_source_alone(system: str) -> None:
    reader = OWNERS[system]
    for file in sorted(path for path in (CORPORA / "other" / system).rglob("*") if path.is_file()):
        needs_pyarrow(file)
        expected = reader if refusal(file) is None else None
        assert (file.name, claims(file), owner(file)) == (file.name, [expected] if expected else [], expected)


@needs_corpora
@pytest.mark.parametrize("folder", READINGS)
def test_a_run_of_another_system_is_claimed_by_its_own_source_alone(folder: str) -> None:
    needs_pyarrow(CORPORA / "other" / folder)
    place, reader = CORPORA / "other" / folder, READINGS[folder][0]
    assert (claims(place), owner(place)) == ([reader], reader)


@needs_corpora
@pytest.mark.parametrize("system", [name for name, reader in OWNERS.items() if reader is None])
def test_a_system_that_is_not_read_yet_is_refused_by_name(system: str) -> None:
    place = CORPORA / "other" / system
    assert claims(place) == []
    with pytest.raises(SourceError, match="does not read yet"):
        source_for(place)


@needs_corpora
def test_no_other_source_claims_a_file_of_prime_rl() -> None:
    files = [path for path in (CORPORA / "prime-rl").rglob("*") if path.is_file() and path.name != "expected.json"]
    wrong = {str(file): found for file in files if {*(found := claims(file)), owner(file)} - {"prime-rl", None}}
    assert wrong == {}
    assert len(files) > 50


@pytest.mark.parametrize("name", SAMPLES)
def test_our_own_small_files_have_one_owner(name: str, tmp_path: Path) -> None:
    reader, write = SAMPLES[name]
    if reader == "trl":
        pytest.importorskip("pyarrow")
    write(tmp_path)
    assert (claims(tmp_path), owner(tmp_path)) == ([reader], reader)


@pytest.mark.parametrize("name", layouts.LAYOUTS)
def test_our_own_runs_of_prime_rl_are_of_prime_rl_alone(name: str, tmp_path: Path) -> None:
    written = layouts.LAYOUTS[name](tmp_path)
    assert (claims(written.root), owner(written.root)) == (["prime-rl"], "prime-rl")


def test_a_workflow_is_of_the_workflow_source_alone(tmp_path: Path) -> None:
    write_workflow(tmp_path)
    assert (claims(tmp_path), owner(tmp_path)) == (["workflow"], "workflow")


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("a.jsonl", b""),
        ("a.jsonl", b"\n\n"),
        ("a.jsonl", b'{"loss": 1.0}\n'),
        ("a.jsonl", b'{"instruction": "x", "input": "", "output": "y"}\n'),
        ("a.jsonl", b"not json\n" * 30),
        ("1.jsonl", b'{"input": "a", "output": "b", "score": 1.0}\n'),
        ("a.json", b'{"a": [1, 2]}'),
        ("a.parquet", b"PAR1"),
        ("a.db", b"SQLite format 3\0"),
        ("a.bin", bytes(range(256))),
        ("a.txt", b"hello\n"),
    ],
)
def test_a_file_of_nobody_is_claimed_by_nobody(name: str, data: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    assert claims(tmp_path) == claims(tmp_path / name) == []
    assert owner(tmp_path) is owner(tmp_path / name) is None
