"""A trajectory as it is stored, for tests of how its rounds are shown."""

from __future__ import annotations

from datetime import UTC, datetime

from domain.asking import Answer, Question, Subtask
from domain.memories import MemoryView, Scope
from store.queries.trajectories import StoredTrajectory
from tests.support.machine import VIDEO

QUESTION = Question(text="What does Ann open?", videos=(VIDEO,))
VIEW = MemoryView(scopes=(Scope(video=VIDEO, last_clip=5),))
TASK = Subtask(id="t1", text="what Ann opens")
MADE = Answer(text="a door", confidence=0.6)
ROW = StoredTrajectory(
    id="aa11",
    question=QUESTION,
    view=VIEW,
    machine="homer",
    profile="local",
    state="done",
    answer=MADE,
    tokens=5,
    seconds=1.5,
    started_at=datetime(2026, 1, 1, tzinfo=UTC),
)
