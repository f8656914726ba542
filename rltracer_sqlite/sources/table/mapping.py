"""The mapping model: how one system's table of rows is to be read. docs/mappings.md describes each key."""

from __future__ import annotations

import re
from collections.abc import Callable
from collections.abc import Mapping as Dictionary
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ...amounts import shortened
from ..base import SourceError

LAYOUTS = ("rows", "columns", "singletons")
KINDS = ("messages", "text", "rendered", "stripped", "chunks", "responses", "token_ids")
ROLES = (
    "id", "step", "split", "env", "agent", "group", "episode", "example", "task", "truth", "reward", "advantage",
    "stop", "truncated", "error", "ok", "prompt_tokens", "completion_tokens", "policy_version", "started_at",
    "seconds", "tools", "prompt_ids", "completion_ids", "logprobs", "mask", "length", "rollout", "output",
)  # fmt: skip
SPLITS = {"train": "train", "eval": "eval", "val": "eval", "valid": "eval", "validation": "eval", "test": "eval"}
# What systems call a rollout that a limit has cut off.
TRUNCATED = {"length", "max_length", "max_tokens", "max_turns", "max_steps", "truncated", "token_limit", "incomplete"}
WHOSE_TOKENIZER = "; the rollouts need the tokenizer of "  # between what a file is, and the name of a model
LONGEST_MODEL = 100  # characters of the name of a model
ENDINGS = (".jsonl", ".json", ".parquet", ".db", ".sqlite", ".sqlite3")


class MappingError(SourceError):
    """A mapping that cannot be used; the sentence names its file, the line and the key."""


@dataclass(frozen=True)
class Role:
    """Where one value of a row comes from: the first of `columns` that has one, or a constant."""

    columns: tuple[str, ...] = ()  # dotted paths; `*` stands for every element of a list
    like: Template | None = None  # the part of a text that `{}` stands for
    total: bool = False  # add up a list
    values: Dictionary[str, Any] = field(default_factory=dict)  # recorded text -> what it means
    constant: Any = None
    present: str | None = None  # `then` where this column is there, else `otherwise`
    then: Any = None
    otherwise: Any = None


@dataclass(frozen=True)
class Content:
    """Which columns hold the conversation, and in which form."""

    kind: str = "messages"
    messages: Role | None = None
    prompt: Role | None = None
    completion: Role | None = None
    instructions: Role | None = None
    segments: str | None = None
    role: str = "role"  # the key of a message that holds its role, or a dotted path
    text: str = "content"  # the key of a message that holds its content, or a dotted path
    reasoning: str = ""  # the key of a message that holds its reasoning, or a dotted path
    roles: Dictionary[str, str] = field(default_factory=dict)  # recorded role -> role
    drop_nulls: bool = False  # leave out the null keys of tool arguments, which Arrow adds
    family: str | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Return the columns of the conversation."""
        roles = (self.messages, self.prompt, self.completion, self.instructions)
        return tuple(column for role in roles if role for column in role.columns) + (
            (self.segments,) if self.segments else ()
        )

    @property
    def needed(self) -> tuple[Role, ...]:
        """Return the parts without which a row is no conversation."""
        return tuple(role for role in (self.messages, self.prompt, self.completion) if role)


@dataclass(frozen=True)
class Rewards:
    """The named rewards of a row; without a total reward their sum is the total."""

    columns: tuple[str, ...] = ()
    numbers: bool = False  # every column of numbers that nothing else uses is a named reward
    inside: str | None = None  # a column that holds an object of them
    leave_out: frozenset[str] = frozenset()
    skip_missing: bool = False  # a null score is left out of the sum; else it leaves the total unknown


@dataclass(frozen=True)
class Variant:
    """One of several trajectories that a single row holds, such as a chosen and a rejected answer."""

    label: str
    completion: Role
    reward: Role | None = None


@dataclass(frozen=True)
class Test:
    """What a record must have to be of a shape."""

    has: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()

    def fits(self, is_there: Callable[[str], bool]) -> bool:
        """Say whether a record fits, by a function that says whether a column is there."""
        return all(map(is_there, self.has)) and not any(map(is_there, self.lacks))


@dataclass(frozen=True)
class Shape:
    """One form that the records of a system have."""

    name: str
    layout: str
    test: Test
    content: Content
    roles: Dictionary[str, Role]
    rewards: Rewards | None = None
    explode: tuple[str, ...] = ()  # lists of one row that hold one value per trajectory
    variants: tuple[Variant, ...] = ()
    skipped: frozenset[str] = frozenset()  # columns that give no values
    info: tuple[str, ...] = ()  # columns that say which row it is, or how it was made, and measure nothing
    python_booleans: bool = False  # the texts "True" and "False" are booleans that a writer made into text

    @property
    def has_outputs(self) -> bool:
        """Whether a row may be one of several outputs of a rollout."""
        return "rollout" in self.roles and "output" in self.roles

    @cached_property
    def used(self) -> frozenset[str]:
        """Return the columns that are no values of their own, apart from those that the roles take."""
        taken = [column for v in self.variants for role in (v.completion, v.reward) if role for column in role.columns]
        rewards = self.rewards
        named = [*rewards.columns, *([rewards.inside] if rewards.inside else [])] if rewards else []
        return frozenset([*taken, *self.content.columns, *named, *self.skipped])


@dataclass(frozen=True)
class Aside:
    """Files of the system that are known to be no rollouts, by their names and their records, and what they are."""

    says: str
    paths: tuple[Template, ...] = ()
    test: Test | None = None
    tokenizer: str = ""  # the path of a value that names the model, or the tokenizer, of the rollouts' token ids

    def told(self, value: Callable[[str], Any]) -> str:
        """Return what the files are, with whose tokenizer the rollouts need, by the values of a record of theirs."""
        named = value(self.tokenizer) if self.tokenizer else None
        if not isinstance(named, str) or not named.strip():
            return self.says
        return f"{self.says}{WHOSE_TOKENIZER}{shortened(named.strip(), LONGEST_MODEL)}"


@dataclass(frozen=True)
class Mapping:
    """How one system's files are found, told apart and read."""

    name: str
    shapes: tuple[Shape, ...]
    title: str = ""
    step_kind: str | None = None  # what a step counts
    generic: bool = False  # a convention that many share: whatever a system's own mapping reads is not its
    paths: tuple[Template, ...] = ()  # empty: every file with one of ENDINGS
    table: str | None = None  # of a SQLite database
    repeats: bool = False  # a file may begin with the last rows of the one before it
    asides: tuple[Aside, ...] = ()
    text: str = ""  # the TOML that it was read from

    @property
    def adds_rewards(self) -> bool:
        """Say whether the total reward is the plain sum of the named ones, wherever there are any."""
        named = [shape for shape in self.shapes if shape.rewards]
        return bool(named) and not any("reward" in shape.roles for shape in named)

    @cached_property
    def has_outputs(self) -> bool:
        """Whether a row may be one of several outputs of a rollout."""
        return any(shape.has_outputs for shape in self.shapes)


@dataclass(frozen=True)
class Template:
    """A path or a text with open places: `*` is anything, `{step}` digits, `{split}` a known split, `{}` a part."""

    written: str
    splits: Dictionary[str, str] = field(default_factory=lambda: SPLITS)

    def find(self, text: str, whole: bool = False) -> dict[str, Any] | None:
        """Return what stands in the open places, {} where there are none, or None where the text does not fit.

        A path fits where its end does, from a folder or file name on; with `whole` all of the text has to.
        """
        match = self._pattern(whole).search(text[-4096:])
        if match is None:
            return None
        found: dict[str, Any] = {key: value for key, value in match.groupdict().items() if value is not None}
        if "step" in found:
            found["step"] = int(found["step"])
        if "split" in found:
            found["split"] = self.splits[found["split"]]
        return found

    def ending(self, path: str) -> re.Match[str] | None:
        """Return the end of a path that fits, with `step` and `split` as its groups, or None where it does not fit."""
        return self._ending.search(path)

    def _pattern(self, whole: bool) -> re.Pattern[str]:
        return self._whole if whole else self._ending

    @cached_property
    def _ending(self) -> re.Pattern[str]:
        return re.compile(rf"(?:^|/){self._body('[^/]*')}\Z")

    @cached_property
    def _whole(self) -> re.Pattern[str]:
        return re.compile(rf"\A{self._body('.*')}\Z", re.S)

    def _body(self, anything: str) -> str:
        # The longest name first, so that "eval-rollout" is not taken for something that ends in "rollout".
        splits = "|".join(map(re.escape, sorted(self.splits, key=len, reverse=True)))
        places = {
            "*": anything,
            "{step}": r"(?P<step>\d{1,15})",
            "{split}": f"(?P<split>{splits})",
            "{}": "(?P<part>.+)",
        }
        parts = re.split(r"(\*|\{step\}|\{split\}|\{\})", self.written)
        return "".join(places.get(part, re.escape(part)) for part in parts)
