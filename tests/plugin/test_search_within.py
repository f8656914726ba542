"""What can be searched is counted among what was asked for: in the terminal, in JSON, in Python and on the page."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing

import pytest
from datasette.app import Datasette

from rltracer_sqlite import search_text
from tests.commands import indexed, rltracer
from tests.index_factory import make_index
from tests.layouts import append, message, trace
from tests.token_layouts import micro_batch, question, write_bin
from tests.wrong_tokenizers import LONG, SHARD

from .conftest import get
from .html import words

pytestmark = pytest.mark.asyncio
PAGE = "/-/rltracer/x/search"
TRACES = "rollouts/step_{}/train/all/traces.jsonl"
NO_TEXT = "no text: token ids without a tokenizer"
LATER = "came later, or could not be read"
# What is asked for in the terminal, in Python and in an address; how many can be searched, and of how many; and how
# many have no text, or came later.
ASKED = [
    ((), {}, "", (2, 5), 2, 1),
    (("--run", "said"), {"run": "said"}, "run_id=1", (2, 3), 0, 1),
    (("--run", "ids"), {"run": "ids"}, "run_id=2", (0, 2), 2, 0),
    (("--run", "said", "--step", 2), {"run": "said", "step": 2}, "run_id=1&step=2", (1, 1), 0, 0),
    (("--steps", "1-1", "--run", 1), {"step_end": 1, "run": 1}, "run_id=1&step__lte=1", (1, 2), 0, 1),
    (("--outcome", "passed"), {"outcome": "passed"}, "success=1", (1, 1), 0, 0),
    (("--outcome", "failed"), {"outcome": "failed"}, "success=0", (0, 1), 0, 1),
]


@pytest.fixture(scope="module")
def database(tmp_path_factory):
    """Return an index of a run whose first trajectory is not in the full text, and of one of token ids."""
    folder = tmp_path_factory.mktemp("within")
    for step, rewards in ((1, [0.0, 1.0]), (2, [None])):
        for number, reward in enumerate(rewards):
            said = [message("user", "Well?"), message("assistant", "word")]
            append(folder / "said" / TRACES.format(step), trace(said, id=f"t{step}{number}", reward=reward))
    write_bin(folder / "ids" / SHARD, [micro_batch("g20", [LONG, question()])])
    assert indexed(folder / "x.sqlite", folder / "said", folder / "ids", "--fts").returncode == 0
    with closing(sqlite3.connect(folder / "x.sqlite")) as connection, connection:
        connection.execute("delete from trajectories_text_digests where trajectory_id = 1")
        connection.execute("update trajectories set success = null where run_id = 2")
    return folder / "x.sqlite"


@pytest.mark.parametrize(("options", "named", "address", "counts", "without", "later"), ASKED)
async def test_every_surface_counts_what_was_asked_for(database, options, named, address, counts, without, later):
    reason = f"; {without} have {NO_TEXT}" if without else ""
    can, of = counts
    said = f"{can} of {of} {'trajectory' if of == 1 else 'trajectories'}"
    counted = said if can < of else said.removeprefix(f"{can} of ")
    none = rltracer("search", database, "nowhere", *options)
    assert none.stdout == f"No match in {counted}{reason}.\n"
    assert (LATER in none.stderr) == (later > 0)
    for form in ((), ("--json",)):
        found = rltracer("search", database, "word", *options, *form)
        if found.stdout:
            assert (f"{said} can be searched{reason}." in found.stderr) == (without > 0 and can > 0)
            assert (f"{later} trajectory {LATER}" in found.stderr) == (later > 0)
    in_python = search_text(database, "word", **named)
    assert (in_python.without_text, in_python.unsearched, in_python.gone) == (without, later, 0)
    page = words(await get(Datasette([str(database)]), f"{PAGE}?q=word&{address}"))
    text_of = f"{can} of the {said.removeprefix(f'{can} of ')}" if can < of else f"{'all ' if of > 1 else ''}{counted}"
    assert f"Search the text of {text_of} is searchable " in page
    assert (f"{said} can be searched{reason}." in page) == (without > 0)
    assert (f"{later} trajectory {LATER}" in page) == (later > 0)


def run_choices(page):
    """Return (number, name, whether it is chosen) of each choice of a run; none where the page has no such field."""
    field = re.search(r'<select name="run_id">(.*?)</select>', page)
    found = re.findall(r'<option value="([^"]*)"( selected)?>([^<]*)</option>', field[1]) if field else []
    return [(value, name, bool(chosen)) for value, chosen, name in found]


@pytest.mark.parametrize("chosen", ["", "1", "2", "9"])
async def test_the_form_has_the_runs_and_keeps_what_is_asked(database, chosen):
    page = await get(Datasette([str(database)]), f"{PAGE}?q=word&run_id={chosen}&env=x")
    names = [("", "all runs"), ("2", "ids"), ("1", "said"), *([("9", "9")] if chosen == "9" else [])]
    assert run_choices(page) == [(value, name, value == chosen != "") for value, name in names]
    assert 'name="q" value="word"' in page
    assert re.findall(r'<input type="hidden" name="(\w+)" value="(\w+)">', page) == [("env", "x")]


async def test_one_run_is_no_choice_and_its_number_stays(tmp_path):
    database = make_index(tmp_path / "x.sqlite", [{}])
    rltracer("fts", database)
    page = await get(Datasette([str(database)]), f"{PAGE}?q=word&run_id=1")
    assert run_choices(page) == []
    assert '<input type="hidden" name="run_id" value="1">' in page


async def test_long_and_hostile_names_of_runs_are_cut_in_their_middles(tmp_path):
    names = [f"<b>\u202e{'long' * 100}{seed}" for seed in (1, 2)]
    database = make_index(tmp_path / "x.sqlite", [{"run": name} for name in names])
    rltracer("fts", database)
    [_, *shown] = run_choices(page := await get(Datasette([str(database)]), PAGE))
    assert [name[:9] for _, name, _ in shown] == ["&lt;b&gt;"] * 2
    assert [name[-6:] for _, name, _ in shown] == ["glong2", "glong1"]
    assert all(len(name) < 90 for _, name, _ in shown)
    assert "\u202e" not in page


async def test_names_that_are_cut_to_the_same_have_their_numbers(tmp_path):
    names = [f"{'long' * 20}{seed}{'er' * 30}" for seed in (1, 2)]
    database = make_index(tmp_path / "x.sqlite", [{"run": name} for name in names])
    rltracer("fts", database)
    [_, *shown] = run_choices(await get(Datasette([str(database)]), PAGE))
    assert [name[-8:] for _, name, _ in shown] == ["erer (2)", "erer (1)"]
    chosen = words(await get(Datasette([str(database)]), f"{PAGE}?q=x&run_id=2"))
    assert f'where run = "{names[1][:20]}…' in chosen


async def test_the_summary_names_the_steps_that_have_a_match(tmp_path):
    for step in (1, 2, 3, 4, 7):
        said = [message("user", "Well?"), message("assistant", "none" if step == 4 else "word")]
        append(tmp_path / "run" / TRACES.format(step), trace(said, id=f"t{step}"))
    assert indexed(tmp_path / "x.sqlite", tmp_path / "run", "--fts").returncode == 0
    datasette = Datasette([str(tmp_path / "x.sqlite")])
    assert "in 4 prompt groups · steps 1–3, 7 ·" in words(await get(datasette, f"{PAGE}?q=word"))
    assert "in 1 prompt group · step 7 ·" in words(await get(datasette, f"{PAGE}?q=word&step__gte=4"))


async def test_a_filter_that_cannot_be_used_is_said_without_a_search_too(database):
    page = await Datasette([str(database)]).client.get(f"{PAGE}?preview__arraycontains=x")
    assert (page.status_code, "cannot be used: malformed JSON" in page.text) == (400, True)
