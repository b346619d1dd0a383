"""Names that writers give: to whom, from when, by whose word, and never somebody else's tag."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from domain.media import ClipState, Percept
from domain.memories import ClipMemories, MemoryDraft, MemoryKind, MemorySource
from domain.people import TAG, IdentityStatement, PersonOfVideo
from library.memory import show_video
from memory.writers.port import ClipContext, Writers
from people.characters import ClipPeople
from store.database import Store
from tests.support.memory import (
    SETTINGS,
    VIDEO,
    Perceived,
    Tools,
    face,
    known_video,
    local_writers,
    percept,
    remember,
    voice,
)

TOOLS: Any = Tools()


@dataclass
class Writer:
    """Says what it was told to say of each clip; the source of its names is ``source``."""

    names: Sequence[tuple[str, str]] = ()
    statements: Sequence[IdentityStatement] = ()
    text: str = "They talk."
    source: str = ""
    name: str = "told"
    wants_context: bool = False

    def write(self, seen: Percept, people: ClipPeople, context: ClipContext) -> ClipMemories:
        line = MemoryDraft(
            kind=MemoryKind.EPISODIC, text=self.text, span=seen.clip.span, source=MemorySource.MODEL
        )
        return ClipMemories(
            drafts=(line,), names=tuple(self.names), statements=tuple(self.statements)
        )


def watch(store: Store, n: int, writer: Writer) -> None:
    start = 30 * n
    one = percept(
        n,
        faces=(face(0, 1, (start, start + 9)), face(1, 2, (start, start + 9))),
        voices=(voice(0, 1, (start, start + 9)),),
    )
    writers = Writers(writer, local_writers().event)
    assert remember(store, VIDEO, Perceived(one), writers, TOOLS, SETTINGS) == ClipState.DONE


def people(store: Store, as_of_ms: int | None = None) -> dict[int, PersonOfVideo]:
    return {one.number: one for one in show_video(store, VIDEO, as_of_ms).people}


def names(person: PersonOfVideo) -> list[tuple[str, str, int]]:
    return [(one.name, one.source, one.from_clip) for one in person.names]


@pytest.fixture
def video(store: Store) -> Store:
    known_video(store, 4)
    return store


@pytest.mark.parametrize(
    ("tag", "writer_source", "source"),
    [("<face_0>", "", "read"), ("<voice_0>", "", "said"), ("<face_0>", "model", "model")],
)
def test_names_have_a_source(video: Store, tag: str, writer_source: str, source: str) -> None:
    watch(video, 0, Writer([(tag, "Ada")], source=writer_source))
    (named,) = [one for one in people(video).values() if one.names]
    assert names(named) == [("Ada", source, 0)]
    assert tag in named.tags


@pytest.mark.parametrize("name", ["<face_1>", "I am <face_1>", "<character_1>", "<voice_0>"])
def test_a_name_that_poses_as_a_tag_names_nobody_else(video: Store, name: str) -> None:
    watch(video, 0, Writer([("<face_0>", name), ("<face_1>", "Omar")], text="<face_0> waves."))
    shown = show_video(video, VIDEO)
    assert not any(TAG.search(given.name) for one in shown.people for given in one.names)
    (line,) = shown.clips[0].lines
    assert "Omar" not in line.text
    assert line.text.endswith("waves.")


def test_the_most_trusted_of_several_names_is_shown_from_when_it_was_learned(video: Store) -> None:
    watch(video, 0, Writer([("<face_0>", "Tall woman")], source="model"))
    watch(video, 1, Writer([("<face_0>", "Ada Ferrari")]))
    watch(video, 2, Writer([("<face_0>", "The boss")], source="model"))
    assert (people(video)[0].label, people(video, 30_000)[0].label) == ("Ada Ferrari", "Tall woman")
    assert [name for name, *_ in names(people(video)[0])] == [
        "Tall woman",
        "Ada Ferrari",
        "The boss",
    ]


def test_a_name_said_of_a_character_is_that_of_all_who_it_is(video: Store) -> None:
    joined = [IdentityStatement(face=0, voice=0, clip=0, support=9, reason="lips")]
    watch(video, 0, Writer(statements=joined))
    watch(video, 1, Writer([("<character_0>", "Ada")], source="model"))
    shown = people(video)[0]
    assert (shown.tags, shown.label) == (("<face_0>", "<voice_0>"), "Ada")


def test_support_adds_up_over_clips_until_it_is_enough(video: Store) -> None:
    for n, support in enumerate((1.5, 1.5, 1.5)):
        stated = IdentityStatement(face=0, voice=0, clip=n, support=support, reason="lips")
        watch(video, n, Writer(statements=[stated]))
        assert (people(video)[0].tags == ("<face_0>", "<voice_0>")) == (n == 2)
    assert (people(video, 60_000)[0].tags, len(people(video))) == (("<face_0>",), 2)


def test_two_faces_that_claim_one_voice_equally_get_it_neither(video: Store) -> None:
    stated = [
        IdentityStatement(face=face, voice=0, clip=0, support=9, reason="lips") for face in (0, 1)
    ]
    watch(video, 0, Writer(statements=stated))
    assert sorted(one.tags for one in people(video).values()) == [
        ("<face_0>",),
        ("<face_1>",),
        ("<voice_0>",),
    ]
