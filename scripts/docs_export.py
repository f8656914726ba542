"""What the documentation says of exports and can be read from the code: the options of the command line in Python."""

from __future__ import annotations

from dataclasses import fields

from rltracer_sqlite.cli.export import command
from rltracer_sqlite.export.filters import DifficultyFilter
from rltracer_sqlite.export.preferences import ExportPreferences
from rltracer_sqlite.export.runs import TraceRunSpec
from rltracer_sqlite.export.stages import FIELD, STAGES

# Options that are written otherwise in Python.
OTHERWISE = {
    "--steps": "`TraceRunSpec(step_start=N, step_end=M)`",
    "--split": "`TraceRunSpec(split=…)`; any is `None`",
    "--run": "`TraceRunSpec.from_index(path, run)`",
    "--field": "`field_filters=(FieldFilter(path, minimum, maximum, allowed_values),)`",
    "--env": '`field_filters=(FieldFilter("env", allowed_values=(…,)),)`',
    "--no-tools": "`include_tools=False`",
    "--dry-run": "`TraceDataExporter.inspect()`",
    "--ids": "`TraceRunSpec(ids=[…])`",
    "--progress": "`TraceDataExporter(runs, progress=…)`, a function",
    "-o": "`TraceDataExporter.write(path)`",
}


def stages() -> str:
    """Return a table of the lines of the funnel and what each keeps."""
    lines = [f"| {name} | {meaning} |" for name, meaning in STAGES.items()]
    return "\n".join(["| line | keeps, of what was left before |", "| --- | --- |", *lines, f"| `PATH<=8` | {FIELD} |"])


def names() -> str:
    """Return a table of the export's options and what each is in Python."""
    preferences = {one.name for one in fields(ExportPreferences)}
    bounds = {one.name for one in fields(DifficultyFilter)}
    specs = {one.name for one in fields(TraceRunSpec)}
    lines = ["| option | in Python |", "| --- | --- |"]
    for parameter in command.params:
        option, name = parameter.opts[0], str(parameter.name)
        if option in OTHERWISE:
            lines.append(f"| `{option}` | {OTHERWISE[option]} |")
        elif name in bounds:
            lines.append(f"| `{option}` | `difficulty=DifficultyFilter({name}=…)` |")
        elif name in preferences:
            lines.append(f"| `{option}` | `{name}` |")
        elif name in specs:
            lines.append(f"| `{option}` | `TraceRunSpec({name}=…)` |")
    return "\n".join(lines)
