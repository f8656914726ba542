"""What a person navigates: RLTracer › RolloutStep › PromptGroup › TrajectoryRef › Trajectory, and RLTracer › Prompt."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .amounts import listed, plural, ranges
from .arguments import shown, step_number, text, whole_number
from .groups import Prompt as Prompt
from .groups import PromptGroup as PromptGroup
from .groups import TrajectoryRef as TrajectoryRef
from .groups import place_words, step_words
from .reprs import short
from .scores import MOST_RANKED, Scores

if TYPE_CHECKING:
    from typing_extensions import Self

    from .adapter import Adapter

ADAPTER = ("list_steps", "ensure_step_indexed", "list_prompts", "list_trajectory_ids", "load_trajectory")
SHORT_KEY = 16  # characters of a key in a sentence
# What of a prompt is in which column of the lists of `inspect`.
PROMPT = {
    "number": "prompt_id",
    "key": "prompt",
    "count": "trajectories",
    **{name: name for name in ("preview", "split", "env", "steps", "scored", "successes", "rewarded", "reward_mean")},
}
PromptParser = Callable[[Sequence[Mapping[str, Any]]], str]


@dataclass(frozen=True)
class RolloutStep:
    """One training step; `number` is None for the trajectories of a run without steps.

    `scored`, `successes`, `pass_rate`, `rewarded` and `reward_mean` are what the index knows when it is asked, without
    reading a file: those of the split train, where the step has any of it, else of its first split by name, while
    `prompts()` has those of all splits. They are None for a step that has not been read yet, as its repr says, until
    `prompts()` reads it, and for an adapter without `step_scores`.
    """

    adapter: Adapter = field(repr=False)
    number: int | None
    prompt_parser: PromptParser | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        unread = ", not read yet" if self._is_unread() else ""
        return f"<RolloutStep: {step_words(self.number)} of {place_words(self.adapter)}{unread}>"

    @property
    def scored(self) -> int | None:
        """How many trajectories have a value that decides success by the run's rule."""
        return None if (known := self._scores()) is None else known.scored

    @property
    def successes(self) -> int | None:
        """How many of the scored trajectories are successes."""
        return None if (known := self._scores()) is None else known.successes

    @property
    def pass_rate(self) -> float | None:
        """The share of successes among the scored trajectories; None where none is scored, or it is not known."""
        known = self._scores()
        return known.successes / known.scored if known and known.scored else None

    @property
    def rewarded(self) -> int | None:
        """How many trajectories have a reward, whether they are scored or not."""
        return None if (known := self._scores()) is None else known.rewarded

    @property
    def reward_mean(self) -> float | None:
        """The mean total reward of the trajectories that have one; None where none has, or it is not known."""
        return None if (known := self._scores()) is None else known.reward_mean

    def _is_unread(self) -> bool:
        """Whether the adapter knows what is read, and nothing of this step."""
        try:
            return hasattr(self.adapter, "step_scores") and self._scores() is None
        except Exception:  # whatever an adapter raises: an index that cannot be asked says why when it is used
            return False

    def _scores(self) -> Scores | None:
        ask = getattr(self.adapter, "step_scores", None)
        known = ask(self.number) if ask else None
        return None if known is None else Scores(*known)

    def prompts(self) -> list[PromptGroup]:
        """Return the prompt groups of the step, in the order of their first trajectories; [] where there is none.

        Reads what is new in this step's shards, and no others; of an index that was given, no file at all. Raises
        SourceError for a run and IndexFileError for an index that cannot be read.
        """
        self.adapter.ensure_step_indexed(self.number)  # type: ignore[arg-type]
        listed = self.adapter.list_prompts(self.number)  # type: ignore[arg-type]
        known = getattr(self.adapter, "prompt_scores", None)
        scores: Mapping[str, tuple[Any, ...]] = known(self.number) if known else {}
        return [
            PromptGroup(self.adapter, self.number, key, count, self._preview(key, preview), *scores.get(key, ()))
            for key, count, preview in listed
        ]

    def prompt(self, key: str) -> PromptGroup:
        """Return a prompt group by its key, or by an unambiguous beginning of it. Raises KeyError."""
        key, groups = text("key", key), self.prompts()
        found = [group for group in groups if group.key == key] or [
            group for group in groups if group.key.startswith(key)
        ]
        if len(found) != 1:
            raise KeyError(self._which(key, found or groups, bool(found)))
        return found[0]

    def trajectories(self) -> list[TrajectoryRef]:
        """Return references to all trajectories of the step, prompt group by prompt group. Decodes none.

        They are of all splits. Reads and raises what `prompts()` does.
        """
        self.adapter.ensure_step_indexed(self.number)  # type: ignore[arg-type]
        keys = [key for key, _, _ in self.adapter.list_prompts(self.number)]  # type: ignore[arg-type]
        found = (self.adapter.list_trajectory_ids(self.number, key) for key in keys)  # type: ignore[arg-type]
        return [TrajectoryRef(self.adapter, identity) for ids in found for identity in ids]

    def _which(self, key: str, groups: list[PromptGroup], is_beginning: bool) -> str:
        """Return the sentence for a key that means none of the prompts, or several: `groups` are those it could be."""
        named = listed(short(group.key[:SHORT_KEY]) for group in groups)
        if is_beginning:
            return f"{len(groups)} prompts of {step_words(self.number)} begin with {shown(key)}: {named}"
        count = plural(len(groups), "prompt")
        return f"no prompt of {step_words(self.number)} begins with {shown(key)}; it has {count}: {named}"

    def _preview(self, key: str, preview: str) -> str:
        if self.prompt_parser is None:
            return preview
        first = self.adapter.list_trajectory_ids(self.number, key)[0]  # type: ignore[arg-type]
        return self.prompt_parser(self.adapter.load_trajectory(first).prompt)


class RLTracer:
    """The entry point for one run, given by an adapter: any object with the five methods of `Adapter` will do.

    A path or a URL will do too: that of a run, which is recognised by its files, or of an index. Where the index holds
    several runs, `run` is the name or the id of one, as `list_runs` gives them; WhichRunError names them.
    `prompt_parser` makes the previews of prompts from their messages; it costs one record per prompt.
    `with RLTracer(...) as tracer:` or `close()` closes what the adapter has opened.
    """

    def __init__(
        self,
        adapter: Adapter | str | os.PathLike[str],
        prompt_parser: PromptParser | None = None,
        *,
        run: str | int | None = None,
    ) -> None:
        if isinstance(adapter, (str, os.PathLike)):
            from .adapter import adapter_for

            adapter = adapter_for(adapter, run)
        elif run is not None:
            raise TypeError("run chooses a run of an index, given by its path; an adapter is of one run already.")
        if isinstance(adapter, type) or not all(hasattr(adapter, name) for name in ADAPTER):
            raise TypeError(f"RLTracer takes an adapter, or the path of a run or an index, and no {shown(adapter)}.")
        if prompt_parser is not None and not callable(prompt_parser):
            raise TypeError(f"prompt_parser is {shown(prompt_parser)}: it is a function from messages to a text.")
        self.adapter: Adapter = adapter
        self.prompt_parser = prompt_parser

    def __repr__(self) -> str:
        return f"<RLTracer of {place_words(self.adapter)}>"

    def close(self) -> None:
        """Close what the adapter has opened, where it has a `close` of its own. It may be used again."""
        if callable(close := getattr(self.adapter, "close", None)):
            close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def steps(self) -> list[RolloutStep]:
        """Return the steps of the run in their order; one without a number comes last.

        Opens no shard whose place tells its step. Raises SourceError for a run that cannot be read.
        """
        return [RolloutStep(self.adapter, number, self.prompt_parser) for number in self.adapter.list_steps()]

    def step(self, number: int | None) -> RolloutStep:
        """Return one step. Raises KeyError where the run has no such step."""
        number = step_number(number)
        if number not in (steps := self.adapter.list_steps()):
            known = [step for step in steps if step is not None]
            what, kind = ("trajectory without a step", "steps ") if number is None else (f"step {number}", "")
            has = f"it has {kind}{ranges(known)}" if known else "its trajectories have none"
            raise KeyError(f"the run has no {what}; {has}")
        return RolloutStep(self.adapter, number, self.prompt_parser)

    def trajectory(self, number: int) -> TrajectoryRef:
        """Return a reference to a trajectory by its id, as pages, SQL and the command line show it.

        Ids are those of the index. That of a run which was given by its path is in the user's cache folder, and gives
        them as steps are read: where none of those has this id yet, what is new in all of the run is read. Its `load`
        raises LocatorError where the run has no such trajectory.
        """
        identity = whole_number("a trajectory's id", number)
        if ensure := getattr(self.adapter, "ensure_trajectory_indexed", None):
            ensure(identity)
        return TrajectoryRef(self.adapter, identity)

    def hardest_prompts(
        self, limit: int | None = MOST_RANKED, *, split: str | None = None, env: str | None = None
    ) -> list[Prompt]:
        """Return the prompts with the lowest pass rates over all steps, the hardest first; all with `limit=None`.

        They are those of `rltracer inspect --hardest N`, of equal pass rates the most often scored first, then by
        number; without its N, and on a run's page, those that always passed are left out. A prompt without a scored
        trajectory is in no place, and one of several splits or environments has one in each; `split` and `env` choose.
        Decodes no trajectory; of a run's folder, what is new in the files of every step is read first.

        Raises ValueError for a split or an environment that the run has not, with what it has, SourceError for a run
        and IndexFileError for an index that cannot be read, and TypeError for an adapter without `ranked_prompts`.
        """
        return self._ranked(limit, split, env, is_easiest=False)

    def easiest_prompts(
        self, limit: int | None = MOST_RANKED, *, split: str | None = None, env: str | None = None
    ) -> list[Prompt]:
        """Return the prompts with the highest pass rates over all steps, else as `hardest_prompts`."""
        return self._ranked(limit, split, env, is_easiest=True)

    def _ranked(self, limit: int | None, split: str | None, env: str | None, is_easiest: bool) -> list[Prompt]:
        ask = getattr(self.adapter, "ranked_prompts", None)
        if ask is None:
            raise TypeError(f"{shown(self.adapter)} has no method ranked_prompts, as IndexedAdapter has.")
        for step in self.adapter.list_steps():
            self.adapter.ensure_step_indexed(step)  # type: ignore[arg-type]
        return [self._prompt(row) for row in ask(limit, split, env, is_easiest)]

    def _prompt(self, row: Mapping[str, Any]) -> Prompt:
        prompt = Prompt(self.adapter, **{name: row[column] for name, column in PROMPT.items()})
        if self.prompt_parser is None:
            return prompt
        first = prompt.groups()[0].trajectory(0).load()
        return replace(prompt, preview=self.prompt_parser(first.prompt))
