"""What `rltracer inspect` is asked to show, where its options ask for one thing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from ..scores import MOST_RANKED
from ..unrecorded import NOT_RECORDED
from .numbers import UNNUMBERED, parse_range
from .places import RUN
from .visible import printable

if TYPE_CHECKING:
    from ..index.among import Among
    from ..sources.places import Root

NOT_NARROWED = ("trajectory", "problems")  # by a split or an environment
LISTS = ("hardest", "easiest", *NOT_NARROWED)  # of all prompts


@dataclass(frozen=True)
class Inspection:
    """One list, or one trajectory or two, of a run, or of an index of several runs."""

    place: Root
    run: str | None  # by its name or number
    among: Among
    step: int | None
    is_of_step: bool  # a step is asked for; without a number that is what has none
    prompt: str | None
    most: int | None  # of the prompts in the order of their pass rates, or UNNUMBERED; None: they are not asked for
    is_easiest: bool
    trajectory: str | None
    other: str | None  # the trajectory beside it
    branch: int | None
    tokenizer: str | None
    problems: bool
    is_full: bool
    as_json: bool

    @property
    def lists_runs(self) -> bool:
        """Whether of an index of several runs these are asked for, and not one of them."""
        chosen = (self.run, self.prompt, self.most, self.trajectory)
        return chosen == (None,) * 4 and not self.is_of_step and not self.among.is_of_steps and not self.problems


def asked_to_show(place: Root | None, options: dict[str, Any]) -> Inspection:
    """Return what the arguments of the command ask for. Raises UsageError where they ask for several things."""
    _refuse_both(options)
    place, most = _place_and_most(place, options["hardest"], options["easiest"])
    place, run = _place_and_run(place, options["run"], options["name"])
    step = options["step"]
    same = ("prompt", "trajectory", "other", "branch", "tokenizer", "problems", "is_full", "as_json")
    return Inspection(
        place,
        run,
        _among(options),
        step=None if step == NOT_RECORDED else step,
        is_of_step=step is not None,
        most=most,
        is_easiest=options["easiest"] is not None,
        **{name: options[name] for name in same},
    )


def _among(options: dict[str, Any]) -> Among:
    """Return what a list is narrowed to: the prompts in the order of their pass rates also to a step."""
    from ..index.among import Among

    step, is_ranked = options["step"], (options["hardest"], options["easiest"]) != (None, None)
    if step is None or not is_ranked:
        first, last = parse_range(options["steps"])
    else:
        first = last = None if step == NOT_RECORDED else step
    is_without_step = is_ranked and step == NOT_RECORDED
    return Among(options["split"], options["env"], first=first, last=last, is_without_step=is_without_step)


def _refuse_both(options: dict[str, Any]) -> None:
    """Raise UsageError for options that ask for different things, or that go with one which is not given."""
    narrowing = {**dict.fromkeys(("step", "split", "env"), NOT_NARROWED), "steps": ("step", *NOT_NARROWED)}
    for narrower, lists in {"prompt": LISTS, **narrowing}.items():
        given = [f"--{name}" for name in (narrower, *lists) if options[name] not in (None, False)]
        if len(given) > 1:
            raise click.UsageError(f"{' and '.join(given)} ask for different things: give one of them.")
    if options["other"] is not None and (options["trajectory"] is None or options["branch"] is not None):
        raise click.UsageError("--with takes --trajectory, and no --branch: the last branches are compared.")
    if options["branch"] is not None and options["trajectory"] is None:
        raise click.UsageError("--branch is one of a trajectory: it goes with --trajectory.")


def _place_and_most(
    place: Root | None, hardest: int | str | None, easiest: int | str | None
) -> tuple[Root | None, int | None]:
    """Return where to look and how many prompts to list: what stands after --hardest may be the index, not a number."""
    after = easiest if hardest is None else hardest
    if not isinstance(after, str):
        return place, after
    if place is not None:
        how = f"rltracer inspect run.sqlite --hardest {MOST_RANKED}"
        raise click.UsageError(printable(f"--hardest and --easiest take a whole number, not {after!r}: {how}"))
    return RUN.convert(after, None, click.get_current_context()), UNNUMBERED


def _place_and_run(place: Root | None, run: str | None, name: str | None) -> tuple[Root, str | None]:
    """Return where to look and which run: --run is a name beside an index, and a place of its own without one."""
    if place is None and run is not None:
        return RUN.convert(run, None, click.get_current_context()), name
    if place is None:
        raise click.UsageError("Give one index or run: rltracer inspect run.sqlite")
    if run is not None and name is not None:
        raise click.UsageError("--run and --name say the same: give one of them.")
    return place, name if run is None else run
