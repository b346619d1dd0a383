"""The task ledger as a state machine (SPEC section 2): every change of a plan goes through here.

Legal at all times: ids are unique, dependencies name earlier subtasks, attempts stay within the
limit, a resolved subtask has an answer and support that is evidence of the ledger, and evidence
is never lost.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from domain.asking import Ledger, Subtask, SubtaskState
from domain.base import Frozen
from domain.settings import AskSettings
from domain.trajectory import Resolution

_OPEN = (SubtaskState.PENDING, SubtaskState.SEARCHING, SubtaskState.PARTIAL)


class SubtaskDraft(Frozen):
    """A subtask as a planner words it; ``depends`` are ids such as ``t1``.

    ``options`` are the letters of the options whose evidence it looks for.
    """

    text: str
    depends: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


class Rewrite(Frozen):
    """A subtask that is to be worded anew."""

    id: str
    text: str


class Edits(Frozen):
    """A minimal repair of the plan."""

    rewrite: tuple[Rewrite, ...] = ()
    add: tuple[SubtaskDraft, ...] = ()
    abandon: tuple[str, ...] = ()


def is_open(subtask: Subtask) -> bool:
    """Neither resolved nor abandoned."""
    return subtask.state in _OPEN


def is_stalled(subtask: Subtask, settings: AskSettings) -> bool:
    """Open, with no attempts left."""
    return is_open(subtask) and subtask.attempts >= settings.attempts


def get(ledger: Ledger, subtask: str | None) -> Subtask | None:
    """The subtask of that id, or None."""
    return next((s for s in ledger.subtasks if s.id == subtask), None)


def refs(ledger: Ledger) -> frozenset[str]:
    """All evidence of the ledger."""
    return frozenset(ref for subtask in ledger.subtasks for ref in subtask.evidence)


def start(
    drafts: Sequence[SubtaskDraft], question: str, settings: AskSettings
) -> tuple[Ledger, list[str]]:
    """A ledger of at most ``settings.subtasks`` drafts, and what was dropped of them and why.

    Subtasks are numbered in order; a dependency on anything but an earlier one is dropped, and so
    are empty and repeated texts. Without a usable draft the question itself is the one subtask.
    """
    ledger, complaints = _all_added(Ledger(), drafts, settings)
    dropped = [f"t{n}: {said}" for n, said in enumerate(complaints, start=1) if said]
    if not ledger.subtasks:
        ledger = Ledger(subtasks=(Subtask(id="t1", text=question),))
    return ledger, dropped


def _all_added(
    ledger: Ledger, drafts: Sequence[SubtaskDraft], settings: AskSettings
) -> tuple[Ledger, list[str]]:
    """The ledger with these drafts, and a complaint for each, "" where it was added.

    Drafts name each other by the ids they would have if none were dropped: a dependency on one
    that repeats an earlier subtask is one on that subtask, a dependency on any other dropped one
    is dropped.
    """
    ids = {s.id: s.id for s in ledger.subtasks}
    first, complaints = len(ledger.subtasks) + 1, []
    for number, draft in enumerate(drafts, start=first):
        depends = tuple(ids[name] for name in draft.depends if name in ids)
        ledger, complaint = _added(ledger, draft.model_copy(update={"depends": depends}), settings)
        same = _same(ledger, draft.text)
        if same is not None:
            ids[f"t{number}"] = same.id
        complaints.append(complaint)
    return ledger, complaints


def _same(ledger: Ledger, text: str) -> Subtask | None:
    """The subtask of that text."""
    wanted = " ".join(text.split()).casefold()
    return next((s for s in ledger.subtasks if s.text.casefold() == wanted), None)


def _added(ledger: Ledger, draft: SubtaskDraft, settings: AskSettings) -> tuple[Ledger, str]:
    """The ledger with one more subtask; else unchanged, with the reason."""
    text = " ".join(draft.text.split())
    if not text:
        return ledger, "it has no text"
    if _same(ledger, text) is not None:
        return ledger, f"{text!r} is in the plan already"
    if sum(s.state is not SubtaskState.ABANDONED for s in ledger.subtasks) >= settings.subtasks:
        return ledger, f"a plan has at most {settings.subtasks} subtasks"
    known = {s.id for s in ledger.subtasks}
    depends = tuple(dict.fromkeys(d for d in draft.depends if d in known))
    name = f"t{len(ledger.subtasks) + 1}"
    new = Subtask(id=name, text=text, depends=depends, options=draft.options)
    return Ledger(subtasks=(*ledger.subtasks, new)), ""


def schedule(ledger: Ledger, settings: AskSettings) -> Subtask | None:
    """The subtask to work on next, or None when nothing can be done.

    First a pending one whose dependencies are resolved; else a searching or partial one with
    attempts left; else a pending one whose unresolved dependencies can go no further, so that a
    chain whose first link stalls is still searched.
    """
    by_id = {s.id: s for s in ledger.subtasks}
    able = [s for s in ledger.subtasks if is_open(s) and s.attempts < settings.attempts]
    pending = [s for s in able if s.state is SubtaskState.PENDING]
    begun = [s for s in able if s.state is not SubtaskState.PENDING]
    ready = [s for s in pending if all(_resolved(by_id[d]) for d in s.depends)]
    stuck = [s for s in pending if all(_closed(by_id[d], settings) for d in s.depends)]
    return next(iter([*ready, *begun, *stuck]), None)


def _resolved(subtask: Subtask) -> bool:
    return subtask.state is SubtaskState.RESOLVED


def _closed(subtask: Subtask, settings: AskSettings) -> bool:
    return not is_open(subtask) or is_stalled(subtask, settings)


def begin(ledger: Ledger, subtask: str) -> Ledger:
    """Count an attempt at a subtask; a pending one is being searched from now on."""
    found = get(ledger, subtask)
    if found is None or not is_open(found):
        return ledger
    state = SubtaskState.SEARCHING if found.state is SubtaskState.PENDING else found.state
    return _with(ledger, found, attempts=found.attempts + 1, state=state)


def bind(ledger: Ledger, subtask: str, found: Iterable[str], best: float) -> Ledger:
    """Tie evidence to a subtask. One that is searched becomes partial; none is ever lost."""
    task, new = get(ledger, subtask), tuple(found)
    if task is None or not new:
        return ledger
    moves = task.state in (SubtaskState.PENDING, SubtaskState.SEARCHING)
    return _with(
        ledger,
        task,
        evidence=tuple(dict.fromkeys((*task.evidence, *new))),
        best_score=max(task.best_score, min(1.0, max(0.0, best))),
        state=SubtaskState.PARTIAL if moves else task.state,
    )


def resolve(ledger: Ledger, claim: Resolution) -> tuple[Ledger, str]:
    """Resolve a subtask when it has an answer whose support is in the ledger; else say why not."""
    task = get(ledger, claim.subtask)
    if task is None:
        return ledger, f"there is no subtask {claim.subtask!r}"
    if task.state is SubtaskState.ABANDONED:
        return ledger, f"{task.id} was abandoned"
    if not claim.answer.strip():
        return ledger, f"{task.id} was called resolved without an answer"
    known = refs(ledger)
    support = tuple(dict.fromkeys(ref for ref in claim.refs if ref in known))
    if not support:
        return (
            ledger,
            f"{task.id} was called resolved without evidence in the ledger that bears on it",
        )
    evidence = tuple(dict.fromkeys((*task.evidence, *support)))
    values = {"answer": claim.answer.strip(), "support": support, "evidence": evidence}
    return _with(ledger, task, state=SubtaskState.RESOLVED, **values), ""


def reopen(ledger: Ledger, subtask: str) -> Ledger:
    """A resolved subtask goes back to partial; its evidence stays, its answer does not."""
    task = get(ledger, subtask)
    if task is None or task.state is not SubtaskState.RESOLVED:
        return ledger
    return _with(ledger, task, state=SubtaskState.PARTIAL, answer=None, support=())


def abandon(ledger: Ledger, subtask: str) -> Ledger:
    """Give up an open subtask. Those that depend on it stay, and can still be searched."""
    task = get(ledger, subtask)
    if task is None or not is_open(task):
        return ledger
    return _with(ledger, task, state=SubtaskState.ABANDONED)


def edit(ledger: Ledger, edits: Edits, settings: AskSettings) -> tuple[Ledger, list[str]]:
    """Apply a repair within its limits: rewrites, then abandons, then adds; and what was refused.

    Resolved subtasks are not touched. A rewritten one gets its attempts back.
    """
    refused: list[str] = []
    for rewrite in edits.rewrite:
        ledger, complaint = _rewritten(ledger, rewrite)
        refused += [complaint] if complaint else []
    for name in edits.abandon[: settings.replan_abandons]:
        task = get(ledger, name)
        if task is None or not is_open(task):
            refused.append(f"{name} cannot be abandoned: it is not open")
        ledger = abandon(ledger, name)
    ledger, complaints = _all_added(ledger, edits.add[: settings.replan_adds], settings)
    refused += [said for said in complaints if said]
    refused += _over(edits, settings)
    return ledger, refused


def _over(edits: Edits, settings: AskSettings) -> list[str]:
    """Complaints about what went past the limits of a repair."""
    limits = [
        ("abandon", len(edits.abandon), settings.replan_abandons),
        ("add", len(edits.add), settings.replan_adds),
    ]
    return [f"a repair may {what} at most {most}" for what, n, most in limits if n > most]


def _rewritten(ledger: Ledger, rewrite: Rewrite) -> tuple[Ledger, str]:
    task, text = get(ledger, rewrite.id), " ".join(rewrite.text.split())
    if task is None or not is_open(task):
        return ledger, f"{rewrite.id} cannot be rewritten: it is not open"
    if not text or _same(ledger, text) is not None:
        return ledger, f"{rewrite.id} was rewritten to nothing new"
    return _with(ledger, task, text=text, attempts=0, state=SubtaskState.PENDING), ""


def broken(ledger: Ledger, settings: AskSettings) -> tuple[str, ...]:
    """Open subtasks that wait for one that was abandoned or stalled."""
    by_id = {s.id: s for s in ledger.subtasks}
    return tuple(
        s.id
        for s in ledger.subtasks
        if s.state is SubtaskState.PENDING
        and any(not _resolved(by_id[d]) and _closed(by_id[d], settings) for d in s.depends)
    )


def confidence(best_score: float, pieces: int) -> float:
    """``min(0.95, 0.5 * best score + 0.5 * (1 - 0.6^n))`` for ``n`` pieces of support."""
    return min(0.95, 0.5 * best_score + 0.5 * (1 - 0.6**pieces))


def _with(ledger: Ledger, task: Subtask, **changes: object) -> Ledger:
    new = Subtask.model_validate(task.model_dump() | changes)
    return Ledger(subtasks=tuple(new if s.id == task.id else s for s in ledger.subtasks))
