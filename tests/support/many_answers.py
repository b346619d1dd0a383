"""Many answered and judged questions with the skills that they were given, put in row by row."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from psycopg.types.json import Jsonb
from sqlalchemy.orm import Session

from domain.asking import Answer, Citation, Question
from domain.base import Frozen
from domain.memories import MemoryView, Scope
from domain.skills import RoutedSkill, Signal, Skill
from domain.time import TimeSpan
from domain.trajectory import Ended, QuestionAsked, SkillsRouted
from store.database import Store
from store.driver import allocate_ids, copy_rows
from store.queries import skills as stored
from tests.support.machine import VIDEO
from tests.support.skills import a_skill

TYPE = "plain"
FIRST_DAY = datetime(2026, 1, 1, 12, tzinfo=UTC)


def a_run(number: int) -> str:
    """The id of the ``number``-th trajectory."""
    return f"{number:016x}"


def fill_answers(
    store: Store, count: int, skills: int = 0, video: str = VIDEO, days: int = 100
) -> list[Skill]:
    """``count`` answers over ``days`` days, two in three of them right, and ``skills`` skills.

    Each was given two of the skills in turn; the first eight were what each was learned from.
    """
    made = [a_skill(f"advice-{n}") for n in range(skills)]
    with store.begin() as session:
        for one in made:
            stored.add_version(session, one)
        _questions(session, count, video, days)
        types = {"trajectory_id": "text", "seq": "int4", "kind": "text", "payload": "jsonb"}
        rows = (
            (a_run(n), seq, event.kind, _sent(event), _when(n, count, days))
            for n in range(count)
            for seq, event in enumerate(_told(n, video, _given(n, made)))
        )
        _copy(session, "trajectory_events", types | {"at": "timestamptz"}, rows)
        _judgements(session, count, made, days)
    return made


def _when(number: int, count: int, days: int) -> datetime:
    return FIRST_DAY + timedelta(days=days * number / max(1, count))


def _copy(
    session: Session, table: str, types: Mapping[str, str], rows: Iterable[tuple[Any, ...]]
) -> None:
    copy_rows(session, table, types, list(rows))


def _questions(session: Session, count: int, video: str, days: int) -> None:
    ids = allocate_ids(session, "questions", count)
    types = {"id": "int8", "text": "text", "options": "jsonb"}
    rows = ((i, f"Who opens door {n}?", Jsonb([])) for n, i in enumerate(ids))
    _copy(session, "questions", types, rows)
    types = {"id": "text", "question_id": "int8", "machine": "text", "profile": "text"}
    types |= {"state": "text", "answer": "jsonb", "tokens": "int4", "seconds": "float8"}
    _copy(
        session,
        "trajectories",
        types | {"started_at": "timestamptz"},
        (
            (
                *(a_run(n), i, "homer", "local", "done"),
                *(_sent(answer_to(n, video)), 0, 1.5, _when(n, count, days)),
            )
            for n, i in enumerate(ids)
        ),
    )
    types = {"trajectory_id": "text", "video_id": "text", "last_clip": "int4"}
    _copy(session, "trajectory_videos", types, ((a_run(n), video, 5) for n in range(count)))


def answer_to(number: int, video: str) -> Answer:
    """The answer to the ``number``-th question, with what it rests on."""
    cited = tuple(
        Citation(
            ref=f"m{n + 1}",
            video=video,
            span=TimeSpan.of(n * 40_000, n * 40_000 + 2_000),
            text="Ann opens it.",
            clip=n,
        )
        for n in range(3)
    )
    return Answer(text=f"Ann opens door {number}.", confidence=0.8, citations=cited)


def _sent(model: Frozen) -> Jsonb:
    return Jsonb(model.model_dump(mode="json"))


def _given(number: int, skills: list[Skill]) -> tuple[Skill, ...]:
    return tuple(skills[(number + n) % len(skills)] for n in range(min(2, len(skills))))


def _told(
    number: int, video: str, skills: tuple[Skill, ...]
) -> Iterator[QuestionAsked | SkillsRouted | Ended]:
    view = MemoryView(scopes=(Scope(video=video, last_clip=5),))
    question = Question(text=f"Who opens door {number}?", videos=(video,))
    yield QuestionAsked(
        question=question, machine="homer", version=1, profile="local", reasoner="local", view=view
    )
    yield SkillsRouted(
        skills=tuple(
            RoutedSkill(
                name=one.name,
                version=one.version,
                tone=one.tone,
                score=0.7,
                instructions=one.instructions,
            )
            for one in skills
        )
    )
    yield Ended(state="done", why="told", answer=answer_to(number, video), rounds=1, tokens=0)


def _judgements(session: Session, count: int, skills: list[Skill], days: int) -> None:
    types = {"trajectory_id": "text", "question_type": "text", "right": "bool"}
    judged = ((a_run(n), TYPE, n % 3 != 0, _when(n, count, days)) for n in range(count))
    _copy(session, "judgements", types | {"judged_at": "timestamptz"}, judged)
    types = {"trajectory_id": "text", "signal": "text", "question_type": "text"}
    learned = (
        (a_run(8 * at + n), Signal.SEARCH_WIN.value, TYPE, one.name, one.version)
        for at, one in enumerate(skills)
        for n in range(8)
        if 8 * at + n < count
    )
    _copy(session, "observations", types | {"skill": "text", "version": "int4"}, learned)
