"""Training data from the tables of an index: the same as the command line's, for the same filters and visitor."""

from __future__ import annotations

from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest
from datasette import hookimpl
from datasette.app import Datasette
from datasette.plugins import pm

from datasette_rltracer.export_options import in_address_words, in_form_words
from tests.export_runs import uids
from tests.indexing import rows

from .conftest import exported, from_cli, get

pytestmark = pytest.mark.asyncio

ALL = ["--acceptance", "any", "--per-prompt", "all"]


SAME = [
    ("trajectories.sft", {}, ALL),
    ("trajectories.sft", {"tool_calls__gte": "2"}, [*ALL, "--field", "tool_calls>=2"]),
    ("trajectories.sft", {"tools__arraycontains": "bash"}, [*ALL, "--field", "tools=bash"]),
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
    assert response.headers.get_list("cache-control") == ["no-store"]
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


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("_target=many", "is no number"),
        ("_target=99", "99 trajectories asked for"),
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
    assert in_address_words(sentence) in unescape(response.text)
    page = await get(datasette, f"/-/rltracer/run/export?_preview=sft&{query}", 400)
    assert in_form_words(sentence) in unescape(page.text)
    assert "Download SFT conversations" in page.text


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ("_per_prompt=0", "_per_prompt is 0: a limit is a whole number from 1 on."),
        (
            "_min_pass_rate=0.9&_max_pass_rate=0.1",
            "_min_pass_rate 0.9 is above _max_pass_rate 0.1: no prompt can be between",
        ),
        ("_target=99&_unique_prompts=1", "There are 12 without _unique_prompts=1. Ask for fewer."),
    ],
)
async def test_a_program_is_told_of_what_it_can_set_in_its_address(
    datasette: Datasette, query: str, sentence: str
) -> None:
    assert sentence in unescape((await get(datasette, f"/run/trajectories.sft?{query}", 400)).text)


@pytest.mark.parametrize(
    "query", ["_where=turns>0", "_search=", "_facet=env&_facet_size=3&_nofacet=1", "turns__gt=0&_labels=on&_size=5"]
)
async def test_what_a_table_page_has_in_its_address_is_taken(datasette: Datasette, query: str) -> None:
    assert len(await exported(datasette, f"/run/trajectories.sft?{query}")) == 12


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


async def test_only_the_tables_of_an_index_are_exported(datasette: Datasette) -> None:
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


async def test_nothing_is_left_open(datasette: Datasette, folder: Path) -> None:
    for _ in range(3):
        await get(datasette, "/run/trajectories.sft")
    assert rows(folder / "run.sqlite", "select count(*) from trajectories") == [(12,)]
