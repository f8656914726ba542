"""Taking secrets out of rows: keys, tokens and passwords of known shapes, each replaced by what it was.

A pattern stands here only where its shape says what it is; a plain random word is not found. Replacements hold no
quote and no backslash, so JSON inside a string stays JSON.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import partial
from typing import Any

# Letters that a token must not be the continuation of.
START = r"(?<![A-Za-z0-9_\-])"

PATTERNS: dict[str, re.Pattern[str]] = {
    "private key": re.compile(
        r"-----BEGIN (?P<what>[A-Z ]{0,20}PRIVATE KEY(?: BLOCK)?)-----"
        r"(?:(?!-----)[^\"]){0,20000}(?:-----END (?P=what)-----)?"
    ),
    "Anthropic key": re.compile(START + r"sk-ant-[A-Za-z0-9_\-]{20,300}"),
    "OpenAI key": re.compile(START + r"sk-(?:proj-|svcacct-|admin-)?[A-Za-z0-9_\-]{20,300}"),
    "Hugging Face token": re.compile(START + r"(?:hf|api_org)_[A-Za-z0-9]{30,80}"),
    "GitHub token": re.compile(START + r"(?:gh[pousr]_[A-Za-z0-9]{36,255}|github_pat_[A-Za-z0-9_]{50,255})"),
    "GitLab token": re.compile(START + r"glpat-[A-Za-z0-9_\-]{20,80}"),
    "AWS access key": re.compile(START + r"(?:AKIA|ASIA)[A-Z2-7]{16}(?![A-Za-z0-9])"),
    "Google key": re.compile(START + r"AIza[A-Za-z0-9_\-]{35}"),
    "Slack token": re.compile(START + r"xox[abeoprs]-[A-Za-z0-9\-]{10,250}"),
    "Stripe key": re.compile(START + r"[rs]k_(?:live|test)_[A-Za-z0-9]{16,250}"),
    "npm token": re.compile(START + r"npm_[A-Za-z0-9]{36}"),
    "PyPI token": re.compile(START + r"pypi-[A-Za-z0-9_\-]{50,300}"),
    "W&B key": re.compile(r"(?<=WANDB_API_KEY=)[0-9a-f]{40}\b"),
    "JSON web token": re.compile(
        START + r"eyJ[A-Za-z0-9_\-]{10,2000}\.eyJ[A-Za-z0-9_\-]{10,4000}\.[A-Za-z0-9_\-]{10,2000}"
    ),
    "bearer token": re.compile(r"(?<=[Bb]earer )[A-Za-z0-9_\-.~+/]{20,4000}=*"),
    "password in an address": re.compile(r"(?<=://)(?P<user>[^\s/:@\"'\\]{1,100}):[^\s/@\"'\\]{1,200}(?=@)"),
    "assigned secret": re.compile(
        r"(?P<name>(?:secret_access_key|api_key|apikey|api_secret|client_secret|auth_token|access_token|password|passwd)"
        r"[\"'\\]{0,4}\s{0,3}[:=]\s{0,3}[\"'\\]{0,4})(?=[^\s\"'\\]{0,300}\d)(?P<value>[A-Za-z0-9_\-./+=]{16,300})(?![A-Za-z0-9_\-./+=(\[])",
        re.IGNORECASE,
    ),
}


def redact(value: Any, found: Counter[str]) -> Any:
    """Return a value in which every string has lost its secrets; count them in `found` by their kind."""
    if isinstance(value, str):
        return redact_text(value, found)
    if isinstance(value, list):
        return [redact(inner, found) for inner in value]
    if isinstance(value, dict):
        return {key: redact(inner, found) for key, inner in value.items()}
    return value


def redact_text(text: str, found: Counter[str]) -> str:
    """Return a text without its secrets; count them in `found` by their kind."""
    for kind, pattern in PATTERNS.items():
        text, count = pattern.subn(partial(_replacement, kind), text)
        if count:
            found[kind] += count
    return text


def _replacement(kind: str, match: re.Match[str]) -> str:
    groups = match.groupdict()
    if "user" in groups:
        return f"[{kind}]"
    return f"{groups['name']}[{kind}]" if "name" in groups else f"[{kind}]"
