"""Secrets: each kind is found where it stands in text, and ordinary text is left alone."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rltracer_sqlite.export.redact import PATTERNS, redact, redact_text
from tests.export_runs import export, indexed, rollout, spec

KEY = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA7v\nabc+/=\n-----END RSA PRIVATE KEY-----"
# Made of parts, so that no scanner takes this file for a leak.
SECRETS = {
    "private key": KEY,
    "Anthropic key": "sk-" + "ant-api03-" + "aB3" * 10,
    "OpenAI key": "sk-" + "proj-" + "aB3_" * 10,
    "Hugging Face token": "hf" + "_" + "aB3" * 12,
    "GitHub token": "gh" + "p_" + "a1B2" * 9,
    "GitLab token": "gl" + "pat-" + "a1B2" * 5,
    "AWS access key": "AK" + "IA" + "ABCDEFGH234567XY",
    "Google key": "AI" + "za" + "aB3_-" * 7,
    "Slack token": "xo" + "xb-123456789012-abcdef",
    "Stripe key": "sk" + "_live_" + "aB3" * 8,
    "npm token": "np" + "m_" + "a1B2" * 9,
    "PyPI token": "py" + "pi-" + "aB3_" * 14,
    "JSON web token": "ey" + "JhbGciOiJIUzI1NiJ9." + "ey" + "JzdWIiOiIxMjM0In0." + "s5Gd8_kd93-k",
}


@pytest.mark.parametrize(("kind", "secret"), SECRETS.items(), ids=SECRETS)
@pytest.mark.parametrize(
    "around", ["{}", "export KEY={} && run", "the key ({}), as said", '{{"key": "{}"}}', "x\n{}\ny"]
)
def test_each_kind_is_found_in_text(kind: str, secret: str, around: str) -> None:
    found: Counter[str] = Counter()
    text = redact_text(around.format(secret), found)
    assert text == around.format(f"[{kind}]")
    assert found == {kind: 1}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("WANDB_API_KEY=" + "a1" * 20, "WANDB_API_KEY=[W&B key]"),
        ("Authorization: Bearer " + "aB3." * 8, "Authorization: Bearer [bearer token]"),
        ("git clone https://me:hunter2@example.com/x", "git clone https://[password in an address]@example.com/x"),
        ('{"api_key": "' + "aB3" * 8 + '"}', '{"api_key": "[assigned secret]"}'),
        ('{\\"password\\": \\"' + "aB3" * 8 + '\\"}', '{\\"password\\": \\"[assigned secret]\\"}'),
        ("aws_secret_access_key = " + "aB3/" * 10, "aws_secret_access_key = [assigned secret]"),
    ],
)
def test_what_stands_beside_a_secret_stays(text: str, expected: str) -> None:
    assert redact_text(text, Counter()) == expected


@pytest.mark.parametrize(
    "text",
    [
        "The password is asked for; task-list-of-things-to-do-today-and-tomorrow",
        "sk-learn and sk-short", "desk-lamp-with-a-very-long-name-indeed", "https://example.com:8080/a@b",
        "sha256:" + "ab12" * 16, "d" * 500, "password = get_password_from_the_user()", "hf_hub_download(repo_id)",
        "AKIA is a prefix", "eyJust a word", "tokens = prompt_tokens + completion_tokens",
    ],
)  # fmt: skip
def test_ordinary_text_is_left_alone(text: str) -> None:
    found: Counter[str] = Counter()
    assert redact_text(text, found) == text
    assert not found


def test_every_pattern_has_a_test() -> None:
    others = {"W&B key", "bearer token", "password in an address", "assigned secret"}
    assert set(PATTERNS) == set(SECRETS) | others


@given(st.sampled_from(sorted(SECRETS.values())), st.text(max_size=20), st.text(max_size=20))
@settings(max_examples=60, deadline=None)
def test_json_inside_a_string_stays_json(secret: str, before: str, after: str) -> None:
    arguments = json.dumps({"command": f"{before} {secret} {after}", "n": 1})
    text = redact_text(arguments, Counter())
    assert json.loads(text)["n"] == 1


def test_rows_are_redacted_everywhere_and_counted(tmp_path: Path) -> None:
    secret = SECRETS["GitHub token"]
    record = rollout("a", f"Use {secret}", calls=1)
    record["nodes"][2]["message"]["tool_calls"][0]["arguments"] = json.dumps({"command": f"login {secret}"})
    record["nodes"][4]["message"]["content"] = [{"type": "text", "text": secret}]
    database = indexed(tmp_path, {1: [record]})
    export(spec(database), tmp_path / "out.jsonl", redact=True, include_provenance=True)
    text = (tmp_path / "out.jsonl").read_text()
    assert secret not in text
    assert text.count("[GitHub token]") == 4
    told = json.loads((tmp_path / "out.jsonl.summary.json").read_text())
    assert told["redacted"] == {"GitHub token": 4}
    export(spec(database), tmp_path / "out.jsonl")
    assert secret in (tmp_path / "out.jsonl").read_text()


def test_values_that_are_no_text_stay() -> None:
    assert redact({"a": [1, None, True, 0.5]}, Counter()) == {"a": [1, None, True, 0.5]}
