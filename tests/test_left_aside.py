"""Files that are left aside for a known reason: listed with it by every list, never twice, as long as it holds."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from rltracer_sqlite.amounts import listed
from rltracer_sqlite.sources import source_for
from tests.commands import indexed, rltracer
from tests.indexing import index, rows, value
from tests.layouts import append
from tests.left_aside import KINDS, REASONS
from tests.small_runs import touch
from tests.table_samples import SAMPLES
from tests.token_layouts import micro_batch, question, write_bin
from tests.watching import at_step, record, watching

ASIDE = "select file, reason from problems join shards s on s.id = shard_id where state = 'aside' order by path"


@pytest.fixture(params=sorted(KINDS))
def made(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, list[str], str]:
    """Return a run, its files that are left aside, and why."""
    return tmp_path / "run", KINDS[request.param](tmp_path / "run"), REASONS[request.param]


def test_each_kind_is_listed_by_every_list(
    made: tuple[Path, list[str], str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "400")
    (run, files, why), database = made, tmp_path / "x.sqlite"
    first = files[0] if len(files) == 1 else f"{len(files)} files ({listed(files)})"
    for _ in range(2):
        told = indexed(database, run).stdout.splitlines()
        assert told[0].endswith(", 0 problems")
        assert [line for line in told if "aside" in line] == [f"  left aside: {first}: {why}"]
        assert rows(database, ASIDE) == [(file, why) for file in files]
    count = "1 file is" if len(files) == 1 else f"{len(files)} files are"
    for place in (database, run):
        assert rltracer("inspect", place, "--problems").stdout.splitlines() == [
            *(f"{file}: left aside: {why}" for file in files), f"0 problems; {count} left aside",
        ]  # fmt: skip
        as_json = [json.loads(line) for line in rltracer("inspect", place, "--problems", "--json").stdout.splitlines()]
        assert [(one["path"], one["state"], one["reason"]) for one in as_json] == [
            (file, "aside", f"left aside: {why}") for file in files
        ]
    assert rltracer("runs", database).stdout.splitlines()[1].endswith(", read completely")
    assert value(database, "select count(*) from run_problems") == 0


def test_what_is_noted_is_not_written_again(made: tuple[Path, list[str], str], tmp_path: Path) -> None:
    run, files, _ = made
    noted = []
    for _ in range(2):
        index(tmp_path / "x.sqlite", run)
        noted.append(rows(tmp_path / "x.sqlite", "select id, path from shards where state = 'aside' order by id"))
    assert noted[0] == noted[1]
    assert len(noted[0]) == len(files)


def test_it_goes_when_the_file_goes_and_comes_back_with_it(made: tuple[Path, list[str], str], tmp_path: Path) -> None:
    (run, files, why), database = made, tmp_path / "x.sqlite"
    with watching(database, run) as watch:
        watch.look()
        assert rows(database, ASIDE) == [(file, why) for file in files]
        (run / files[0]).rename(tmp_path / "away")
        assert watch.look().read
        assert rows(database, ASIDE) == [(file, why) for file in files[1:]]
        assert value(database, "select count(*) from shards where state = 'gone'") == 0
        assert not watch.look().read
        (tmp_path / "away").rename(run / files[0])
        assert watch.look().read
        assert rows(database, ASIDE) == [(file, why) for file in files]
        assert not watch.look().read


def test_what_is_read_now_is_listed_no_more(tmp_path: Path) -> None:
    run, database = tmp_path / "run", tmp_path / "x.sqlite"
    KINDS["token shards"](run)
    index(database, run)
    shutil.rmtree(run / "rollouts/step_1/train")  # the traces, for which they were left aside
    index(database, run)
    assert rows(database, ASIDE) == []
    assert rows(database, "select path, step, split, state from shards where layout = 'micro_batches'") == [
        ("rollouts/step_1/rank_0.bin", 1, "train", "complete"), ("rollouts/step_2/rank_0.bin", 2, "train", "complete"),
    ]  # fmt: skip


def test_a_file_that_was_looked_into_and_gave_nothing_may_be_left_aside_later(tmp_path: Path) -> None:
    run, database = tmp_path / "run", tmp_path / "x.sqlite"
    shard = run / "rollouts/step_1/rank_0.bin"
    shard.parent.mkdir(parents=True)
    shard.write_bytes(b"\x93 damaged")
    write_bin(run / "rollouts/step_2/rank_0.bin", [micro_batch("g20", [question()])])
    index(database, run)
    assert value(database, "select sum(problems) from shards") == 1
    shutil.rmtree(run / "rollouts/step_2")
    append(run / at_step(3), record("t"))
    index(database, run)
    assert rows(database, "select path, state, problems, step from shards where state <> 'gone'") == [
        ("rollouts/step_1/rank_0.bin", "aside", 0, None), (at_step(3), "complete", 0, 3),
    ]  # fmt: skip
    assert value(database, "select count(*) from problems") == 1


def test_no_step_is_found_or_read_by_what_is_left_aside(tmp_path: Path) -> None:
    run, database = tmp_path / "run", tmp_path / "x.sqlite"
    KINDS["token shards"](run)  # of step 2, of which there are no traces
    index(database, run, discover_only=True)
    assert rows(database, "select step, indexed_at is null from steps") == [(1, 1)]
    assert rltracer("inspect", run, "--step", 2).returncode == 1
    index(database, run)
    assert rows(database, "select step, indexed_at is null from steps") == [(1, 0)]
    assert rltracer("inspect", database, "--step", 1).stderr == ""


def test_of_very_many_the_first_are_shown_after_all_else_that_was_not_read(tmp_path: Path) -> None:
    run, database = tmp_path / "run", tmp_path / "x.sqlite"
    append(run / at_step(1), record("t"))
    with (run / at_step(1)).open("a") as file:
        file.write("{")
    for number in range(300):
        shard = run / f"rollouts/step_1/rank_{number}.bin"
        shard.write_bytes(b"\x93")
    told = indexed(database, run).stdout
    assert told.count("left aside") == 1
    named = "rollouts/step_1/rank_0.bin, rollouts/step_1/rank_1.bin and 298 more"
    assert f"left aside: 300 files ({named}): {REASONS['token shards']}" in told
    shown = " ".join(rltracer("inspect", database, "--problems").stdout.split())
    assert shown.startswith(f"{at_step(1)} line 2: unfinished")
    assert shown.count("left aside: ") == 20
    assert shown.endswith(
        "280 more files like this: state 'aside' in the table shards "
        "0 problems; 1 file has an unfinished last line; 300 files are left aside"
    )


def test_nothing_is_opened_for_them(tmp_path: Path) -> None:
    SAMPLES["skyrl"][1](tmp_path / "run")
    folder = tmp_path / "run/dumped_evals/eval_only/aggregated_results.jsonl"
    folder.unlink(missing_ok=True)
    folder.mkdir(parents=True)
    index(tmp_path / "x.sqlite", tmp_path / "run")
    assert value(tmp_path / "x.sqlite", "select sum(problems) from shards") == 0


@pytest.mark.parametrize(
    "name",
    [
        "model/config.json", "tokenizer.json", "configs/rl/start.json", "model.safetensors.index.json", "metrics.jsonl",
        ".hidden.jsonl", "model.bin", "optimizer.pt", "log.txt", "log.txt.gz", "weights/a.parquet",
        "checkpoints/1.json",
    ],
)  # fmt: skip
@pytest.mark.parametrize("sample", ["", "skyrl", "trl-text"])
def test_what_has_nothing_to_do_with_rollouts_by_its_name_is_not_told(tmp_path: Path, sample: str, name: str) -> None:
    (tmp_path / "run").mkdir()
    KINDS["names of no system"](tmp_path / "run") if not sample else SAMPLES[sample][1](tmp_path / "run")
    before = list(source_for(tmp_path / "run").shards(tmp_path / "run"))
    touch(tmp_path / "run", name)
    assert list(source_for(tmp_path / "run").shards(tmp_path / "run")) == before


@pytest.mark.parametrize("arguments", [[], ["--rebuild"]])
def test_an_index_in_the_folder_of_its_run_is_no_file_of_it(tmp_path: Path, arguments: list[str]) -> None:
    KINDS["names of no system"](tmp_path / "run")
    for _ in range(2):
        told = indexed(tmp_path / "run/x.sqlite", tmp_path / "run", *arguments).stdout
        assert "left aside: 3 files (data/train.parquet, samples.json, traces.db): " in told
    with watching(tmp_path / "run/x.sqlite", tmp_path / "run") as watch:
        watch.look()
        assert not watch.look().read


@pytest.mark.parametrize("sample", sorted(SAMPLES))
def test_beside_the_files_of_every_system_none_is_passed_over(tmp_path: Path, sample: str) -> None:
    SAMPLES[sample][1](tmp_path / "run")
    names = ["extra.json", "extra.jsonl", "extra.parquet", "extra.json.zst", "deep/er/extra.db", "extra.jsonl.gz"]
    touch(tmp_path / "run", *names)
    shards = list(source_for(tmp_path / "run").shards(tmp_path / "run"))
    assert {shard.file for shard in shards} >= {*names} - {"extra.json.zst"}  # which is extra.json again


@pytest.mark.parametrize("name", [b"\xff_evals", b"\x1b[31m<b>"], ids=["no text", "control"])
@pytest.mark.parametrize("file", ["aggregated_results.jsonl", "global_step_3_evals/x.jsonl"], ids=["aside", "read"])
def test_a_table_in_a_folder_of_any_name_is_listed(tmp_path: Path, name: bytes, file: str) -> None:
    SAMPLES["skyrl"][1](tmp_path / "run")
    append(tmp_path / "run" / name.decode("utf-8", "surrogateescape") / file, {"a": 1})
    said = "".join(rltracer("inspect", tmp_path / "run", "--problems").stdout.split())
    name_shown = {b"\xff_evals": r"\udcff_evals"}.get(name, "␛[31m<b>")
    assert said.count(f"{name_shown}/{file}") == 1


def test_where_nothing_was_read_they_are_not_what_was_found_instead(tmp_path: Path) -> None:
    run = tmp_path / "run"
    KINDS["token shards"](run)
    (run / at_step(1)).write_text("{broken\n")
    done = indexed(tmp_path / "x.sqlite", run)
    assert done.returncode == 1
    assert f"Found instead: {at_step(1)}: not readable" in done.stderr
    assert "token ids" not in done.stderr


LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 12345\n"


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("batches/step_1/rank_0.pt", b"damaged", "no archive of torch"),
        ("batches/step_1/rank_0.bin", b"\x93", "no micro batches"),
        ("batches/step_1/rank_0.pt", LFS, "a Git LFS pointer"),
        ("batches/step_1/rank_0.bin", LFS, "a Git LFS pointer"),
        (at_step(2), LFS, "a Git LFS pointer"),
        ("others.jsonl", b'{"x": 1}\n', "keys: x"),
    ],
    ids=["torch", "bin", "torch pointer", "bin pointer", "pointer", "unknown"],
)
def test_what_should_have_been_read_is_a_problem_and_listed_once(
    tmp_path: Path, name: str, content: bytes, why: str
) -> None:
    run, database = tmp_path / "run", tmp_path / "x.sqlite"
    KINDS["validation, by content"](run)
    (run / name).parent.mkdir(parents=True, exist_ok=True)
    (run / name).write_bytes(content)
    for _ in range(2):
        done = indexed(database, run)
        assert (done.returncode, done.stdout.splitlines()[0].endswith(", 1 problem")) == (0, True)
        assert f"  left aside: {name}: no rollouts here: " in done.stdout
    problem, *_, last = " ".join(rltracer("inspect", database, "--problems").stdout.split("\n")).partition("validated")
    assert why in problem
    assert last.strip().endswith("1 problem; 1 file is left aside")


def test_a_pointer_in_the_place_of_a_table_says_what_to_do(tmp_path: Path) -> None:
    run = tmp_path / "run"
    SAMPLES["trl-text"][1](run)
    (run / "completions/completions_00006.parquet").write_bytes(LFS)
    told = indexed(tmp_path / "x.sqlite", run).stdout
    assert "completions_00006.parquet: no rollouts here: a Git LFS pointer instead of the file itself" in told
