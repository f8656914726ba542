"""Mappings from TOML: what each key means, and which of them go together."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from .mapping import (
    KINDS,
    LAYOUTS,
    ROLES,
    SPLITS,
    Aside,
    Content,
    Mapping,
    MappingError,
    Rewards,
    Role,
    Shape,
    Template,
    Test,
    Variant,
)
from .toml import MOST_CHARACTERS, read_toml
from .toml_keys import Checked, Keys, shown_value

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,59}")
SHAPE_KEYS = (
    "name", "layout", "has", "lacks", "explode", "skip", "info", "python_booleans", "content", "columns", "rewards",
    "variant",
)  # fmt: skip
CONTENT_KEYS = (
    "kind", "messages", "prompt", "completion", "instructions", "segments", "role", "text", "reasoning", "roles",
    "drop_nulls", "family",
)  # fmt: skip
FILE_KEYS = ("paths", "splits", "table", "repeats")
MOST_PLACES = 6
MOST_WILD = 3  # a text that nearly fits is tried in as many ways as it has characters, to this power


def read_mapping(path: Path) -> Mapping:
    """Return the mapping of a TOML file. Raises MappingError."""
    try:
        with path.open(encoding="utf-8") as file:
            text = file.read(MOST_CHARACTERS + 1)  # of a longer one no more is needed to refuse it
    except (OSError, UnicodeDecodeError) as error:
        raise MappingError(
            f"{path} cannot be read as a mapping: {getattr(error, 'strerror', None) or error}."
        ) from None
    return parse_mapping(text, str(path))


def parse_mapping(text: str, file: str) -> Mapping:
    """Return the mapping of a TOML text; `file` is what errors call it. Raises MappingError."""
    return _Reading(text, file).mapping(read_toml(text, file))


class _Reading(Checked):
    """One mapping being read."""

    def __init__(self, text: str, file: str) -> None:
        super().__init__(text, file)
        self.splits = SPLITS

    def mapping(self, value: dict[str, Any]) -> Mapping:
        shapes = value.pop("shape", None)
        top = ("name", "title", "step_kind", "generic", "files", "aside")
        self.known(value, top if shapes is not None else (*top, *SHAPE_KEYS[1:]), ())
        name = self.text_at(value, "name", ())
        if not NAME.fullmatch(name):
            raise self.error(("name",), f"{name!r} is no name: use small letters, digits and hyphens")
        files = self.table(value, "files", ())
        self.known(files, FILE_KEYS, ("files",))
        self.splits = {**SPLITS, **self.splits_of(files)}
        return Mapping(
            name=name,
            shapes=self.shapes(shapes, value),
            title=self.text_at(value, "title", (), ""),
            step_kind=self.text_at(value, "step_kind", (), "") or None,
            generic=self.flag(value, "generic", ()),
            paths=self.templates(files, ("files",)),
            table=self.text_at(files, "table", ("files",), "") or None,
            repeats=self.flag(files, "repeats", ("files",)),
            asides=tuple(self.aside(one, ("aside", n)) for n, one in enumerate(self.tables(value, "aside", ()))),
            text=self.text,
        )

    def shapes(self, written: Any, value: dict[str, Any]) -> tuple[Shape, ...]:
        if written is None:
            return (self.shape({key: value[key] for key in SHAPE_KEYS[1:] if key in value}, ()),)
        if not isinstance(written, list) or not written:
            raise self.error(("shape",), "expected [[shape]] tables")
        return tuple(self.shape(one, ("shape", n)) for n, one in enumerate(written))

    def shape(self, value: Any, at: Keys) -> Shape:
        if at:
            self.known(value, SHAPE_KEYS, at)
        content = self.content(self.table(value, "content", at), (*at, "content"))
        needed = tuple(role.columns[0] for role in content.needed if len(role.columns) == 1)
        tops = tuple(column for column in needed if "." not in column)
        columns = self.table(value, "columns", at)
        self.known(columns, ROLES, (*at, "columns"))
        roles = {name: self.role(columns[name], (*at, "columns", name)) for name in columns}
        if content.kind == "token_ids" and not {"prompt_ids", "completion_ids"} <= roles.keys():
            raise self.error((*at, "content", "kind"), 'kind "token_ids" needs columns.prompt_ids and .completion_ids')
        layout, variants = self.choice(value, "layout", at, LAYOUTS, "rows"), self.tables(value, "variant", at)
        explode = self.texts(value, "explode", at)
        self.check_outputs(roles, layout == "rows" and not (explode or variants), at)
        rewards = self.rewards(self.table(value, "rewards", at), (*at, "rewards")) if "rewards" in value else None
        return Shape(
            name=self.text_at(value, "name", at, "rows"),
            layout=layout,
            test=Test(self.texts(value, "has", at) or tops, self.texts(value, "lacks", at)),
            content=content,
            roles=roles,
            rewards=rewards,
            explode=explode,
            variants=tuple(self.variant(one, (*at, "variant", n)) for n, one in enumerate(variants)),
            skipped=frozenset(self.texts(value, "skip", at)),
            info=self.texts(value, "info", at),
            python_booleans=self.flag(value, "python_booleans", at),
        )

    def check_outputs(self, roles: dict[str, Role], are_rows: bool, at: Keys) -> None:
        """Raise MappingError where rows are outputs of rollouts, and it is not said of which, or they are no rows."""
        given = [name for name in ("rollout", "output") if name in roles]
        if len(given) == 1:
            raise self.error((*at, "columns", given[0]), "columns.rollout and columns.output need each other")
        if given and not are_rows:
            raise self.error((*at, "columns", "rollout"), "only a record that is one row can be an output of a rollout")

    def content(self, value: dict[str, Any], at: Keys) -> Content:
        parts = ("messages", "prompt", "completion", "instructions")
        self.known(value, CONTENT_KEYS, at)
        kind = self.choice(value, "kind", at, KINDS, "messages")
        found = {part: self.role(value[part], (*at, part)) for part in parts if part in value}
        if kind != "token_ids" and not ("messages" in found or {"prompt", "completion"} & found.keys()):
            raise self.error(at, 'say which columns hold the conversation: "messages", or "prompt" and "completion"')
        if kind in ("text", "rendered", "stripped") and not {"prompt", "completion"} <= found.keys():
            raise self.error((*at, "kind"), f'kind "{kind}" needs both "prompt" and "completion"')
        return Content(
            kind=kind,
            **found,
            segments=self.text_at(value, "segments", at, "") or None,
            role=self.text_at(value, "role", at, "role"),
            text=self.text_at(value, "text", at, "content"),
            reasoning=self.text_at(value, "reasoning", at, ""),
            roles=self.text_map(value, "roles", at),
            drop_nulls=self.flag(value, "drop_nulls", at),
            family=self.family(value, at),
        )

    def family(self, value: dict[str, Any], at: Keys) -> str | None:
        from ...tokens.families import FAMILIES

        names = [family.name for family in FAMILIES]
        return self.choice(value, "family", at, names, "") or None

    def rewards(self, value: dict[str, Any], at: Keys) -> Rewards:
        self.known(value, ("columns", "inside", "except", "missing"), at)
        numbers = value.get("columns") == "numbers"
        return Rewards(
            columns=() if numbers else self.texts(value, "columns", at),
            numbers=numbers,
            inside=self.text_at(value, "inside", at, "") or None,
            leave_out=frozenset(self.texts(value, "except", at)),
            skip_missing=self.choice(value, "missing", at, ("unscored", "skip"), "unscored") == "skip",
        )

    def variant(self, value: dict[str, Any], at: Keys) -> Variant:
        self.known(value, ("label", "completion", "reward"), at)
        for key in ("label", "completion"):
            if key not in value:
                raise self.error(at, f"the key {key} is missing")
        reward = self.role(value["reward"], (*at, "reward")) if "reward" in value else None
        return Variant(self.text_at(value, "label", at), self.role(value["completion"], (*at, "completion")), reward)

    def aside(self, value: dict[str, Any], at: Keys) -> Aside:
        self.known(value, ("says", "paths", "has", "lacks", "tokenizer"), at)
        has = self.texts(value, "has", at)
        test = Test(has, self.texts(value, "lacks", at)) if has else None
        whose = self.text_at(value, "tokenizer", at, "")
        return Aside(self.text_at(value, "says", at), self.templates(value, at), test, whose)

    def role(self, value: Any, at: Keys) -> Role:
        if isinstance(value, (str, list)):
            return Role(columns=self.texts({"column": value}, "column", at[:-1], at))
        if not isinstance(value, dict):
            raise self.error(at, f"expected the name of a column, found {shown_value(value)}")
        self.known(value, ("column", "like", "sum", "values", "value", "present", "then", "otherwise"), at)
        if not {"column", "value", "present"} & value.keys():
            raise self.error(at, 'expected "column", "value" or "present"')
        like = self.text_at(value, "like", at, "")
        if like and like.count("{}") != 1:
            raise self.error((*at, "like"), f"{like!r} needs exactly one {{}}: the part to take")
        return Role(
            columns=self.texts(value, "column", at),
            like=self.template(like, (*at, "like")) if like else None,
            total=self.flag(value, "sum", at),
            values=self.table(value, "values", at),
            constant=value.get("value"),
            present=self.text_at(value, "present", at, "") or None,
            then=value.get("then"),
            otherwise=value.get("otherwise"),
        )

    def splits_of(self, files: dict[str, Any]) -> dict[str, str]:
        found = self.text_map(files, "splits", ("files",))
        for name, split in found.items():
            if split not in ("train", "eval"):
                raise self.error(("files", "splits", name), f'expected "train" or "eval", found {split!r}')
        return found

    def templates(self, value: dict[str, Any], at: Keys) -> tuple[Template, ...]:
        return tuple(self.template(one, (*at, "paths")) for one in self.texts(value, "paths", at))

    def template(self, written: str, at: Keys) -> Template:
        if sum(written.count(place) for place in ("*", "{}", "{step}", "{split}")) > MOST_PLACES:
            raise self.error(at, f"{written!r} has more than {MOST_PLACES} open places")
        parts = [written] if "{}" in written else written.split("/")  # in a path, * ends with a folder's name
        if any(part.count("*") + part.count("{}") > MOST_WILD for part in parts):
            raise self.error(at, f"{written!r} has more than {MOST_WILD} places for anything in one text or name")
        unknown = re.findall(r"\{(?!\}|step\}|split\})[^}]*\}", written)
        if unknown or max(written.count("{step}"), written.count("{split}")) > 1:
            raise self.error(at, f"{written!r}: the open places are *, {{step}} and {{split}}, the last two once each")
        return Template(written, self.splits)
