"""`rltracer success`: show or change what counts as a success in a run that is indexed."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from ..amounts import plural
from ..unrecorded import NOT_RECORDED
from . import CONTEXT
from .amiss import say_amiss
from .chosen_runs import chosen_runs
from .columns import screen_width, width_of
from .places import FILE, refuse_swapped
from .report import name_of, writes_to_terminal
from .say import say
from .visible import in_line, json_line, printable

if TYPE_CHECKING:
    from ..passrates import SuccessRule
    from ..reward_parts import RewardParts

MOST_SPLITS = 20


@click.command("success", context_settings=CONTEXT)
@click.argument("database", type=FILE)
@click.argument("run", required=False)
@click.option("--rule", help="The new rule, for example 'reward >= 0.5'. Without it: show the rules.")
@click.option("--default", "to_default", is_flag=True, help="Bring the rule back that a run has when none is set.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, one split of a run a line.")
def command(database: Path, run: str | None, rule: str | None, to_default: bool, as_json: bool) -> None:
    """Show or change what counts as a success. RUN is a run's name, its beginning or number; without it every run.

    A trajectory is a success when the recorded value at the rule's path is at least its threshold, and unscored when it
    has none; both are counted for each split. --rule without RUN changes every run at once. Changing the rule
    recomputes success, prompt groups and steps in DATABASE; no run's file is read. A rule that scores nothing is
    refused, with the recorded numbers that are like it. --default sets metrics.correct_final_label >= 1 where a record
    of the run has it, else reward >= 1.

    --json has run_id, run, success (the rule), success_path, success_threshold, success_chosen (false for the default),
    reward_parts (the rewards that the rule is on, where these are several), split, trajectories, scored, successes and
    pass_rate.

    \b
    Examples:
      rltracer success run.sqlite
      rltracer success run.sqlite my-run --rule 'reward >= 0.5'
      rltracer success run.sqlite my-run --default
    """
    from contextlib import closing

    from ..index.database import open_index
    from ..unscored import scores_nothing

    if rule and to_default:
        raise click.UsageError("--rule and --default ask for different things: give one of them.")
    refuse_swapped("rltracer success", database, [run] if run else [])
    if run is not None and ">=" in run:
        raise click.UsageError(printable(f"A rule is given by --rule {quote(run)}; RUN is the name of a run."))
    parsed = parse_option(rule, "--rule") if rule else None
    with closing(open_index(database)) as connection:
        ids = [run_id for run_id, _ in chosen_runs(connection, run, database)]
        if parsed and (sentence := scores_nothing(connection, ids, parsed)):
            raise click.ClickException(printable(sentence))  # such a rule would leave everything unscored
    if parsed or to_default:
        _change(database, ids, parsed)
    with closing(open_index(database)) as connection:
        alone = {run_id: rule for run_id in ids if (rule := _show(connection, run_id, as_json))}
        if alone:
            run_id, one = next(iter(alone.items()))
            how = f"  rltracer success {quote(str(database))} {quote(name_of(connection, run_id))} --rule {quote(one)}"
            say(f"By one of these rewards alone, as in:\n{in_line(how)}", err=as_json)
        if parsed:
            of_run = "" if run is None else f" {quote(run)}"
            how = f"The default rule comes back with:\n  rltracer success {quote(str(database))}{of_run} --default"
            say(how, err=as_json)
        say_amiss(connection, database, ids)


def parse_option(text: str, option: str) -> SuccessRule:
    """Return the rule that an option means. Raises BadParameter."""
    from ..passrates import SuccessRuleError, parse_rule

    try:
        return parse_rule(text)
    except SuccessRuleError as error:
        raise click.BadParameter(printable(f"{error}."), param_hint=option) from None


def _change(database: Path, run_ids: list[int], rule: SuccessRule | None) -> None:
    """Set the rule of some runs; None: to the default of each."""
    from ..index.database import BUSY_SECONDS, finish_writing, open_for_writing
    from ..index.lock import WriterLock
    from ..index.runs import set_default_success, set_success

    with WriterLock(database, "changing the success rule", wait=BUSY_SECONDS):
        connection = open_for_writing(database)
        try:
            for run_id in run_ids:
                if rule is None:
                    set_default_success(connection, run_id)
                else:
                    set_success(connection, run_id, rule.path, rule.threshold)
        finally:
            finish_writing(connection)


def _show(connection: sqlite3.Connection, run_id: int, as_json: bool) -> str | None:
    """Print the rule of a run and what it scores of each split, train first.

    Return the rule on one of the rewards alone, where it is on several and nobody has chosen it.
    """
    from ..index.success import rule_and_splits
    from ..passrates import SuccessRule
    from ..reward_parts import one_of, reward_parts

    rule, splits = rule_and_splits(connection, run_id)
    parts = reward_parts(connection, run_id, rule["success_path"])
    if not as_json:
        say(_state(rule, splits, parts))
    for split in splits if as_json else ():
        click.echo(json_line({**rule, "reward_parts": parts and parts.paths, **split}))
    if parts is None or rule["success_chosen"]:
        return None
    return one_of(parts, SuccessRule(rule["success_path"], rule["success_threshold"]))


def _state(rule: dict[str, Any], splits: list[dict[str, Any]], parts: RewardParts | None) -> str:
    """Return the rule of a run and what it scores of each split, of one split in a line if it fits."""
    from ..reward_parts import rule_in_words

    said = in_line(f"{rule['run']}: {rule_in_words(rule['success'], parts)}")
    told = [f"{one['split'] or f'split {NOT_RECORDED}'}: {_counts(one)}" for one in splits if one["trajectories"]]
    if len(told) > MOST_SPLITS:
        told = [*told[:MOST_SPLITS], f"and {plural(len(told) - MOST_SPLITS, 'more split')}"]
    line = f"{said}: {told[0] if told else 'no trajectory'}"
    is_too_long = writes_to_terminal() and width_of(line) > screen_width()
    return "\n  ".join([f"{said}:", *told]) if len(told) > 1 or (told and is_too_long) else line


def _counts(split: dict[str, Any]) -> str:
    rate = f", pass rate {split['pass_rate']:.3f}" if split["scored"] else ""
    scores = f"{plural(split['successes'], 'success')} of {split['scored']:,} scored{rate}"
    return f"{scores}; {split['trajectories'] - split['scored']:,} unscored"
