"""The options of `rltracer export` as the runs and the preferences of the library."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from .ids import IdLines
from .numbers import parse_range
from .places import check_run

if TYPE_CHECKING:
    from ..export.preferences import ExportPreferences
    from ..export.runs import TraceRunSpec
    from ..sources.places import Root


def run_specs(paths: tuple[Root, ...], options: dict[str, Any]) -> list[TraceRunSpec]:
    """Return the runs that are asked for; what is said of them is taken out of the options. Raises WhichRunError."""
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


def preferences(options: dict[str, Any]) -> ExportPreferences:
    """Return the preferences that the other options are. Raises ExportError and BadParameter."""
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
