"""Templates of prompts and the values that they are filled with, as they are and as they should not be."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from rltracer_sqlite.retemplate import PromptTemplate, RetemplateError
from rltracer_sqlite.retemplate.templates import VARIABLES, rubric_texts, source_values, split_row

BAD_TEMPLATES = [
    ("{", "is no JSON"),
    ("[]", "is no JSON object"),
    ("{}", "no list of messages"),
    ('{"chat_template": ["x"]}', "no list of messages"),
    ('{"chat_template": [{"role": "system", "content": "x"}]}', "no user message"),
    ('{"chat_template": [{"role": "assistant"}, {"role": "user", "content": "x"}]}', "no user message"),
    ('{"chat_template": [{"role": "user", "content": "{inputs"}]}', "braces that do not match"),
    ('{"chat_template": [{"role": "user", "content": "{}"}]}', "no placeholder"),
    ('{"chat_template": [{"role": "user", "content": "{inputs.__class__}"}]}', "no placeholder"),
    ('{"chat_template": [{"role": "user", "content": "{inputs!r}"}]}', "no placeholder"),
    ('{"chat_template": [{"role": "user", "content": "{inputs:>9999999999}"}]}', "no placeholder"),
    ('{"chat_template": [{"role": "user", "content": "{question}"}]}', "asks for question"),
    ('{"chat_template": [{"role": "user", "content": "x"}], "input_variables": ["y"]}', "asks for y"),
    ('{"chat_template": [{"role": "user", "content": "x"}], "input_variables": "y"}', "no list of names"),
]


@pytest.mark.threat("T62")
@pytest.mark.parametrize(("content", "sentence"), BAD_TEMPLATES)
def test_templates_that_are_none(tmp_path: Path, content: str, sentence: str) -> None:
    (tmp_path / "t.json").write_text(content)
    with pytest.raises(RetemplateError, match=sentence):
        PromptTemplate.load(tmp_path / "t.json")


@pytest.mark.parametrize(
    ("row", "reason"),
    [([], "no list"), ({"messages": "x"}, "no list"), ({"messages": [{"role": "user"}]}, "no answer"),
     ({"messages": [{"role": "assistant"}]}, "begins with an answer")],
)  # fmt: skip
def test_sft_rows_that_are_none(row: Any, reason: str) -> None:
    with pytest.raises(RetemplateError, match=reason):
        split_row(row)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        ({"pass": "yes", "fail": "no"}, ["pass - yes\nfail - no"]),
        ({"fail": "no", "pass": "yes"}, ["pass - yes\nfail - no", "fail - no\npass - yes"]),
        ({"Fail": "no", "PASS ": "yes"}, ["PASS  - yes\nFail - no", "Fail - no\nPASS  - yes"]),
        ({"1": "bad", "5": "good", "weight": 2}, ["1 - bad\n5 - good"]),
        ({}, [""]),
    ],
)
def test_a_rubric_is_a_line_per_score(scores: dict[str, Any], expected: list[str]) -> None:
    assert rubric_texts(scores) == expected


def test_what_a_source_row_lacks_is_empty() -> None:
    assert source_values({}) == [dict.fromkeys(VARIABLES, "")]
    assert source_values({"input": 5, "output": None})[0]["inputs"] == "5"
