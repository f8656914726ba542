"""The preview of the export page: what an export would give, its first rows and what is said of them, or why not."""

from __future__ import annotations

import json
import re
from html import escape, unescape
from pathlib import Path

import pytest
from datasette.app import Datasette

from datasette_rltracer.export_preview import CUT_HERE, shortened
from rltracer_sqlite.export.stages import FIELD, STAGES, meaning
from tests.commands import indexed
from tests.export_runs import rollout, write_steps
from tests.index_factory import make_index
from tests.indexing import index
from tests.layouts import append
from tests.plugin.html import links, words
from tests.test_export_branches import answered, cut_off, forked
from tests.test_export_distinct import said_alike

from .conftest import exported, get
from .form import PAGE, form_fields

pytestmark = pytest.mark.asyncio


async def test_the_preview_says_what_a_limit_cut_off(tmp_path: Path) -> None:
    write_steps(tmp_path / "run", {1: [rollout("a", stop_condition="max_turns")]})
    index(tmp_path / "run.sqlite", tmp_path / "run")
    html = (await get(Datasette([str(tmp_path / "run.sqlite")]), f"{PAGE}?_preview=sft")).text
    said = (
        'by a limit (trajectory 1); the box "without trajectories that a limit cut off" leaves out such trajectories.'
    )
    assert f"1 selected trajectory was cut off {said}" in words(html)


@pytest.mark.parametrize(("asked", "said"), [("", "any split"), ("&_split=train", "split train")], ids=["any", "train"])
async def test_the_preview_says_what_is_available(datasette: Datasette, asked: str, said: str) -> None:
    html = (await get(datasette, f"{PAGE}?_preview=sft&_acceptance=any{asked}")).text
    assert f"Available: {said}, all steps of the run" in words(html)


async def test_the_words_of_the_funnel_are_explained(datasette: Datasette) -> None:
    page = unescape((await get(datasette, "/-/rltracer/run/export?step__gte=1&_preview=sft&_field=turns%3E%3D0")).text)
    said = dict(re.findall(r'<tr><td>([^<]*)</td>.*?<td class="wide[^>]*>([^<]*)</td></tr>', page))
    assert (said["accepted"], said["turns >= 0"]) == (STAGES["accepted"], FIELD)
    assert said["rows of the table"].endswith("the table in Datasette, and run, steps and env of its form")
    assert said["well formed"] == f"{STAGES['well formed']}; what it drops is known when the download has read it"
    assert "How many trajectories each rule keeps, of those that the one before has left:" in page


async def test_the_rules_of_pairs_are_explained_without_the_options_of_the_command_line(datasette: Datasette) -> None:
    page = words((await get(datasette, f"{PAGE}?_preview=preference&_acceptance=passed&_rejected=failed")).text)
    assert "in a pair (chosen passed) 4 8 the two of each pair whose chosen one has passed" in page
    assert "reward known 12 – those with a finite reward difficulty" in page
    assert not [stage for stage in STAGES if "`" in meaning(stage)]


@pytest.mark.parametrize("address", [f"{PAGE}?_preview=sft&", "/run/trajectories.sft?"], ids=["preview", "download"])
async def test_the_command_for_another_rule_names_the_file_of_the_index_and_not_its_folder(
    tmp_path: Path, address: str
) -> None:
    path = make_index(tmp_path / "run.sqlite", [{"reward": 1.0}, {"reward": None}])
    answer = await get(Datasette([str(path)]), f"{address}_acceptance=correct&_target=9", 400)
    assert "(rltracer success run.sqlite --rule 'PATH >= NUMBER')" in words(answer.text)
    assert str(tmp_path) not in answer.text


async def test_a_preview_that_cannot_be_is_a_sentence_in_the_form(datasette: Datasette) -> None:
    response = await get(datasette, "/-/rltracer/run/export?_preview=sft&_per_prompt=1&_target=99", 400)
    assert "99 trajectories asked for" in response.text
    assert "Download SFT conversations" in response.text
    kept = re.findall(r'<td>([^<]*)</td><td class="n" data-label="kept">(\d+)', response.text)
    assert kept[0] == ("available", "12")
    assert kept[-1] == ("per prompt", "4")
    dropped = dict(re.findall(r'<td>([^<]*)</td>.*?data-label="dropped"><span class="muted">([^<]*)<', response.text))
    assert (dropped["well formed"], dropped["file present"]) == ("when read", "–")


async def test_a_preview_shows_the_first_rows_with_long_texts_cut(datasette: Datasette) -> None:
    page = unescape((await get(datasette, "/-/rltracer/run/export?_preview=sft&_acceptance=any")).text)
    shown = re.findall(r'<pre class="first-row"[^>]*>\n(.*?)</pre>', page, re.DOTALL)
    first = await exported(datasette, "/run/trajectories.sft")
    assert [json.loads(row) for row in shown] == first[:2]
    assert json.loads(shortened({"a": ["x" * 300] * 20})) == {
        "a": ["x" * 240 + "… (300 characters)"] * 12 + ["… (8 more)"]
    }
    assert list(json.loads(shortened({str(n): n for n in range(20)})).items())[-2:] == [("11", 11), ("…", "(8 more)")]


async def test_a_row_that_is_too_long_for_the_page_ends_with_a_mark(tmp_path: Path) -> None:
    assert CUT_HERE not in shortened(["x" * 200] * 12)
    long = shortened([[["x" * 200] * 12] * 12] * 12)
    assert len(long) < 9000
    assert long.splitlines()[-2:] == [f'   "{"x" * 200}",', CUT_HERE]


@pytest.mark.parametrize("name", ["run", "a: rltracer inspect x --problems lists them.", "<b>per_prompt=1</b>"])
async def test_a_run_that_was_not_read_whole_leads_to_its_problems(tmp_path: Path, name: str) -> None:
    lines = write_steps(tmp_path / "run", {1: [rollout("a")]}), write_steps(tmp_path / "other", {1: [rollout("b")]})
    append(lines[0] / "rollouts/step_1/train/all/traces.jsonl", {"no": "rollout"})
    made = indexed(tmp_path / "x.sqlite", lines[0], "--name", name)
    assert made.returncode == 0, made.stderr
    indexed(tmp_path / "x.sqlite", lines[1], "--name", name.split(":")[0] + "r")
    page = (await get(Datasette([str(tmp_path / "x.sqlite")]), "/-/rltracer/x/export?_preview=sft")).text
    assert links(page, "problems of the run") == ["/-/rltracer/x/run/1#problems"]
    assert f"<p>{escape(name)}: 1 problem, in step 1: <a" in page
    assert "lists them" not in words(page).replace(name, "")


async def test_a_preview_without_pairs_says_why(folder: Path) -> None:
    records = [rollout(f"t{n}", "same", passed=n % 2 == 0) for n in range(4)]
    for record in records:
        record["nodes"][-1]["message"]["content"] = "the same"
    write_steps(folder / "three", {1: records})
    index(folder / "same.sqlite", folder / "three")
    datasette = Datasette([str(folder / "same.sqlite")])
    response = await get(datasette, "/same/trajectories.preference", 400)
    assert "both answers are the same" in response.text
    assert "--dry-run" not in response.text


async def test_a_preview_of_a_split_that_is_not_there_says_which_are(folder: Path) -> None:
    write_steps(folder / "three", {1: [rollout("t")]})
    index(folder / "same.sqlite", folder / "three")
    datasette = Datasette([str(folder / "same.sqlite")])
    html = (await get(datasette, "/-/rltracer/same/export?_preview=sft&_split=eval")).text
    assert "three has no trajectory with split eval. It has split train." in html


@pytest.mark.parametrize(
    ("query", "said"),
    [
        (
            "",
            "cut off by a limit (trajectory 2); the box “without trajectories that a limit cut off” leaves",
        ),
        ("", "1 of 5 rows ends with a message of the role tool, and no answer to it (trajectory 2)."),
        (
            "",
            "3 rows are one branch of several, out of 1 trajectory of several branches (trajectory 1). A reward is",
        ),
        (
            "",
            "a “recorded value” branches<=1 leaves such trajectories out. The box “one SFT row per trajectory, of its",
        ),
        (
            "&_effective_only=1",
            "the box “only what was part of a training batch, or kept by its evaluation” drops them.",
        ),
        ("&_target=99&_per_prompt=1", "with “per prompt and window: all”. Ask for fewer."),
        ("&_target=3&_per_prompt=1", "There are enough with “per prompt and window: all” (3); or ask for fewer."),
        ("&_no_tools=1", "rows call tools that the record does not define (trajectories 1, 2, 3)."),
    ],
)
async def test_the_preview_has_the_notes_of_the_terminal_in_the_words_of_the_form(
    tmp_path: Path, query: str, said: str
) -> None:
    write_steps(tmp_path / "run", {1: [forked(), cut_off(), answered("yes", 1.0)]})
    index(tmp_path / "run.sqlite", tmp_path / "run")
    datasette = Datasette([str(tmp_path / "run.sqlite")])
    page = await get(datasette, f"{PAGE}?_preview=sft{query}", 400 if "target" in query else 200)
    assert said.replace("“", '"').replace("”", '"') in words(page.text)


async def test_a_preview_of_many_rows_looks_into_the_first_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_steps(tmp_path / "run", {1: [cut_off(), *(answered(f"yes{n}", 1.0) for n in range(3))]})
    index(tmp_path / "run.sqlite", tmp_path / "run")
    monkeypatch.setattr("rltracer_sqlite.export.exporter.ROWS_LOOKED_INTO", 2)
    datasette = Datasette([str(tmp_path / "run.sqlite")])
    page = words((await get(datasette, f"{PAGE}?_preview=sft")).text)
    assert "Looked into here are only the first 2 rows: 1 of 2 rows ends with a message of the role" in page
    page = words((await get(datasette, f"{PAGE}?_preview=sft&reward=1")).text)
    assert "2 rows: each ends with an answer, and defines the tools that it calls; no two are the same." in page
    page = words((await get(datasette, f"{PAGE}?_preview=rl")).text)
    assert "Looked into" not in page


async def test_notes_on_pairs_are_in_the_words_of_the_form_and_lead_to_trajectories(tmp_path: Path) -> None:
    write_steps(tmp_path / "run", {1: [answered("best", 2.0), answered("good", 1.0)]})
    index(tmp_path / "run.sqlite", tmp_path / "run")
    page = (await get(Datasette([str(tmp_path / "run.sqlite")]), f"{PAGE}?_preview=preference&_acceptance=any")).text
    said = 'the success rule (trajectory 2); "outcome of the rejected one of a pair: failed" leaves them out.'
    assert f"Of 1 rejected answer 1 passed by {said}" in words(page)
    assert links(page, "2") == ["/-/rltracer/run/trajectory/2"] * 2  # it calls a tool as well
    fields = form_fields(page)
    assert fields["_rejected"] == "any"
    none = await get(Datasette([str(tmp_path / "run.sqlite")]), f"{PAGE}?_preview=preference&_rejected=failed", 400)
    assert "the worse of them failed" in words(none.text)


@pytest.mark.parametrize(
    ("query", "said"),
    [("", "of 2 rows is distinct; the box “without rows of the same content” leaves out the other one (trajectory 2)."),
     ("&_distinct=1", "1 row of the same content as one before left out.")],
)  # fmt: skip
async def test_a_preview_says_how_many_rows_are_distinct(tmp_path: Path, query: str, said: str) -> None:
    write_steps(tmp_path / "run", {1: said_alike("42", "a", "b")})
    index(tmp_path / "run.sqlite", tmp_path / "run")
    page = (await get(Datasette([str(tmp_path / "run.sqlite")]), f"{PAGE}?_preview=sft{query}")).text
    assert said.replace("“", '"').replace("”", '"') in words(page)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("uid=easy0", "Preview of SFT conversations 1 trajectory of 1 prompt ·"),
        ("run_id=1", "Preview of SFT conversations 9 trajectories of 3 prompts ·"),
        ("run_id=1&_target=2", "Preview of SFT conversations 2 trajectories of 2 of the 3 prompts ·"),
    ],
)
async def test_a_preview_counts_in_the_singular_and_the_plural(datasette: Datasette, query: str, said: str) -> None:
    page = words((await get(datasette, f"{PAGE}?_preview=sft&{query}")).text)
    assert said in page


async def test_a_preview_is_in_sight_when_it_is_there(datasette: Datasette) -> None:
    page = (await get(datasette, f"{PAGE}?_preview=sft")).text
    assert page.count(f'formaction="{PAGE}#funnel"') == 3
    assert page.count('id="funnel"') == 1


@pytest.mark.parametrize("query", ["run_id=1&_per_prompt=1&_acceptance=passed", "_table=prompt_groups&_split=train"])
async def test_what_was_previewed_can_be_downloaded_beside_it(datasette: Datasette, query: str) -> None:
    page = (await get(datasette, f"{PAGE}?{query}&_preview=sft")).text
    [address] = links(page, "download these as JSONL")
    table = "prompt_groups" if "_table" in query else "trajectories"
    assert address == f"/run/{table}.sft?{query}"
    rows = await exported(datasette, address)
    assert f"{len(rows)} trajectories of" in words(page)


async def test_nothing_is_offered_for_download_beside_a_preview_of_nothing(datasette: Datasette) -> None:
    page = (await get(datasette, f"{PAGE}?_preview=sft&run_id=2&_split=eval")).text
    assert "0 trajectories of 0 prompts" in words(page)
    assert not links(page, "download these as JSONL")


async def test_a_preview_of_several_runs_says_how_much_is_of_each(datasette: Datasette) -> None:
    said = "Selected by run: one 7, two 3."
    assert said in words((await get(datasette, f"{PAGE}?_preview=sft&_acceptance=passed")).text)
    assert "by run" not in words((await get(datasette, f"{PAGE}?_preview=sft&run_id=2")).text)


@pytest.mark.parametrize(
    ("query", "is_said"), [("rl&_acceptance=passed", True), ("rl", False), ("sft&_acceptance=passed", False)]
)
async def test_a_preview_of_prompts_says_that_an_outcome_leaves_some_out(
    datasette: Datasette, query: str, is_said: bool
) -> None:
    page = words((await get(datasette, f"{PAGE}?_preview={query}")).text)
    said = "Only prompts of which a trajectory has passed are here; the outcome “any” takes the others too."
    assert (said in page) == is_said
