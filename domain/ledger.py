"""The task ledger as a state machine (SPEC section 2): every change of a plan goes through here.

Invariants: ids are unique, dependencies name earlier subtasks, attempts stay within the limit, a
resolved subtask has an answer and support from the ledger's evidence, and evidence is never lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from domain.asking import Ledger, Subtask, SubtaskState
from domain.base import Frozen
from domain.settings import AskSettings
from domain.trajectory import Resolution
from domain.words import marked

_OPEN = (SubtaskState.PENDING, SubtaskState.SEARCHING, SubtaskState.PARTIAL)


class SubtaskDraft(Frozen):
    """A subtask as worded by a planner; ``depends`` are ids such as ``t1``.

    ``options`` are the letters of the options whose evidence it looks for.
    """

    text: str
    depends: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


class Rewrite(Frozen):
    """A new text for a subtask."""

    id: str
    text: str


class Edits(Frozen):
    """A minimal repair of the plan."""

    rewrite: tuple[Rewrite, ...] = ()
    add: tuple[SubtaskDraft, ...] = ()
    abandon: tuple[str, ...] = ()


def is_open(subtask: Subtask) -> bool:
    """Check whether a subtask is neither resolved nor abandoned."""
    return subtask.state in _OPEN


def is_stalled(subtask: Subtask, settings: AskSettings) -> bool:
    """Check whether a subtask is open with no attempts left."""
    return is_open(subtask) and subtask.attempts >= settings.attempts


def find_subtask(ledger: Ledger, subtask: str | None) -> Subtask | None:
    """Return the subtask with that id, or None."""
    return next((s for s in ledger.subtasks if s.id == subtask), None)


def refs(ledger: Ledger) -> frozenset[str]:
    return frozenset(ref for subtask in ledger.subtasks for ref in subtask.evidence)


def new_ledger(
    drafts: Sequence[SubtaskDraft], question: str, settings: AskSettings
) -> tuple[Ledger, list[str]]:
    """Build a ledger of at most ``settings.subtasks`` drafts; also return what was dropped and why.

    Subtasks are numbered in order. A dependency on anything but an earlier subtask is dropped, and
    so are empty and repeated texts. Without a usable draft the question itself is the only subtask.
    """
    ledger, complaints = _add_all(Ledger(), drafts, settings)
    dropped = [f"t{n}: {complaint}" for n, complaint in enumerate(complaints, start=1) if complaint]
    if not ledger.subtasks:
        ledger = Ledger(subtasks=(Subtask(id="t1", text=question),))
    return ledger, dropped


def _add_all(
    ledger: Ledger, drafts: Sequence[SubtaskDraft], settings: AskSettings
) -> tuple[Ledger, list[str]]:
    """Add drafts to the ledger; also return a complaint for each, "" for those added."""
    # Drafts refer to each other by the ids they would have if none were dropped: a dependency on a
    # draft that repeats an earlier subtask becomes one on that subtask, a dependency on any other
    # dropped draft is dropped.
    ids = {s.id: s.id for s in ledger.subtasks}
    first, complaints = len(ledger.subtasks) + 1, []
    for number, draft in enumerate(drafts, start=first):
        depends = tuple(ids[name] for name in draft.depends if name in ids)
        complaint, text = "", " ".join(draft.text.split())
        active = sum(s.state is not SubtaskState.ABANDONED for s in ledger.subtasks)
        if not text:
            complaint = marked("it has no text")
        elif _find_same_text(ledger, text) is not None:
            complaint = marked(f"{text!r} is in the plan already")
        elif active >= settings.subtasks:
            complaint = marked(f"a plan has at most {settings.subtasks} subtasks")
        else:
            known = {s.id for s in ledger.subtasks}
            depends = tuple(dict.fromkeys(d for d in depends if d in known))
            name = f"t{len(ledger.subtasks) + 1}"
            new = Subtask(id=name, text=text, depends=depends, options=draft.options)
            ledger = Ledger(subtasks=(*ledger.subtasks, new))
        duplicate = _find_same_text(ledger, draft.text)
        if duplicate is not None:
            ids[f"t{number}"] = duplicate.id
        complaints.append(complaint)
    return ledger, complaints


def _find_same_text(ledger: Ledger, text: str) -> Subtask | None:
    normalised = " ".join(text.split()).casefold()
    return next((s for s in ledger.subtasks if s.text.casefold() == normalised), None)


def next_subtask(ledger: Ledger, settings: AskSettings) -> Subtask | None:
    """Return the subtask to work on next, or None when nothing is left to do.

    A pending subtask whose dependencies are resolved comes first; then a searching or partial one
    with attempts left; then a pending one whose unresolved dependencies are stalled or abandoned.
    """
    by_id = {s.id: s for s in ledger.subtasks}
    open_tasks = [s for s in ledger.subtasks if is_open(s) and s.attempts < settings.attempts]
    pending = [s for s in open_tasks if s.state is SubtaskState.PENDING]
    started = [s for s in open_tasks if s.state is not SubtaskState.PENDING]
    ready = [s for s in pending if all(_is_resolved(by_id[d]) for d in s.depends)]
    # A chain whose first link stalls is still searched.
    stuck = [s for s in pending if all(_is_closed(by_id[d], settings) for d in s.depends)]
    return next(iter([*ready, *started, *stuck]), None)


def _is_resolved(subtask: Subtask) -> bool:
    return subtask.state is SubtaskState.RESOLVED


def _is_closed(subtask: Subtask, settings: AskSettings) -> bool:
    return not is_open(subtask) or is_stalled(subtask, settings)


def begin_attempt(ledger: Ledger, subtask: str) -> Ledger:
    """Count an attempt at a subtask; a pending subtask becomes searching."""
    task = find_subtask(ledger, subtask)
    if task is None or not is_open(task):
        return ledger
    state = SubtaskState.SEARCHING if task.state is SubtaskState.PENDING else task.state
    return _replace(ledger, task, attempts=task.attempts + 1, state=state)


def bind_evidence(ledger: Ledger, subtask: str, evidence: Iterable[str], best: float) -> Ledger:
    """Bind evidence to a subtask. A searching subtask becomes partial; evidence is never lost."""
    task, new_refs = find_subtask(ledger, subtask), tuple(evidence)
    if task is None or not new_refs:
        return ledger
    is_searching = task.state in (SubtaskState.PENDING, SubtaskState.SEARCHING)
    return _replace(
        ledger,
        task,
        evidence=tuple(dict.fromkeys((*task.evidence, *new_refs))),
        best_score=max(task.best_score, min(1.0, max(0.0, best))),
        state=SubtaskState.PARTIAL if is_searching else task.state,
    )


# In the authors' code nothing is ever resolved: here the claim's evidence must be in the ledger.
def resolve_subtask(ledger: Ledger, claim: Resolution) -> tuple[Ledger, str]:
    """Resolve a subtask if its answer has support in the ledger; otherwise say why not."""
    task = find_subtask(ledger, claim.subtask)
    if task is None:
        return ledger, f"there is no subtask {claim.subtask!r}"
    if task.state is SubtaskState.ABANDONED:
        return ledger, f"{task.id} was abandoned"
    if not claim.answer.strip():
        return ledger, f"{task.id} was called resolved without an answer"
    known_refs = refs(ledger)
    support = tuple(dict.fromkeys(ref for ref in claim.refs if ref in known_refs))
    if not support:
        return (
            ledger,
            f"{task.id} was called resolved without evidence in the ledger that bears on it",
        )
    # Support is evidence too, also where it was found for another subtask.
    evidence = tuple(dict.fromkeys((*task.evidence, *support)))
    values = {"answer": claim.answer.strip(), "support": support, "evidence": evidence}
    return _replace(ledger, task, state=SubtaskState.RESOLVED, **values), ""


def reopen_subtask(ledger: Ledger, subtask: str) -> Ledger:
    """Set a resolved subtask back to partial: its evidence stays, its answer is cleared."""
    task = find_subtask(ledger, subtask)
    if task is None or task.state is not SubtaskState.RESOLVED:
        return ledger
    return _replace(ledger, task, state=SubtaskState.PARTIAL, answer=None, support=())


# In the authors' code abandoning a subtask abandons those that depend on it, unread.
def abandon(ledger: Ledger, subtask: str) -> Ledger:
    """Abandon an open subtask. Subtasks that depend on it stay and can still be searched."""
    task = find_subtask(ledger, subtask)
    if task is None or not is_open(task):
        return ledger
    return _replace(ledger, task, state=SubtaskState.ABANDONED)


def apply_edits(ledger: Ledger, edits: Edits, settings: AskSettings) -> tuple[Ledger, list[str]]:
    """Apply a repair of the plan: rewrites, abandons, adds; also return what was refused.

    Resolved subtasks are not touched. A rewritten subtask gets its attempts back.
    """
    refused: list[str] = []
    for rewrite in edits.rewrite:
        task, text = find_subtask(ledger, rewrite.id), " ".join(rewrite.text.split())
        if task is None or not is_open(task):
            refused.append(marked(f"{rewrite.id} cannot be rewritten: it is not open"))
        elif not text or _find_same_text(ledger, text) is not None:
            refused.append(marked(f"{rewrite.id} was rewritten to nothing new"))
        else:
            ledger = _replace(ledger, task, text=text, attempts=0, state=SubtaskState.PENDING)
    for task_id in edits.abandon[: settings.replan_abandons]:
        task = find_subtask(ledger, task_id)
        if task is None or not is_open(task):
            refused.append(marked(f"{task_id} cannot be abandoned: it is not open"))
        ledger = abandon(ledger, task_id)
    ledger, complaints = _add_all(ledger, edits.add[: settings.replan_adds], settings)
    refused += [complaint for complaint in complaints if complaint]
    # Complaints about edits beyond the limits of a repair.
    limits = [
        ("abandon", len(edits.abandon), settings.replan_abandons),
        ("add", len(edits.add), settings.replan_adds),
    ]
    excess_complaints = [
        f"a repair may {verb} at most {limit}" for verb, count, limit in limits if count > limit
    ]
    refused += excess_complaints
    return ledger, refused


def blocked_subtasks(ledger: Ledger, settings: AskSettings) -> tuple[str, ...]:
    """Return the open subtasks that wait for an abandoned or stalled one."""
    by_id = {s.id: s for s in ledger.subtasks}
    return tuple(
        s.id
        for s in ledger.subtasks
        if s.state is SubtaskState.PENDING
        and any(not _is_resolved(by_id[d]) and _is_closed(by_id[d], settings) for d in s.depends)
    )


# In the authors' code some modes have no score; here every one has.
def confidence(best_score: float, pieces: int) -> float:
    """Return ``min(0.95, 0.5 * best score + 0.5 * (1 - 0.6^n))`` for ``n`` pieces of support."""
    return min(0.95, 0.5 * best_score + 0.5 * (1 - 0.6**pieces))


def _replace(ledger: Ledger, task: Subtask, **changes: object) -> Ledger:
    changed = Subtask.model_validate(task.model_dump() | changes)
    return Ledger(subtasks=tuple(changed if s.id == task.id else s for s in ledger.subtasks))
