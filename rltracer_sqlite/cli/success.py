"""`rltracer success`: show or change what counts as a success in a run that is indexed."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..amounts import plural
from . import CONTEXT
from .amiss import say_amiss
from .places import FILE, refuse_swapped
from .say import say
from .visible import in_line, printable

if TYPE_CHECKING:
    from ..passrates import SuccessRule
    from ..sources.places import Root

MOST_SPLITS = 20


@click.command("success", context_settings=CONTEXT)
@click.argument("database", type=FILE)
@click.argument("run", required=False)
@click.option("--rule", help="The new rule, for example 'reward >= 0.5'. Without it: show the rules.")
def command(database: Path, run: str | None, rule: str | None) -> None:
    """Show or change what counts as a success. RUN is a run's name, its beginning or number; without it every run.

    A trajectory is a success when the recorded value at the rule's path is at least its threshold, and unscored when it
    has none; both are counted for each split. --rule without RUN changes every run at once. Changing the rule
    recomputes success, prompt groups and steps in DATABASE; no run's file is read. A rule that scores nothing is
    refused, with the recorded numbers that are like it.

    \b
    Examples:
      rltracer success run.sqlite
      rltracer success run.sqlite my-run --rule 'reward >= 0.5'
    """
    from contextlib import closing

    from ..index.database import open_index
    from ..unscored import scores_nothing

    refuse_swapped("rltracer success", database, [run] if run else [])
    parsed = parse_option(rule, "--rule") if rule else None
    with closing(open_index(database)) as connection:
        ids = [run_id for run_id, _ in chosen_runs(connection, run, database)]
        if parsed and (sentence := scores_nothing(connection, ids, parsed)):
            raise click.ClickException(printable(sentence))  # such a rule would leave everything unscored
    if parsed:
        _change(database, ids, parsed)
    with closing(open_index(database)) as connection:
        for run_id in ids:
            say(_state(connection, run_id))
        say_amiss(connection, database, ids)


def parse_option(text: str, option: str) -> SuccessRule:
    """Return the rule that an option means. Raises BadParameter."""
    from ..passrates import SuccessRuleError, parse_rule

    try:
        return parse_rule(text)
    except SuccessRuleError as error:
        raise click.BadParameter(printable(f"{error}."), param_hint=option) from None


def _change(database: Path, run_ids: list[int], rule: SuccessRule) -> None:
    from ..index.database import BUSY_SECONDS, finish_writing, open_for_writing
    from ..index.lock import WriterLock
    from ..index.runs import set_success

    with WriterLock(database, "changing the success rule", wait=BUSY_SECONDS):
        connection = open_for_writing(database)
        try:
            for run_id in run_ids:
                set_success(connection, run_id, rule.path, rule.threshold)
        finally:
            finish_writing(connection)


def chosen_runs(connection: sqlite3.Connection, run: str | None, index: Root) -> list[tuple[int, str]]:
    """Return (id, name) of the run of this name or number, or of every run. Raises WhichRunError for none."""
    from ..index.named import named_runs, which_run
    from ..index.queries import runs
    from ..runs import WhichRunError

    known = runs(connection)
    if not known:
        raise WhichRunError(f"The index {index} holds no run yet.")
    if not (found := named_runs(known, run)):
        raise WhichRunError(which_run(known, run, index))
    return [(one.id, one.name) for one in found]


def _state(connection: sqlite3.Connection, run_id: int) -> str:
    """Return the rule of a run and what it scores of each split, train first; in one line where there is one split."""
    name, path, threshold = connection.execute(
        "select name, success_path, success_threshold from runs where id = ?", (run_id,)
    ).fetchone()
    splits = connection.execute(
        """
        select split, total(trajectories), total(scored), total(successes) from prompt_groups where run_id = ?
        group by split order by split is not 'train', split
        """,
        (run_id,),
    ).fetchall()
    rule = f"{in_line(name)}: {path} >= {threshold:g}"
    told = [f"{split or 'no split'}: {_counts(*counts)}" for split, *counts in splits]
    if len(told) > MOST_SPLITS:
        told = [*told[:MOST_SPLITS], f"and {plural(len(told) - MOST_SPLITS, 'more split')}"]
    if len(told) > 1:
        return "\n  ".join([f"{rule}:", *told])
    return f"{rule}: {told[0] if told else 'no trajectory'}"


def _counts(trajectories: float, scored: float, successes: float) -> str:
    rate = f", pass rate {successes / scored:.3f}" if scored else ""
    scores = f"{plural(int(successes), 'success')} of {scored:,.0f} scored{rate}"
    return f"{scores}; {trajectories - scored:,.0f} unscored"
