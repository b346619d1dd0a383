"""What holds of every ledger at all times."""

from __future__ import annotations

from collections.abc import Iterable

from domain.asking import Ledger, Subtask, SubtaskState
from domain.ledger import refs
from domain.settings import AskSettings


def check_legal(ledger: Ledger, settings: AskSettings) -> None:
    """Ids, dependencies, attempts, scores and answers of a ledger are as they must be."""
    ids = [s.id for s in ledger.subtasks]
    assert len(set(ids)) == len(ids) > 0
    standing = [s for s in ledger.subtasks if s.state is not SubtaskState.ABANDONED]
    assert len(standing) <= settings.subtasks
    for at, task in enumerate(ledger.subtasks):
        assert set(task.depends) <= set(ids[:at])
        assert task.attempts <= settings.attempts
        assert 0 <= task.best_score <= 1
        assert (task.state is SubtaskState.RESOLVED) == bool(task.answer)
        assert bool(task.support) == bool(task.answer)
        assert set(task.support) <= refs(ledger)


def check_kept(before: Iterable[Subtask], after: Ledger) -> None:
    """No subtask is gone, and none has lost evidence."""
    now = {s.id: s for s in after.subtasks}
    for task in before:
        assert set(task.evidence) <= set(now[task.id].evidence)
