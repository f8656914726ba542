"""The one shape of per-token data, from shards, from trace nodes and from annotations."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rltracer_sqlite.tokens import Tokens, branch_tokens, merge_tokens, shard_tokens
from rltracer_sqlite.tokens.streams import first_of_trained, mean_of_trained, trained_runs

NODES: list[dict[str, Any]] = [
    {"token_ids": [1, 2], "mask": [False, False], "logprobs": [], "sampled": False},
    {"parent": 0, "token_ids": [3, 4, 5], "mask": [False, True, True], "logprobs": [-1.0, -2.0], "sampled": True,
     "advantages": [0.5, 0.5], "entropies": [0.1, 0.2], "is_masked": [None, True]},
    {"parent": 1, "token_ids": [6], "mask": [False], "logprobs": None, "sampled": False},
    {"parent": 2, "token_ids": [7], "mask": [True], "logprobs": [-4.0], "sampled": True},
]  # fmt: skip


def test_nodes_are_projected_along_their_branch() -> None:
    tokens = branch_tokens(NODES, [0, 1, 2, 3])
    assert tokens is not None
    assert tokens.ids == [1, 2, 3, 4, 5, 6, 7]
    assert tokens.mask == [False, False, False, True, True, False, True]
    assert tokens.logprobs == [None, None, None, -1.0, -2.0, None, -4.0]
    assert tokens.advantages == [None, None, None, 0.5, 0.5, None, None]
    assert tokens.entropies == [None, None, None, 0.1, 0.2, None, None]
    assert tokens.is_masked == [None, None, None, None, True, None, None]
    assert (tokens.trainer_logprobs, tokens.importance_ratio) == (None, None)
    assert mean_of_trained(tokens.logprobs, tokens.mask) == pytest.approx(-7 / 3)
    assert first_of_trained(tokens.advantages, tokens.mask) == 0.5


def test_another_branch_has_other_tokens() -> None:
    tokens = branch_tokens(NODES, [0, 3])
    assert tokens is not None
    assert (tokens.ids, tokens.logprobs) == ([1, 2, 7], [None, None, -4.0])


@pytest.mark.parametrize(
    "nodes",
    [[], [{}], [{"token_ids": []}], [{"token_ids": None}]]
    + [[{"token_ids": ids}] for ids in ("<b>", {"1": 2}, [1, "<b>"], [None], [True], [1.5], [10**5000], 7)],
)
def test_a_branch_without_ids_has_no_tokens(nodes: list[dict[str, Any]]) -> None:
    assert branch_tokens(nodes, range(len(nodes))) is None


@pytest.mark.parametrize(
    ("node", "logprobs", "mask"),
    [
        ({"token_ids": [1, 2], "sampled": True, "logprobs": [-1.0, -2.0]}, [-1.0, -2.0], [True, True]),
        ({"token_ids": [1, 2], "mask": [False, True], "logprobs": [-1.0, -2.0]}, [-1.0, -2.0], [False, True]),
        ({"token_ids": [1, 2], "mask": [False, True], "logprobs": [-1.0] * 5}, None, [False, True]),
        ({"token_ids": [1, 2], "mask": [True], "logprobs": None, "sampled": False}, None, [False, False]),
        ({"token_ids": [1], "sampled": True, "logprobs": ["x"]}, [None], [True]),
        ({"token_ids": [1], "sampled": True, "logprobs": [math.nan]}, [None], [True]),
        ({"token_ids": [1, 2], "sampled": True, "logprobs": [10**400, -math.inf]}, [None, None], [True, True]),
    ],
)
def test_a_node_with_odd_streams(node: dict[str, Any], logprobs: Any, mask: list[bool]) -> None:
    tokens = branch_tokens([node], [0])
    assert tokens is not None
    assert (tokens.logprobs, tokens.mask) == (logprobs, mask)


def test_annotations_are_laid_over_a_branch() -> None:
    tokens = branch_tokens(NODES, [0, 1, 2, 3])
    assert tokens is not None
    later = tokens.with_streams(
        {
            "index": 0,
            "advantages": [0.0, 0.0, 0.0, 0.75, 0.75, 0.0, 0.75],
            "trainer_logprobs": [None, None, None, -1.5, None],
            "is_masked": [None, None, None, False, None, None, False],
            "entropies": [None] * 7,
        }
    )
    assert later.advantages == [None, None, None, 0.75, 0.75, None, 0.75]
    assert later.trainer_logprobs == [None, None, None, -1.5, None, None, None]
    assert later.is_masked == [None, None, None, False, True, None, False]
    assert later.entropies == tokens.entropies
    assert later.with_streams({"advantages": [1.0] * 8}) == later


def test_shards_write_zeros_where_nothing_is_known() -> None:
    mask = [False, False, True, True]
    tokens = shard_tokens(
        [1, 2, 3, 4], mask, {"inference_logprobs": [0.0, -0.5, 0.0, -1.0], "advantages": [0.5] * 4, "entropy": [1.0]}
    )
    assert tokens.logprobs == [None, -0.5, 0.0, -1.0]
    assert tokens.advantages == [None, None, 0.5, 0.5]
    assert tokens.entropies is None


def test_a_copy_that_was_cut_adds_what_it_knows() -> None:
    first = Tokens([1, 2, 3], mask=[False, True, True], logprobs=[None, -1.0, -2.0])
    cut = Tokens([1, 2], mask=[False, True], trainer_logprobs=[None, -1.5])
    assert merge_tokens(first, cut).trainer_logprobs == [None, -1.5, None]
    assert merge_tokens(first, Tokens([9, 2], trainer_logprobs=[0.0, 0.0])) == first


@given(st.lists(st.booleans(), max_size=30))
def test_runs_are_the_trained_tokens(mask: list[bool]) -> None:
    runs = trained_runs(mask)
    rebuilt = [False] * len(mask)
    for start, end in runs:
        assert start < end
        rebuilt[start:end] = [True] * (end - start)
    assert rebuilt == mask
    assert all(end < start for (_, end), (start, _) in pairwise(runs))


VALUES = st.one_of(st.none(), st.floats(-9, 9), st.sampled_from([math.nan, math.inf, -math.inf]))


@given(st.lists(st.tuples(VALUES, st.booleans()), max_size=20))
def test_means_are_of_the_finite_values_of_trained_tokens(pairs: list[tuple[float | None, bool]]) -> None:
    values, mask = [value for value, _ in pairs], [flag for _, flag in pairs]
    known = [value for value, flag in pairs if flag and value is not None and math.isfinite(value)]
    mean = mean_of_trained(values, mask)
    assert mean == (pytest.approx(sum(known) / len(known)) if known else None)
    assert mean_of_trained(values, bytes(mask)) == mean


@pytest.mark.parametrize("values", [None, [], [None, 1.0], [math.nan, 1.0], ["x", 1.0], [True, 1.0]])
def test_a_first_value_that_is_no_number_is_missing(values: Any) -> None:
    assert first_of_trained(values, [True, True] if values else None) is None
