"""What is cut off, fits nothing, or is asked for wrongly: said, and no database is left of it."""

from __future__ import annotations

import sqlite3
import tracemalloc
import zipfile
from pathlib import Path

import pytest
import yaml

from fuzz.invariants import place_of
from rltracer_sqlite.search import QueryError, full_text_query
from rltracer_sqlite.sources.base import Entry, Problem, Shard, SourceError
from rltracer_sqlite.sources.prime_rl import PrimeRLSource
from rltracer_sqlite.sources.table.sqlite import sqlite_rows
from tests.commands import indexed, inspected, rltracer, sentence
from tests.index_factory import make_index
from tests.layouts import append, message, trace
from tests.token_layouts import micro_batch, question, write_bin, write_torch

MAPPING = 'name = "m"\n[files]\npaths = ["*.parquet"]\n[content]\nkind = "text"\nprompt = "p"\ncompletion = "c"\n'


@pytest.fixture
def run(tmp_path: Path) -> Path:
    said = [message("user", "q"), message("assistant", "a")]
    append(tmp_path / "run/step_1/train/all/traces.jsonl", trace(said, id="a", rewards={"correct": 1.0}))
    return tmp_path / "run"


def cut(file: Path, keep: float) -> Path:
    file.write_bytes(file.read_bytes()[: int(file.stat().st_size * keep)])
    return file


def test_a_shard_that_is_cut_off_is_said_to_be(tmp_path: Path) -> None:
    batches = cut(write_bin(tmp_path / "rank_0.bin", [micro_batch("g20", [question("4")])]), 0.5)
    assert "the file ends inside record 1 of 1" in sentence(indexed(tmp_path / "x.sqlite", batches))
    archive = cut(write_torch(tmp_path / "rank_0.pt", [[question("4")]]), 0.5)
    assert sentence(indexed(tmp_path / "x.sqlite", archive)).endswith("is missing.")
    (tmp_path / "a.parquet").write_bytes(b"PAR1" + bytes(100))
    assert "is cut off" in sentence(indexed(tmp_path / "x.sqlite", tmp_path / "a.parquet"))
    assert not (tmp_path / "x.sqlite").exists()


def test_a_mapping_that_fits_no_file_leaves_no_database(run: Path, tmp_path: Path) -> None:
    (tmp_path / "m.toml").write_text(MAPPING)
    said = sentence(indexed(tmp_path / "x.sqlite", run, "--mapping", tmp_path / "m.toml"))
    assert said.startswith(f"No file in {run} fits files.paths of m (*.parquet)")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["m.toml", "run"]


@pytest.mark.parametrize("rule", ["reward>=1e999", "reward>=-1e999", "reward>=nan", "reward>=inf"])
def test_a_threshold_is_finite(run: Path, tmp_path: Path, rule: str) -> None:
    assert "Cannot read the rule" in sentence(indexed(tmp_path / "x.sqlite", run, "--success", rule), 2)
    assert not (tmp_path / "x.sqlite").exists()


@pytest.mark.parametrize("quiet", [[], ["--quiet"]])
def test_a_rule_that_scores_nothing_is_refused(run: Path, tmp_path: Path, quiet: list[str]) -> None:
    done = indexed(tmp_path / "x.sqlite", run, "--success", "rewards.corect.score>=1", *quiet)
    assert (done.returncode, done.stderr) == (
        1,
        "Error: The rule rewards.corect.score >= 1 scores 0 of 1 trajectory of run: none has a number "
        "at rewards.corect.score. Numbers that they have: rewards.correct.score, reward. The rule stays reward >= 1.\n"
        f"Set this one with:\n  rltracer success {tmp_path}/x.sqlite run --rule 'rewards.correct.score >= 1'\n",
    )
    assert indexed(tmp_path / "x.sqlite", run, "--success", "rewards.correct.score>=1").stderr == ""


def test_a_run_that_is_not_there_is_told_with_those_that_are(run: Path, tmp_path: Path) -> None:
    assert indexed(tmp_path / "x.sqlite", run, "--name", "mine").returncode == 0
    said = sentence(inspected(tmp_path / "x.sqlite", "--name", "nope"))
    assert said == f"The index {tmp_path / 'x.sqlite'} has no run 'nope'. It holds: mine."


def test_damaged_token_arrays_are_left_out_and_said(tmp_path: Path) -> None:
    """The index does not look into token arrays; a record is shown without them where they are no JSON."""
    said = [message("user", "q"), message("assistant", "a")]
    append(tmp_path / "a.jsonl", trace(said, id="a", token_ids=True))
    file = tmp_path / "a.jsonl"
    file.write_bytes(file.read_bytes().replace(b'"logprobs":[-', b'"logprobs":[-,', 1))
    source, shard = PrimeRLSource(), Shard("a.jsonl", "a.jsonl", "traces", 1, "train")
    (entry, _) = source.scan(tmp_path, shard)
    assert isinstance(entry, Entry)
    shown = source.load(tmp_path, [place_of(entry, shard)])
    assert [each["content"] for each in shown.messages] == ["q", "a"]
    assert shown.metadata["remarks"] == ["its token arrays are damaged in the file, and are left out"]
    assert shown.tokens is None


def test_a_byte_order_that_unpacks_without_end_is_refused(tmp_path: Path) -> None:
    """The only other member of a torch archive that is read is no larger than it says."""
    file = write_torch(tmp_path / "rank_0.pt", [[question("4")]])
    with zipfile.ZipFile(file, "a", zipfile.ZIP_DEFLATED) as archive:
        prefix = archive.namelist()[0].split("/")[0]
        with pytest.warns(UserWarning, match="Duplicate"):
            archive.writestr(f"{prefix}/byteorder", bytes(50 << 20))
    tracemalloc.start()
    problem, _ = PrimeRLSource().scan(tmp_path, Shard("rank_0.pt", "rank_0.pt", "micro_batches", 1))
    assert isinstance(problem, Problem)
    assert "a compressed archive" in problem.reason
    assert tracemalloc.get_traced_memory()[1] < 10 << 20
    tracemalloc.stop()


def test_a_column_may_be_called_as_the_number_of_a_row_is(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "a.db")
    connection.execute("create table samples (rowid text, _rowid_ text, oid text, prompt, completion)")
    connection.commit()
    connection.close()
    with pytest.raises(SourceError, match="hide the numbers of its rows"):
        list(sqlite_rows(tmp_path, "a.db", "samples"))


def test_bytes_that_are_no_text_can_be_searched_for() -> None:
    assert full_text_query("\udcff a") == '"?" "a"'
    with pytest.raises(QueryError, match="nothing to search"):
        full_text_query(" ")


@pytest.mark.parametrize(
    "options",
    [
        ["inspect", "{db}", "--split"],
        ["inspect", "{db}", "--step", 1, "--prompt"],
        ["plot", "{db}", "reward", "--split"],
        ["analyze", "{db}", "-o", "{db}.out", "--env"],
    ],
    ids=lambda options: f"{options[0]} {options[-1]}",
)
def test_an_argument_that_is_no_text_means_nothing(run: Path, tmp_path: Path, options: list[object]) -> None:
    database = tmp_path / "x.sqlite"
    indexed(database, run)
    arguments = [str(option).format(db=database) for option in options]
    said = sentence(rltracer(*arguments, b"\xff".decode(errors="surrogateescape")))
    assert said == r"'\udcff' among the arguments is not UTF-8: nothing in an index is called so."


@pytest.mark.parametrize("name", ["2026", "on", "a: b", "#1", "'x", "e\x1b[1m\u202e", "plain"])
def test_metadata_names_any_database_as_it_is_called(tmp_path: Path, name: str) -> None:
    written = rltracer("metadata", make_index(tmp_path / f"{name}.sqlite", [])).stdout
    assert list(yaml.safe_load(written)["databases"]) == [name]
    assert not set(written) & {"\x1b", "\u202e"}
