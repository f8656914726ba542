"""What is below a run: a trajectory, a prompt within a step, and a prompt over all steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .amounts import plural
from .arguments import LARGEST, whole_number
from .reprs import short

if TYPE_CHECKING:
    from .adapter import Adapter
    from .trajectory import Trajectory


@dataclass(frozen=True)
class TrajectoryRef:
    """A lightweight reference to a trajectory: its `id`, which pages, SQL and the command line show, and `load()`."""

    adapter: Adapter = field(repr=False)
    id: int

    def __repr__(self) -> str:
        return f"<TrajectoryRef {self.id} of {place_words(self.adapter)}>"

    def load(self) -> Trajectory:
        """Return the decoded trajectory, reading its record's bytes only.

        Raises LocatorError where there is no such trajectory, or its record is gone or has changed since it was
        indexed.
        """
        return self.adapter.load_trajectory(self.id)


@dataclass(frozen=True)
class PromptGroup:
    """All trajectories of one prompt within one step and split: `count` of them, also as its length.

    `key` is the hash of the prompt's messages, with ":task" where the record names a task and "@split" for a split that
    is not train. `preview` is the beginning of the prompt's text in one line. `step` is None where there is no step.

    `scored` trajectories have a value that decides success by the run's rule, and `successes` of them are successes.
    `reward_mean` is the mean total reward of the `rewarded` ones, which have a reward, scored or not; None where none
    has. `split` (train or eval) and `env` (the environment) are None where they are not recorded, and `env` where the
    prompt is of several.
    These come from the index, without reading a record, and are None for an adapter without `prompt_scores`.
    """

    adapter: Adapter = field(repr=False)
    step: int | None
    key: str
    count: int
    preview: str
    scored: int | None = None
    successes: int | None = None
    reward_mean: float | None = None
    split: str | None = None
    env: str | None = None
    rewarded: int | None = None

    def __repr__(self) -> str:
        counted = plural(self.count, "trajectory")
        rate = "" if self.pass_rate is None else f", pass rate {self.pass_rate:.3f}"
        rate += f" over {self.scored:,} scored" if rate and self.scored != self.count else ""
        return (
            f"<PromptGroup {short(self.key[:12])} of {step_words(self.step)}: {counted}{rate}, {short(self.preview)}>"
        )

    @property
    def pass_rate(self) -> float | None:
        """The share of successes among the scored trajectories; None where none is scored, or it is not known."""
        return self.successes / self.scored if self.scored and self.successes is not None else None

    def trajectories(self) -> list[TrajectoryRef]:
        """Return references to the trajectories, in the order in which they were written. Decodes none."""
        ids = self.adapter.list_trajectory_ids(self.step, self.key)  # type: ignore[arg-type]
        return [TrajectoryRef(self.adapter, identity) for identity in ids]

    def trajectory(self, number: int) -> TrajectoryRef:
        """Return a reference to the trajectory with this place in the group, counted from 0; -1 is the last.

        Raises IndexError where the group has no such place.
        """
        place, found = whole_number("number", number, least=-LARGEST), self.trajectories()
        if not -len(found) <= place < len(found):
            raise IndexError(f"the group has {plural(len(found), 'trajectory')}, counted from 0, and no number {place}")
        return found[place]

    @property
    def best(self) -> TrajectoryRef | None:
        """The trajectory with the highest reward; of several that have it, the first.

        None where fewer than two have a reward or all rewards are equal, and for an adapter without `group_ends`.
        """
        return None if (ends := self._ends()) is None else TrajectoryRef(self.adapter, ends[0])

    @property
    def worst(self) -> TrajectoryRef | None:
        """The trajectory with the lowest reward; of several that have it, the last. None where there is no `best`."""
        return None if (ends := self._ends()) is None else TrajectoryRef(self.adapter, ends[1])

    def _ends(self) -> tuple[int, int] | None:
        ask = getattr(self.adapter, "group_ends", None)
        found: tuple[int, int] | None = ask(self.step, self.key) if ask else None
        return found

    def __len__(self) -> int:
        return self.count


@dataclass(frozen=True)
class Prompt:
    """A prompt over all steps of a run, in one split and environment: `count` trajectories, also as its length.

    `number` is the one that pages, SQL (`prompt_id`) and `rltracer inspect --prompt` show, `key` that of its groups.
    `steps` is how many steps it was sampled in. `split`, `env`, `preview`, `scored`, `successes`, `rewarded` and
    `reward_mean` are as those of a `PromptGroup`. All of these are what the index knew when the prompt was listed;
    `groups()`, `best` and `worst` ask it again, and read no record.
    """

    adapter: Adapter = field(repr=False)
    number: int
    key: str
    preview: str
    split: str | None
    env: str | None
    steps: int
    count: int
    scored: int
    successes: int
    rewarded: int
    reward_mean: float | None

    def __repr__(self) -> str:
        of_split = "" if self.split is None else f" of {short(self.split)}"
        counted = f"{plural(self.count, 'trajectory')} in {plural(self.steps, 'step')}"
        rate = "" if self.pass_rate is None else f", pass rate {self.pass_rate:.3f}"
        rate += f" over {self.scored:,} scored" if rate and self.scored != self.count else ""
        return f"<Prompt {self.number}{of_split}: {counted}{rate}, {short(self.preview)}>"

    @property
    def pass_rate(self) -> float | None:
        """The share of successes among the scored trajectories; None where none is scored."""
        return self.successes / self.scored if self.scored else None

    def groups(self) -> list[PromptGroup]:
        """Return its prompt groups in the order of their steps, one without a step last.

        A group holds the trajectories of all environments that the prompt has in that step and split.
        """
        rows = self._rows(None)
        wanted = [row for row in rows if row["env"] in (None, self.env)]
        return [
            PromptGroup(
                self.adapter,
                row["step"],
                row["prompt"],
                row["trajectories"],
                self.preview,
                *(row[name] for name in ("scored", "successes", "reward_mean", "split", "env", "rewarded")),
            )
            for row in wanted
        ]

    @property
    def best(self) -> TrajectoryRef | None:
        """The trajectory with the highest reward over all steps; of several that have it, the first of the first step.

        None where fewer than two have a reward, or all rewards are equal.
        """
        return None if (ends := self._ends()) is None else TrajectoryRef(self.adapter, ends[0])

    @property
    def worst(self) -> TrajectoryRef | None:
        """The trajectory with the lowest reward over all steps; of several that have it, the last of the first step.

        None where there is no `best`.
        """
        return None if (ends := self._ends()) is None else TrajectoryRef(self.adapter, ends[1])

    def _ends(self) -> tuple[int, int] | None:
        from .index.over_steps import ends_of

        ends = ends_of(self._rows(self.env))
        return (ends[0].trajectory, ends[1].trajectory) if ends and ends[0].reward > ends[1].reward else None

    def _rows(self, env: str | None) -> list[dict[str, Any]]:
        rows = self.adapter.prompt_over_steps(self.number, self.split, env)  # type: ignore[attr-defined]
        return [row for row in rows if row["split"] == self.split]

    def __len__(self) -> int:
        return self.count


def step_words(number: int | None) -> str:
    """Return a step as a sentence says it."""
    return "no step" if number is None else f"step {number}"


def place_words(adapter: Adapter) -> str:
    """Return where the run of an adapter is, or what it is called."""
    where = getattr(adapter, "rollout_dir", None)
    return type(adapter).__name__ if where is None else short(str(where), 200)
