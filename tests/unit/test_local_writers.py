"""What the writers without a language model write: quotations, order, and causes as stated."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from domain.media import IdentityKind, Percept
from domain.memories import ClipMemories, MemoryKind, MemorySource, OpenSegment, Relation
from domain.people import Character, Identity
from domain.settings import MemorySettings
from memory.patches import PatchContext, WrittenPatch, check_patch
from memory.writers.local_clip import LocalClipWriter
from memory.writers.local_event import LocalEventWriter, find_stated_causes
from memory.writers.port import ClipContext, EventWindow, WindowLine
from memory.writers.segment_labels import Salience, content_words, summarise
from people.characters import ClipPeople
from people.names import format_clip
from tests.support.memory import VIDEO, WordVectors, face, percept, said, span, text_at, voice

SETTINGS = MemorySettings()
CONTEXT = ClipContext(VIDEO)
TENT = ["We pack the red tent", "The tent has red poles", "Fold the tent with its poles"]
SOUP = ["The soup needs salt", "Stir the soup with salt", "Taste the salt in the soup"]


def identity(kind: IdentityKind, number: int) -> Identity:
    return Identity(id=number + 1, kind=kind, number=number, first_clip=0)


PEOPLE = ClipPeople(
    faces={0: identity(IdentityKind.FACE, 4), 1: identity(IdentityKind.FACE, 5)},
    voices={0: identity(IdentityKind.VOICE, 7)},
    characters=(
        Character(number=2, name="Ada", faces=(4,), voices=(7,)),
        Character(number=3, faces=(5,)),
    ),
)


def written(seen: Percept) -> ClipMemories:
    return LocalClipWriter().write(seen, PEOPLE, CONTEXT)


def output(seen: Percept) -> list[tuple[str, str]]:
    return [(str(one.source), one.text) for one in written(seen).drafts]


def test_speech_is_quoted_with_its_speaker_s_tag() -> None:
    (one,) = written(percept(0, utterances=(said(1, "Good morning.", voice=0),))).drafts
    assert (one.text, one.speaker, one.tags) == ("Good morning.", "<voice_7>", ("<voice_7>",))
    assert one.span == span(1, 4)


def test_a_text_that_stays_on_screen_is_one_line() -> None:
    rows = [text_at(t, "WELCOME") for t in (2, 8, 14)] + [text_at(8, "Chapter 1", row=1)]
    found = output(percept(0, screen_texts=tuple(rows)))
    assert found == [("read", "WELCOME"), ("read", "WELCOME / Chapter 1")]
    (welcome, _) = written(percept(0, screen_texts=tuple(rows))).drafts
    assert welcome.span == span(2, 15)


@pytest.mark.parametrize("kind", ["said", "read", "caption"])
def test_words_that_look_like_a_tag_name_nobody(kind: str) -> None:
    fake = "the thief is <face_4>, ask <character_99>"
    seen = {
        "said": percept(0, utterances=(said(1, fake),)),
        "read": percept(0, screen_texts=(text_at(2, fake),)),
        "caption": percept(0, captions=(said(1, fake),)),
    }
    (one,) = written(seen[kind]).drafts
    assert one.text == "the thief is ‹face_4›, ask ‹character_99›"
    assert "Ada" not in format_clip([one], PEOPLE)


def test_text_that_is_hardly_legible_is_left_out() -> None:
    assert output(percept(0, screen_texts=(text_at(1, "???", score=0.3),))) == []


def test_who_is_on_screen_is_one_line_a_person_and_one_a_pair() -> None:
    assert output(percept(0, faces=(face(0, 1, (1, 2), (10, 12)), face(1, 2, (11, 14))))) == [
        ("seen", "<face_4> is on screen."),
        ("seen", "<face_4> and <face_5> are on screen together."),
        ("seen", "<face_5> is on screen."),
    ]


def test_a_crowd_is_one_line_and_not_one_for_each_pair() -> None:
    more = {n: identity(IdentityKind.FACE, n) for n in range(4)}
    faces = [face(n, n + 1, (5, 6)) for n in range(3)] + [face(3, 9, (5.5, 8))]
    drafts = (
        LocalClipWriter(2).write(percept(0, faces=tuple(faces)), ClipPeople(more), CONTEXT).drafts
    )
    crowd = "<face_0>, <face_1>, <face_2> and <face_3> are on screen together."
    assert [one.text for one in drafts if len(one.tags) > 1] == [crowd]


def test_two_groups_of_one_identity_are_one_person_on_screen() -> None:
    people = ClipPeople(faces={0: PEOPLE.faces[0], 1: PEOPLE.faces[0]})
    seen = percept(0, faces=(face(0, 1, (1, 2)), face(1, 1, (20, 21))))
    (one,) = LocalClipWriter().write(seen, people, CONTEXT).drafts
    assert one.span == span(1, 21)


def test_an_introduction_is_a_fact_with_its_words() -> None:
    seen = percept(
        0, utterances=(said(1, "Hi, I'm Ada Ferrari.", voice=0),), voices=(voice(0, 1, (1, 3)),)
    )
    found = written(seen)
    assert found.names == (("<voice_7>", "Ada Ferrari"),)
    fact = next(one for one in found.drafts if one.kind == MemoryKind.CHARACTER)
    assert fact.text == '<voice_7> is named Ada Ferrari (said: "Hi, I\'m Ada Ferrari.").'


def test_a_name_said_by_nobody_known_names_nobody() -> None:
    assert written(percept(0, utterances=(said(1, "Hi, I'm Ada Ferrari."),))).names == ()


def test_support_for_a_face_being_a_voice_is_in_seconds() -> None:
    seen = percept(0, faces=(face(0, 1, (0, 10)),), voices=(voice(0, 1, (1, 6)),))
    (one,) = written(seen).statements
    assert (one.face, one.voice, one.support) == (4, 7, 5.0)


@pytest.mark.parametrize(
    ("text", "relation", "source", "target"),
    [
        ("We departed because it rained.", Relation.CAUSES, "it rained", "We departed"),
        ("The delay was due to snow.", Relation.CAUSES, "snow", "The delay was"),
        ("Heat leads to expansion.", Relation.CAUSES, "Heat", "expansion"),
        ("Therefore, we went home.", Relation.CAUSES, "", "we went home"),
        ("That's why the lamp is off.", Relation.CAUSES, "", "the lamp is off"),
        ("The lock prevents theft.", Relation.PREVENTS, "The lock", "theft"),
        ("Baking requires flour.", Relation.REQUIRES, "Baking", "flour"),
        ("A key enables entry.", Relation.ENABLES, "A key", "entry"),
    ],
)
def test_a_cause_has_its_sides(text: str, relation: Relation, source: str, target: str) -> None:
    (one,) = find_stated_causes(text)
    assert (one.relation, one.source, one.target, one.quote) == (relation, source, target, text)


@pytest.mark.parametrize("text", ["Did we leave because it rained?", "The cause is unknown.", ""])
def test_questions_and_other_sentences_state_no_cause(text: str) -> None:
    assert find_stated_causes(text) == []


def a_line(
    clip: int, second: float, text: str, source: MemorySource = MemorySource.SAID
) -> WindowLine:
    vector, start = WordVectors().embed([text])[0], 30 * clip + second
    return WindowLine(clip, span(start, start + 2), text, source, vector, speaker="Ada")


def window(*clips: list[str], **more: Any) -> EventWindow:
    lines = [
        a_line(clip, 3 * place, text)
        for clip, texts in enumerate(clips)
        for place, text in enumerate(texts)
    ]
    spans = {n: span(30 * n, 30 * n + 30) for n in range(len(clips))}
    values: dict[str, Any] = {"new": tuple(range(len(clips)))} | more
    return EventWindow(VIDEO, len(clips) - 1, spans, lines=tuple(lines), **values)


def patch_of(given: EventWindow) -> WrittenPatch:
    patch = LocalEventWriter(SETTINGS).patch(given)
    known = {one.label: one.clips for one in [*given.previous, *given.related]}
    ground = PatchContext(given.at_clip, given.new, given.clips, known)
    assert check_patch(patch, ground, SETTINGS) == []
    return patch


def test_topics_become_segments_with_an_edge_in_time() -> None:
    patch = patch_of(window(TENT, TENT, SOUP, SOUP))
    assert [one.clips for one in patch.segments] == [(0, 1), (2, 3)]
    tent, soup = patch.segments
    assert "tent" in tent.label.lower()
    assert "soup" in soup.label.lower()
    (edge,) = patch.edges
    assert (edge.source, edge.target, edge.relation) == (tent.label, soup.label, "before")
    assert (edge.explicit, edge.confidence, edge.evidence) == (False, 1.0, (1, 2))


def test_topics_that_turn_within_a_clip_overlap() -> None:
    patch = patch_of(window(TENT * 2, TENT + SOUP, SOUP * 2))
    assert [one.clips for one in patch.segments] == [(0, 1), (1, 2)]
    assert [(one.relation, one.evidence) for one in patch.edges] == [("overlap", (1,))]


def test_a_topic_that_goes_on_extends_the_open_segment() -> None:
    before = [a_line(0, 3 * n, text) for n, text in enumerate(TENT)]
    open_one = OpenSegment(0, 0, "The red tent", "They pack.", (0,))
    given = window(
        [], TENT, TENT, SOUP, SOUP, new=(1, 2, 3, 4), previous=(open_one,), before=tuple(before)
    )
    first, second = patch_of(given).segments
    assert (first.extends, first.clips) == ("The red tent", (0, 1, 2))
    assert (second.extends, second.clips) == (None, (3, 4))


def test_a_long_open_segment_is_not_extended_for_ever() -> None:
    open_one = OpenSegment(0, 0, "The red tent", "They pack.", tuple(range(10)))
    given = window(*([TENT] * 12), new=(10, 11), previous=(open_one,), before=())
    assert [one.extends for one in patch_of(given).segments] == [None]


def test_a_long_pause_always_parts_topics() -> None:
    given, spans = window(TENT, TENT), {0: span(0, 30), 1: span(4000, 4030)}
    later = [a_line(0, n, t) for n, t in enumerate(TENT)]
    later += [
        WindowLine(1, span(4000 + n, 4001 + n), t, MemorySource.SAID, WordVectors().embed([t])[0])
        for n, t in enumerate(TENT)
    ]
    given = EventWindow(VIDEO, 1, spans, (0, 1), lines=tuple(later))
    assert [one.clips for one in patch_of(given).segments] == [(0,), (1,)]


def test_silent_clips_are_a_segment_that_says_so() -> None:
    (one,) = patch_of(window([], [])).segments
    assert (one.label, one.clips) == ("Nothing said at 00:00", (0, 1))
    assert one.summary == "Nothing was said or read, and nobody was recognised."


def test_a_cause_that_is_stated_is_an_edge_that_quotes_it() -> None:
    why = ["The soup is salty because the red tent poles fell in", *SOUP[1:]]
    patch = patch_of(window(TENT, TENT, SOUP, why))
    (edge,) = [one for one in patch.edges if one.relation == "causes"]
    tent, soup = patch.segments
    assert (edge.source, edge.target, edge.explicit) == (tent.label, soup.label, True)
    assert edge.evidence == (3,)
    assert '"The soup is salty because the red tent poles fell in"' in edge.rationale


def test_no_cause_is_made_up_where_none_is_stated_across_segments() -> None:
    within = ["The tent is red because of its poles", *TENT[1:]]
    assert all(one.relation == "before" for one in patch_of(window(TENT, within, SOUP, SOUP)).edges)


def test_a_label_that_is_taken_gets_its_time() -> None:
    given, writer = window(TENT, TENT, SOUP, SOUP), LocalEventWriter(SETTINGS)
    patch = writer.patch(given)
    first, second = patch.segments
    taken = f"segment {first.label!r} has the label of an earlier segment: give it its own"
    repaired = writer.repair(given, patch, [taken])
    assert repaired.segments[0].label.endswith("at 00:00")
    assert len(repaired.segments[0].label.split()) <= 8
    assert repaired.segments[1] == second
    assert repaired.edges[0].source == repaired.segments[0].label


def test_a_label_is_made_of_telling_words_in_their_own_spelling() -> None:
    lines = [
        a_line(0, n, text)
        for n, text in enumerate(["I visited Paris", "Paris is nice", "well, you know"])
    ]
    assert Salience(lines).label(lines, 8) == "Paris, visited"
    assert Salience([]).label([], 8) == ""
    assert content_words("The <face_3> didn't see Ada's dog!") == ["ada", "dog"]


def _label(*texts: str, around: Sequence[str] = ()) -> str:
    """Return the label of lines, each of a clip of its own, in a window with more around them."""
    lines = [a_line(n, 0, text) for n, text in enumerate(texts)]
    more = [a_line(len(texts) + n, 0, text) for n, text in enumerate(around)]
    return Salience([*lines, *more]).label(lines, 8)


def test_a_label_has_a_term_of_several_words_rather_than_one_of_them() -> None:
    texts = ("dark energy is a puzzle", "so dark energy grows", "energy is conserved", "energy?")
    label = _label(*texts)
    assert label.startswith("Dark energy")
    assert label.casefold().count("energy") == 1


def test_what_the_whole_window_is_about_does_not_name_its_parts() -> None:
    around = ["the camp"] * 6
    assert _label("the camp at the lake", "a lake, the camp", around=around).startswith("Lake")


def test_a_label_has_no_plural_beside_its_singular_no_quotes_and_no_capitals_of_slides() -> None:
    texts = ("BIG BANG", "BIG BANG", "the Big Bang", "the bangs of 'drums' and drum 'drums'")
    label = _label(*texts)
    assert label.startswith("Big Bang")
    assert label.casefold().count("drum") == label.casefold().count("bang") == 1
    assert "'" not in label


def test_a_summary_quotes_lines_in_order_and_stays_short() -> None:
    lines = [
        a_line(n // 5, n, f"This is sentence number {n} about tents. And more.") for n in range(40)
    ]
    text = summarise(lines)
    assert text.startswith("Ada: This is sentence number 0")
    assert 4 <= text.count(".") <= 8
    assert summarise([]) == ""
