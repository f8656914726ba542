"""The tokens of the sample run: their text, the numbers beside them, and the trainer's side of their step."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.index.database import finish_writing, open_for_writing
from rltracer_sqlite.index.refresh import refresh_run
from rltracer_sqlite.index.runs import ensure_run
from rltracer_sqlite.loading import load_trajectory
from rltracer_sqlite.messages import normal_message, tool_definitions
from rltracer_sqlite.roots import Roots
from rltracer_sqlite.sample.vocabulary import learn
from rltracer_sqlite.sources import source_for
from rltracer_sqlite.sources.prime_rl.graph import branch_paths
from rltracer_sqlite.tokens import load_tokenizer, parse_conversation
from rltracer_sqlite.trajectory import Trajectory
from tests.indexing import rows, value
from tests.sample_run import Record, traces
from tests.token_templates import chatml

MISTAKE = -2.5  # nats; only the token at a mistake is less likely


@pytest.fixture(scope="module")
def run(demo: Path) -> Path:
    return demo / "run"


@pytest.fixture(scope="module")
def database(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("tokens") / "run.sqlite"
    tokenizer = str(run / "tokenizer")
    source = source_for(run, tokenizer)
    connection = open_for_writing(file)
    refresh_run(connection, source, run, ensure_run(connection, source, run))
    finish_writing(connection)
    return file


def with_tokens(run: Path, subset: str = "all") -> list[Record]:
    return [trace for trace in traces(run, "train", subset, 8) if trace["nodes"][0].get("token_ids")]


def joined(trace: Record, path: list[int], name: str) -> list[Any]:
    return [entry for number in path for entry in trace["nodes"][number].get(name, ())]


def load(run: Path, database: Path, uid: str) -> Trajectory:
    connection = open_for_writing(database)
    try:
        identity = value(database, "select id from trajectories where uid = ?", (uid,))
        return load_trajectory(connection, identity, Roots([run]))
    finally:
        connection.close()


def test_word_problems_and_shell_jobs_of_the_last_step_have_tokens(run: Path) -> None:
    without = [trace for trace in traces(run, "train", "all", 8) if not trace["nodes"][0].get("token_ids")]
    assert {trace["task"]["type"] for trace in with_tokens(run)} == {"QuestionTask", "ShellTask"}
    assert {trace["task"]["type"] for trace in without} == {"PictureTask", "ExplainTask"}


def test_a_branch_decodes_to_the_text_that_its_chat_template_writes(run: Path) -> None:
    tokenizer = load_tokenizer(run / "tokenizer")
    for trace in with_tokens(run):
        for path in branch_paths(trace["nodes"]):
            messages = [normal_message(trace["nodes"][number]["message"]) for number in path]
            text = chatml(
                [{**one, "content": one["content"] or ""} for one in messages], tool_definitions(trace["tools"])
            )
            decoded = tokenizer.decode(joined(trace, path, "token_ids"))
            ends_with_answer = trace["nodes"][path[-1]]["sampled"]
            assert decoded == (text.removesuffix("\n") if ends_with_answer else text)
            said = parse_conversation(decoded).messages
            assert [(one["role"], one["content"]) for one in said] == [
                (m["role"], m["content"] or "") for m in messages
            ]


def test_the_library_gives_the_same_ids(run: Path) -> None:
    tokenizers = pytest.importorskip("tokenizers")
    library = tokenizers.Tokenizer.from_file(str(run / "tokenizer" / "tokenizer.json"))
    for trace in with_tokens(run):
        for node in trace["nodes"]:
            text = library.decode(node["token_ids"], skip_special_tokens=False)
            assert library.encode(text, add_special_tokens=False).ids == node["token_ids"]


def test_tokens_look_like_words(run: Path) -> None:
    vocabulary = json.loads((run / "tokenizer/tokenizer.json").read_bytes())["model"]["vocab"]
    assert {"Ġworker", "Ġanswer", "Pfosten", "ĠPfosten", "command"} & set(vocabulary)
    assert 500 < len(vocabulary) < 1500


def test_the_most_frequent_pair_is_learnt_first() -> None:
    vocabulary = learn(["ab ab ab abc bc"], 2)
    assert vocabulary.tokens[256:] == [b"ab", b" ab"]
    assert vocabulary.pieces(vocabulary.encode("ab abc<think>ü")) == [b"ab", b" ab", b"c", b"<think>", b"\xc3", b"\xbc"]


def test_arrays_have_the_lengths_of_the_schema(run: Path) -> None:
    for trace in with_tokens(run, "effective"):
        for node in trace["nodes"]:
            ids, sampled = len(node["token_ids"]), sum(node["mask"])
            assert len(node["mask"]) == len(node["is_content"]) == ids
            assert len(node["logprobs"]) == len(node.get("advantages", [])) == sampled
            assert bool(sampled) == node["sampled"]
            assert all(logprob <= 0 for logprob in node["logprobs"])
            assert set(node.get("advantages", [])) <= {trace["info"]["advantage"]}


def test_usage_counts_these_tokens(run: Path) -> None:
    for trace in with_tokens(run):
        for call in trace["calls"]:
            node, usage = trace["nodes"][call["node"]], call["usage"]
            path = next(path for path in branch_paths(trace["nodes"]) if call["node"] in path)
            before = len(joined(trace, path[: path.index(call["node"])], "token_ids"))
            assert usage["completion_tokens"] == sum(node["mask"])
            assert usage["prompt_tokens"] == before + node["mask"].index(True)


def test_the_least_likely_token_of_a_failed_rollout_is_its_mistake(run: Path) -> None:
    tokenizer, mistakes = load_tokenizer(run / "tokenizer"), []
    for trace in with_tokens(run):
        for node in trace["nodes"]:
            sampled = tokenizer.pieces(node["token_ids"])[-sum(node["mask"]) :] if node["sampled"] else []
            unlikely = [at for at, logprob in enumerate(node["logprobs"]) if logprob < MISTAKE]
            mistakes += [
                ("".join(sampled[at:])[:14].strip(), trace["metrics"]["correct_final_label"]) for at in unlikely
            ]
    assert sorted(mistakes) == [("Compressing ke", 0.0), ("und am Ende:", 0.0)]


def test_the_batch_and_the_notes_become_annotations_of_their_traces(run: Path, database: Path) -> None:
    for producer in ("batches", "trainer"):
        named = rows(
            database,
            """
            select t.uid from annotations a join trajectories t on t.id = a.trajectory_id where a.producer = ?
            """,
            (producer,),
        )
        assert sorted(uid for (uid,) in named) == sorted(trace["id"] for trace in with_tokens(run, "effective"))
    assert rows(database, "select * from problems") == []
    assert value(database, "select count(logprob_mean) from trajectories") == len(with_tokens(run, "effective"))


def test_the_tokens_of_a_trajectory_are_merged_from_all_of_them(run: Path, database: Path) -> None:
    for trace in with_tokens(run, "effective"):
        path = branch_paths(trace["nodes"])[0]
        tokens = load(run, database, trace["id"]).tokens
        assert tokens is not None
        assert tokens.ids == joined(trace, path, "token_ids")
        assert "".join(tokens.pieces or ()) == load_tokenizer(run / "tokenizer").decode(tokens.ids)
        for name in ("logprobs", "advantages"):
            recorded = [number for number in getattr(tokens, name) if number is not None]
            assert recorded == joined(trace, path, name)
        for name in ("trainer_logprobs", "entropies", "is_masked"):
            assert [number is not None for number in getattr(tokens, name)] == tokens.mask


def test_a_batch_alone_gives_back_its_sequences(run: Path, tmp_path: Path) -> None:
    place = tmp_path / "batches" / "step_8" / "rank_0.bin"
    place.parent.mkdir(parents=True)
    place.write_bytes((run / "batches/step_8/rank_0.bin").read_bytes())
    source = source_for(tmp_path, str(run / "tokenizer"))
    connection = open_for_writing(tmp_path / "x.sqlite")
    refresh_run(connection, source, tmp_path, ensure_run(connection, source, tmp_path))
    finish_writing(connection)
    sent = with_tokens(run, "effective")
    found = rows(tmp_path / "x.sqlite", "select env, completion_tokens, advantage from trajectories order by 1, 2, 3")
    expected = [
        ("word-problems" if trace["task"]["type"] == "QuestionTask" else "shell-jobs",
         sum(sum(node["mask"]) for node in trace["nodes"]), trace["info"]["advantage"])
        for trace in sent
    ]  # fmt: skip
    assert [(env, tokens, pytest.approx(advantage)) for env, tokens, advantage in found] == sorted(expected)
