"""The token lens in a real browser: the details line by pointer and keys, without a script, on a narrow screen."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from datasette.app import Datasette

from rltracer_sqlite.index.database import finish_writing, open_for_writing
from rltracer_sqlite.index.refresh import refresh_run
from rltracer_sqlite.index.runs import ensure_run
from rltracer_sqlite.sample import write_sample
from rltracer_sqlite.sources import source_for
from tests.indexing import rows
from tests.serving import serving, windows


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve the sample run and return the address of the tokens of a rollout that went wrong."""
    folder = tmp_path_factory.mktemp("lens")
    write_sample(folder / "run")
    source = source_for(folder / "run", str(folder / "run/tokenizer"))
    connection = open_for_writing(folder / "run.sqlite")
    refresh_run(connection, source, folder / "run", ensure_run(connection, source, folder / "run"))
    finish_writing(connection)
    found = rows(
        folder / "run.sqlite",
        """
        select id from trajectories
        where step = 8 and split = 'train' and env = 'word-problems' and success = 0
        """,
    )
    app = Datasette([str(folder / "run.sqlite")], settings={"suggest_facets": False}).app()
    with serving(app) as address:
        yield f"{address}/-/rltracer/run/trajectory/{found[0][0]}?view=tokens"


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    with windows(browser) as context:
        opened = context.new_page()
        opened.goto(address)
        yield opened


def details(page: Any) -> str:
    return str(page.locator(".token-details").inner_text())


def test_the_pointer_shows_what_is_recorded(page: Any) -> None:
    token = page.locator("div.tokens .s6")
    token.hover()
    assert details(page) == token.get_attribute("title")
    assert "“ und”" in details(page)
    assert "logprob −4." in details(page)


def test_the_arrow_keys_go_from_token_to_token(page: Any) -> None:
    page.locator("div.tokens [tabindex]").focus()
    assert details(page).startswith("1 of ")
    for key, place in [("ArrowRight", 2), ("ArrowRight", 3), ("ArrowLeft", 2), ("End", 125), ("Home", 1)]:
        page.keyboard.press(key)
        assert details(page).startswith(f"{place} of 125 · ")
    page.keyboard.press("ArrowDown")
    below = page.evaluate("document.activeElement.getBoundingClientRect().top")
    page.keyboard.press("ArrowUp")
    assert page.evaluate("document.activeElement.getBoundingClientRect().top") < below
    assert page.locator("div.tokens [tabindex]").count() == 1


def test_tab_leaves_the_text_after_one_stop(page: Any) -> None:
    page.locator("div.tokens [tabindex]").focus()
    page.keyboard.press("Tab")
    assert page.evaluate("!document.activeElement.closest('div.tokens')")


def test_an_address_leads_to_a_token(browser: Any, address: str) -> None:
    page = browser.new_page()
    page.goto(f"{address}#k99")
    assert details(page).startswith("100 of 125 · ")
    page.close()


def test_t_goes_to_the_conversation_and_back(page: Any) -> None:
    page.keyboard.press("t")
    page.wait_for_url(lambda url: "view=tokens" not in url)
    page.keyboard.press("t")
    page.wait_for_url("**view=tokens**")


def test_without_a_script_titles_say_the_same(browser: Any, address: str) -> None:
    page = browser.new_page(java_script_enabled=False)
    page.goto(address)
    assert page.locator(".token-details").is_hidden()
    assert "logprob −4." in page.locator("div.tokens .s6").get_attribute("title")
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [360, 1280, 2560])
def test_it_fits_the_screen_and_has_its_colours(browser: Any, address: str, scheme: str, width: int) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto(address)
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    colour = page.locator("div.tokens .s6").evaluate("node => getComputedStyle(node).backgroundColor")
    assert colour == {"light": "rgb(227, 138, 51)", "dark": "rgb(131, 79, 15)"}[scheme]
    hatched = page.locator("div.tokens .m").first.evaluate("node => getComputedStyle(node).backgroundImage")
    assert hatched.startswith("repeating-linear-gradient")
    page.close()


def test_copied_text_is_the_text_of_the_tokens(page: Any) -> None:
    copied = page.locator("div.tokens").evaluate("node => node.textContent")
    assert copied.startswith("<|im_start|>system\n")
    assert "↵" not in copied
