"""What an address asks of an export: which rows of a table are meant, and the preferences that stand beside them."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl

from datasette.utils.asgi import BadRequest, Request

from rltracer_sqlite.export import ExportError, ExportPreferences
from rltracer_sqlite.export.filters import DifficultyFilter, parse_field
from rltracer_sqlite.export.settings import renamed

from .filter_names import is_filter_of_datasette, is_meaningless, refuse_unknown_filters
from .selection import recorded

if TYPE_CHECKING:
    from datasette.app import Datasette

Read = TypeVar("Read")

TABLES = ("trajectories", "prompt_groups")
MODES = {"sft": "SFT conversations", "rl": "RL prompts", "preference": "preference pairs"}
SPLITS = ("train", "eval")

# An order of rows is left out because each page of a sorted table sorts all of it again.
ORDERS = {"_sort", "_sort_desc", "_sort_by_desc"}
Option = str | int | float | None
NUMBERS: dict[str, tuple[str, Callable[[str], Option]]] = {
    "_per_prompt": ("per_prompt", lambda text: None if text == "all" else int(text)),
    "_global_per_prompt": ("global_per_prompt", int),
    "_target": ("target_count", int),
    "_window": ("window_size", int),
    "_tool_call_power": ("tool_call_sampling_power", float),
    "_seed": ("seed", int),
    "_margin": ("reward_margin", float),
    "_acceptance": ("acceptance", str),
    "_rejected": ("rejected_outcome", str),
    "_order": ("order", str),
}
BOUNDS = {"_min_pass_rate": "min_pass_rate", "_max_pass_rate": "max_pass_rate"}
SWITCHES = {
    "_unique_prompts": "unique_prompts",
    "_effective_only": "effective_only",
    "_no_truncated": "drop_truncated",
    "_keep_errors": "keep_generation_errors",
    "_no_scoring_errors": "drop_scoring_errors",
    "_provenance": "include_provenance",
    "_redact": "redact",
    "_distinct": "distinct",
    "_last_branch": "last_branch",
}
# What the fields and the boxes of the form are called, by their names in its address.
LABELS = {
    "_acceptance": "outcome",
    "_rejected": "outcome of the rejected one of a pair",
    "_order": "taken first of a prompt",
    "_min_pass_rate": "pass rate from",
    "_max_pass_rate": "pass rate to",
    "_window": "steps per window",
    "_field": "recorded value",
    "_no_truncated": "without trajectories that a limit cut off",
    "_effective_only": "only what was part of a training batch, or kept by its evaluation",
    "_keep_errors": "also trajectories that ended with an error",
    "_no_scoring_errors": "without trajectories whose scoring failed",
    "_per_prompt": "per prompt and window",
    "_global_per_prompt": "per prompt over all windows",
    "_target": "trajectories, or pairs, in all",
    "_tool_call_power": "favour tool calls, to the power of",
    "_seed": "seed of what is random",
    "_margin": "least reward margin of a pair",
    "_unique_prompts": "each prompt at most once over all runs and windows",
    "_provenance": "where it comes from, as trace_provenance",
    "_no_tools": "without tool definitions",
    "_redact": "without keys, tokens and passwords of known shapes",
    "_distinct": "without rows of the same content",
    "_last_branch": "one SFT row per trajectory, of its last branch",
}
FIELDS = ("run_id", "env", "step__gte", "step__lte")  # filters that the form of the export page has fields for
OWN = {*NUMBERS, *BOUNDS, *SWITCHES, "_field", "_split", "_no_tools", "_preview"}
OFF = ("", "0", "off", "false")


# What sets a preference in an address, by its name in the library.
KEYS = {
    **{name: key for key, (name, _) in NUMBERS.items()},
    **{name: key for names in (BOUNDS, SWITCHES) for key, name in names.items()},
}


class Refused(BadRequest):
    """An export that the library refuses, in its words."""


def in_address_words(sentence: str) -> str:
    """Return a sentence of the library with its names of preferences as an address has them."""

    def called(name: str, value: str) -> str | None:
        if (key := KEYS.get(name)) is None:
            return None
        return f"{key}={value or 1}" if value or key in SWITCHES else key

    return renamed(sentence, called)


def in_form_words(sentence: str) -> str:
    """Return a sentence of the library with its names of preferences as the form calls what sets them."""

    def called(name: str, value: str) -> str | None:
        key = KEYS.get(name, "")
        if key not in LABELS:
            return None
        return f'{"the box " * (key in SWITCHES)}"{LABELS[key]}{": " * bool(value)}{value}"'

    key, _, value = sentence.partition("=")
    if key in LABELS:
        return f'"{LABELS[key]}": {value}'
    said = renamed(sentence, called).replace("the field filter ", f'a "{LABELS["_field"]}" ')
    return said.replace(". the box", ". The box")


def filters(request: Request) -> list[tuple[str, str]]:
    """Return the part of a query string that says which rows of a table are meant."""
    pairs = parse_qsl(request.query_string, keep_blank_values=True)
    others = ORDERS | OWN | {"_table"}
    meant = [pair for pair in pairs if pair[0] not in others and not is_meaningless(pair[0])]
    return [recorded(pair) for pair in meant if pair[1] or pair[0] not in FIELDS]  # a field that was left empty


def preferences(request: Request, mode: str) -> ExportPreferences:
    """Return what a query string asks for; by default every row of the table, each prompt once for RL.

    Raises BadRequest with a sentence.
    """
    args = request.args
    values: dict[str, Any] = {"acceptance": "any", "per_prompt": None}
    try:
        for key, (name, read) in NUMBERS.items():
            if text := (args.get(key) or "").strip():
                values[name] = _read(read, key, text)
        bounds = {name: _read(float, key, bound) for key, name in BOUNDS.items() if (bound := args.get(key))}
        values["difficulty"] = DifficultyFilter(**bounds)
        values["field_filters"] = tuple(parse_field(text) for text in args.getlist("_field") if text.strip())
        values |= {name: (args.get(key) or "") not in OFF for key, name in SWITCHES.items()}
        values["include_tools"] = (args.get("_no_tools") or "") in OFF
        return ExportPreferences(mode=mode, rl_from_trace=True, **values)
    except ExportError as error:
        raise Refused(str(error)) from None


async def refuse_unknown(datasette: Datasette, request: Request, database: str, table: str) -> None:
    """Raise BadRequest for a name in the address that is no option, and no filter of the table's rows."""
    sent = {name for name in request.args if is_filter_of_datasette(name)}
    columns = await datasette.databases[database].table_columns(table)
    refuse_unknown_filters(request, table, columns, {*ORDERS, *OWN, "_table", *sent})


def asked_split(request: Request) -> str | None:
    """Return the split that a query string asks for, None where that is any. Raises BadRequest for another."""
    asked = request.args.get("_split") or ""
    if asked in SPLITS:
        return asked
    if asked not in ("", "any"):
        raise BadRequest(f"_split={asked!r} is one of {', '.join(SPLITS)}, or any.")
    return None


def _read(read: Callable[[str], Read], key: str, text: str) -> Read:
    try:
        return read(text)
    except ValueError:
        or_all = ", and not all" if key == "_per_prompt" else ""
        raise ExportError(f"{key}={text!r} is no number{or_all}.") from None
