"""What RLTracer consumes: the Adapter protocol, and the ways to open a run or an index as an adapter."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Protocol

from .arguments import file_path
from .indexed_adapter import IndexedAdapter as IndexedAdapter
from .loading import run_source
from .roots import Roots
from .runs import WhichRunError as WhichRunError
from .runs import chosen_run
from .sources import source_for
from .sources.base import SourceError
from .sources.places import Root, is_database, place
from .sources.prime_rl import PrimeRLSource
from .sources.remote import RemoteRoot
from .trajectory import Trajectory


class Adapter(Protocol):
    """One run of some training system. Anybody may implement these five methods, without our index.

    One that also has `prompt_scores(step)` and `step_scores(step)`, as IndexedAdapter, gives prompt groups and steps
    their pass rates: (scored, successes) will do, and mean reward, split and environment may follow, as in `Scores`.
    `group_ends(step, prompt_key)` gives groups their best and worst; `ranked_prompts` and `prompt_over_steps` give the
    hardest and the easiest prompts.
    """

    @property
    def rollout_dir(self) -> Root:
        """Where the run is."""
        ...

    def list_steps(self) -> Sequence[int | None]:
        """Return the numbers of the steps in their order; None for trajectories without a step."""
        ...

    def ensure_step_indexed(self, step: int) -> None:
        """See that what follows knows all of a step."""
        ...

    def list_prompts(self, step: int) -> list[tuple[str, int, str]]:
        """Return (key, number of trajectories, preview) of the prompts of a step."""
        ...

    def list_trajectory_ids(self, step: int, prompt_key: str) -> list[int]:
        """Return the ids of the trajectories of a prompt in a step."""
        ...

    def load_trajectory(self, trajectory_id: int) -> Trajectory:
        """Return the decoded trajectory of this id."""
        ...


class PrimeRLAdapter(IndexedAdapter):
    """The rollouts of a prime-rl run, or of a verifiers evaluation, in any layout they have had.

    `rollout_dir` is the path or URL of the run, also that of its `rollouts` folder. `tokenizer_name` is the path of a
    tokenizer, for token shards. `index_path` is the index, which by default lies in the user's cache folder.
    """

    def __init__(
        self,
        rollout_dir: str | os.PathLike[str] | RemoteRoot,
        tokenizer_name: str | os.PathLike[str] | None = None,
        index_path: str | os.PathLike[str] | None = None,
    ) -> None:
        tokenizer = None if tokenizer_name is None else str(file_path("tokenizer_name", tokenizer_name))
        super().__init__(PrimeRLSource(tokenizer), rollout_dir, index_path)


def adapter_for(
    where: str | os.PathLike[str] | RemoteRoot, run: str | int | None = None, tokenizer: str | None = None
) -> IndexedAdapter:
    """Return an adapter for what lies at a path or a URL: a run, or an index with `run` or with one run only.

    A run is recognised by its files, and indexed into the user's cache folder as it is read.
    """
    root = place(where)
    if isinstance(root, Path) and is_database(root):
        return open_run(root, run)
    source = source_for(root, tokenizer)
    if run is not None:
        raise SourceError(f"{root} is a run itself, and no index: a run is chosen of an index only.")
    return IndexedAdapter(source, root)


def open_run(index: str | os.PathLike[str], run: str | int | None = None) -> IndexedAdapter:
    """Return an adapter for a run of an existing index, by its name or id; without either, for its only run.

    The beginning of a name will do where no other run's begins so.
    `list_runs(index)` lists them. What the index knows is told in any case; loading a trajectory raises RootNotAllowed
    where the run's folder may not be read. Raises WhichRunError, which names them, where there are several runs or not
    this one, IndexFileError for what is no index, and RootNotAllowed where the index names no folder.
    """
    path = file_path("index", index)
    row = chosen_run(path, run)
    roots = Roots.for_database(path)
    root = roots.located(row.root)
    adapter = IndexedAdapter(run_source(row, roots), root, path, refresh=False)
    adapter._run_id, adapter._roots = row.id, roots
    return adapter
