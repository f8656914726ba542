"""SFT rows under another prompt: found by what the old template renders, written as the new one does."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from rltracer_sqlite.cli.retemplate import command
from rltracer_sqlite.export import ExportError
from rltracer_sqlite.export.lines import ENDINGS, packed
from rltracer_sqlite.retemplate import RetemplateError, TemplateSource, retemplate
from tests.export_runs import export, indexed, read_rows, rollout, spec

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

OLD = {
    "chat_template": [
        {"role": "system", "content": "Judge by {evaluation_criteria}."},
        {"role": "user", "content": "<in>{inputs}</in><out>{output}</out>\n{rubric}"},
    ],
    "input_variables": ["inputs", "output", "evaluation_criteria", "rubric"],
}
NEW = {
    "chat_template": [
        {"role": "system", "content": "You are a judge. {{strictly}}"},
        {"role": "user", "content": "{evaluation_criteria}: {output}"},
        {"role": "assistant", "content": "{output}"},
    ],
    "input_variables": ["evaluation_criteria", "output"],
    "tools": [{"name": "lookup", "description": "Look it up.", "parameters": {"type": "object"}}],
}


def source_row(number: int, **changes: Any) -> dict[str, Any]:
    rubric = {"criteria": f"clarity {number}", "scores": {"fail": "unclear", "pass": "clear", "weight": 3}}
    return {"input": f"question {number}", "output": f"answer {number}", "rubric": rubric, **changes}


def sft_row(number: int, **columns: Any) -> dict[str, Any]:
    """Return a row as the old template made it, with an answer and a second turn."""
    content = f"<in>question {number}</in><out>answer {number}</out>\npass - clear\nfail - unclear"
    messages = [
        {"role": "system", "content": f"Judge by clarity {number}."},
        {"role": "user", "content": content},
        {"role": "assistant", "content": "pass"},
        {"role": "user", "content": "Sure?"},
        {"role": "assistant", "content": f"yes {number}"},
    ]
    return {"messages": messages, "tools": "[]", **columns}


class Workplace:
    """A folder with templates, source rows and SFT rows."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.template("old", OLD)
        self.template("new", NEW)

    def template(self, name: str, content: Any) -> Path:
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(content))
        return path

    def parquet(self, rows: list[Any], name: str = "rows", column: str = "jrow_json", **others: Any) -> Path:
        path = self.folder / f"{name}.parquet"
        texts = [row if isinstance(row, str) else json.dumps(row, sort_keys=True) for row in rows]
        parquet.write_table(pyarrow.table({column: texts, **others}), path)
        return path

    def rows(self, rows: list[Any], name: str = "sft.jsonl") -> Path:
        path = self.folder / name
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return path

    def run(self, inputs: list[Path], sources: list[Path], column: str | None = None) -> dict[str, Any]:
        outputs = [self.folder / "out" / path.name for path in inputs]
        pairs = [TemplateSource(path, self.folder / "old.json", column) for path in sources]
        return retemplate(inputs, outputs, pairs, self.folder / "new.json")


def compressed(rows: Path, ending: str) -> bytes:
    """Return a file of rows as an export writes it under this ending."""
    return b"".join(packed([rows.read_bytes()], ENDINGS[ending]))


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)


def test_the_prefix_is_replaced_and_everything_from_the_first_answer_stays(place: Workplace) -> None:
    report = place.run([place.rows([sft_row(1, note="kept")])], [place.parquet([source_row(0), source_row(1)])])
    [row] = read_rows(place.folder / "out" / "sft.jsonl")
    assert row["messages"][:2] == [
        {"role": "system", "content": "You are a judge. {strictly}"},
        {"role": "user", "content": "clarity 1: answer 1"},
    ]
    assert row["messages"][2:] == sft_row(1)["messages"][2:]
    assert json.loads(row["tools"])[0]["function"]["name"] == "lookup"
    assert row["note"] == "kept"
    assert (report["rows"], report["prompts"]) == (1, 1)
    assert (report["sources"][0]["rows"], report["sources"][0]["used"]) == (2, 1)


def test_without_tools_in_the_new_template_the_column_goes(place: Workplace) -> None:
    place.template("new", {"chat_template": NEW["chat_template"]})
    place.run([place.rows([sft_row(1)])], [place.parquet([source_row(1)])])
    assert "tools" not in read_rows(place.folder / "out" / "sft.jsonl")[0]


def test_many_inputs_and_several_sources(place: Workplace) -> None:
    inputs = [place.rows([sft_row(n), sft_row(n + 1), sft_row(n)], f"{n}.jsonl") for n in (0, 2)]
    sources = [place.parquet([source_row(n) for n in (0, 3)], "a"), place.parquet([source_row(1), source_row(2)], "b")]
    report = place.run(inputs, sources)
    assert [entry["rows"] for entry in report["rewrites"]] == [3, 3]
    assert report["prompts"] == 4
    contents = [row["messages"][1]["content"] for row in read_rows(place.folder / "out" / "2.jsonl")]
    assert contents == ["clarity 2: answer 2", "clarity 3: answer 3", "clarity 2: answer 2"]


def test_each_source_has_its_own_old_template(place: Workplace) -> None:
    other = {"chat_template": [{"role": "user", "content": "Q: {inputs}"}]}
    row = {"messages": [{"role": "user", "content": "Q: question 5"}, {"role": "assistant", "content": "x"}]}
    inputs, outputs = [place.rows([sft_row(1), row])], [place.folder / "out.jsonl"]
    sources = [
        TemplateSource(place.parquet([source_row(1)], "a"), place.folder / "old.json"),
        TemplateSource(place.parquet([source_row(5)], "b"), place.template("other", other)),
    ]
    retemplate(inputs, outputs, sources, place.folder / "new.json")
    assert [row["messages"][1]["content"][:9] for row in read_rows(outputs[0])] == ["clarity 1", "clarity 5"]


def test_exports_are_rewritten(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    question = "<in>question 1</in><out>answer 1</out>\npass - clear\nfail - unclear"
    record = rollout("a", question, calls=1)
    record["nodes"][0]["message"]["content"] = "Judge by clarity 1."
    database = indexed(tmp_path, {1: [record]})
    export(spec(database), tmp_path / "sft.jsonl", include_provenance=True)
    place.run([tmp_path / "sft.jsonl"], [place.parquet([source_row(1)])])
    [row] = read_rows(tmp_path / "out" / "sft.jsonl")
    assert row["messages"][1]["content"] == "clarity 1: answer 1"
    assert row["trace_provenance"]["uid"] == "a"
    assert row["messages"][2]["tool_calls"]


@pytest.mark.parametrize("ending", [".jsonl.gz", ".jsonl.zst"])
def test_compressed_files(place: Workplace, ending: str) -> None:
    import zstandard

    plain = place.rows([sft_row(1), sft_row(2)])
    pack = gzip.compress if ending.endswith("gz") else zstandard.compress
    (place.folder / f"in{ending}").write_bytes(pack(plain.read_bytes()))
    sources = [place.parquet([source_row(1), source_row(2)])]
    place.run([plain], sources)
    place.run([place.folder / f"in{ending}"], sources)
    unpack = (
        gzip.decompress
        if ending.endswith("gz")
        else (lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data))
    )
    written = unpack((place.folder / "out" / f"in{ending}").read_bytes())
    assert written == (place.folder / "out" / "sft.jsonl").read_bytes()


@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_every_member_of_a_compressed_file_is_read(place: Workplace, ending: str) -> None:
    whole = place.folder / f"all.jsonl{ending}"
    whole.write_bytes(b"".join(compressed(place.rows([sft_row(number)]), ending) for number in range(3)))
    assert place.run([whole], [place.parquet([source_row(number) for number in range(3)])])["rows"] == 3


@pytest.mark.parametrize(
    "damage", [lambda data: data[:-9], lambda data: data[:20] + bytes(9) + data[29:]], ids=["cut off", "overwritten"]
)
@pytest.mark.parametrize("ending", [".gz", ".zst"])
def test_a_damaged_input_is_an_error(place: Workplace, ending: str, damage: Callable[[bytes], bytes]) -> None:
    damaged = place.folder / f"damaged.jsonl{ending}"
    damaged.write_bytes(damage(compressed(place.rows([sft_row(number) for number in range(3)]), ending)))
    with pytest.raises(RetemplateError, match="is damaged: "):
        place.run([damaged], [place.parquet([source_row(number) for number in range(3)])])


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (["new.parquet", "b.jsonl"], r"new\.parquet is named as Parquet: retemplate writes JSONL"),
        (["a.jsonl", "new.csv"], r"new\.csv: rows are written as \.jsonl, .* not as \.csv"),
        (["a.jsonl", "out/../a.jsonl"], "Two outputs are the same file"),
    ],
)
def test_outputs_that_would_not_hold_what_they_promise(place: Workplace, names: list[str], sentence: str) -> None:
    inputs = [place.rows([sft_row(number)], f"{number}.jsonl") for number in (1, 2)]
    sources = [TemplateSource(place.parquet([source_row(1), source_row(2)]), place.folder / "old.json")]
    outputs = [place.folder / name for name in names]
    with pytest.raises((RetemplateError, ExportError), match=sentence):
        retemplate(inputs, outputs, sources, place.folder / "new.json")
    assert not any(path.exists() for path in outputs)


def test_a_prompt_without_a_source_row_is_an_error_and_nothing_is_written(place: Workplace) -> None:
    inputs = [place.rows([sft_row(1)], "a.jsonl"), place.rows([sft_row(1), sft_row(9)], "b.jsonl")]
    with pytest.raises(RetemplateError, match=r"1 prompt has no source row, .* row 2 of .*b\.jsonl"):
        place.run(inputs, [place.parquet([source_row(1)])])
    assert not (place.folder / "out").exists()


def test_two_source_rows_with_different_new_prompts_are_an_error(place: Workplace) -> None:
    place.template("old", {"chat_template": [{"role": "user", "content": "{inputs}"}]})
    row = {"messages": [{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}]}
    sources = [place.parquet([source_row(1, input="q"), source_row(2, input="q")])]
    with pytest.raises(RetemplateError, match=r"came from row 1 of .* or from row 2 of"):
        place.run([place.rows([row])], sources)
    same = [place.parquet([source_row(1, input="q"), source_row(1, input="q"), source_row(2, input="other")])]
    assert place.run([place.rows([row])], same)["rows"] == 1


def test_old_outputs_stay_when_a_later_file_fails(place: Workplace) -> None:
    (place.folder / "out").mkdir()
    (place.folder / "out" / "a.jsonl").write_text("old\n")
    inputs = [place.rows([sft_row(1)], "a.jsonl"), place.rows([{"messages": []}], "b.jsonl")]
    with pytest.raises(RetemplateError, match=r"Row 1 of .* it has no answer"):
        place.run(inputs, [place.parquet([source_row(1)])])
    assert (place.folder / "out" / "a.jsonl").read_text() == "old\n"


@pytest.mark.parametrize(
    ("row", "sentence"),
    [("{", "row 1 of"), ("[]", "no JSON object"), ({"rubric": []}, None), ({"rubric": "x"}, "no object"),
     ({"rubric": {"scores": "x"}}, "no object")],
)  # fmt: skip
def test_source_rows_that_are_none(place: Workplace, row: Any, sentence: str | None) -> None:
    sources = [place.parquet([row, source_row(1)])]
    if sentence is None:
        assert place.run([place.rows([sft_row(1)])], sources)["rows"] == 1
        return
    with pytest.raises(RetemplateError, match=sentence):
        place.run([place.rows([sft_row(1)])], sources)


def test_a_prompt_made_from_stored_keys_is_found_as_well(place: Workplace) -> None:
    row = sft_row(1)
    row["messages"][1]["content"] = "<in>question 1</in><out>answer 1</out>\nfail - unclear\npass - clear"
    assert place.run([place.rows([row, sft_row(1)])], [place.parquet([source_row(1), source_row(1)])])["rows"] == 2


def test_columns_of_a_source(place: Workplace) -> None:
    rows, sft = [source_row(1)], [place.rows([sft_row(1)])]
    assert place.run(sft, [place.parquet(rows, column="only", n=[1])])["rows"] == 1
    named = place.parquet(rows, column="one", other=["x"])
    assert place.run(sft, [named], column="one")["rows"] == 1
    with pytest.raises(RetemplateError, match="has no column jrow_json of JSON; it has one, other"):
        place.run(sft, [named])
    (place.folder / "bad.parquet").write_text("x")
    with pytest.raises(RetemplateError, match="cannot be read"):
        place.run(sft, [place.folder / "bad.parquet"])
    with pytest.raises(RetemplateError, match="cannot be read"):
        place.run([place.folder / "none.jsonl"], [named])


def test_the_command_prints_and_writes_its_report(place: Workplace) -> None:
    inputs = [place.rows([sft_row(n)], f"{n}.jsonl") for n in (1, 2)]
    sources = place.parquet([source_row(1), source_row(2)])
    arguments = [*inputs, "-o", place.folder / "out", "--template", place.folder / "new.json"]
    arguments += ["--source", sources, place.folder / "old.json", "--report", place.folder / "report.json"]
    result = CliRunner().invoke(command, [str(one) for one in arguments])
    assert result.exit_code == 0, result.output
    assert json.loads(result.output) == json.loads((place.folder / "report.json").read_text())
    assert len(read_rows(place.folder / "out" / "2.jsonl")) == 1
    arguments[0] = place.rows([sft_row(9)], "9.jsonl")
    result = CliRunner().invoke(command, [str(one) for one in arguments])
    assert (result.exit_code, "has no source row" in result.output) == (1, True)
