"""A round's plan as lines of text that a person changes, and back; and a change in words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from domain.errors import InputError
from domain.trajectory import Forked, PlanLine

_ID = re.compile(r"(t[1-9]\d*)\s*+:")
_AFTER = re.compile(r"\(after ((?:t[1-9]\d*+(?:,\s*+)?)++)\)\Z")


def plan_text(plan: Sequence[PlanLine]) -> str:
    """One line a subtask: ``t2: who sings (after t1)``."""
    return "\n".join(_written(line) for line in plan)


def read_plan(text: str, was: Sequence[PlanLine]) -> tuple[PlanLine, ...]:
    """The plan that a text says. A line without an id is a new subtask.

    Args:
        text: as ``plan_text`` writes it.
        was: the plan before; a line that is known keeps what it depends on.

    Raises:
        InputError: a line has no words, or the id of no subtask.
    """
    known = {line.id: line for line in was}
    # Words may look like an id or like what a line waits for: untouched, they are only words.
    untouched = {_written(line): line for line in was if line.id}
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return tuple(untouched.get(line) or _read(line, known) for line in lines)


def changed(fork: Forked) -> tuple[str, ...]:
    """What a fork changed, in words; nothing where its round was only decided once more."""
    edit, told = fork.edit, list[str]()
    if edit.profile is not None:
        told.append(f"profile {edit.profile}")
    if edit.plan is not None:
        told.append("plan: " + "; ".join(_written(line) for line in edit.plan))
    if edit.action is not None and edit.action.kind == "answer":
        told.append(f"answers {edit.action.answer!r}")
    elif edit.action is not None:
        told.append(f"searches {edit.action.mode} {edit.action.query!r}")
    if edit.evidence is not None:
        refs = " ".join(f"[{piece.ref}]" for piece in edit.evidence)
        told.append(f"finds {refs}" if refs else "finds nothing")
    return tuple(told)


def fork_line(fork: Forked) -> str:
    """Where a fork comes from and what it changed, as one line."""
    what = "; ".join(changed(fork)) or "the round was decided once more"
    return f"forked from {fork.parent} at round {fork.at}: {what}"


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
    was = known[name]
    # Only spaces differ: the words are as they were.
    same = " ".join(was.text.split()) == words
    return PlanLine(id=name, text=was.text if same else words, depends=depends)
