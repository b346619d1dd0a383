"""Answers with a verdict, made up as they would be recorded."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from domain.asking import Answer, Mode, Question, Subtask, SubtaskState
from domain.memories import MemoryView, Scope
from domain.skills import JudgedTrajectory, RoutedSkill, Skill
from domain.trajectory import Ended, Event, EvidenceRetrieved, Planned, QuestionAsked, SkillsRouted
from skills.learn import judge
from store.database import Store
from store.queries.trajectories import add_trajectory, append_events, end_trajectory
from tests.support.machine import VIDEO

VIEW = MemoryView(scopes=(Scope(video=VIDEO, last_clip=0),))


def answered(
    store: Store,
    name: str,
    kind: str,
    *,
    right: bool | None,
    rounds: int = 2,
    text: str = "Who opens the gate?",
    given: Sequence[Skill] = (),
    profile: str = "local",
    strategy: str = "homer",
    query: str = "",
) -> None:
    """A trajectory as it would be recorded, and the verdict on it."""
    question = Question(text=text, videos=(VIDEO,), type=kind)
    task = Subtask(id="t1", text=text, state=SubtaskState.RESOLVED, attempts=1)
    answer = Answer(text="a box of old letters", confidence=0.5, citations=(), retrieved=())
    skills = tuple(
        RoutedSkill(name=s.name, version=s.version, tone=s.tone, score=0.9, instructions=("x",))
        for s in given
    )
    searches = [
        EvidenceRetrieved(round=n, mode=Mode.VIDEO, query=query or f"query {n}", evidence=())
        for n in range(1, rounds + 1)
    ]
    end = Ended(state="done", why="", answer=answer, rounds=rounds, tokens=0)
    asked = QuestionAsked(
        question=question,
        machine=strategy,
        version=1,
        profile=profile,
        reasoner="planted",
        view=VIEW,
    )
    events: list[Event] = [
        asked, SkillsRouted(skills=skills), Planned(subtasks=(task,)), *searches, end
    ]  # fmt: skip
    with store.begin() as session:
        add_trajectory(session, name, question, VIEW, strategy, profile)
        cursor: Any = session.connection().connection.cursor()
        append_events(cursor, name, 0, events)
        end_trajectory(session, name, "done", answer, 0, 1.0)
    judge(store, JudgedTrajectory(trajectory=name, question_type=kind, right=right))
