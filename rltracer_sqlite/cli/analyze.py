"""`rltracer analyze`: pass rates of prompts in windows of steps, as CSV, JSON and a report."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..unrecorded import NOT_RECORDED
from . import CONTEXT, options
from .amiss import amiss_lines
from .numbers import LARGEST, From, refuse_backwards
from .places import OUTPUT_FOLDER, RUN, TOKENIZER, check_run, refuse_output
from .say import say
from .visible import json_line, printable

if TYPE_CHECKING:
    from ..analysis import RunAnalysis, Selection
    from ..sources.places import Root


@click.command("analyze", context_settings=CONTEXT)
@click.argument("paths", nargs=-1, required=True, type=RUN, metavar="DB|RUN...")
@click.option(
    "-o",
    "--output",
    type=OUTPUT_FOLDER,
    help="The folder to write to, made where only it is missing; an earlier analysis is replaced. Default: analysis, "
    "or with --json none.",
)
@options.one_run("Only this run of an index; default: all of them.")
@click.option("--window", type=From(0), default=40, help="Steps per window; 0: all in one. Default: 40.")
@click.option("--k", "ks", default="1,4,8", help="The k of pass@k, separated by commas. Default: 1,4,8.")
@click.option("--success", metavar="RULE", help="Another rule for this analysis, for example 'reward >= 0.5'.")
@options.split
@options.env
@click.option("--step-start", type=From(0), help="From this step on; the first window begins here.")
@click.option("--step-end", type=From(0), help="Up to this step.")
@click.option(
    "--tokenizer", metavar="PATH", type=TOKENIZER, help="A tokenizer.json, for a RUN whose files hold token ids."
)
@click.option("--json", "as_json", is_flag=True, help="Print what analysis.json holds as JSON, in one line.")
def command(
    paths: tuple[Root, ...],
    output: Path | None,
    run: str | None,
    window: int,
    ks: str,
    success: str | None,
    split: str | None,
    env: str | None,
    step_start: int | None,
    step_end: int | None,
    tokenizer: str | None,
    as_json: bool,
) -> None:
    """Report the pass rate of each prompt, and which prompts moved, in windows of steps.

    Give an index (DB), or a run's folder (RUN), which is indexed into the user's cache first. The folder gets
    prompts.csv and prompts.json (a row per prompt and window), windows.csv (a row per window), unscored.csv,
    analysis.json and report.md. analysis.json, and --json, has selection, runs (each with its success rule and how
    many are scored), windows (the rows of windows.csv) and histograms (of pass rates and pass@k in each window).

    \b
    Examples:
      rltracer analyze run.sqlite --split train --window 40 --k 1,4
      rltracer analyze run.sqlite --window 0 --json
      rltracer analyze /data/run-a /data/run-b --success 'reward >= 0.5' \\
        -o compared
    """
    from ..analysis import Selection
    from .success import parse_option

    if output is None and not as_json:
        refuse_output(output := Path("analysis"), is_folder=True)
    sizes = parse_ks(ks)
    refuse_backwards(step_start, step_end)
    rule = parse_option(success, "--success") if success else None
    selection = Selection(window or None, split, env, step_start, step_end, rule)
    runs, amiss = _analyse_all(paths, run, selection, sizes, tokenizer)
    written = None if output is None else _write(output, selection, sizes, runs)
    _print(selection, sizes, runs, as_json)
    if written is not None:
        say(written, err=as_json)
    for line in amiss:
        say(line, err=True)


def _print(selection: Selection, ks: list[int], runs: list[RunAnalysis], as_json: bool) -> None:
    from ..analysis import whole_analysis

    if as_json:
        click.echo(json_line(whole_analysis(selection, ks, runs)))
        return
    for analysis in runs:
        say(_summary(analysis))


def _write(output: Path, selection: Selection, ks: list[int], runs: list[RunAnalysis]) -> str:
    """Write an analysis to a folder, and return the sentence that says so."""
    from ..analysis import write_analysis

    is_replaced = (output / "analysis.json").exists()
    try:
        write_analysis(output, selection, ks, runs)
    except OSError as error:
        raise click.ClickException(printable(f"{output} cannot be written: {error.strerror}.")) from None
    where = f"{output} in place of an earlier analysis" if is_replaced else str(output)
    return f"Written to {where}: report.md, prompts.csv, windows.csv and more"


def parse_ks(text: str) -> list[int]:
    """Return the whole numbers of '1,4,8', in order and each once. Raises BadParameter."""
    try:
        sizes = sorted({int(part) for part in text.split(",")})
    except ValueError:
        sizes = []
    if not sizes or sizes[0] < 1 or sizes[-1] > LARGEST:
        raise click.BadParameter(f"{text!r} is no list of whole numbers from 1 on, such as 1,4,8.", param_hint="--k")
    return sizes


def _analyse_all(
    paths: Sequence[Root], run: str | None, selection: Selection, ks: list[int], tokenizer: str | None
) -> tuple[list[RunAnalysis], list[str]]:
    """Return the analyses of the runs of some indexes or runs, and what of them was not read."""
    from ..passrates import SuccessRuleError

    analyses, amiss = [], []
    try:
        for path in paths:
            found, lines = _analyse(path, run, selection, ks, tokenizer)
            analyses += found
            amiss += lines
    except SuccessRuleError as error:
        raise click.ClickException(printable(f"{error}.")) from None
    return analyses, amiss


def _analyse(
    path: Root, run: str | None, selection: Selection, ks: list[int], tokenizer: str | None
) -> tuple[list[RunAnalysis], list[str]]:
    """Return the analyses of the runs of an index, or of a run, and what of them was not read."""
    from ..analysis import analyse_run
    from .chosen_runs import chosen_runs

    connection, indexed = _open(path, tokenizer)
    try:
        ids = [indexed] if indexed is not None else [run_id for run_id, _ in chosen_runs(connection, run, path)]
        _refuse_nothing(connection, ids, selection)
        analyses = [analyse_run(connection, run_id, selection, ks) for run_id in ids]
        return analyses, amiss_lines(connection, path, ids)
    finally:
        connection.close()


def _refuse_nothing(connection: sqlite3.Connection, ids: list[int], selection: Selection) -> None:
    """Say which runs have nothing of what is to be analysed; raise ClickException where none has."""
    from ..index.contents import lacking

    asked: dict[str, Any] = {"split": selection.split, "env": selection.env}
    asked |= {"first": selection.step_start, "last": selection.step_end}
    missing, sentence = lacking(connection, ids, **asked)
    if missing and len(missing) == len(ids):
        raise click.ClickException(printable(sentence))
    if missing:
        say(sentence, err=True)


def _open(path: Root, tokenizer: str | None) -> tuple[sqlite3.Connection, int | None]:
    """Open an index, or bring the index of a run's folder up to date and open it; return its run's id in this case."""
    from ..index.database import open_index
    from ..sources.places import is_database

    if isinstance(path, Path) and is_database(path):
        return open_index(path), None
    from ..on_demand import brought_up_to_date, cached_index
    from ..sources import source_for
    from .report import warn_of_misfits

    check_run(path)
    source, index = source_for(path, tokenizer), cached_index(path.absolute())
    with brought_up_to_date(index, source, path, "reading a run for an analysis") as (_, done):
        warn_of_misfits(done)
    return open_index(index), done.run_id


def _summary(analysis: RunAnalysis) -> str:
    from ..amounts import plural
    from ..analysis.runs import count_scored

    counts = count_scored(analysis)
    unscored = f", {counts['unscored']:,} without a value" if counts["unscored"] else ""
    windows = plural(len({window.window for window in analysis.windows}), "window")
    splits = {window.split or NOT_RECORDED for window in analysis.windows}
    apart = f" ({', '.join(sorted(splits))})" if len(splits) > 1 else ""
    return (
        f"{analysis.run}: {analysis.rule}; {plural(counts['scored'], 'scored trajectory')}{unscored}; "
        f"{plural(len(analysis.metrics), 'row')} of prompts in {windows} of steps{apart}"
    )
