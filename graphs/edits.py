"""A round's plan as lines of text that a person edits, and edits described in words."""

from __future__ import annotations

import re
from collections.abc import Sequence

from domain.errors import InputError
from domain.trajectory import Forked, PlanLine

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


def describe_changes(fork: Forked) -> tuple[str, ...]:
    """Describe what a fork changed; empty if its round was only decided again."""
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
    return tuple(changes)


def fork_line(fork: Forked) -> str:
    """Describe a fork's origin and change in one line."""
    changes = "; ".join(describe_changes(fork)) or "the round was decided once more"
    return f"forked from {fork.parent} at round {fork.at}: {changes}"


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
