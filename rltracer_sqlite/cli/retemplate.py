"""`rltracer retemplate`: SFT rows under another prompt."""

from __future__ import annotations

import json
from pathlib import Path

import click

from . import CONTEXT
from .places import FILE, OUTPUT, OUTPUTS
from .visible import printable


@click.command(context_settings=CONTEXT)
@click.argument("inputs", nargs=-1, required=True, type=FILE, metavar="INPUT...")
@click.option(
    "-o",
    "--output",
    "outputs",
    multiple=True,
    required=True,
    type=OUTPUTS,
    help="A file per input in the same order, or one folder for all; where it lies has to be there.",
)
@click.option("--template", required=True, type=FILE, help="The template of the new prompts.")
@click.option(
    "--source",
    "sources",
    multiple=True,
    required=True,
    nargs=2,
    type=FILE,
    metavar="PARQUET TEMPLATE",
    help="Source rows, and the template that their prompts were made with; repeatable.",
)
@click.option("--column", help="The Parquet column that holds the JSON of a row. Default: jrow_json.")
@click.option("--report", type=OUTPUT, help="Write the report to a file as well.")
def command(
    inputs: tuple[Path, ...],
    outputs: tuple[Path, ...],
    template: Path,
    sources: tuple[tuple[Path, Path], ...],
    column: str | None,
    report: Path | None,
) -> None:
    """Replace the prompts of exported SFT rows by those of another template.

    Each row's system and user messages are found again among the source rows, by rendering these with the old
    template, and rendered with the new one; everything from the first answer on stays, and tools become those of the
    new template. A prompt without a source row, or with several that differ, is an error, and nothing is written.

    \b
    Example:
      rltracer retemplate correct.jsonl -o new.jsonl --template new.json \\
        --source rows.parquet old.json
    """
    from ..export.errors import ExportError
    from ..export.write import replacing
    from ..retemplate import RetemplateError, TemplateSource, check_outputs, retemplate

    targets = _targets(inputs, outputs)
    try:
        check_outputs(inputs, targets)
    except (RetemplateError, ExportError) as error:
        raise click.UsageError(printable(str(error))) from None
    try:
        named = [TemplateSource(parquet, old, column) for parquet, old in sources]
        told = retemplate(inputs, targets, named, template)
        text = json.dumps(told, indent=2, ensure_ascii=False)
        if report is not None:
            with replacing(report) as file:
                file.write(f"{text}\n".encode("utf-8", "replace"))
    except (RetemplateError, ExportError) as error:
        raise click.ClickException(printable(str(error))) from None
    click.echo(printable(text))


def _targets(inputs: tuple[Path, ...], outputs: tuple[Path, ...]) -> list[Path]:
    if len(outputs) == 1 and (outputs[0].is_dir() or len(inputs) > 1):
        targets = [outputs[0] / path.name for path in inputs]
        if len(set(targets)) < len(targets):
            raise click.UsageError("Two inputs have the same name; give an output for each of them.")
        return targets
    return list(outputs)
