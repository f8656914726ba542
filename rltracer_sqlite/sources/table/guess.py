"""A mapping proposed from a sample of a file, with the reason for each line of it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from ...tokens.families import find_family, find_stripped_family
from ..base import Shard, SourceError
from ..places import base_folder
from .files import LAYOUTS
from .mapping import ROLES
from .recognise import sample
from .sampled import ROWS, Sampled
from .sqlite import DAMAGED, connect, table_names
from .toml import toml_comment, toml_value
from .usual_names import COUNTS, NAMES, TOKEN_ROLES, mapping_name, place_template

SOUGHT = ("step", "split", "reward", "advantage", "group", "env", "truth", "stop")  # what is told where it is missing
MOST_DESCRIBED = 12
MOST_TELLING = 4  # of the names of a role, such as prompt in raw_prompt


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
        sampled = self.sampled
        template = place_template(self.file, *(self._find(role, peek=True) is None for role in ("step", "split")))
        content, columns, rewards = list(self._content()), list(self._columns()), list(self._rewards())
        lines = [f"name = {toml_value(mapping_name(self.file))}", 'title = "describe the format in a few words"']
        if sampled.layout != "rows":
            lines.append(f'layout = "{sampled.layout}"  # {toml_comment(sampled.why)}')
        if self.exploded:
            lines.append(f"explode = {toml_value(self.exploded)}  # lists with one value per answer")
        lines += ["", "[files]", *self._files(template), "", "[content]", *content, "", "[columns]", *columns]
        lines += ["", "[rewards]", *rewards] if rewards else []
        known = " ".join((template, *columns, *(["reward"] if rewards else []))).replace("=", " ").split()
        if missing := [role for role in SOUGHT if role not in known and f"{{{role}}}" not in template]:
            self.notes.append(
                f"no column was found for: {', '.join(missing)}; a role of [columns] names it, where there is one"
            )
        if left := [name for name in sampled.names if name not in self.taken and "object" not in sampled.kinds(name)]:
            self.notes.append("not used, kept as values where they are short: " + ", ".join(left[:12]))
        return Guess("\n".join(lines) + "\n", self.notes)

    def _files(self, template: str) -> Iterator[str]:
        places = [place for place in ("{step}", "{split}") if place in template]
        said = f"{' and '.join(places)}: read from the place of a file" if places else "which files of a folder to read"
        yield f"paths = [{toml_value(template)}]  # {said}"
        if places:
            self.notes.append(f"check that {' and '.join(places)} in files.paths stand for that; else write * instead")
        if self.table:
            yield f"table = {toml_value(self.table)}"

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
            held = [name for name in self.sampled.names if self.sampled.kinds(name) & {"text", "list"}]
            for name in held[:MOST_DESCRIBED]:
                yield f"# {toml_comment(f'{toml_value(name)}: {self.sampled.described(name)}')}"
            self.notes.append("no column looks like a conversation: the mapping is not complete")

    def _messages(self, name: str) -> Iterator[str]:
        sampled = self.sampled
        if sampled.are_chunks(name):
            self.taken.add(name)
            yield 'kind = "chunks"  # messages whose texts are pieces of a chat template'
            yield f"messages = {toml_value(name)}"
            return
        keys = sampled.message_keys(name)
        if keys is None or name.rpartition(".")[2] in NAMES["prompt"] + NAMES["completion"] + NAMES["tools"]:
            return
        self.taken.add(name)
        answer = None if sampled.holds_answer(name, keys[0]) else self._find("completion")
        if answer:
            yield 'kind = "messages"  # the answer is a column of its own'
            yield f"prompt = {toml_value(name)}\ncompletion = {toml_value(answer)}"
            return
        keyed = f"a list of objects with {keys[0]} and {keys[1]}"
        yield f'kind = "messages"\nmessages = {toml_value(name)}  # {toml_comment(keyed)}'
        if keys != ("role", "content"):
            yield f"role = {toml_value(keys[0])}\ntext = {toml_value(keys[1])}"
        if thought := sampled.reasoning_key(name):
            yield f"reasoning = {toml_value(thought)}"
        yield from self._roles(name, keys[0])

    def _roles(self, name: str, key: str) -> Iterator[str]:
        meanings = self.sampled.role_meanings(name, key)
        last, why = self.sampled.last_role(name, key), ""
        if "assistant" not in meanings.values() and last in meanings:
            meanings[last], why = "assistant", f"  # {toml_comment(last)} speaks last: is it the model?"
            self.notes.append(f"check content.roles: {last} was taken for the assistant since it speaks last")
        if unknown := [role for role, meaning in meanings.items() if meaning is None]:
            self.notes.append(
                f"say in content.roles what these roles mean, or leave them as they are: {', '.join(unknown)}"
            )
        other = {role: what for role, what in meanings.items() if what and what != role}
        if told := [f"{toml_value(role)} = {toml_value(what)}" for role, what in other.items()]:
            yield f"roles = {{ {', '.join(told)} }}{why}"

    def _pair(self, prompt: str, completion: str) -> Iterator[str]:
        sampled = self.sampled
        kind, why = self._text_kind(prompt, completion)
        if sampled.layout == "rows" and sampled.are_answers(completion):
            kind, why = "messages", "one prompt, a list of answers"
            lists = [name for name in sampled.names if sampled.are_numbers(name) and sampled.go_with(completion, name)]
            self.exploded = [completion, *lists]
        yield f'kind = "{kind}"  # {toml_comment(why)}'
        yield f"prompt = {toml_value(prompt)}\ncompletion = {toml_value(completion)}"

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
                yield f"{role} = {{ column = {toml_value(name)}, sum = true }}  # a list of numbers: added up"
            else:
                yield f"{role} = {toml_value(name)}"

    def _rewards(self) -> Iterator[str]:
        left = [name for name in self.sampled.names if name not in self.taken]
        named = [name for name in left if re.search(r"reward|score", name, re.I)]
        inside = [name for name in named if self._is_object_of_numbers(name)][:1]
        numbers = [name for name in named if self.sampled.kinds(name) <= {"number", "null", "boolean"}]
        numbers = [name for name in numbers if not name.startswith(tuple(f"{one}." for one in inside))]
        if numbers:
            yield f"columns = {toml_value(numbers)}  # numbers with reward or score in their names"
        if inside:
            yield f"inside = {toml_value(inside[0])}  # an object of named numbers"
        self.taken.update(
            [*numbers, *inside, *(name for name in left if name.startswith(tuple(f"{one}." for one in inside)))]
        )

    def _is_object_of_numbers(self, name: str) -> bool:
        if self.sampled.kinds(name) != {"object"}:
            return False
        parts = [part for part in self.sampled.names if part.startswith(f"{name}.")]
        return bool(parts) and all(self.sampled.kinds(part) <= {"number", "null", "boolean"} for part in parts)

    def _find(self, role: str, peek: bool = False) -> str | None:
        fits = self._test(role)
        names = [name for name in self.sampled.names if name not in self.taken and fits(name)]
        lasts = [(name, name.rpartition(".")[2]) for name in names]
        exact = (name for wanted in NAMES[role] for name, last in lasts if last == wanted)
        # Where no name is known, one of its words may be: raw_prompt, epoch_no.
        word = (
            name for wanted in NAMES[role][:MOST_TELLING] for name, last in lasts if wanted in re.split(r"[_-]", last)
        )
        found = next(chain(exact, word), None)
        if found and not peek:
            self.taken.add(found)
        return found

    def _test(self, role: str) -> Callable[[str], bool]:
        sampled = self.sampled
        if role in TOKEN_ROLES:
            return lambda name: sampled.kinds(name) == {"list"} and sampled.are_numbers(name)
        if role in ("prompt", "completion"):
            return lambda name: bool(sampled.kinds(name) & {"text", "list"}) and not sampled.are_numbers(name)
        if role in ("reward", "advantage"):
            numbers = {"number", "null", "boolean"}
            return lambda name: sampled.kinds(name) <= numbers or sampled.are_numbers(name)
        if role in COUNTS:
            return lambda name: sampled.kinds(name) == {"number"}
        return lambda name: role != "step" or bool(sampled.kinds(name) & {"number", "text"})


def _only_table(file: Path) -> str:
    try:
        with closing(connect(base_folder(file), file.name)) as connection:
            names = table_names(connection)
    except DAMAGED as error:
        raise SourceError(f"{file} cannot be read: {error}.") from None
    if len(names) != 1:
        raise SourceError(f"{file} has the tables {', '.join(names) or 'none'}: write a mapping with files.table.")
    return names[0]
