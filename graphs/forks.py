"""The start of a fork: the events and state of a parent's round, with an edit applied."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from agent.harness.inform import by_evidence, pictures_of
from agent.state import State, ledger_of, plain
from domain.asking import Ledger, Quote, quote_of
from domain.errors import InputError, NotFound
from domain.ledger import Edits, Rewrite, SubtaskDraft, is_open
from domain.ledger import apply_edits as edit_ledger
from domain.settings import AskSettings
from domain.trajectory import (
    Acted,
    Event,
    EvidenceRetrieved,
    Forked,
    ForkEdit,
    PlanLine,
    Planned,
    QuestionAsked,
    Replanned,
    RoundClosed,
    RoundOpened,
)

UNLIMITED = 99


@dataclass(frozen=True)
class Parent:
    """A trajectory, and its state when one of its rounds was opened."""

    trajectory: str
    events: Sequence[Event]
    state: State


def editable(events: Sequence[Event], number: int) -> ForkEdit:
    """Return what can be edited at round ``number``, as it was.

    Raises:
        NotFound: there is no such round.
    """
    opened = [at for at, e in enumerate(events) if isinstance(e, RoundOpened) and e.round == number]
    if not opened:
        rounds = sum(isinstance(event, RoundOpened) for event in events)
        raise NotFound(f"there is no round {number}: the trajectory has {rounds}")
    retrieved = _search_of(events, number)
    ledger = ledger_before(events[: opened[-1]])
    lines = tuple(PlanLine(id=s.id, text=s.text, depends=s.depends) for s in ledger.subtasks)
    acted = [e.action for e in events if isinstance(e, Acted) and e.round == number and e.action]
    action = acted[-1] if acted else None
    return ForkEdit(
        plan=lines,
        action=action,
        evidence=retrieved.evidence if retrieved else None,
        profile=_question_event(events).profile,
    )


def forked(
    parent: Parent, number: int, edit: ForkEdit, trajectory: str
) -> tuple[list[Event], Forked]:
    """Return a parent's events that a fork begins with, and the event after them, with its state.

    Raises:
        InputError: the edit cannot be made.
    """
    before = editable(parent.events, number)
    # Values that the edit leaves unchanged do not count as edits.
    changed_fields = {name: value for name, value in edit if value != getattr(before, name)}
    changes = ForkEdit.model_validate(changed_fields)
    retrieved = _edited_search(parent, number, before, changes)
    action = changes.action or (before.action if retrieved else None)
    events = list(parent.events[: parent.state["seq"]])
    state: dict[str, Any] = {**parent.state, "trajectory": trajectory}
    if changes.plan is not None:
        while events[-1].round == number:
            events.pop()
        ledger = _replanned(
            ledger_before(events), changes.plan, _question_event(events).setup.settings
        )
        state |= {"ledger": plain(ledger), "round": number - 1, "next": "schedule"}
    if changes.action is not None:
        state["forced"] = None  # A person knows better than the harness what to look at.
    state["seq"] = len(events) + 1
    last = Forked(
        round=state["round"],
        parent=parent.trajectory,
        at=number,
        edit=changes.model_copy(update={"action": action}),
        found=retrieved,
        start=state,
    )
    return events, last


def _edited_search(
    parent: Parent, number: int, before: ForkEdit, changes: ForkEdit
) -> EvidenceRetrieved | None:
    """Return the round's search with other evidence, if the evidence is edited."""
    if changes.evidence is None:
        return None
    retrieved, action = _search_of(parent.events, number), changes.action or before.action
    if retrieved is None or action is None or action.mode is None:
        raise InputError(f"round {number} made no search: its evidence cannot be edited")
    unchanged = {e.ref for e in changes.evidence if e in retrieved.evidence}
    # What a person put there is quoted, since it is there to answer.
    put = [
        quote_of(e, e.text, 1.0)
        for e in changes.evidence
        if e.ref not in unchanged and not retrieved.weighed
    ]
    videos = {quote.video for quote in put}

    def kept(quotes: Sequence[Quote]) -> list[Quote]:
        own = [quote for quote in quotes if quote.video not in videos]
        return [quote for quote in own if unchanged.issuperset(quote.refs)]

    return retrieved.model_copy(
        update={
            "mode": action.mode,
            "query": action.query,
            "evidence": changes.evidence,
            "images": tuple(
                picture.blob for picture in by_evidence(pictures_of(retrieved), changes.evidence)
            ),
            "nothing_close": not changes.evidence,
            "refused": "",
            "weighed": tuple(weighed for weighed in retrieved.weighed if weighed.ref in unchanged),
            "quotes": () if retrieved.by_video else (*kept(retrieved.quotes), *put),
            "by_video": tuple(
                one.model_copy(
                    update={
                        "quotes": (*kept(one.quotes), *(q for q in put if q.video == one.video))
                    }
                )
                for one in retrieved.by_video
            ),
        }
    )


def _replanned(ledger: Ledger, lines: Sequence[PlanLine], settings: AskSettings) -> Ledger:
    """Apply a person's plan to the ledger, with more changes at once than a model may make.

    Raises:
        InputError: the plan breaks a rule of the ledger; says which.
    """
    known = {subtask.id: subtask for subtask in ledger.subtasks}
    for line in lines:
        if line.id and (line.id not in known or known[line.id].depends != line.depends):
            raise InputError(f"{line.id}: only new subtasks, without an id, have new dependencies")
    kept_ids = {line.id for line in lines}
    edits = Edits(
        rewrite=tuple(
            Rewrite(id=line.id, text=line.text)
            for line in lines
            if line.id and known[line.id].text != line.text
        ),
        abandon=tuple(s.id for s in ledger.subtasks if s.id not in kept_ids and is_open(s)),
        add=tuple(
            SubtaskDraft(text=line.text, depends=line.depends) for line in lines if not line.id
        ),
    )
    free = {"replan_adds": UNLIMITED, "replan_abandons": UNLIMITED}
    changed, refused = edit_ledger(ledger, edits, settings.model_copy(update=free))
    if refused:
        raise InputError(f"the plan cannot be edited so: {'; '.join(refused)}")
    return changed


def ledger_before(events: Sequence[Event]) -> Ledger:
    for event in reversed(events):
        if isinstance(event, Planned | Replanned | RoundClosed):
            return Ledger(subtasks=event.subtasks)
        if isinstance(event, Forked):
            return ledger_of(cast(State, event.start))
    return Ledger()


def _search_of(events: Sequence[Event], number: int) -> EvidenceRetrieved | None:
    """Return the result of the round's search, if it made one after its last action."""
    round_events = [e for e in events if e.round == number]
    acted = [at for at, e in enumerate(round_events) if isinstance(e, Acted)]
    later = round_events[acted[-1] :] if acted else []
    return next((e for e in later if isinstance(e, EvidenceRetrieved)), None)


def _question_event(events: Sequence[Event]) -> QuestionAsked:
    first = events[0] if events else None
    if not isinstance(first, QuestionAsked):
        raise InputError("the record does not begin with a question")
    return first


# A round's plan as lines of text that a person edits, and edits described in words.

_ID = re.compile(r"(t[1-9]\d*)\s*+:")
_AFTER = re.compile(r"\(after ((?:t[1-9]\d*+(?:,\s*+)?)++)\)\Z")


def plan_text(plan: Sequence[PlanLine]) -> str:
    """Format a plan, one line a subtask: ``t2: who sings (after t1)``."""
    return "\n".join(_written(line) for line in plan)


def read_plan(text: str, before: Sequence[PlanLine]) -> tuple[PlanLine, ...]:
    """Parse a plan from text; a line without an id is a new subtask.

    Args:
        text: in the format of ``plan_text``.
        before: the plan before; known lines keep their dependencies.

    Raises:
        InputError: a line has no words, or the id of no subtask.
    """
    known = {line.id: line for line in before}
    # Words may look like an id or a dependency: an unchanged line is taken as it was.
    untouched = {_written(line): line for line in before if line.id}
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return tuple(untouched.get(line) or _read(line, known) for line in lines)


def fork_line(fork: Forked) -> str:
    """Describe a fork's origin and change in one line."""
    edit, changes = fork.edit, list[str]()
    if edit.profile is not None:
        changes.append(f"profile {edit.profile}")
    if edit.plan is not None:
        changes.append("plan: " + "; ".join(_written(line) for line in edit.plan))
    if edit.action is not None and edit.action.kind == "answer":
        changes.append(f"answers {edit.action.answer!r}")
    elif edit.action is not None:
        changes.append(f"searches {edit.action.mode} {edit.action.query!r}")
    if edit.evidence is not None:
        refs = " ".join(f"[{piece.ref}]" for piece in edit.evidence)
        changes.append(f"finds {refs}" if refs else "finds nothing")
    changed = "; ".join(changes) or "the round was decided once more"
    return f"forked from {fork.parent} at round {fork.at}: {changed}"


def _written(line: PlanLine) -> str:
    start = f"{line.id}: " if line.id else ""
    after = f" (after {', '.join(line.depends)})" if line.depends else ""
    return f"{start}{' '.join(line.text.split())}{after}"


def _read(line: str, known: dict[str | None, PlanLine]) -> PlanLine:
    begins, ends = _ID.match(line), _AFTER.search(line)
    name, after = begins and begins[1], ends[1] if ends else ""
    words = line[begins.end() if begins else 0 : ends.start() if ends else None].strip()
    if not words:
        raise InputError(f"the plan has a line without words: {line!r}")
    if name and name not in known:
        raise InputError(f"the plan has no {name}: leave the id out to add a subtask")
    depends = tuple(re.findall(r"t\d+", after))
    if not name:
        return PlanLine(text=words, depends=depends)
    earlier = known[name]
    # Only spaces differ: the words are as they were.
    same = " ".join(earlier.text.split()) == words
    return PlanLine(id=name, text=earlier.text if same else words, depends=depends)
