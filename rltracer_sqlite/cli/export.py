"""`rltracer export`: training data out of runs or indexes."""

from __future__ import annotations

import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any

import click

from . import CONTEXT, options
from .export_options import preferences, run_specs
from .export_words import funnel_of_too_few, in_options, say_amiss_of_runs, say_row_notes, say_written, told_as
from .funnel import funnel_report, progress_line
from .ids import IdFile
from .places import FILE, OUTPUT, RUN
from .progress import refuse_both
from .say import say
from .visible import printable

if TYPE_CHECKING:
    from ..export.exporter import TraceDataExporter
    from ..export.runs import TraceRunSpec
    from ..sources.places import Root

WRITTEN = (".jsonl", ".gz", ".zst", ".parquet")  # how the names of files of rows end
OTHER_RULE = (
    "What has passed is by the success rule of its run: rltracer success DB RUN --rule 'reward >= 1' changes it."
)


def refuse_rule(context: click.Context, option: click.Parameter, rule: str | None) -> None:
    """Say where the rule is set: --success is an option of rltracer-index, and looked for here too."""
    if rule is not None:
        raise click.UsageError(OTHER_RULE)


@click.command(context_settings=CONTEXT)
@click.argument("runs", nargs=-1, required=True, type=RUN, metavar="DB|RUN...")
@click.option(
    "-o",
    "--output",
    type=OUTPUT,
    help="The file: .jsonl, .jsonl.gz, .jsonl.zst or .parquet, in a folder that is there.",
)
@click.option(
    "--dry-run",
    is_flag=True,
    help="Print what each filter drops, and write nothing; what rows hold is told when they are written.",
)
@click.option(
    "--mode",
    type=click.Choice(["sft", "rl", "preference"]),
    default="sft",
    show_default=True,
    help="Conversations, prompts, or pairs: two rollouts of a prompt, of any two steps of a window.",
)
@options.outcome(
    "--acceptance",
    "passed",
    "failed",
    "any",
    default="passed",
    help="Outcomes to accept, by the run's success rule; of a pair, of the chosen one.",
)
@options.outcome(
    "--rejected",
    "passed",
    "failed",
    "any",
    name="rejected_outcome",
    default="any",
    help="preference: outcomes to accept of the rejected one of a pair.",
)
@click.option(
    "--run",
    "names",
    multiple=True,
    metavar="NAME",
    help="A run of the database, by name, its beginning or number; repeatable. Default: all.",
)
@click.option(
    "--ids",
    type=IdFile(),
    metavar="FILE",
    help="Only these: a file with an id or recorded id a line, - for stdin. All else still holds; --acceptance any "
    "--per-prompt all takes every one.",
)
@click.option("--steps", metavar="N-M", help="An inclusive range of steps: 1-100, 21 or 40-.")
@click.option("--split", type=click.Choice(["train", "eval", "any"]), default="train", show_default=True)
@click.option(
    "--window", "window_size", type=int, metavar="N", help="Pass rates per N steps. Default: over all of them."
)
@click.option("--min-pass-rate", type=float, help="Smallest pass rate of a prompt in its window.")
@click.option("--max-pass-rate", type=float, help="Largest pass rate of a prompt in its window.")
@click.option("--min-difficulty", type=float, help="The same as --min-pass-rate: difficulty is the pass rate.")
@click.option("--max-difficulty", type=float, help="The same as --max-pass-rate.")
@click.option(
    "--field",
    "fields",
    multiple=True,
    metavar="PATH<=VALUE",
    help="Keep by a recorded value: 'metrics.num_turns<=8', 'env=math,code'; PATH?<=8 keeps missing ones too, "
    "'PATH=not recorded' only those.",
)
@click.option(
    "--env",
    "envs",
    multiple=True,
    metavar="NAME",
    help="Only this environment, as --field env=NAME has it; repeatable. 'not recorded': what has none.",
)
@click.option("--per-prompt", default="2", show_default=True, metavar="N", help="Rows per prompt and window, or all.")
@click.option("--global-per-prompt", type=int, metavar="N", help="Rows per prompt over all runs and windows.")
@click.option("--unique-prompts", is_flag=True, help="At most one row per prompt over all runs and windows.")
@click.option(
    "--target",
    "target_count",
    type=int,
    metavar="N",
    help="Exactly N trajectories, or pairs, spread evenly over prompts. One of several branches is a row for each, or "
    "one with --last-branch.",
)
@click.option(
    "--order",
    type=click.Choice(["sample", "shortest"]),
    default="sample",
    show_default=True,
    help="What a prompt's quota takes first: a seeded draw, or the fewest completion tokens.",
)
@click.option(
    "--tool-call-power",
    "tool_call_sampling_power",
    type=float,
    default=0.0,
    metavar="P",
    help="Weigh the draw by tool calls ** P.",
)
@click.option("--seed", type=int, default=17, show_default=True)
@click.option(
    "--effective-only", is_flag=True, help="Only what was part of a training batch, or kept by its evaluation."
)
@click.option(
    "--no-truncated", "drop_truncated", is_flag=True, help="Drop what a limit cut off; keep what does not record it."
)
@click.option("--keep-errors", "keep_generation_errors", is_flag=True, help="Keep what an error ended.")
@click.option("--no-scoring-errors", "drop_scoring_errors", is_flag=True, help="Drop what could not be scored.")
@click.option(
    "--margin",
    "reward_margin",
    type=float,
    default=0.0,
    metavar="X",
    help="preference: least difference of the two rewards.",
)
@click.option("--rl-data", "rl_data_path", type=FILE, help="rl: the file that task.data.idx counts in.")
@click.option("--rl-from-trace", is_flag=True, help="rl: take the prompts from the traces instead.")
@click.option("--provenance", "include_provenance", is_flag=True, help="Add trace_provenance to each row.")
@click.option("--raw-trace", "include_raw_trace", is_flag=True, help="Add the whole record to each row.")
@click.option("--no-tools", is_flag=True, help="Leave the tool definitions out.")
@click.option("--redact", is_flag=True, help="Replace keys, tokens and passwords of known shapes.")
@click.option(
    "--distinct", is_flag=True, help="Rows of the same content once; quotas and --target take others instead."
)
@click.option(
    "--last-branch", is_flag=True, help="sft: one row per trajectory, of its last branch; else one for each branch."
)
@click.option("--success", hidden=True, callback=refuse_rule, expose_value=False, help=OTHER_RULE)
@options.progress
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def command(
    runs: tuple[Root, ...], output: Path | None, dry_run: bool, progress: bool, quiet: bool, **options: Any
) -> None:
    """Write training data from indexed trajectories.

    DB is an index made by rltracer-index. RUN is a run's folder or URL; it is indexed into your cache folder first, the
    asked steps only. What has passed is by the success rule of its run, which rltracer success shows and changes.

    \b
    Examples:
      rltracer export run.sqlite -o passed.jsonl --min-pass-rate 0.25 \\
        --max-pass-rate 0.75
      rltracer export run.sqlite --mode rl --acceptance any \\
        --rl-data train.jsonl -o prompts.jsonl
      rltracer export run.sqlite --mode preference --margin 0.5 -o pairs.parquet
      rltracer export run.sqlite --dry-run --field 'metrics.num_turns<=8'
      sqlite3 run.sqlite 'select id from trajectories where turns > 3' |
        rltracer export run.sqlite --ids - --acceptance any -o long.jsonl
    """
    refuse_both(quiet, progress)
    _refuse_unmeant(runs, output, dry_run, options)
    from ..export.exporter import TraceDataExporter
    from ..export.write import refuse_name

    with told_as(click.UsageError):
        if output is not None:
            refuse_name(output)
        specs = run_specs(runs, options)
        exporter = TraceDataExporter(specs, preferences(options), None if quiet else progress_line(progress))
    if dry_run:
        _dry_run(exporter, specs)
    else:
        assert output is not None
        _write(exporter, specs, output, quiet)


def _refuse_unmeant(runs: tuple[Root, ...], output: Path | None, dry_run: bool, options: dict[str, Any]) -> None:
    if options["ids"] is not None and len(runs) > 1:
        raise click.UsageError("--ids are those of one database or run: give one.")
    for option, is_given in (("margin", options["reward_margin"]), ("rejected", options["rejected_outcome"] != "any")):
        if options["mode"] != "preference" and is_given:
            raise click.UsageError(f"--{option} is of preference pairs: it goes with --mode preference.")
    if options["last_branch"] and options["mode"] != "sft":
        raise click.UsageError("--last-branch is of SFT rows: others hold one branch of a trajectory anyway.")
    if output is None and not dry_run:
        last = runs[-1]
        is_output = len(runs) > 1 and isinstance(last, Path) and last.suffix in WRITTEN and not last.exists()
        name = f" {quote(str(last))}" if is_output else ""
        raise click.UsageError(printable(f"Give a file with -o{name}, or --dry-run to see what would be selected."))


def _dry_run(exporter: TraceDataExporter, specs: list[TraceRunSpec]) -> None:
    with told_as(click.ClickException, specs), funnel_of_too_few():
        told = in_options(exporter.inspect())
    say(funnel_report(told))
    say_row_notes(told)
    say_amiss_of_runs(specs)
    sys.exit(0 if told["funnel"][0]["left"] else 1)  # no run has the steps or the split that are asked for


def _write(exporter: TraceDataExporter, specs: list[TraceRunSpec], output: Path, quiet: bool) -> None:
    is_replaced = output.exists()
    with told_as(click.ClickException, specs):
        result = exporter.write(output, allow_empty=False)
    if not quiet:
        told = in_options(result.summary)
        say_written(result, told, is_replaced)
        say_row_notes(told)
        say_amiss_of_runs(specs)
