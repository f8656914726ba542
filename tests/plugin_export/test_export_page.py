"""The export page: a form with the preferences, what it says it is about, and the preview of what it would give."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest
from datasette.app import Datasette
from datasette.utils.asgi import Request

from datasette_rltracer.export_options import BOUNDS, FIELDS, NUMBERS, OWN, SWITCHES, preferences
from datasette_rltracer.export_preview import shortened
from datasette_rltracer.export_title import subject
from rltracer_sqlite.cli.export import command
from rltracer_sqlite.export import ExportPreferences
from rltracer_sqlite.export.stages import FIELD, STAGES
from tests.export_runs import rollout, write_steps
from tests.index_factory import make_index
from tests.indexing import index
from tests.plugin.html import links, words
from tests.test_export_branches import answered, cut_off, forked
from tests.test_export_distinct import said_alike

from .conftest import exported, from_cli, get

pytestmark = pytest.mark.asyncio
PAGE = "/-/rltracer/run/export"


def form_fields(html: str) -> dict[str, str]:
    """Return what the form of the export page sends as it stands, the boxes without a tick as an empty text."""
    form = re.sub(r"<button.*?>", "", html.partition('<form class="export"')[2].partition("</form>")[0])
    fields = dict(re.findall(r'<input type="(?:number|text|hidden)" name="([^"]+)" value="([^"]*)"', form))
    fields |= dict.fromkeys(re.findall(r'type="checkbox" name="([^"]+)" value="1">', form), "")
    for name, options in re.findall(r'<select name="([^"]+)">(.*?)</select>', form, re.DOTALL):
        fields[name] = (re.findall(r'value="([^"]*)" selected', options) or [""])[0]
    return fields


async def test_the_form_shows_preferences_and_a_preview(datasette: Datasette) -> None:
    html = (await get(datasette, "/-/rltracer/run/export?_table=trajectories&success=1")).text
    assert 'formaction="/run/trajectories.sft"' in html
    assert 'type="hidden" name="success" value="1"' in html
    assert "after each step" not in html
    query = "success=1&_preview=sft&_acceptance=correct&_per_prompt=1&_field=tool_calls<=0"
    html = (await get(datasette, f"/-/rltracer/run/export?_table=trajectories&{query}")).text
    assert "rows of the table" in html
    assert "tool_calls &lt;= 0" in html
    assert 'name="_per_prompt" value="1"' in html


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


async def test_what_the_form_sends_is_understood(datasette: Datasette, folder: Path) -> None:
    fields = form_fields((await get(datasette, "/-/rltracer/run/export?_table=trajectories&success=1")).text)
    assert set(fields) == OWN - {"_preview"} | {"_table", "success", *FIELDS} - {
        "env"
    }  # there are no envs to choose from
    response = await get(datasette, f"/run/trajectories.sft?{urlencode(fields)}")
    assert response.content == from_cli(folder, "--split", "train")


async def test_a_new_form_has_the_defaults_of_the_command_line(datasette: Datasette, folder: Path) -> None:
    fields = form_fields((await get(datasette, "/-/rltracer/run/export")).text)
    usual = command.make_context("export", [str(folder / "run.sqlite")]).params
    assert fields["_split"] == usual["split"]
    named = {key: name for key, (name, _) in NUMBERS.items()} | BOUNDS | SWITCHES | {"_no_tools": "no_tools"}
    told = {name: fields[key] or None for key, name in named.items()}
    assert told == {name: str(usual[name]) if usual[name] else None for name in told}
    asked = preferences(Request.fake(f"/run/trajectories.sft?{urlencode(fields)}"), "sft")
    assert asked == ExportPreferences(rl_from_trace=True)


async def test_the_form_shows_what_an_address_without_preferences_takes(datasette: Datasette) -> None:
    fields = form_fields((await get(datasette, "/-/rltracer/run/export?_preview=sft")).text)
    response = await get(datasette, f"/run/trajectories.sft?{urlencode(fields)}")
    assert response.content == (await get(datasette, "/run/trajectories.sft")).content
    assert (fields["_acceptance"], fields["_split"], fields["_per_prompt"]) == ("any", "", "")


@pytest.mark.parametrize(
    ("filters", "split"),
    [
        ("success=1", "train"),
        ("split=eval", ""),
        ("split__in=train,eval", ""),
        ("prompt_group_id=3", ""),
        ("_where=split='eval'", ""),
        ("_search=split", "train"),
    ],
)
async def test_a_split_that_the_filters_choose_is_kept(datasette: Datasette, filters: str, split: str) -> None:
    fields = form_fields((await get(datasette, f"/-/rltracer/run/export?_table=trajectories&{filters}")).text)
    name, _, value = filters.partition("=")
    assert (unescape(fields[name]), fields["_split"]) == (value, split)


@pytest.mark.parametrize("query", ["_preview=sft&_split=test", "_preview=csv"])
async def test_a_choice_that_there_is_not_is_a_sentence(datasette: Datasette, query: str) -> None:
    response = await get(datasette, f"/-/rltracer/run/export?{query}", 400)
    assert f"{query.rpartition('=')[2]}' is one of" in unescape(response.text)


async def test_the_words_of_the_funnel_are_explained(datasette: Datasette) -> None:
    page = unescape((await get(datasette, "/-/rltracer/run/export?_preview=sft&_field=turns%3E%3D0")).text)
    said = dict(re.findall(r'<td title="keeps ([^"]*)">([^<]*)</td>', page))
    assert (said[STAGES["accepted"]], said[FIELD]) == ("accepted", "turns >= 0")


async def test_a_preview_that_cannot_be_is_a_sentence_in_the_form(datasette: Datasette) -> None:
    response = await get(datasette, "/-/rltracer/run/export?_preview=sft&_per_prompt=1&_target=99", 400)
    assert "99 trajectories asked for" in response.text
    assert "Download SFT conversations" in response.text
    kept = re.findall(r'<td title="keeps [^"]*">([^<]*)</td><td class="n" data-label="kept">(\d+)', response.text)
    assert kept[0] == ("available", "12")
    assert kept[-1] == ("per prompt", "4")
    dropped = dict(
        re.findall(
            r'<td title="keeps [^"]*">([^<]*)</td>.*?data-label="dropped"><span class="muted">([^<]*)<', response.text
        )
    )
    assert (dropped["well formed"], dropped["file present"]) == ("when read", "–")


async def test_a_preview_shows_the_first_rows_with_long_texts_cut(datasette: Datasette) -> None:
    page = unescape((await get(datasette, "/-/rltracer/run/export?_preview=sft&_acceptance=any")).text)
    shown = re.findall(r'<pre class="first-row"[^>]*>\n(.*?)</pre>', page, re.DOTALL)
    first = await exported(datasette, "/run/trajectories.sft")
    assert [json.loads(row) for row in shown] == first[:2]
    assert json.loads(shortened({"a": ["x" * 300] * 20})) == {
        "a": ["x" * 240 + "… (300 characters)"] * 12 + ["… (8 more)"]
    }


async def test_a_row_chooses_by_the_fields_of_the_form(datasette: Datasette) -> None:
    found = await exported(datasette, "/run/trajectories.sft?run_id=1&step__gte=2&step__lte=2&env=&_acceptance=any")
    assert found == await exported(datasette, "/run/trajectories.sft?run_id=1&step=2&_acceptance=any")
    page = unescape((await get(datasette, "/-/rltracer/run/export?run_id=2&step__gte=2")).text)
    assert '<option value="2" selected>two</option>' in page
    assert 'name="step__gte" value="2"' in page
    assert 'type="hidden" name="run_id"' not in page


async def test_enter_in_a_field_previews(datasette: Datasette) -> None:
    page = (await get(datasette, "/-/rltracer/run/export")).text
    assert 'name="_preview"' in re.findall(r"<button[^>]*>", page.partition('class="export"')[2])[0]


async def test_a_download_that_is_refused_leads_a_person_back_to_the_form(datasette: Datasette) -> None:
    headers = {"accept": "text/html,*/*"}
    page = (await get(datasette, "/run/trajectories.sft?_target=99&success=1", 400, headers=headers)).text
    assert "99 trajectories asked for" in page
    assert 'name="_target" value="99"' in page
    assert 'type="hidden" name="success" value="1"' in page


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


async def test_each_choice_of_the_form_has_its_name(datasette: Datasette) -> None:
    page = (await datasette.client.get("/-/rltracer/run/export")).text
    fields = re.findall(r'<label class="field"><span>([^<]*)</span> <select name="(run_id|env)">', page)
    assert fields
    assert set(fields) <= {("run", "run_id"), ("environment", "env")}


def choices(page: str, name: str) -> list[str]:
    """Return what can be chosen in a field, as it is shown, besides all."""
    [field] = re.findall(rf'<select name="{name}">(.*?)</select>', page) or [""]
    return [unescape(shown) for shown in re.findall(r"<option[^>]*>([^<]*)</option>", field)][1:]


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("", ["maths", "reading", "not recorded"]),
        ("run_id=1", ["maths", "reading"]),
        ("run_id=2", ["reading", "not recorded"]),
        ("run_id=3", []),
        ("run_id=3&env=maths", ["reading", "maths"]),
        ("run_id=9", []),
    ],
)
async def test_the_form_has_the_environments_of_the_chosen_run(tmp_path: Path, query: str, shown: list[str]) -> None:
    envs = {"a": ["maths", "reading"], "b": ["reading", None], "c": ["reading"]}
    rows = [{"run": run, "env": env} for run, found in envs.items() for env in found]
    page = await get(Datasette([str(make_index(tmp_path / "run.sqlite", rows))]), f"{PAGE}?{query}")
    assert choices(page.text, "env") == shown


async def test_names_of_runs_that_differ_at_their_ends_are_told_apart(tmp_path: Path) -> None:
    rows = [{"run": f"{'long' * 30}-seed-{seed}"} for seed in (1, 2)]
    datasette = Datasette([str(make_index(tmp_path / "run.sqlite", rows))])
    page = (await get(datasette, f"{PAGE}?run_id=2")).text
    assert [(len(name), name[-7:]) for name in choices(page, "run_id")] == [(60, "-seed-2"), (60, "-seed-1")]
    [title] = re.findall(r"<h1>(.*?)</h1>", page)
    assert title.endswith("-seed-2")


async def test_text_from_the_address_is_escaped(datasette: Datasette) -> None:
    html = (await get(datasette, '/-/rltracer/run/export?uid="><script>alert(1)</script>&_field=<b>')).text
    assert "<script>alert" not in html
    assert 'value="<b>' not in html


@pytest.mark.parametrize(
    ("chosen", "said"),
    [
        ("", ("all runs", [])),
        ("run_id=1", ("the run one", [])),
        ("run_id=7", ("run 7", [])),
        ("run_id=1&step=8&env=math", ("step 8 of the run one", ['env = "math"'])),
        ("run_id=1&step__gte=2&step__lte=5", ("steps 2 to 5 of the run one", [])),
        ("step__gte=2&step__lte=2", ("step 2", [])),
        ("step__gte=2", ("steps from 2 on", [])),
        ("step__lte=5", ("steps up to 5", [])),
        ("prompt_group_id=3&success=1", ("prompt group 3", ["success = 1"])),
        ("run_id=1&prompt_id=3", ("prompt 3 of the run one", [])),
        ("run_id=1&run_id=2", ("all runs", ["run_id = 1", "run_id = 2"])),
        ("run_id=x&step=1 or 1", ("all runs", ['run_id = "x"', 'step = "1 or 1"'])),
    ],
)
async def test_what_an_export_is_of_is_said(chosen: str, said: tuple[str, list[str]]) -> None:
    pairs = [(name, value) for name, _, value in (one.partition("=") for one in chosen.split("&")) if name]
    assert subject(pairs, {"1": "one"}) == said


async def test_the_title_says_what_is_exported(datasette: Datasette) -> None:
    page = (await get(datasette, f"{PAGE}?_table=prompt_groups&run_id=2&step=1&scored__gt=1")).text
    assert "<title>run: training data from step 1 of the run two</title>" in page
    assert "Training data from step 1 of the run two where scored > 1 · prompt groups as a table" in words(page)
    assert links(page, "prompt groups as a table") == ["/run/prompt_groups?run_id=2&step=1&scored__gt=1"]


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
        ("", "a “recorded value” branches<=1 leaves such trajectories out."),
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
