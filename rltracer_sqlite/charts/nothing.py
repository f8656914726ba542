"""Why a chart has nothing to draw, told in place of it: the same in the terminal and on pages."""

from __future__ import annotations

import sqlite3
from pathlib import PurePath
from typing import Any

# What a trajectory has to record to be in a chart.
NEEDED = {
    "pass_rate": "success and a step",
    "reward": "a reward and a step",
    "histogram": "success",
    "difficulty": "success",
    "length": "its length and a step",
    "failures": "whether it was cut off or ended with an error",
    "zero_variance": "a reward in a group of several",
}


def why_nothing(
    connection: sqlite3.Connection, run_id: int, chart: str, asked: dict[str, Any], index: PurePath | str
) -> str:
    """Return why a chart has nothing to draw: most of them draw what is scored over the steps.

    `asked` are the filters: `split`, `env`, and the `first` and `last` step, None or left out where none is given.
    `index` is what a command calls the index.
    """
    from ..amounts import LONGEST_NAME, shortened_name
    from ..index.elsewhere import SCORED, Groups, asked_for
    from ..unscored import another_rule

    row = connection.execute(
        """
        select r.name, r.success_path, coalesce(sum(g.scored), 0), count(g.step), count(g.reward_mean)
        from runs r left join prompt_groups g on g.run_id = r.id where r.id = ?
        """,
        (run_id,),
    ).fetchone()
    (name, path), (scored, steps, rewards) = (shortened_name(text or "", LONGEST_NAME) for text in row[:2]), row[2:]
    if not scored:
        command = another_rule(connection, run_id, index, rewards > 0)
        return f"Nothing to draw: no trajectory of {name} records {path}. {command} sets another rule."
    if not steps:
        return f"Nothing to draw: {name} records no steps."
    groups = Groups(connection, [run_id], asked, SCORED)
    if not groups.any() and (ways := groups.elsewhere()):
        only = f"only those of {', and of '.join(ways)} do"
        return f"Nothing to draw: no trajectory of {name}{asked_for(asked)} records {path}; {only}."
    return f"Nothing to draw: no trajectory of {name}{asked_for(asked)} records {NEEDED[chart]}."
