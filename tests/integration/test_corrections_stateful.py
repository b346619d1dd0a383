"""Whatever is watched, corrected and taken back, in any order: people stay consistent."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run

from domain.errors import InputError
from domain.media import ClipState, Percept
from domain.people import Correction, CorrectionKind
from flows.removal import delete_video_rows
from library.memory import dump_lines
from people.across_videos import rename
from people.corrections import LAST_CLIP, history, keep_apart, merge, split, undo
from store.database import Store
from store.queries.characters import CharacterAt, characters_at, identities_of
from tests.support.memory import (
    SETTINGS,
    Perceived,
    Tools,
    face,
    known_video,
    local_writers,
    percept,
    remember,
    said,
    voice,
)
from tests.support.several_videos import list_people

CLIPS = 8
NAMES = ("Ada", "Omar", "Zoe", "Grace")

_numbers = itertools.count(1)


def scene(clip: int, faces: Sequence[int], speaker: int | None, name: str, seconds: int) -> Percept:
    """Some of three faces in view, and one of three voices, which may say its name."""
    start = 30 * clip
    words = f"My name is {name}." if name else "It is a nice day."
    return percept(
        clip,
        faces=tuple(face(n, who, (start, start + seconds)) for n, who in enumerate(faces)),
        voices=() if speaker is None else (voice(0, speaker, (start, start + seconds)),),
        utterances=() if speaker is None else (said(start, words, 0, seconds=seconds),),
    )


class Corrected(RuleBasedStateMachine):
    """A video that is watched and corrected, and its twin that is only watched."""

    def __init__(self, store: Store) -> None:
        super().__init__()
        self.store, self.watched = store, 0
        self.video, self.twin = (f"{next(_numbers):016x}" for _ in range(2))
        for video in (self.video, self.twin):
            known_video(store, CLIPS, video)
        self.watch([0, 1], 0, "Ada", 3)

    @precondition(lambda self: self.watched < CLIPS)
    @rule(
        faces=st.lists(st.integers(0, 2), max_size=2, unique=True),
        speaker=st.none() | st.integers(0, 2),
        name=st.sampled_from(("", *NAMES[:2])),
        seconds=st.sampled_from((2, 6, 20)),
    )
    def watches(self, faces: list[int], speaker: int | None, name: str, seconds: int) -> None:
        self.watch(faces, speaker, name, seconds)

    def watch(self, faces: list[int], speaker: int | None, name: str, seconds: int) -> None:
        seen = Perceived(scene(self.watched, faces, speaker, name, seconds))
        for video in (self.video, self.twin):
            state = remember(self.store, video, seen, local_writers(), Tools(), SETTINGS)
            assert state == ClipState.DONE
        self.watched += 1

    @rule(who=st.integers(0), name=st.sampled_from(("", *NAMES)))
    def call(self, who: int, name: str) -> None:
        self.tried(lambda: rename(self.store, self.video, self.pick(who), name))

    @precondition(lambda self: len(self.people()) > 1)
    @rule(one=st.integers(0), other=st.integers(0))
    def join(self, one: int, other: int) -> None:
        self.tried(lambda: merge(self.store, self.video, self.pick(one), self.pick(other)))

    @rule(who=st.integers(0), which=st.integers(1, 7), name=st.sampled_from(("", "Ruth")))
    def part(self, who: int, which: int, name: str) -> None:
        listed = list_people(self.store, self.video)
        one = listed[who % len(listed)]
        tags = [tag for n, tag in enumerate(one.tags) if which >> n & 1]
        self.tried(lambda: split(self.store, self.video, str(one.number), tags, name))

    @precondition(lambda self: len(self.people()) > 1)
    @rule(one=st.integers(0), other=st.integers(0))
    def keep_apart(self, one: int, other: int) -> None:
        self.tried(lambda: keep_apart(self.store, self.video, self.pick(one), self.pick(other)))

    @precondition(lambda self: self.in_force())
    @rule(which=st.none() | st.integers(0))
    def take_back(self, which: int | None) -> None:
        held = self.in_force()
        number = None if which is None else held[which % len(held)].number
        self.tried(lambda: undo(self.store, self.video, number))

    @invariant()
    def everybody_is_exactly_one_person(self) -> None:
        with self.store.begin() as session:
            began = {one.id: one.character for one in identities_of(session, self.video)}
            for clip in sorted({0, self.watched // 2, LAST_CLIP}):
                known = characters_at(session, self.video, clip, learned=True)
                cast = characters_at(session, self.video, clip)
                assert members(cast) == members(known)
                self.numbers_mean_whom_they_always_meant(cast, began)

    def numbers_mean_whom_they_always_meant(
        self, cast: list[CharacterAt], began: dict[int, int]
    ) -> None:
        numbers = [one.character.number for one in cast]
        assert numbers == sorted(set(numbers))
        now = {began[row]: one.character.number for one in cast for row in one.members}
        assert all(now.get(number, number) == number for number in numbers)
        for one in cast:
            assert len({name.name.casefold() for name in one.names}) == len(one.names)
            assert len(one.members) == len(one.character.faces) + len(one.character.voices)

    @invariant()
    def the_last_word_of_a_person_holds(self) -> None:
        listed = {one.number: one for one in list_people(self.store, self.video)}
        held = self.in_force()
        for one in held:
            later = [c for c in held if c.number > one.number]
            if any(set(c.numbers) & set(one.numbers) for c in later):
                continue
            if one.kind is CorrectionKind.APART:
                self.they_are_two(one)
                continue
            for outcome in one.outcomes:
                if outcome.members:
                    assert set(outcome.members) <= set(listed[outcome.number].tags)
                if outcome.number in listed and outcome.names:
                    assert listed[outcome.number].label == outcome.names[0]

    def they_are_two(self, one: Correction) -> None:
        for outcome in one.outcomes:
            for known in list_people(self.store, self.video):
                tags = set(known.tags)
                assert not tags & set(outcome.members) or not tags & set(outcome.others)

    def teardown(self) -> None:
        """Everything taken back, the video is as the one that was only watched."""
        while self.in_force():
            undo(self.store, self.video)
        assert self.dump(self.video) == self.dump(self.twin)
        for video in (self.video, self.twin):
            delete_video_rows(self.store, video)

    def tried(self, act: Callable[[], Correction]) -> None:
        before = self.dump(self.video), history(self.store, self.video)
        try:
            act()
        except InputError:
            assert (self.dump(self.video), history(self.store, self.video)) == before

    def pick(self, which: int) -> str:
        people = self.people()
        return str(people[which % len(people)])

    def people(self) -> list[int]:
        return [one.number for one in list_people(self.store, self.video)]

    def in_force(self) -> list[Correction]:
        return [one for one in history(self.store, self.video) if not one.undone]

    def dump(self, video: str) -> list[str]:
        """All but the first line, which has the video's id."""
        return list(dump_lines(self.store, video))[1:]


def members(cast: list[CharacterAt]) -> list[int]:
    return sorted(row for one in cast for row in one.members)


@pytest.mark.full
def test_any_corrections_in_any_order_keep_people_consistent(store: Store) -> None:
    run(
        cast("Any", lambda: Corrected(store)),
        settings=settings(
            max_examples=10,
            stateful_step_count=12,
            phases=(Phase.generate,),
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )
