"""Training data from the tables of an index: the same as the command line's, for the same filters and visitor."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from click.testing import CliRunner
from datasette import hookimpl
from datasette.app import Datasette
from datasette.plugins import pm
from datasette.utils.asgi import Request

from datasette_rltracer.export import BOUNDS, FIELDS, NUMBERS, OWN, SWITCHES, preferences
from datasette_rltracer.export_page import shortened
from rltracer_sqlite.cli.export import command
from rltracer_sqlite.export import ExportPreferences
from tests.export_runs import rollout, uids, write_steps
from tests.indexing import index, rows

pytestmark = pytest.mark.asyncio


async def get(datasette: Datasette, path: str, status: int = 200, **options: Any) -> Any:
    response = await datasette.client.get(path, **options)
    assert response.status_code == status, response.text[:1000]
    return response


async def exported(datasette: Datasette, path: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (await get(datasette, path)).content.splitlines()]


def from_cli(folder: Path, *options: str) -> bytes:
    """Return the file that the command line writes."""
    output = folder / "cli.jsonl"
    result = CliRunner().invoke(command, [str(folder / "run.sqlite"), "-o", str(output), "--split", "any", *options])
    assert result.exit_code == 0, result.output
    return output.read_bytes()


ALL = ["--acceptance", "any", "--per-prompt", "all"]
SAME = [
    ("trajectories.sft", {}, ALL),
    ("trajectories.sft", {"tool_calls__gte": "2"}, [*ALL, "--field", "tool_calls>=2"]),
    ("trajectories.sft", {"success": "1", "_sort_desc": "tool_calls"}, ["--per-prompt", "all"]),
    ("trajectories.sft", {"env__isnull": "1", "_acceptance": "correct", "_per_prompt": "1"}, ["--per-prompt", "1"]),
    ("trajectories.sft", {"run_id": "1", "step": "2"}, [*ALL, "--run", "one", "--steps", "2"]),
    ("trajectories.sft", {"_split": "eval"}, [*ALL, "--split", "eval"]),
    ("trajectories.sft", {"_field": "metrics.num_turns<=2", "_target": "3", "_seed": "5"},
     [*ALL, "--field", "metrics.num_turns<=2", "--target", "3", "--seed", "5"]),
    ("trajectories.sft", {"_provenance": "1", "_no_tools": "1", "_max_pass_rate": "0.5", "_window": "1"},
     [*ALL, "--provenance", "--no-tools", "--max-pass-rate", "0.5", "--window", "1"]),
    ("trajectories.rl", {}, [*ALL, "--mode", "rl", "--rl-from-trace"]),
    ("trajectories.rl", {"_unique_prompts": "1"}, [*ALL, "--mode", "rl", "--rl-from-trace", "--unique-prompts"]),
    ("trajectories.preference", {}, [*ALL, "--mode", "preference"]),
    ("prompt_groups.sft", {}, ALL),
    ("prompt_groups.sft", {"run_id": "2"}, [*ALL, "--run", "two"]),
]  # fmt: skip


@pytest.mark.parametrize(("path", "query", "options"), SAME)
async def test_a_filtered_table_gives_what_the_command_line_gives(
    datasette: Datasette, folder: Path, path: str, query: dict[str, str], options: list[str]
) -> None:
    response = await get(datasette, f"/run/{path}?{urlencode(query)}")
    assert response.content == from_cli(folder, *options)


async def test_a_pass_rate_is_of_all_trajectories_whatever_the_table_shows(datasette: Datasette) -> None:
    found = await exported(datasette, "/run/trajectories.sft?success=1&_max_pass_rate=0.5")
    assert sorted(uids(found)) == ["mid0", "mid1"]


async def test_prompt_groups_choose_by_their_own_columns(datasette: Datasette) -> None:
    found = await exported(datasette, "/run/prompt_groups.sft?pass_bucket=1&run_id=1")
    assert all(uid.startswith(("easy", "mid", "evaluated")) for uid in uids(found))
    assert "mid2" not in uids(found)


async def test_a_large_table_is_paged_through(folder: Path) -> None:
    datasette = Datasette([str(folder / "run.sqlite")], settings={"max_returned_rows": 2})
    found = await exported(datasette, "/run/trajectories.sft?turns__gt=0&_size=1")
    assert len(found) == 12


async def test_the_headers_of_a_download(datasette: Datasette) -> None:
    response = await get(datasette, "/run/trajectories.sft")
    assert response.headers["content-disposition"] == 'attachment; filename="run-trajectories.sft.jsonl"'
    assert response.headers["content-type"] == "application/x-ndjson; charset=utf-8"
    assert response.headers["x-content-type-options"] == "nosniff"


async def test_this_data_as_offers_the_three_kinds(datasette: Datasette) -> None:
    html = unescape((await get(datasette, "/run/trajectories?success=1")).text)
    assert all(f'href="/run/trajectories.{mode}?success=1' in html for mode in ("sft", "rl", "preference"))
    assert ".sft" not in (await get(datasette, "/run/shards")).text
    assert ".sft" not in (await get(datasette, "/run/trajectories/1")).text


async def test_the_menu_of_a_table_leads_to_the_form_with_its_filters(datasette: Datasette) -> None:
    html = unescape((await get(datasette, "/run/trajectories?success=1&_sort=step&_facet=env")).text)
    assert "/-/rltracer/run/export?_table=trajectories&success=1" in html
    assert "/-/rltracer/run/export?_table=trajectories" in unescape(
        (await get(datasette, "/run/prompt_pass_rates")).text
    )


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


def form_fields(html: str) -> dict[str, str]:
    """Return what the form of the export page sends as it stands, the boxes without a tick as an empty text."""
    form = re.sub(r"<button.*?>", "", html.partition('<form class="export"')[2].partition("</form>")[0])
    fields = dict(re.findall(r'<input type="(?:number|text|hidden)" name="([^"]+)" value="([^"]*)"', form))
    fields |= dict.fromkeys(re.findall(r'type="checkbox" name="([^"]+)" value="1">', form), "")
    for name, options in re.findall(r'<select name="([^"]+)">(.*?)</select>', form, re.DOTALL):
        fields[name] = (re.findall(r'value="([^"]*)" selected', options) or [""])[0]
    return fields


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


async def test_a_preview_that_cannot_be_is_a_sentence_in_the_form(datasette: Datasette) -> None:
    response = await get(datasette, "/-/rltracer/run/export?_preview=sft&_target=99", 400)
    assert "99 rows asked for" in response.text
    assert "Download SFT conversations" in response.text


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("_target=many", "is no number"),
        ("_target=99", "99 rows asked for"),
        (f"_window={10**30}", "window_size is"),
        ("_min_pass_rate=nan", "between 0 and 1"),
        ("_acceptance=good", "one of any, correct, incorrect"),
        ("_field=nothing", "is no filter"),
        ("_field=metrics.num_turn<=1", "Similar: metrics.num_turns"),
        ("_min_pass_rate=2", "between 0 and 1"),
        ("uid=nobody", "nothing to export"),
        ("no_column=1", "trajectories has no column no_column"),
        ("nope__gte=1", "trajectories has no column nope"),
        ("tool_call__gte=1", "similar: tool_calls"),
        ("tool_calls__gt_e=1", "tool_calls__gt_e: there is no filter __gt_e; similar: __gte"),
        ("_acceptance=correct&_targt=2", "There is no option _targt; similar: _target"),
    ],
)
async def test_what_cannot_be_exported_is_a_400(datasette: Datasette, query: str, sentence: str) -> None:
    response = await get(datasette, f"/run/trajectories.sft?{query}", 400)
    assert sentence in unescape(response.text)
    page = await get(datasette, f"/-/rltracer/run/export?_preview=sft&{query}", 400)
    assert sentence in unescape(page.text)
    assert "Download SFT conversations" in page.text


@pytest.mark.parametrize(
    "query", ["_where=turns>0", "_search=", "_facet=env&_facet_size=3&_nofacet=1", "turns__gt=0&_labels=on&_size=5"]
)
async def test_what_a_table_page_has_in_its_address_is_taken(datasette: Datasette, query: str) -> None:
    assert len(await exported(datasette, f"/run/trajectories.sft?{query}")) == 12


async def test_a_preview_shows_the_first_rows_with_long_texts_cut(datasette: Datasette) -> None:
    page = unescape((await get(datasette, "/-/rltracer/run/export?_preview=sft&_acceptance=any")).text)
    shown = re.findall(r'<pre class="first-row">\n(.*?)</pre>', page, re.DOTALL)
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
    assert "99 rows asked for" in page
    assert 'name="_target" value="99"' in page
    assert 'type="hidden" name="success" value="1"' in page


async def test_names_that_another_plugin_filters_by_are_left_to_it(datasette: Datasette) -> None:
    class Other:
        @hookimpl
        def filters_from_request(self, request):
            return None

    await get(datasette, "/run/trajectories.sft?_mine=1", 400)
    pm.register(Other(), name="other")
    try:
        await get(datasette, "/run/trajectories.sft?_mine=1")
    finally:
        pm.unregister(name="other")


async def test_only_the_tables_of_an_index_are_exported(datasette: Datasette, folder: Path) -> None:
    await get(datasette, "/run/shards.sft", 404)
    await get(datasette, "/run/trajectories/1.sft", 404)
    await get(datasette, "/-/rltracer/run/export?_table=shards", 404)
    await get(datasette, "/-/rltracer/nothing/export", 404)


async def test_a_file_that_changed_is_told_before_anything_is_sent(datasette: Datasette, folder: Path) -> None:
    file = folder / "two" / "rollouts" / "step_1" / "train" / "all" / "traces.jsonl"
    file.write_bytes(file.read_bytes()[:-50])
    response = await get(datasette, "/run/trajectories.sft", 409)
    assert "has changed since it was indexed" in response.text


async def test_a_run_outside_the_configured_roots_is_forbidden(folder: Path) -> None:
    config = {"plugins": {"datasette-rltracer": {"roots": [str(folder / "one")]}}}
    datasette = Datasette([str(folder / "run.sqlite")], metadata=config)
    await get(datasette, "/run/trajectories.sft", 403)
    assert len(await exported(datasette, "/run/trajectories.sft?run_id=1")) == 9


async def test_rl_data_is_named_by_the_configuration_only(folder: Path) -> None:
    from tests.export_runs import write_data

    data = write_data(folder / "train.jsonl", ["easy"])
    config = {"plugins": {"datasette-rltracer": {"roots": [str(folder)], "rl_data": {"two": str(data)}}}}
    datasette = Datasette([str(folder / "run.sqlite")], metadata=config)
    [row] = await exported(datasette, "/run/trajectories.rl?run_id=2")
    assert row["feedback"] == "good"


def cookies(datasette: Datasette, actor: str) -> dict[str, str]:
    return {"ds_actor": datasette.sign({"a": {"id": actor}}, "actor")}


@pytest.mark.parametrize("table", ["trajectories", "prompt_groups"])
async def test_a_visitor_without_permission_gets_403(folder: Path, table: str) -> None:
    metadata = {"databases": {"run": {"tables": {"trajectories": {"allow": {"id": "ada"}}}}}}
    datasette = Datasette([str(folder / "run.sqlite")], metadata=metadata)
    await datasette.invoke_startup()
    for mode in ("sft", "rl", "preference"):
        await get(datasette, f"/run/{table}.{mode}?run_id=1", 403)
        await get(datasette, f"/run/{table}.{mode}", 403)
        await get(datasette, f"/run/{table}.{mode}?run_id=1", cookies=cookies(datasette, "ada"))
    await get(datasette, f"/-/rltracer/run/export?_table={table}&_preview=sft", 403)
    await get(datasette, f"/-/rltracer/run/export?_table={table}&_preview=sft", cookies=cookies(datasette, "ada"))


async def test_a_base_url_is_kept(folder: Path) -> None:
    datasette = Datasette([str(folder / "run.sqlite")], settings={"base_url": "/prefix/"})
    html = unescape((await get(datasette, "/run/trajectories?success=1")).text)
    assert "/prefix/-/rltracer/run/export?_table=trajectories&success=1" in html
    assert len(await exported(datasette, "/run/trajectories.sft?success=1")) == 10
    html = (await get(datasette, "/-/rltracer/run/export")).text
    assert 'formaction="/prefix/run/trajectories.sft"' in html


async def test_text_from_the_address_is_escaped(datasette: Datasette) -> None:
    html = (await get(datasette, '/-/rltracer/run/export?uid="><script>alert(1)</script>&_field=<b>')).text
    assert "<script>alert" not in html
    assert 'value="<b>' not in html


async def test_nothing_is_left_open(datasette: Datasette, folder: Path) -> None:
    for _ in range(3):
        await get(datasette, "/run/trajectories.sft")
    assert rows(folder / "run.sqlite", "select count(*) from trajectories") == [(12,)]


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


@pytest.mark.asyncio
async def test_each_choice_of_the_form_has_its_name(datasette):
    page = (await datasette.client.get("/-/rltracer/run/export")).text
    fields = re.findall(r'<label class="field"><span>([^<]*)</span> <select name="(run_id|env)">', page)
    assert fields
    assert set(fields) <= {("run", "run_id"), ("environment", "env")}
