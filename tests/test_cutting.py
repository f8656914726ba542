"""Leaving out the token arrays changes nothing that the index keeps, whatever a record looks like."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rltracer_sqlite.sources.base import Entry, Problem, Shard
from rltracer_sqlite.sources.prime_rl.entries import trace_entries
from rltracer_sqlite.sources.prime_rl.record_decoding import (
    DAMAGED_ARRAYS,
    MARK,
    read_leniently,
    read_record,
    without_arrays,
)
from rltracer_sqlite.sources.prime_rl.record_types import DECODER, Record
from tests.layouts import episode, line, message, node, spaced_line, trace

SHARD = Shard("a.jsonl", "a.jsonl", "traces", 1, "train")
KEYS = ["mask", "is_content", "logprobs", "advantages", "reference_logprobs", "trainer_logprobs", "entropies"]

NUMBERS = st.integers(-9, 200_000) | st.floats(allow_nan=False, allow_infinity=False) | st.booleans() | st.none()
ARRAYS = (
    st.none()
    | st.lists(NUMBERS, max_size=4)
    | st.lists(st.lists(NUMBERS, max_size=2) | NUMBERS, max_size=3)
    | st.lists(st.sampled_from(["]", 'a],"mask":[', "\\", '"']) | st.integers(0, 9), max_size=3)
    | st.just({"a": [1, 2], "b": []})
)
TEXTS = st.text(max_size=8) | st.sampled_from(
    [',"token_ids":[1,2],"mask":[true]', '","token_ids":[1,2', "]", "\u2028\u0085", '\\",\\"token_ids\\":[1']
)
TOKENS = st.fixed_dictionaries(
    {}, optional={"token_ids": ARRAYS, **dict.fromkeys(KEYS, ARRAYS), "loss_weights": st.just({"a": [0.5, None]})}
)
NODES = st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), TEXTS, TOKENS), max_size=5)


def made_of(nodes: list[tuple[str, str, dict[str, Any]]], info: Any) -> dict[str, Any]:
    graph = []
    for number, (role, text, tokens) in enumerate(nodes):
        bare = {"message": message(role, text), "sampled": role == "assistant"}
        graph.append({**({"parent": number - 1} if number else {}), **bare, **tokens})
    return trace(nodes=graph, rewards={"r": {"score": 0.5, "weight": 2.0}}, info={"group_id": "g", "extra": info})


def entries(record: Record, length: int) -> list[Entry | Problem]:
    return list(trace_entries(record, SHARD, 0, length, 1))


def uncut(data: bytes) -> Record:
    return DECODER.decode(data)


def cut(data: bytes) -> Record:
    return DECODER.decode(without_arrays(data, 0, len(data) - 1))


@settings(deadline=None, max_examples=150)
@given(NODES, TOKENS | TEXTS, st.sampled_from([line, spaced_line]), st.booleans())
def test_cut_and_uncut_give_equal_entries(
    nodes: list[Any], info: Any, dump: Callable[[Any], bytes], in_episode: bool
) -> None:
    record = made_of(nodes, info)
    data = dump(episode([record, record], step=3) if in_episode else record)
    try:
        shorter = cut(data)
    except msgspec.DecodeError:
        # A nested array can be cut in its middle: that is noticed, and the line is read uncut.
        shorter = uncut(data)
    assert entries(shorter, len(data)) == entries(uncut(data), len(data))


@settings(deadline=None, max_examples=60)
@given(NODES, TOKENS)
def test_a_cut_does_not_look_beyond_its_line(nodes: list[Any], info: Any) -> None:
    first, second = line(made_of(nodes, info)), line(made_of([], None))
    buffer = bytearray(first + second)
    assert without_arrays(buffer, 0, len(first) - 1) == without_arrays(first, 0, len(first) - 1)
    assert without_arrays(buffer, len(first), len(buffer) - 1) == without_arrays(second, 0, len(second) - 1)


def test_the_arrays_of_every_node_are_cut() -> None:
    said = [message("user", "q"), message("assistant", "a"), message("tool", "t"), message("assistant", "b")]
    full = trace(said, token_ids=True)
    bare = trace(said, nodes=[{**one, "token_ids": 0} for one in full["nodes"]], id=full["id"])
    data = line(full)
    assert len(without_arrays(data, 0, len(data) - 1)) < len(line(bare))
    assert b"logprobs" not in without_arrays(data, 0, len(data) - 1)


@pytest.mark.parametrize(
    "kept",
    [
        {"token_ids": ["a]", "b"], "mask": ["x"]},
        {"token_ids": [[1, 2], [3]], "mask": [True]},
        {"x": 1, "token_ids": [1, 2, 3]},
        {"x": 1, "token_ids": {"a": [1]}},
        {"x": ',"token_ids":[1,2],"mask":[true]'},
    ],
)
def test_what_only_looks_like_token_arrays_stays(kept: dict[str, Any]) -> None:
    data = line({"info": kept})
    assert without_arrays(data, 0, len(data) - 1) == data[:-1]


def test_spaces_and_loss_weights_stop_the_cut() -> None:
    assert without_arrays(b'{"a":0,"token_ids": [1]}\n', 0, 24) == b'{"a":0,"token_ids": [1]}'
    data = b'{"a":0,"token_ids":[1],"mask":[true],"loss_weights":{"a":[1]},"logprobs":[0]}\n'
    assert without_arrays(data, 0, len(data) - 1) == b'{"a":0,"loss_weights":{"a":[1]},"logprobs":[0]}'


def test_nulls_between_the_arrays_are_cut_with_them() -> None:
    data = b'{"a":0,"token_ids":[],"mask":null,"is_content":null,"logprobs":[-1.5,null],"b":1}\n'
    assert without_arrays(data, 0, len(data) - 1) == b'{"a":0,"b":1}'


@pytest.mark.parametrize("length", range(1, len(b',"token_ids":[1,2],"mask":[true],"logprobs":[-0.5,nu') + 1))
def test_a_truncated_array_that_ends_in_a_newline_is_no_record(length: int) -> None:
    start = b'{"nodes":[{"message":{"role":"user"}'
    torn = start + b',"token_ids":[1,2],"mask":[true],"logprobs":[-0.5,nu'[:length] + b"\n"
    after = torn + b'{"id":"b","nodes":[],"x":[1,2]}\n'  # brackets of the next line must not help
    with pytest.raises(msgspec.DecodeError):
        read_record(after, 0, len(torn) - 1)


def test_numbers_that_json_does_not_know_are_left_to_the_lenient_reader() -> None:
    data = b'{"nodes":[{"message":{},"token_ids":[1],"mask":[true],"logprobs":[NaN]}]}\n'
    assert b"NaN" in without_arrays(data, 0, len(data) - 1)
    assert math.isnan(json.loads(data)["nodes"][0]["logprobs"][0])


def test_the_first_node_without_tokens_decides_that_a_record_has_none() -> None:
    said = [message("user", "q"), message("assistant", "a")]
    record = trace(nodes=[node(said[0]), node(said[1], 0, token_ids=True)])
    data = line(record)
    found, remarks = read_record(data, 0, len(data) - 1)
    assert (entries(found, 1), remarks) == (entries(uncut(data), 1), [])


@pytest.mark.parametrize("where", ["prompt", "answer"])
def test_a_node_inside_of_a_message_is_read_with_its_arrays(where: str) -> None:
    said = {"type": "trace", "node": {"sampled": True, "token_ids": [1, 2], "mask": [True, True]}}
    asked = [said] if where == "prompt" else "What is it?"
    nodes = trace([message("user", asked), message("assistant", [said])], token_ids=True)["nodes"]
    data = line(trace(nodes=nodes, id="a"))
    record, _ = read_record(data, 0, len(data) - 1)
    assert entries(record, len(data)) == entries(uncut(data), len(data))
    assert (entries(cut(data), len(data)) == entries(uncut(data), len(data))) == (where == "answer")


def test_the_nodes_of_every_trace_are_marked() -> None:
    told = [message("user", "q"), message("assistant", "a")]
    data = line(episode([trace(told, token_ids=True), trace(told, token_ids=True)], step=3))
    record, _ = read_record(data, 0, len(data) - 1)
    marks = [[node.cut for node in one.nodes or ()] for one in record.traces or ()]
    assert marks == [[MARK, MARK], [MARK, MARK]]


def awkward(data: bytes) -> tuple[Record, list[str]]:
    """Return a record as it is read where its line has a value that JSON has not."""
    line = b'{"_awkward":NaN,' + data[1:]
    return read_leniently(line, 0, len(line) - 1)


@settings(deadline=None, max_examples=100)
@given(NODES, TOKENS | TEXTS, NODES, st.booleans())
def test_strict_and_lenient_reading_give_equal_entries(
    nodes: list[Any], info: Any, inner: list[Any], in_episode: bool
) -> None:
    record = made_of(nodes, info)
    for number, one in enumerate(record["nodes"][:1]):
        one["message"]["content"] = [{"type": "trace", "trace": made_of(inner, number)}]
    data = line(episode([record, record], step=3) if in_episode else record)
    found, _ = awkward(data)
    assert entries(found, len(data)) == entries(uncut(data), len(data))


SAID = {"type": "trace", "node": {"sampled": True, "token_ids": [1, 2], "mask": [True, True]}}
WHOLE = line(trace([message("user", [SAID]), message("assistant", "a")], token_ids=True, id="a"))


@pytest.mark.parametrize("own", [True, 0, 1, [0], {}])
def test_a_recorded_mark_is_none(own: Any) -> None:
    record = json.loads(WHOLE)
    record["nodes"][1] = {**record["nodes"][1], "_cut": own, "token_ids": None}
    data = line(record)
    for found, _ in (read_record(data, 0, len(data) - 1), awkward(data)):
        assert entries(found, len(data)) == entries(uncut(data), len(data))


def test_damaged_arrays_of_a_node_are_left_out_and_those_of_a_message_stay() -> None:
    damaged = WHOLE.replace(b'"mask":[false', b'"mask":[fals')
    assert damaged != WHOLE
    found, remarks = read_leniently(damaged, 0, len(damaged) - 1)
    assert (entries(found, len(WHOLE)), remarks) == (entries(uncut(WHOLE), len(WHOLE)), [])
    found, remarks = read_leniently(damaged.replace(b"[true,true]", b"[true,tru]"), 0, len(damaged) - 2)
    assert remarks == [DAMAGED_ARRAYS]
    assert b"%d" % MARK not in bytes(found.nodes[0].message.content)  # type: ignore[index]
