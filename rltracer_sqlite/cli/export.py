"""`rltracer export`: training data out of runs or indexes."""

from __future__ import annotations

import re
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ..amounts import listed, plural
from . import CONTEXT, options
from .amiss import say_amiss
from .columns import cut
from .ids import IdFile, IdLines
from .numbers import parse_range
from .places import FILE, OUTPUT, RUN, check_run
from .say import say
from .visible import in_line, printable

if TYPE_CHECKING:
    from ..export.preferences import ExportPreferences
    from ..export.runs import Progress, TraceRunSpec
    from ..sources.places import Root

LONGEST_NAME = 30  # columns of the name of a run
MOST_COLUMNS = 400  # of runs with their numbers of rows
WIDEST_STAGE = 56  # columns of a funnel that fits a terminal of 80


@click.command(context_settings=CONTEXT)
@click.argument("runs", nargs=-1, required=True, type=RUN, metavar="DB|RUN...")
@click.option(
    "-o",
    "--output",
    type=OUTPUT,
    help="The file: .jsonl, .jsonl.gz, .jsonl.zst or .parquet, in a folder that is there.",
)
@click.option("--dry-run", is_flag=True, help="Print what each filter drops, and write nothing.")
@click.option(
    "--mode",
    type=click.Choice(["sft", "rl", "preference"]),
    default="sft",
    show_default=True,
    help="Conversations, prompts, or pairs: two rollouts of a prompt, of any two steps of a window.",
)
@options.outcome(
    "--acceptance", "passed", "failed", "any", default="passed", help="Outcomes to accept, by the run's success rule."
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
    help="Keep by a recorded value: 'metrics.num_turns<=8', 'env=math,code'; PATH?<=8 keeps missing ones too.",
)
@click.option(
    "--env",
    "envs",
    multiple=True,
    metavar="NAME",
    help="Only this environment, as --field env=NAME has it; repeatable.",
)
@click.option("--per-prompt", default="2", show_default=True, metavar="N", help="Rows per prompt and window, or all.")
@click.option("--global-per-prompt", type=int, metavar="N", help="Rows per prompt over all runs and windows.")
@click.option("--unique-prompts", is_flag=True, help="At most one row per prompt over all runs and windows.")
@click.option("--target", "target_count", type=int, metavar="N", help="Exactly N, spread evenly over prompts.")
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
@click.option("--effective-only", is_flag=True, help="Only what was part of a training batch.")
@click.option("--no-truncated", "drop_truncated", is_flag=True, help="Drop what a limit cut off.")
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
@click.option("--distinct", is_flag=True, help="Leave out rows of the same content as one before.")
@click.option("--quiet", is_flag=True, help="Print nothing but errors.")
def command(runs: tuple[Root, ...], output: Path | None, dry_run: bool, quiet: bool, **options: Any) -> None:
    """Write training data from indexed trajectories.

    DB is an index made by rltracer-index. RUN is a run's folder or URL; it is indexed into your cache folder first, the
    asked steps only.

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
    if options["ids"] is not None and len(runs) > 1:
        raise click.UsageError("--ids are those of one database or run: give one.")
    if options["mode"] != "preference" and options["reward_margin"]:
        raise click.UsageError("--margin is of preference pairs: it goes with --mode preference.")
    if output is None and not dry_run:
        raise click.UsageError("Give a file with -o, or --dry-run to see what would be selected.")
    from ..export.errors import ExportError
    from ..export.exporter import TraceDataExporter
    from ..export.write import refuse_name

    try:
        if output is not None:
            refuse_name(output)
        specs = _specs(runs, options)
        exporter = TraceDataExporter(specs, _preferences(options), None if quiet else _progress())
    except ExportError as error:
        raise click.UsageError(printable(_with_options(str(error)))) from None
    try:
        if dry_run:
            told = exporter.inspect()
            say(report(told))
            _say_amiss(specs)
            sys.exit(0 if told["funnel"][0]["left"] else 1)  # no run has the steps or the split that are asked for
        assert output is not None
        is_replaced = output.exists()
        result = exporter.write(output, allow_empty=False)
    except ExportError as error:
        raise click.ClickException(printable(_with_options(str(error)))) from None
    finally:
        _clear_progress()
    if not quiet:
        say(report(result.summary))
        distinct = result.distinct_row_count
        repeated = f", {distinct:,} distinct," if distinct < result.row_count else ""
        written = f"Wrote {plural(result.row_count, 'row')}{repeated} to {output}"
        replaced = ", replaced" if is_replaced else ""
        say(f"{written}{replaced}; summary: {result.summary_path}")
        _say_amiss(specs)


def _say_amiss(specs: list[TraceRunSpec]) -> None:
    """Say what of the runs was not read, as every command does that shows figures of a run."""
    from ..index.database import open_index
    from ..index.queries import runs
    from ..on_demand import cached_index
    from ..sources.places import place

    asked: dict[Root, set[str | int | None]] = {}
    for spec in specs:
        asked.setdefault(place(spec.path), set()).add(spec.run)
    for path, names in asked.items():
        index = cached_index(path) if names == {None} else path  # of an index each run has a spec with its name
        with closing(open_index(Path(str(index)))) as connection:
            say_amiss(connection, path, {run.id for run in runs(connection) if names == {None} or run.name in names})


def _with_options(sentence: str) -> str:
    """Return a sentence of the library with its names of preferences as the options that set them here."""
    options = {param.name: param.opts[-1 if param.name == "output" else 0] for param in command.params}
    return re.sub(r"(?<![\w/.])[a-z]+(?:_[a-z]+)+(?![\w/])", lambda name: options.get(name[0], name[0]), sentence)


def _specs(paths: tuple[Root, ...], options: dict[str, Any]) -> list[TraceRunSpec]:
    from ..export.runs import TraceRunSpec, every_run, runs_of
    from ..index.named import named_runs, which_run
    from ..runs import WhichRunError
    from ..sources.places import is_database

    first, last = parse_range(options.pop("steps"))
    split, names, data = options.pop("split"), options.pop("names"), options.pop("rl_data_path")
    ids = options.pop("ids")
    asked = {"step_start": first, "step_end": last, "split": None if split == "any" else split, "rl_data_path": data}
    asked["ids"] = None if ids is None else IdLines(ids)
    specs, known, found = [], [], set[str]()
    for path in paths:
        if not isinstance(path, Path) or not is_database(path):
            check_run(path)
            specs.append(TraceRunSpec(path, **asked))
            continue
        held = runs_of(path)
        known += held
        meant = {name: named_runs(held, name) for name in names}
        found |= {name for name, chosen in meant.items() if chosen}
        chosen = {run.name for chosen in meant.values() for run in chosen}
        specs += [one for one in every_run(TraceRunSpec(path, **asked)) if not names or one.run in chosen]
    databases = ", ".join(map(str, paths))
    for name in names:
        if name not in found:
            raise WhichRunError(which_run(known, name, databases))
    if not specs:
        raise WhichRunError(f"{databases} holds no run.")
    return specs


def _preferences(options: dict[str, Any]) -> ExportPreferences:
    from ..export.filters import DifficultyFilter, FieldFilter, parse_field
    from ..export.preferences import ExportPreferences

    bounds = ("min_pass_rate", "max_pass_rate", "min_difficulty", "max_difficulty")
    difficulty = DifficultyFilter(**{name: options.pop(name) for name in bounds})
    filters = tuple(parse_field(text) for text in options.pop("fields"))
    if envs := options.pop("envs"):
        filters += (FieldFilter("env", allowed_values=envs),)
    per_prompt = options.pop("per_prompt")
    if per_prompt != "all" and not per_prompt.isdigit():
        raise click.BadParameter(f"{per_prompt!r} is no number, and not all.", param_hint="--per-prompt")
    return ExportPreferences(
        difficulty=difficulty,
        field_filters=filters,
        per_prompt=None if per_prompt == "all" else int(per_prompt),
        include_tools=not options.pop("no_tools"),
        **options,
    )


def report(told: dict[str, Any]) -> str:
    """Return the funnel of a summary for people."""
    unit = "pair" if told["unit"] == "pairs" else "trajectory"
    width = min(max(len(step["stage"]) for step in told["funnel"]), WIDEST_STAGE)
    lines = [f"{'':<{width}}  {'left':>10}  {'dropped':>10}"]
    for step in told["funnel"]:
        dropped = f"{step['dropped']:>10,}" if step["dropped"] else f"{'–':>10}"
        name = step["stage"]
        if len(name) > width:  # stands whole, on a line of its own
            lines.append(name)
            name = ""
        lines.append(f"{name:<{width}}  {step['left']:>10,}  {dropped}")
    counted = ", counted once per run and window" if len(told["windows"]) > 1 else ""
    lines.append(
        f"Selected {plural(told['selected_count'], unit)} of "
        f"{plural(told['eligible_prompt_groups'], 'eligible prompt')}{counted}."
    )
    if len(told["runs"]) > 1:
        lines.append(_by_run(told))
    lines += [note for note in told.get("notes", []) if note not in told.get("amiss", [])]
    lines += [f"Rejected {count:,}: {reason}." for reason, count in told.get("rejected", {}).items()]
    lines += [f"Redacted {count:,}: {kind}." for kind, count in told.get("redacted", {}).items()]
    if told.get("repeated_rows_left_out"):
        lines.append(f"Left out {plural(told['repeated_rows_left_out'], 'row')} of the same content as one before.")
    if told.get("rows_without_tool_definitions"):
        count = told["rows_without_tool_definitions"]
        lines.append(f"Note: {plural(count, 'row')} with calls of tools that the record does not define.")
    return "\n".join(lines)


def _by_run(told: dict[str, Any]) -> str:
    """Return a line with each run and its number of rows, or of what a dry run selects of it."""
    counted = "row_count" if "row_count" in told else "selected_count"
    names = [f"{cut(in_line(run['name']), LONGEST_NAME)} {run[counted]:,}" for run in told["runs"]]
    return f"{'Rows' if 'row_count' in told else 'Selected'} by run: {listed(names, MOST_COLUMNS)}."


def _progress() -> Progress | None:
    if not sys.stderr.isatty():
        return None

    def show(doing: str, done: int, total: int) -> None:
        if not total:
            click.echo(f"\r{doing}".ljust(79), err=True, nl=False)
        elif done % 100 == 0 or done == total:
            click.echo(f"\r{doing}: {done:,} of {total:,}"[:79].ljust(79), err=True, nl=False)

    return show


def _clear_progress() -> None:
    if sys.stderr.isatty():
        click.echo("\r" + " " * 79 + "\r", err=True, nl=False)
