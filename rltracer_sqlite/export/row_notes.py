"""Sentences on the rows of an export: what whoever trains on them takes in, and does not see at first sight."""

from __future__ import annotations

from collections import Counter

from ..amounts import exactly, listed, plural, shortened
from ..reward_parts import NAME_COLUMNS
from .met import Met
from .preferences import Acceptance, ExportMode, ExportPreferences
from .selected import Partly, Selected
from .written import Written

ONE_OF_SEVERAL = " A reward is of all branches; the field filter branches<=1 leaves such trajectories out."
LAST_ALONE = " last_branch makes one row of each, of its last branch."
UNREAD_BRANCHES = "; where none does, the pair is left out when it is read"
LONGEST_ROLE, LONGEST_PATH = 30, 100  # characters
# A verb for one, and for more.
ARE, CALL, HAVE, HOLD, WERE = ("is", "are"), ("calls", "call"), ("has", "have"), ("holds", "hold"), ("was", "were")


def row_notes(preferences: ExportPreferences, selected: Selected, written: Written | None) -> list[str]:
    """Return the sentences; few before rows are made."""
    whole = None if written is None or written.is_beginning else written
    in_pairs = preferences.mode is ExportMode.PREFERENCE
    notes = _on_outcomes(preferences, selected) if in_pairs else []
    notes += [_on_parts_of_rule(rule, partly, in_pairs) for rule, partly in selected.partly.items()]
    if preferences.mode is not ExportMode.RL:
        notes += [_on_branches(preferences, selected, whole), _on_limits(selected.cut_off, in_pairs)]
    if written is None and preferences.distinct:
        notes.append("Rows are compared when they are written: distinct=True may leave out some of these.")
    if written is not None:
        met = [note for note in _on_written(written, preferences) if note]
        notes += met if whole else [_on_beginning(written, preferences, met)]
    return [note for note in notes if note]


def _on_written(written: Written, preferences: ExportPreferences) -> list[str]:
    return [
        _on_repeats(written, preferences), _on_endings(written), _on_tools(written.without_tools),
        _on_reasoning(written), _on_roles(written), _on_others_in_pairs(written), _on_parts(written),
        _on_types(written),
    ]  # fmt: skip


def _on_beginning(written: Written, preferences: ExportPreferences, met: list[str]) -> str:
    """Return what was met in the first rows, and that the others were not looked into."""
    rows = plural(written.rows, "pair" if preferences.mode is ExportMode.PREFERENCE else "row")
    usual = "no two are the same"
    if preferences.mode is not ExportMode.RL:
        usual = f"each ends with an answer, and defines the tools that it calls; {usual}"
    return f"Looked into here are only the first {rows}: {' '.join(met) or usual + '.'}"


def _on_outcomes(preferences: ExportPreferences, selected: Selected) -> list[str]:
    """Return sentences on the sides of pairs whose outcome is none that one would expect, where any is taken."""
    notes = []
    if preferences.acceptance is Acceptance.ANY:
        met = _outcomes("failed", selected.chosen_failed, selected.chosen_unscored)
        notes.append(met and f"Of {_answers(selected, 'chosen')} {met}; acceptance='passed' leaves them out.")
    if preferences.rejected_outcome is Acceptance.ANY:
        met = _outcomes("passed", selected.rejected_passed, selected.rejected_unscored)
        notes.append(met and f"Of {_answers(selected, 'rejected')} {met}; rejected_outcome='failed' leaves them out.")
    return notes


def _answers(selected: Selected, side: str) -> str:
    return plural(selected.count, f"{side} answer")


def _outcomes(outcome: str, of_rule: Met, unscored: Met) -> str:
    told = [f"{of_rule.count:,} {outcome} by the success rule{of_rule.where}"] if of_rule.count else []
    if unscored.count:
        told.append(f"{unscored.count:,} {ARE[unscored.count != 1]} unscored{unscored.where}")
    return " and ".join(told)


def _on_parts_of_rule(rule: str, partly: Partly, in_pairs: bool) -> str:
    """Return a sentence on what passed by the total of several rewards, though it has nothing of one of them."""
    if not (met := partly.met).count:
        return ""
    passed = plural(partly.passed, "chosen answer" if in_pairs else "selected trajectory")
    names = dict(zip(partly.parts.paths, partly.parts.names, strict=True))
    paths = [path for path in names if partly.by_part[path]]  # as recorded
    each = listed(f"{shortened(names[path], NAME_COLUMNS)} in {partly.by_part[path]:,}" for path in paths)
    has = HAVE[met.count != 1]
    told = f"Of {passed} that passed by {rule}, {met.count:,} {has} 0 or less in one of them{met.where}: {each}"
    if partly.threshold <= 0 or not _can_be_asked_for(paths[0]):
        return f"{told}."
    those = f"those of {shortened(names[paths[0]], NAME_COLUMNS)}" if len(paths) > 1 else "such"
    return f"{told}; the field filter {paths[0]}>={exactly(partly.threshold)} leaves {those} out."


def _can_be_asked_for(path: str) -> bool:
    """Say whether a path may stand in a field filter that somebody copies into a shell."""
    return path.isprintable() and len(path) <= LONGEST_PATH and not set(path) & set("<>=?'")


def _on_branches(preferences: ExportPreferences, selected: Selected, written: Written | None) -> str:
    met = selected.of_several_branches
    if not met.count:
        return ""
    if preferences.mode is ExportMode.PREFERENCE:
        last = f"the last that begins with the prompt{UNREAD_BRANCHES if written is None else ''}"
        return f"{_counted(met.count, 'pair', HOLD)} one branch of several{met.where}: {last}.{ONE_OF_SEVERAL}"
    of_each = f"{plural(met.count, 'trajectory')} of several branches{met.where}"
    advice = ONE_OF_SEVERAL + ("" if preferences.last_branch else LAST_ALONE)
    if written is None:
        which = "the last one" if preferences.last_branch else "each branch"
        return f"Selected {of_each}: {which} with an answer is a row.{advice}"
    return f"{_counted(written.of_branches, 'row', ARE)} one branch of several, out of {of_each}.{advice}"


def _on_limits(met: Met, in_pairs: bool) -> str:
    if not met.count:
        return ""
    cut_off = f"{_counted(met.count, 'selected trajectory', WERE)} cut off by a limit"
    if in_pairs:
        cut_off = f"{_counted(met.count, 'pair', HAVE)} an answer that a limit cut off"
    return f"{cut_off}{met.where}; drop_truncated leaves out such trajectories."


def _on_repeats(written: Written, preferences: ExportPreferences) -> str:
    if written.repeats and written.is_preview:  # of what is written a line after the funnel says so
        others = "; an export has others instead where it can" if preferences.can_replace else ""
        return f"{plural(written.repeats, 'row')} of the same content as one before left out{others}."
    if not (met := written.repeated).count:
        return ""
    others = "the other one" if met.count == 1 else f"the other {met.count:,}"
    are = _of_all(written.distinct, written, ARE)
    if preferences.can_replace:
        return f"{are} distinct; distinct=True replaces {others} where it can{met.where}."
    return f"{are} distinct; distinct=True leaves out {others}{met.where}."


def _on_endings(written: Written) -> str:
    if not (ends := written.unanswered):
        return ""
    one = ends.total() == 1
    sides = " and ".join(f"{ends[name]:,} {name}" for name in ("chosen", "rejected") if ends[name])
    pairs = f"{sides} {'answer' if one else 'answers'} of {plural(written.rows, 'pair')}"
    which = f"{ends['messages']:,} of {plural(written.rows, 'row')}" if "messages" in ends else pairs
    ending = "ends" if one else "end"
    return (
        f"{which} {ending} with a message of {_roles(written.last_roles)}, and no answer to it{written.ending.where}."
    )


def _on_tools(met: Met) -> str:
    if not met.count:
        return ""
    return f"{_counted(met.count, 'row', CALL)} tools that the record does not define{met.where}."


def _on_reasoning(written: Written) -> str:
    if not (met := written.with_tags).count:
        return _on_reasoning_beside(written)
    others = written.with_reasoning.count
    beside = f"{others or 'none'} {HAVE[others > 1]} reasoning_content"
    return f"{_of_all(met.count, written, HOLD)} <think> in the content of an answer, as recorded{met.where}; {beside}."


def _on_reasoning_beside(written: Written) -> str:
    if not (met := written.with_reasoning).count:
        return ""
    has = _of_all(met.count, written, HAVE)
    return f"{has} reasoning_content beside the content of an answer{met.where}, which ms-swift drops."


def _on_roles(written: Written) -> str:
    if not (met := written.of_odd_roles).count:
        return ""
    holds = _of_all(met.count, written, HOLD)
    return (
        f"{holds} messages of {_roles(written.odd_roles)}{met.where}, which prime-rl refuses; chat templates may too."
    )


def _roles(counts: Counter[str]) -> str:
    names = [shortened(role, LONGEST_ROLE) for role, _ in counts.most_common()]
    return f"the {'role' if len(names) == 1 else 'roles'} {listed(names)}"


def _on_others_in_pairs(written: Written) -> str:
    if not (met := written.between).count:
        return ""
    holds = _of_all(met.count, written, HOLD, "pair")
    return (
        f"{holds} other messages than answers after the prompt{met.where}, such as results of tools: DPOTrainer of TRL "
        "takes its loss on them too; the field filter tool_calls?<=0 keeps answers without tools."
    )


def _on_parts(written: Written) -> str:
    if not (met := written.other_parts).count:
        return ""
    holds = _of_all(met.count, written, HOLD)
    kinds = listed(sorted(written.kinds_of_parts, key=lambda kind: (-written.kinds_of_parts[kind], kind)))
    return (
        f"{holds} images or other parts that are no text, as recorded{met.where}: {kinds}. TRL takes images from a "
        "column of their own; the field filter env=NAME keeps an environment that has none."
    )


def _on_types(written: Written) -> str:
    if written.is_of_one_type or not written.in_text or not written.in_parts:
        return ""
    return (
        f"Content is a list of parts in {plural(written.in_parts, 'message')} and text in {written.in_text:,}, which "
        "the library datasets may read all as text from JSONL; Parquet has one type for both."
    )


def _counted(count: int, what: str, verb: tuple[str, str]) -> str:
    """Return so many of something as a subject with its verb: '1 pair holds'."""
    return f"{plural(count, what)} {verb[count != 1]}"


def _of_all(count: int, written: Written, verb: tuple[str, str], what: str = "row") -> str:
    """Return how many of all rows, as a subject with its verb: '1 of 12 rows holds'."""
    return f"{count:,} of {plural(written.rows, what)} {verb[count != 1]}"
