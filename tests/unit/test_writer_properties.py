"""Whatever is perceived, the local writers keep to the clip, its people and the limits."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from domain.media import IdentityKind, Percept
from domain.memories import MemoryKind, MemorySource, OpenSegment
from domain.people import TAG, Character, Identity
from domain.settings import MemorySettings
from memory.patches import PatchContext, check_patch, drop_invalid_items, uncovered_clips
from memory.writers.local_clip import LocalClipWriter
from memory.writers.local_event import LocalEventWriter
from memory.writers.port import ClipContext, EventWindow, WindowLine
from people.characters import ClipPeople
from tests.support.memory import VIDEO, direction, face, percept, said, span, text_at, voice

SETTINGS = MemorySettings()
SECONDS = st.floats(0, 29).map(lambda s: round(s, 1))
WORDS = st.text(alphabet=st.sampled_from("abc XYZ.,!?'<>_0é"), min_size=1, max_size=40).filter(
    lambda text: bool(text.strip())
)


@st.composite
def percepts(draw: st.DrawFn) -> Percept:
    times = st.lists(SECONDS.map(lambda s: (s, s + 0.5)), min_size=1, max_size=4)
    faces = [face(n, n, *draw(times)) for n in range(draw(st.integers(0, 4)))]
    voices = [voice(n, n, *draw(times)) for n in range(draw(st.integers(0, 3)))]
    heard = st.none() | st.sampled_from(range(len(voices))) if voices else st.none()
    return percept(
        0,
        faces=tuple(faces),
        voices=tuple(voices),
        utterances=tuple(
            said(draw(SECONDS), draw(WORDS), draw(heard), seconds=1)
            for _ in range(draw(st.integers(0, 4)))
        ),
        captions=tuple(said(draw(SECONDS), draw(WORDS)) for _ in range(draw(st.integers(0, 2)))),
        screen_texts=tuple(
            text_at(draw(SECONDS), draw(WORDS), row, draw(st.floats(0, 1)))
            for row in range(draw(st.integers(0, 3)))
        ),
    )


def cast_of(seen: Percept, shuffle: list[int]) -> ClipPeople:
    def named(kind: IdentityKind, number: int) -> Identity:
        return Identity(id=shuffle[number] + 1, kind=kind, number=shuffle[number], first_clip=0)

    faces = {one.number: named(IdentityKind.FACE, one.number) for one in seen.faces}
    voices = {one.number: named(IdentityKind.VOICE, one.number) for one in seen.voices}
    first = Character(number=0, name="Ada", faces=tuple(one.number for one in faces.values())[:1])
    return ClipPeople(faces, voices, {}, (first,))


@given(percepts(), st.permutations(range(5)))
def test_every_line_is_of_the_clip_and_of_its_people(seen: Percept, shuffle: list[int]) -> None:
    people = cast_of(seen, shuffle)
    written = LocalClipWriter().write(seen, people, ClipContext(VIDEO))
    known = people.tags()
    for draft in written.drafts:
        assert draft.text.strip()
        assert set(draft.tags) <= known
        assert 0 <= draft.span.start_ms <= draft.span.end_ms
        if draft.source == MemorySource.SEEN:
            assert {found[0] for found in TAG.finditer(draft.text)} == set(draft.tags)
        if draft.source == MemorySource.SAID and draft.kind == MemoryKind.EPISODIC:
            assert any(draft.text in one.text for one in seen.utterances)
    starts = [draft.span.start_ms for draft in written.drafts]
    assert starts == sorted(starts)
    assert {tag for tag, _ in written.names} <= known
    numbers = {one.number for one in people.faces.values()}
    assert {one.face for one in written.statements} <= numbers


@given(percepts(), st.permutations(range(5)))
def test_every_word_said_is_remembered(seen: Percept, shuffle: list[int]) -> None:
    written = LocalClipWriter().write(seen, cast_of(seen, shuffle), ClipContext(VIDEO))
    said_ones = [one for one in written.drafts if one.source == MemorySource.SAID]
    kept = " ".join(one.text for one in said_ones if one.kind == MemoryKind.EPISODIC)
    for one in seen.utterances:
        assert set(one.text.split()) <= set(kept.split())


@st.composite
def windows(draw: st.DrawFn) -> EventWindow:
    """A window of up to twelve clips, some after a pause, with an open segment before it or not."""
    old = draw(st.integers(0, 11))
    count = draw(st.integers(1, 12))
    start, spans = 0.0, {}
    for clip in range(old + count):
        start += draw(st.sampled_from([0, 0, 0, 0, 60, 9000]))
        spans[clip] = span(start, start + 30)
        start += 30

    def lines(clips: range) -> tuple[WindowLine, ...]:
        made = [
            WindowLine(
                clip,
                span(spans[clip].start_ms / 1000 + place, spans[clip].start_ms / 1000 + place + 1),
                draw(WORDS),
                draw(st.sampled_from([MemorySource.SAID, MemorySource.READ, MemorySource.SEEN])),
                direction(draw(st.integers(0, 3)), 16),
                draw(st.sampled_from([None, "Ada", "<voice_0>"])),
            )
            for clip in clips
            for place in range(draw(st.integers(0, 5)))
        ]
        return tuple(made)

    new = range(old, old + count)
    open_one = OpenSegment(0, 0, draw(WORDS), "They talk.", tuple(range(old)))
    return EventWindow(
        VIDEO,
        old + count - 1,
        spans,
        tuple(new),
        lines=lines(new),
        before=lines(range(old)),
        previous=(open_one,) if old else (),
    )


def ground_of(window: EventWindow) -> PatchContext:
    known = {one.label: one.clips for one in window.previous}
    return PatchContext(window.at_clip, window.new, window.clips, known)


@given(windows())
def test_any_window_is_covered_by_a_patch_that_may_be_applied(window: EventWindow) -> None:
    writer, ground = LocalEventWriter(SETTINGS), ground_of(window)
    patch = writer.patch(window)
    for _ in range(SETTINGS.patch_repairs):
        complaints = check_patch(patch, ground, SETTINGS)
        patch = writer.repair(window, patch, [str(one) for one in complaints])
    kept, dropped = drop_invalid_items(patch, ground, SETTINGS)
    assert uncovered_clips(kept, ground) == ()
    assert dropped == []
    starts = [window.clips[one.clips[0]].start_ms for one in kept.segments]
    assert starts == sorted(starts)
    for one in kept.edges:
        if not one.explicit:
            assert one.relation in ("before", "overlap")
            assert one.confidence == 1.0


LIMITS = st.builds(
    MemorySettings,
    segments_min=st.integers(1, 8),
    segments_max=st.integers(1, 8),
    label_words=st.integers(5, 9),
    segment_clips=st.integers(23, 40),
)


@given(windows(), LIMITS)
def test_a_patch_keeps_to_any_limits_set(window: EventWindow, limits: MemorySettings) -> None:
    writer, ground = LocalEventWriter(limits), ground_of(window)
    patch = writer.patch(window)
    for _ in range(limits.patch_repairs):
        complaints = check_patch(patch, ground, limits)
        patch = writer.repair(window, patch, [str(one) for one in complaints])
    kept, dropped = drop_invalid_items(patch, ground, limits)
    assert dropped == []
    assert uncovered_clips(kept, ground) == ()
