"""A prompt group with many named rewards: its table fits the window of a laptop, last words and all."""

from __future__ import annotations

from pathlib import Path

import pytest
from datasette.app import Datasette

from tests.indexing import index
from tests.layouts import append, message, trace
from tests.plugin.conftest import TRACES
from tests.serving import serving, windows

REWARDS = ["brevity", *(f"{name}_reward" for name in (
    "code_execution_correctness", "length_penalty", "judge_helpfulness", "language_consistency",
    "tool_call_validity", "repetition_penalty", "citation", "politeness", "unit_tests", "think_format", "final_answer",
))]  # fmt: skip
ENDED = "maximum_number_of_turns_reached_by_the_environment"
OVER = """() => {
const table = document.querySelector("table.group"), box = table.closest(".scroll");
const shown = [...table.querySelectorAll("thead th.named")].filter((one) => one.offsetWidth).length;
return [Math.max(box.scrollWidth - box.clientWidth, 0), shown, table.querySelector("tbody td.wide").offsetWidth >= 140];
}"""

BROKEN = """[...document.querySelectorAll("table.group thead th.named")].filter((one) => {
    const texts = document.createTreeWalker(one, NodeFilter.SHOW_TEXT), range = document.createRange();
    while (texts.nextNode()) {
        range.selectNodeContents(texts.currentNode);
        if (range.getClientRects().length > 1) return true;
    }
    return false;
}).map((one) => one.innerText)"""


@pytest.mark.parametrize("count", [2, 12])
def test_the_table_of_a_group_fits_a_laptop(browser, tmp_path: Path, count: int) -> None:
    said = [message("user", "What is it?"), message("assistant", "It is what everyone knows. " * 20)]
    for number in range(3):
        rewards = {name: {"score": 0.123 * number, "weight": 1.0} for name in REWARDS[:count]}
        one = trace(said, id=f"{number}bd55c99aa1f", rewards=rewards, stop_condition=ENDED, agent="a-long-agent-name")
        append(tmp_path / "run" / TRACES, one)
    index(tmp_path / "wide.sqlite", tmp_path / "run")
    app = Datasette([str(tmp_path / "wide.sqlite")]).app()
    with serving(app) as address, windows(browser, viewport={"width": 1280, "height": 900}) as context:
        page = context.new_page()
        page.goto(f"{address}/-/rltracer/wide/group/1")
        for width, named in ((1280, min(count, 6)), (1440, min(count, 6)), (1600, count), (2560, count)):
            page.set_viewport_size({"width": width, "height": 900})
            assert page.evaluate(OVER) == [0, named, True], width
            assert count > 3 or page.evaluate(BROKEN) == [], width
            is_told = page.get_by_text("A wider window shows 12 named rewards in place of 6.").is_visible()
            assert is_told == (named < count)
