"""The export page: a form with the preferences, and what it says it is about."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest
from datasette.app import Datasette
from datasette.utils.asgi import Request

from datasette_rltracer.compat import IS_1
from datasette_rltracer.export_options import BOUNDS, FIELDS, NUMBERS, OWN, SWITCHES, preferences
from datasette_rltracer.export_title import subject
from rltracer_sqlite.cli.export import command
from rltracer_sqlite.export import ExportPreferences
from rltracer_sqlite.export.conditions import COLUMNS
from tests.index_factory import make_index
from tests.plugin.html import links, words

from .conftest import exported, from_cli, get
from .form import PAGE, form_fields

pytestmark = pytest.mark.asyncio


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


@pytest.mark.parametrize(
    ("query", "split"),
    [
        ("", "train"),
        ("run_id=1", "train"),
        ("run_id=2", ""),
        ("run_id=3", "train"),
        ("run_id=4", "train"),
        ("run_id=2&_split=train", "train"),
        ("run_id=2&_per_prompt=1", ""),
    ],
)
async def test_a_new_form_asks_for_train_where_the_chosen_run_has_it(tmp_path: Path, query: str, split: str) -> None:
    splits = [("both", "train"), ("both", "eval"), ("exam", "eval"), ("plain", None), ("half", None), ("half", "eval")]
    index = make_index(tmp_path / "run.sqlite", [{"run": run, "split": one} for run, one in splits])
    page = await get(Datasette([str(index)]), f"{PAGE}?{query}")
    assert form_fields(page.text)["_split"] == split


async def test_a_new_form_asks_for_any_split_where_no_run_has_train(tmp_path: Path) -> None:
    index = make_index(tmp_path / "run.sqlite", [{"run": run, "split": "eval"} for run in ("a", "b")])
    assert form_fields((await get(Datasette([str(index)]), PAGE)).text)["_split"] == ""


@pytest.mark.parametrize("query", ["_preview=sft&_split=test", "_preview=csv"])
async def test_a_choice_that_there_is_not_is_a_sentence(datasette: Datasette, query: str) -> None:
    response = await get(datasette, f"/-/rltracer/run/export?{query}", 400)
    assert f"{query.rpartition('=')[2]}' is one of" in unescape(response.text)


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
    ("query", "ways"),
    [
        ("", []),
        ("run_id=2", [("/run/2", "run: two")]),
        ("run_id=1&step=2&success=1", [("/run/1", "run: one"), ("/step/1/2", "step 2")]),
        ("run_id=1&step__isnull=1", [("/run/1", "run: one"), ("/step/1/none", "no step")]),
        ("prompt_group_id=3", [("/group/3", "prompt group 3")]),
        ("run_id=7&step=1", []),
        ("run_id=1&run_id=2", []),
        ("step=2", []),
    ],
)
async def test_the_way_down_to_an_export_has_the_run(
    datasette: Datasette, query: str, ways: list[tuple[str, str]]
) -> None:
    page = (await get(datasette, f"{PAGE}?{query}")).text
    [crumbs] = re.findall(r'<p class="crumbs">(.*?)</p>', page, re.DOTALL)
    found = [(unescape(url), words) for url, words in re.findall(r'<a href="([^"]*)">([^<]*)</a>', crumbs)]
    here = f"{PAGE}?_table=trajectories{'&' * bool(query)}{query}"
    below = [(f"/-/rltracer/run{path}", said) for path, said in ways]
    assert found[2:] == [("/-/rltracer/run/", "rollouts"), *below, (here, "export")]


async def test_the_form_says_what_a_recorded_value_may_be(datasette: Datasette) -> None:
    page = (await get(datasette, PAGE)).text
    assert links(page, "fields of this index") == ["/run/fields"]
    said = "as in reward>=0.5, and besides them turns<=8, branches<=1, env=maths,code."
    assert said in words(page)
    for path in re.findall(r"[a-z]+(?=[<>=])", said):
        table = await get(datasette, "/run/fields.json?_shape=array")
        assert path in COLUMNS or path in [row["path"] for row in table.json()]


async def test_a_field_of_the_form_that_is_no_number_is_named_as_it_is_called(datasette: Datasette) -> None:
    page = (await get(datasette, f"{PAGE}?_preview=sft&_per_prompt=few", 400)).text
    assert "\"per prompt and window\": 'few' is no number, and not all." in words(page)


async def test_the_table_of_recorded_values_is_no_link_for_whoever_may_not_see_it(folder: Path) -> None:
    hidden = {"databases": {"run": {"tables": {"fields": {"allow": {"id": "root"}}}}}}
    closed = Datasette([str(folder / "run.sqlite")], **{"config" if IS_1 else "metadata": hidden})
    page = (await get(closed, PAGE)).text
    assert "Recorded values are any of the fields of this index, as in" in words(page)
    assert links(page, "fields of this index") == []
