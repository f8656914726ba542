"""A mapping proposed from a sample of a file, with the reason for each line of it."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from json import dumps
from pathlib import Path

from ...tokens.families import find_family, find_stripped_family
from ..base import Shard, SourceError
from ..files import base_folder
from .files import LAYOUTS
from .mapping import ROLES
from .recognise import sample
from .sampled import ROWS, Sampled

STEP = re.compile(r"((?:step|iter|iteration|update|completions|rollouts)[_-]?)\d+", re.I)
# Names that systems give to columns, the most telling first.
NAMES = {
    "prompt": ("prompt", "input", "question", "query", "instruction", "problem", "input_prompt", "prompt_text"),
    "completion": ("completion", "completions", "response", "responses", "output", "output_response", "generation",
                   "completion_text", "generated_text", "answer"),
    "prompt_ids": ("prompt_ids", "prompt_tokens", "prompt_token_ids", "input_ids", "input_tokens"),
    "completion_ids": ("completion_ids", "response_tokens", "completion_token_ids", "output_tokens", "response_ids"),
    "reward": ("reward", "rewards", "score", "scores", "total_reward", "final_reward", "return", "r"),
    "advantage": ("advantage", "advantages", "adv"),
    "step": ("step", "global_step", "training_step", "iteration", "iter", "gen_step", "update"),
    "split": ("split", "phase", "mode", "stage"),
    "env": ("env", "environment", "env_name", "env_class", "dataset", "data_source", "domain", "task_type"),
    "group": ("group_id", "group", "prompt_id", "prompt_idx", "group_idx", "group_index"),
    "truth": ("ground_truth", "gts", "gold", "label", "solution", "reference", "expected_answer", "target", "answer"),
    "stop": ("stop_reason", "finish_reason", "stop_condition", "termination_reason"),
    "truncated": ("truncated", "is_truncated"),
    "error": ("error", "exception"),
    "tools": ("tools", "tool_defs", "functions"),
    "logprobs": ("logprobs", "log_probs", "rollout_log_probs", "generation_logprobs"),
    "mask": ("loss_mask", "mask", "token_loss_mask", "response_mask"),
}  # fmt: skip
TOKEN_ROLES = ("prompt_ids", "completion_ids", "logprobs", "mask")


@dataclass
class Guess:
    """A proposed mapping: its TOML, and what a person should know about it."""

    toml: str
    notes: list[str] = field(default_factory=list)


def guess_mapping(file: Path) -> Guess:
    """Return a mapping proposed for a file. Raises SourceError where its first records are no objects."""
    layout = LAYOUTS.get(file.suffix, "lines")
    table = _only_table(file) if layout == "sqlite" else None
    records = sample(base_folder(file), Shard(file.name, file.name, layout), table, ROWS)
    if not records:
        raise SourceError(f"{file}: none of its first records can be read as an object with named columns.")
    return _Guessing(file, Sampled(records), table).guess()


class _Guessing:
    def __init__(self, file: Path, sampled: Sampled, table: str | None) -> None:
        self.file, self.sampled, self.table = file, sampled, table
        self.taken: set[str] = set()
        self.exploded: list[str] = []
        self.notes: list[str] = []

    def guess(self) -> Guess:
        sampled, has_step = self.sampled, self._find("step", peek=True) is not None
        content, columns, rewards = list(self._content()), list(self._columns()), list(self._rewards())
        lines = [f"name = {dumps(_name(self.file))}", 'title = "describe the format in a few words"']
        if sampled.layout != "rows":
            lines.append(f'layout = "{sampled.layout}"  # {sampled.why}')
        if self.exploded:
            lines.append(f"explode = {dumps(self.exploded)}  # lists with one value per answer")
        lines += ["", "[files]", *self._files(has_step), "", "[content]", *content, "", "[columns]", *columns]
        lines += ["", "[rewards]", *rewards] if rewards else []
        if left := [name for name in sampled.names if name not in self.taken and "object" not in sampled.kinds(name)]:
            self.notes.append("not used, kept as values where they are short: " + ", ".join(left[:12]))
        return Guess("\n".join(lines) + "\n", self.notes)

    def _files(self, has_step: bool) -> Iterator[str]:
        template = None if has_step else _step_template(self.file)
        if template:
            yield f"paths = [{dumps(template)}]  # the number in it looks like a step"
            self.notes.append("check that the number in the file's place is a step; else write * for {step}")
        else:
            yield f'paths = ["*{self.file.suffix}"]  # which files of a folder to read'
        if self.table:
            yield f"table = {dumps(self.table)}"

    def _content(self) -> Iterator[str]:
        for name in self.sampled.names:
            if found := list(self._messages(name)):
                yield from found
                return
        prompt, completion = self._find("prompt"), self._find("completion")
        if prompt and completion:
            yield from self._pair(prompt, completion)
        elif self._find("prompt_ids", peek=True) and self._find("completion_ids", peek=True):
            yield 'kind = "token_ids"  # no text; index with --tokenizer to see words'
        else:
            yield "# No column looks like a conversation. Name it yourself, for example:"
            yield '# messages = "…", or prompt = "…" and completion = "…"'
            self.notes.append("no column looks like a conversation: the mapping is not complete")

    def _messages(self, name: str) -> Iterator[str]:
        sampled = self.sampled
        if sampled.are_chunks(name):
            self.taken.add(name)
            yield f'kind = "chunks"  # messages whose texts are pieces of a chat template\nmessages = {dumps(name)}'
            return
        keys = sampled.message_keys(name)
        if keys is None or name.rpartition(".")[2] in NAMES["prompt"] + NAMES["completion"] + NAMES["tools"]:
            return
        self.taken.add(name)
        answer = None if sampled.holds_answer(name, keys[0]) else self._find("completion")
        if answer:
            yield 'kind = "messages"  # the answer is a column of its own'
            yield f"prompt = {dumps(name)}\ncompletion = {dumps(answer)}"
            return
        yield f'kind = "messages"\nmessages = {dumps(name)}  # a list of objects with {keys[0]} and {keys[1]}'
        if keys != ("role", "content"):
            yield f'role = "{keys[0]}"\ntext = "{keys[1]}"\nroles = {sampled.role_names(name, keys[0])}'

    def _pair(self, prompt: str, completion: str) -> Iterator[str]:
        sampled = self.sampled
        kind, why = self._text_kind(prompt, completion)
        if sampled.layout == "rows" and sampled.are_answers(completion):
            kind, why = "messages", "one prompt, a list of answers"
            lists = [name for name in sampled.names if sampled.kinds(name) == {"list"} and sampled.are_numbers(name)]
            self.exploded = [completion, *lists]
        yield f'kind = "{kind}"  # {why}'
        yield f"prompt = {dumps(prompt)}\ncompletion = {dumps(completion)}"

    def _text_kind(self, prompt: str, completion: str) -> tuple[str, str]:
        if "list" in self.sampled.kinds(prompt) | self.sampled.kinds(completion):
            return "messages", "lists of messages, or text of one speaker"
        texts = [text for row in self.sampled.rows if isinstance(text := row.get(prompt), str)]
        if kept := Counter(family.name for text in texts if (family := find_family(text))):
            return "rendered", f"the prompt keeps the marks of a chat template ({kept.most_common(1)[0][0]})"
        if stripped := Counter(family.name for text in texts if (family := find_stripped_family(text))):
            return "stripped", f"looks like a chat template without its marks ({stripped.most_common(1)[0][0]})"
        return "text", "plain text, or the marks of a chat template where a row has them"

    def _columns(self) -> Iterator[str]:
        for role in ROLES:
            if role not in NAMES or (name := self._find(role)) is None:
                continue
            if role == "reward" and "list" in self.sampled.kinds(name) and name not in self.exploded:
                yield f"{role} = {{ column = {dumps(name)}, sum = true }}  # a list of numbers: added up"
            else:
                yield f"{role} = {dumps(name)}"

    def _rewards(self) -> Iterator[str]:
        left = [name for name in self.sampled.names if name not in self.taken]
        named = [name for name in left if re.search(r"reward|score", name, re.I)]
        numbers = [name for name in named if self.sampled.kinds(name) <= {"number", "null", "boolean"}]
        inside = [name for name in named if self.sampled.kinds(name) == {"object"}][:1]
        if numbers:
            yield f"columns = {dumps(numbers)}  # numbers with reward or score in their names"
        if inside:
            yield f"inside = {dumps(inside[0])}  # an object of named numbers"
        self.taken.update(numbers + inside)

    def _find(self, role: str, peek: bool = False) -> str | None:
        fits = self._test(role)
        for wanted in NAMES[role]:
            for name in self.sampled.names:
                if name.rpartition(".")[2] == wanted and name not in self.taken and fits(name):
                    if not peek:
                        self.taken.add(name)
                    return name
        return None

    def _test(self, role: str) -> Callable[[str], bool]:
        sampled = self.sampled
        if role in TOKEN_ROLES:
            return lambda name: sampled.kinds(name) == {"list"} and sampled.are_numbers(name)
        if role in ("prompt", "completion"):
            return lambda name: bool(sampled.kinds(name) & {"text", "list"}) and not sampled.are_numbers(name)
        if role in ("reward", "advantage"):
            numbers = {"number", "null", "boolean"}
            return lambda name: sampled.kinds(name) <= numbers or sampled.are_numbers(name)
        return lambda name: role != "step" or bool(sampled.kinds(name) & {"number", "text"})


def _only_table(file: Path) -> str:
    query = "select name from sqlite_master where type = 'table' and name not like 'sqlite_%'"
    try:
        with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
            names = [str(name) for (name,) in connection.execute(query)]
    except sqlite3.Error as error:
        raise SourceError(f"{file} cannot be read: {error}.") from None
    if len(names) != 1:
        raise SourceError(f"{file} has the tables {', '.join(names) or 'none'}: write a mapping with files.table.")
    return names[0]


def _step_template(file: Path) -> str | None:
    """Return the path of a file with {step} for what looks like a step in its name or its folder's, or None."""
    if file.stem.isdigit():
        return "{step}" + file.suffix
    name, folder = file.name, file.absolute().parent.name
    if (named := STEP.sub(r"\1{step}", name, count=1)) != name:
        return named
    named = STEP.sub(r"\1{step}", folder, count=1)
    return f"{named}/*{file.suffix}" if named != folder else None


def _name(file: Path) -> str:
    plain = re.sub(r"[^a-z0-9]+", "-", re.sub(r"\d+", "", file.stem.lower())).strip("-")
    return f"my-{plain or 'format'}"[:60]
