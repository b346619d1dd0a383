"""Whatever is perceived, the local writers keep to the clip and cut sentences and topics whole."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.media import IdentityKind, Percept
from domain.memories import MemoryDraft, MemoryKind, MemorySource, OpenSegment
from domain.people import TAG, Character, Identity
from domain.sentences import LINE_WORDS, split_sentences, split_utterance
from domain.settings import MemorySettings
from domain.time import TimeSpan
from memory.patches import PatchContext, check_patch, drop_invalid_items, uncovered_clips
from memory.writers.local_clip import LocalClipWriter
from memory.writers.local_event import LocalEventWriter
from memory.writers.port import ClipContext, EventWindow, WindowLine
from memory.writers.segment_labels import CutLimits, choose_cuts, depth_scores, split_at_cuts
from people.characters import ClipPeople
from people.names import search_text
from tests.support.memory import VIDEO, direction, face, percept, said, span, text_at, voice

SETTINGS = MemorySettings()
SECONDS = st.floats(0, 29).map(lambda s: round(s, 1))
WORDS = st.text(alphabet=st.sampled_from("abc XYZ.,!?'<>_0é"), min_size=1, max_size=40).filter(
    lambda text: bool(text.strip())
)
KNOWN = ClipPeople(characters=(Character(number=1, name="Omar", faces=(), voices=(3,)),))
LIMITS = st.builds(
    MemorySettings,
    segments_min=st.integers(1, 8),
    segments_max=st.integers(1, 8),
    label_words=st.integers(5, 9),
    segment_clips=st.integers(23, 40),
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
    old, count = draw(st.integers(0, 11)), draw(st.integers(1, 12))
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


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ('He said "stop." Then he left.', ['He said "stop."', "Then he left."]),
        ("Dr. Smith met Mr. Jones.", ["Dr. Smith met Mr. Jones."]),
        ("Version 2.5 works.", ["Version 2.5 works."]),
        ("你好。再见！", ["你好。", "再见！"]),
        ("  ", []),
    ],
)
def test_sentences_end_where_they_end(text: str, expected: list[str]) -> None:
    assert split_sentences(text) == expected


def test_a_short_utterance_stays_whole() -> None:
    assert split_utterance(said(1, " One. Two. ", seconds=2)) == [("One. Two.", span(1, 3))]


def test_a_long_one_is_cut_between_sentences_and_its_time_is_shared_out() -> None:
    cut = split_utterance(said(0, " ".join([("word " * 29 + "end.")] * 3), seconds=30))
    assert [len(one.split()) for one, _ in cut] == [30, 30, 30]
    assert [one for _, one in cut] == [span(0, 10), span(10, 20), span(20, 30)]


@given(st.lists(st.text(alphabet="ab .!?", max_size=60), max_size=20).map(" ".join))
def test_no_word_is_lost_and_times_follow_each_other(text: str) -> None:
    one = said(5, text, seconds=7)
    cut = split_utterance(one)
    assert " ".join(" ".join(words for words, _ in cut).split()) == " ".join(text.split())
    ends = [one.span.start_ms, *(time for _, when in cut for time in (when.start_ms, when.end_ms))]
    assert ends == sorted(ends)
    assert not cut or cut[-1][1].end_ms == one.span.end_ms
    whole = [words for words, _ in cut if len(words.split()) > LINE_WORDS]
    assert all(len(split_sentences(words)) == 1 for words in whole)


def lines(*topics: tuple[int, int]) -> np.ndarray:
    return np.array([direction(topic) for topic, count in topics for _ in range(count)])


def test_the_deepest_dip_is_where_the_topic_turns() -> None:
    depth = depth_scores(lines((1, 10), (2, 12), (3, 9)))
    assert sorted(np.argsort(depth)[-2:] + 1) == [10, 22]
    assert choose_cuts(depth, [], CutLimits(0, 7, 4)) == [10, 22]


def test_forced_cuts_come_first_and_the_limit_holds() -> None:
    depth = depth_scores(lines((1, 10), (2, 10), (3, 10)))
    assert choose_cuts(depth, [5], CutLimits(0, 2, 4))[0] == 5
    assert len(choose_cuts(depth, [5, 15, 25], CutLimits(0, 2, 4))) == 2
    assert choose_cuts(depth, [], CutLimits(0, 1, 4)) in ([10], [20])


def test_a_cut_inside_a_clip_gives_it_to_both_topics() -> None:
    assert split_at_cuts([0] * 4 + [1] * 4 + [2] * 4, [0, 1, 2], [6]) == [[0, 1], [1, 2]]


def test_a_cut_near_a_clip_s_edge_is_at_the_edge() -> None:
    for cut in (7, 8, 9, 10):
        assert split_at_cuts([0] * 8 + [1] * 8 + [2] * 8, [0, 1, 2], [cut]) == [[0], [1, 2]]


@given(st.lists(st.integers(0, 12), min_size=1, max_size=60), st.data())
def test_runs_cover_every_clip_and_share_one(of: list[int], data: st.DataObject) -> None:
    of, clips = sorted(of), list(range(13))
    at = sorted(data.draw(st.sets(st.integers(1, max(1, len(of) - 1)), max_size=7)))
    runs = split_at_cuts(of, clips, [cut for cut in at if cut < len(of)])
    assert sorted({clip for run in runs for clip in run}) == clips
    for run in runs:
        assert run == list(range(run[0], run[-1] + 1))
    for one, other in pairwise(runs):
        assert len(set(one) & set(other)) <= 1
        assert not set(one) <= set(other)
        assert not set(other) <= set(one)
        assert one[0] < other[0]


def said_of_line(
    text: str, speaker: str | None, source: MemorySource = MemorySource.SAID
) -> MemoryDraft:
    span, kind = TimeSpan.of(0, 1000), MemoryKind.EPISODIC
    return MemoryDraft(kind=kind, text=text, span=span, source=source, speaker=speaker)


@pytest.mark.parametrize(
    ("text", "speaker", "searched"),
    [
        ("Pass the salt.", "Omar", "Omar: Pass the salt."),
        ("Pass the salt.", "<voice_3>", "Omar: Pass the salt."),
        ("Pass the salt.", "<voice_4>", "Pass the salt."),
        ("Pass the salt.", None, "Pass the salt."),
        ("<voice_3> leaves.", None, "Omar leaves."),
        ("<voice_4> leaves.", None, "<voice_4> leaves."),
    ],
)
def test_names_are_searched_and_tags_are_not(text: str, speaker: str | None, searched: str) -> None:
    assert search_text(said_of_line(text, speaker), KNOWN) == searched


def test_what_was_read_is_searched_by_its_words_alone() -> None:
    assert search_text(said_of_line("EXIT", None, MemorySource.READ), KNOWN) == "EXIT"
