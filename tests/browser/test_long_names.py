"""The fields in which a run is chosen: names that differ at their ends are told apart by what is seen of them."""

from __future__ import annotations

import pytest
from datasette.app import Datasette

from tests.indexing import index
from tests.searching import said, text, write_step
from tests.serving import serving, windows

NAMES = [f"qwen2.5-7b-instruct-grpo-dapo-math-17k-lr1e-6-kl0.001-seed{seed}" for seed in (1, 2)]
# How much wider than the field its longest choice is, with the arrow beside it.
CUT = """(field) => {
    const whole = field.cloneNode(true);
    whole.style = "position: absolute; width: max-content; max-width: none";
    field.after(whole);
    const cut = whole.offsetWidth - field.offsetWidth;
    whole.remove();
    return cut;
}"""


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory):
    """Serve an index of two runs that can be searched."""
    folder = tmp_path_factory.mktemp("names")
    for name in NAMES:
        write_step(folder / name, [said("Well.")])
        index(folder / "x.sqlite", folder / name)
    text(folder / "x.sqlite", folder)
    with serving(Datasette([str(folder / "x.sqlite")]).app()) as address:
        yield address


@pytest.mark.parametrize("width", [700, 1280])
@pytest.mark.parametrize("page", ["export", "search"])
def test_the_whole_name_of_a_run_is_seen_in_its_field(browser, address: str, page: str, width: int) -> None:
    with windows(browser, viewport={"width": width, "height": 900}) as context:
        opened = context.new_page()
        opened.goto(f"{address}/-/rltracer/x/{page}?run_id=2")
        field = opened.locator("select[name=run_id]")
        shown = field.locator("option").all_inner_texts()
        assert [name[-6:] for name in shown[1:]] == ["-seed2", "-seed1"]
        assert field.evaluate(CUT) <= 0
        assert opened.evaluate("document.documentElement.scrollWidth") <= width
