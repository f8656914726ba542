"""Mappings as TOML: what they may say, and errors that name the file, the line and the key."""

from __future__ import annotations

from pathlib import Path

import pytest

from rltracer_sqlite.sources.table import MappingError, mapping_source, mapping_source_from_text
from rltracer_sqlite.sources.table.built_in import FOLDER, PRESETS
from rltracer_sqlite.sources.table.mapping import Role, Template
from rltracer_sqlite.sources.table.mapping_file import parse_mapping, read_mapping

GOOD = """\
name = "mine"
step_kind = "epoch"

[files]
paths = ["run_{step}/{split}.jsonl"]
splits = { held = "eval" }

[content]
messages = "chat.turns"
role = "who"
roles = { bot = "assistant" }

[columns]
reward = { column = ["score", "points"], sum = true }
step = "epoch"
group = { column = "id", like = "{}-*" }
env = { value = "maze" }
split = { present = "test", then = "eval", otherwise = "train" }

[rewards]
columns = ["exact", "format"]
missing = "skip"
"""
WRONG = [
    ('name = "Mine"', 1, "name", "is no name"),
    ('title = "x"', 1, "", "key name is missing"),
    ('name = "mine"\nnmae = "x"', 2, "nmae", "did you mean name"),
    ('name = "mine"\n\n[content]\nmesages = "m"', 4, "content.mesages", "did you mean messages"),
    ('name = "mine"\n\n[content]\nkind = "text"\nprompt = "p"', 4, "content.kind", "needs both"),
    ('name = "mine"\n\n[content]\nkind = "html"', 4, "content.kind", "expected one of messages"),
    ('name = "mine"\n[content]\nmessages = "m"\n[columns]\nreward = 5', 5, "columns.reward", "the name of a column"),
    ('name = "mine"\n[content]\nmessages = "m"\n[columns]\nrewrd = "r"', 5, "columns.rewrd", "did you mean reward"),
    ('name = "mine"\n[content]\nmessages = "m"\n[columns]\nx.y = "r"', 5, "columns.x", "there is no such key"),
    ('name = "mine"\n[content]\nmessages = "m"\n[columns]\ngroup = { column = "g", like = "x" }', 5,
     "columns.group.like", "exactly one {}"),
    ('name = "mine"\n[content]\nmessages = "m"\n[columns]\ngroup = { column = "g", like = "{}a*a*a*b" }', 5,
     "columns.group.like", "more than 3 places"),
    ('name = "mine"\ncontent = { messages = "m" }\n[columns]\nenv = { vale = "x" }', 4,
     "columns.env.vale", "did you mean value"),
    ('name = "mine"\n[content]\nmessages = "m"\n[rewards]\nmissing = "zero"', 5, "rewards.missing", "one of unscored"),
    ('name = "mine"\n[files]\npaths = "{stop}.jsonl"\n[content]\nmessages = "m"', 3, "files.paths", "open places"),
    ('name = "mine"\n[files]\nsplits = { a = "b" }\n[content]\nmessages = "m"', 3, "files.splits.a", '"train"'),
    ('name = "mine"\nlayout = "table"\n[content]\nmessages = "m"', 2, "layout", "rows, columns, singletons"),
    ('name = "mine"\n[[shape]]\nlayout = "rows"\n[shape.content]\nmessages = "m"\n[[shape]]\nskip = 3\n'
     '[shape.content]\nmessages = "n"', 7, "shape.skip", "a name or a list of names"),
    ('name = "mine"\n[content]\nmessages = "m"\n[columns]\nrollout = "r"', 5, "columns.rollout", "need each other"),
    ('name = "mine"\nlayout = "columns"\n[content]\nmessages = "m"\n[columns]\nrollout = "r"\noutput = "o"', 6,
     "columns.rollout", "one row"),
    ('name = "mine"\n[content]\nkind = "token_ids"', 3, "content.kind", "columns.prompt_ids"),
    ('name = "mine"\n[content]\nmessages = "m"\nfamily = "GPT"', 4, "content.family", "ChatML"),
    ('name = "mine"\n[[variant]]\nlabel = "a"\n[content]\nprompt = "p"', 2, "variant", "completion is missing"),
]  # fmt: skip


def test_a_mapping_says_what_it_says() -> None:
    mapping = parse_mapping(GOOD, "mine.toml")
    (shape,) = mapping.shapes
    assert (mapping.name, mapping.step_kind, mapping.text, shape.layout) == ("mine", "epoch", GOOD, "rows")
    assert mapping.paths[0].find("/data/run_12/held.jsonl") == {"step": 12, "split": "eval"}
    assert shape.roles["reward"] == Role(columns=("score", "points"), total=True)
    assert (shape.roles["env"].constant, shape.roles["split"].then) == ("maze", "eval")
    assert shape.rewards is not None
    assert (shape.rewards.columns, shape.rewards.skip_missing) == (("exact", "format"), True)
    assert (shape.content.kind, shape.content.role, shape.test.has) == ("messages", "who", ())


@pytest.mark.parametrize(("toml", "line", "key", "what"), WRONG)
def test_an_error_names_the_file_the_line_and_the_key(
    toml: str, line: int, key: str, what: str, tmp_path: Path
) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(toml)
    with pytest.raises(MappingError) as raised:
        read_mapping(path)
    said = str(raised.value)
    assert said.startswith(f"{path}, line {line}" + (f", key {key}:" if key else ":"))
    assert what in said


@pytest.mark.threat("T61")
@pytest.mark.parametrize("toml", ["name = ", "name = 'a'\nname = 'b'", "name = chat", "\x00", "a = [" * 2000])
def test_text_that_is_no_toml_is_one_sentence(toml: str) -> None:
    with pytest.raises(MappingError, match=r"^mine\.toml(, [^:]+)?: .*no TOML.*\.$"):
        parse_mapping(toml, "mine.toml")


@pytest.mark.threat("T61")
@pytest.mark.parametrize(
    "toml",
    [
        "name = " + "1" * 5000,
        "[name" + ".a" * 900 + "]",
        "name" + ".a" * 900 + " = 1",
        "#" * 200_000,
        "a" + ".a" * 9000,
    ],
    ids=["a number of 5000 digits", "a deep table", "a deep key", "a long text", "a long key"],
)
def test_text_that_is_no_mapping_of_a_person_is_one_sentence(toml: str, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(toml)
    with pytest.raises(MappingError, match=r"mine\.toml: .*; this is no TOML of a mapping\.$"):
        read_mapping(tmp_path / "mine.toml")


@pytest.mark.threat("T61")
def test_what_looks_like_the_header_of_a_table_is_read_in_time_that_grows_with_its_length() -> None:
    spaces = " " * 40_000
    with pytest.raises(MappingError, match="line 1, key name: expected a text, found 3"):
        parse_mapping(f"name = 3\ntitle = '''\n[{spaces}x\n[{spaces}\n'''\n", "mine.toml")


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe")
    for name in ("a.toml", "b.toml"):
        with pytest.raises(MappingError, match="cannot be read as a mapping"):
            mapping_source(tmp_path / name)


def test_a_name_of_a_built_in_source_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text('# mine\nname = "prime-rl"\n[content]\nmessages = "m"\n')
    with pytest.raises(MappingError, match=r"line 2, key name: 'prime-rl' is a built-in source"):
        mapping_source(path)


def test_the_text_of_a_mapping_makes_the_same_source(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(GOOD)
    first = mapping_source(path)
    again = mapping_source_from_text(first.mapping.text)
    assert again.mapping == first.mapping
    assert (again.name, again.step_kind) == ("mine", "epoch")


@pytest.mark.parametrize(
    ("written", "text", "whole", "found"),
    [
        ("{step}.jsonl", "/a/12.jsonl", False, {"step": 12}),
        ("{step}.jsonl", "/a/x12.jsonl", False, None),
        ("{split}_data_step{step}.jsonl", "val_data_step0.jsonl", False, {"split": "eval", "step": 0}),
        ("{split}_data.jsonl", "other_data.jsonl", False, None),
        ("global_step_{step}_evals/*.jsonl", "/x/global_step_5_evals/a b.jsonl", False, {"step": 5}),
        ("a/*.jsonl", "a/b/c.jsonl", False, None),
        ("a.jsonl", "ba.jsonl", False, None),
        ("{}_*_*", "a_b_0_1", True, {"part": "a_b"}),
        ("{}_*_*", "a", True, None),
        ("x{}", "xyz\n", True, {"part": "yz\n"}),
    ],
)
def test_templates(written: str, text: str, whole: bool, found: dict[str, object] | None) -> None:
    assert Template(written).find(text, whole) == found


@pytest.mark.threat("T61")
def test_a_template_is_no_regular_expression() -> None:
    assert Template("a.b(c)+").find("a.b(c)+") == {}
    assert Template("a.b(c)+").find("axb(c)c") is None
    assert Template("{}" + "*" * 5).find("a" * 5000, whole=True) is not None


@pytest.mark.parametrize("name", PRESETS)
def test_the_presets_of_the_package_are_valid(name: str) -> None:
    mapping = read_mapping(FOLDER / f"{name}.toml")
    assert mapping.name == name
    assert mapping.text.startswith("# "), "a preset says first what it reads and who writes it"
