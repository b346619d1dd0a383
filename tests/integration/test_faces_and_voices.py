"""A voice finds its face over the whole video: by company and by names, and the reason is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from sqlalchemy import select

from domain.media import ClipState, Group, Percept
from domain.memories import ClipMemories
from library.memory import show_video
from library.videos import check_video
from memory.write_clip import remember
from memory.writers.port import ClipContext, Writers
from people.characters import ClipPeople
from store.database import Store
from store.tables.schema import IdentityStatementRow
from tests.support.memory import (
    SETTINGS,
    VIDEO,
    Perceived,
    Tools,
    face,
    known_video,
    local_writers,
    percept,
    voice,
)

TOOLS: Any = Tools()
ANN, BOB, CEM = 1, 2, 3


@dataclass
class Namer:
    """Gives names and states nothing else."""

    names: Sequence[tuple[str, str]] = ()
    source: str = ""
    name: str = "namer"
    wants_context: bool = False
    statements: tuple[Any, ...] = field(default=())

    def write(self, seen: Percept, people: ClipPeople, context: ClipContext) -> ClipMemories:
        return ClipMemories(drafts=(), names=tuple(self.names))


@pytest.fixture
def video(store: Store) -> Store:
    known_video(store, 6)
    return store


def watch(
    store: Store,
    n: int,
    faces: Sequence[int] = (),
    voices: Sequence[int] = (),
    names: Sequence[tuple[str, str]] = (),
    seconds: int = 9,
) -> None:
    """A clip in which these people are all in view, and these voices heard, at one time."""
    times = (30 * n, 30 * n + seconds)
    seen: list[Group] = [face(at, who, times) for at, who in enumerate(faces)]
    heard = [voice(at, 10 + who, times) for at, who in enumerate(voices)]
    one = percept(n, faces=tuple(seen), voices=tuple(heard))
    writers = Writers(Namer(names), local_writers().event)
    assert remember(store, VIDEO, Perceived(one), writers, TOOLS, SETTINGS) == ClipState.DONE


def together(store: Store, as_of_ms: int | None = None) -> list[tuple[str, ...]]:
    """The tags of each character that has a face and a voice."""
    people = show_video(store, VIDEO, as_of_ms).people
    return [one.tags for one in people if len({tag[:5] for tag in one.tags}) > 1]


def reasons(store: Store) -> list[str]:
    with store.begin() as session:
        query = select(IdentityStatementRow.reason).order_by(IdentityStatementRow.id)
        return list(session.scalars(query))


def test_a_voice_heard_in_changing_company_is_of_who_stays(video: Store) -> None:
    watch(video, 0, [ANN, BOB], [ANN])
    watch(video, 1, [ANN, CEM], [ANN])
    assert together(video) == []
    watch(video, 2, [ANN, BOB], [ANN])
    assert together(video) == [("<face_0>", "<voice_0>")]
    assert together(video, 59_000) == []
    assert reasons(video) == [
        "in view during 27.0 of the 27.0 s of this voice with anyone in view, "
        "nobody else for more than 18.0 s"
    ]
    assert check_video(video, VIDEO).findings == ()


def test_a_narrator_over_changing_groups_is_nobody_in_view(video: Store) -> None:
    for n, faces in enumerate([[ANN, BOB], [BOB, CEM], [CEM, ANN], []]):
        watch(video, n, faces, [7])
    assert together(video) == []


def test_a_name_said_and_shown_joins_voice_and_face_wherever_they_were(video: Store) -> None:
    watch(video, 0, [], [ANN], [("<voice_0>", "Ann")])
    watch(video, 1, [BOB], [], [("<face_0>", "Bob Stone")])
    assert together(video) == []
    watch(video, 2, [ANN], [], [("<face_1>", "Ann Smith")])
    assert together(video) == [("<face_1>", "<voice_0>")]
    assert reasons(video) == ['the only face and the only voice that are called "Ann Smith"']
    (ann,) = [one for one in show_video(video, VIDEO).people if "<voice_0>" in one.tags]
    assert {one.name for one in ann.names} == {"Ann", "Ann Smith"}


def test_a_name_that_two_faces_have_joins_nobody(video: Store) -> None:
    watch(video, 0, [ANN], [], [("<face_0>", "Ann Smith")])
    watch(video, 1, [BOB], [], [("<face_1>", "Ann Jones")])
    watch(video, 2, [], [ANN], [("<voice_0>", "Ann")])
    assert together(video) == []
    assert reasons(video) == []
