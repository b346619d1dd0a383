"""Sounds and things in view: events with times, lines in words, what becomes of them in memory."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from domain.errors import WeightsMissing
from domain.media import Box, Clip, IdentityKind, Percept, SeenObject, Sound
from domain.memories import Memory, MemoryDraft, MemoryKind, MemorySource
from domain.people import Identity
from domain.sentences import count_objects, describe_by_time, describe_counts
from domain.settings import MemorySettings, Settings, WatchSettings
from domain.time import TimeSpan
from domain.words import plural
from flows.ingest_video import _missing_models, models_used
from memory.clip_lines import continue_sounds
from memory.writers import make_writers
from memory.writers.clip_page import prompt_parts
from memory.writers.local_clip import LocalClipWriter
from memory.writers.port import ClipContext, WindowLine
from memory.writers.segment_labels import Salience, summarise
from models import profile as profiles
from models import yamnet
from models.keys_and_packages import Extra
from models.objects_and_texts import coco_labels
from models.ports import Samples
from models.profile import Profile, load_profile
from models.toolbox import Toolbox
from models.yamnet import YamnetClassifier, open_interpreter
from people.characters import ClipPeople
from people.names import format_line
from perception.hearing import find_sounds, sound_kinds
from tests.support.memory import face, percept, said, span, text_at

SETTINGS = WatchSettings()
CLIP = Clip(index=2, span=TimeSpan.of(60_000, 90_000))
LABELS = tuple(one for classes in sound_kinds().values() for one in classes)
LAUGHTER, DOG = "laughter, people laughing", "a dog barking"


class Scripted:
    """Windows of a second every half second; ``heard``: scores of classes by window."""

    name = "scripted"
    labels = (*LABELS, "Speech", "Silence")
    window, hop = 16_000, 8_000

    def __init__(self, heard: Mapping[str, Mapping[int, float]]) -> None:
        self.heard = heard

    def scores(self, samples: Samples) -> NDArray[np.float32]:
        count = (len(samples) - self.window) // self.hop + 1
        found = np.zeros((count, len(self.labels)), np.float32)
        for label, by_window in self.heard.items():
            for window, score in by_window.items():
                found[window, self.labels.index(label)] = score
        return found


def sounds(
    heard: Mapping[str, Mapping[int, float]], **changes: float
) -> list[tuple[str, int, int]]:
    classifier, samples = Scripted(heard), np.ones(480_000, np.float32)
    found = find_sounds(samples, classifier, CLIP, SETTINGS.model_copy(update=changes))
    return [(one.kind, one.span.start_ms, one.span.end_ms) for one in found]


def during(first: int, last: int, score: float = 0.9) -> dict[int, float]:
    return dict.fromkeys(range(first, last + 1), score)


def test_windows_in_a_row_are_one_sound_at_its_time() -> None:
    assert sounds({"Laughter": during(10, 13)}) == [(LAUGHTER, 65_250, 67_250)]


def test_a_short_pause_does_not_end_a_sound_and_a_long_one_does() -> None:
    heard = {"Laughter": during(0, 3) | during(9, 12)}
    assert sounds(heard) == [(LAUGHTER, 60_000, 66_750)]
    assert len(sounds(heard, sound_pause_ms=1_000)) == 2


@pytest.mark.parametrize(("windows", "heard"), [(1, 0), (2, 1)])
def test_what_is_heard_for_an_instant_is_no_sound(windows: int, heard: int) -> None:
    assert len(sounds({"Bark": during(20, 19 + windows)})) == heard


def test_what_is_heard_uncertainly_is_no_sound() -> None:
    uncertain = SETTINGS.sound_score - 0.05
    assert sounds({"Bark": during(20, 30, uncertain)}) == []
    assert len(sounds({"Bark": during(20, 30, uncertain)}, sound_score=0.2)) == 1


def heard(*spans: tuple[float, float], kind: str = LAUGHTER) -> tuple[Sound, ...]:
    return tuple(Sound(span=span(*one), kind=kind, score=0.9) for one in spans)


def drafts_of(one: Percept, lines: int = 24) -> Sequence[MemoryDraft]:
    return LocalClipWriter(lines).write(one, ClipPeople(), ClipContext("")).drafts


def test_a_sound_is_reported_in_a_line_with_its_time() -> None:
    (draft,) = drafts_of(percept(0, sounds=heard((12, 18))))
    assert (draft.source, draft.span) == (MemorySource.SOUND, span(12, 18))
    assert format_line(draft, ClipPeople()) == "Heard: laughter, people laughing."


def test_quotations_come_before_sounds_where_there_is_little_room() -> None:
    one = percept(0, utterances=(said(1, "Good morning."),), sounds=heard((2, 4), (9, 11)))
    assert [draft.source for draft in drafts_of(one, lines=2)] == ["said", "sound"]


def test_a_language_model_is_reported_what_is_heard_besides_speech() -> None:
    one = percept(0, utterances=(said(1, "Good morning."),), sounds=heard((2, 4)))
    parts = prompt_parts(one, ClipPeople(), ClipContext(""), images=False)
    last = parts["lines of speech"][-1]
    assert last.text == "2.0-4.0 s (not speech: laughter, people laughing)"


@pytest.mark.parametrize(
    ("text", "source", "word"),
    [
        ("Heard: music.", MemorySource.SOUND, "music"),
        ("Seen: 3 people, a laptop, a cup.", MemorySource.OBJECTS, "laptop"),
    ],
)
def test_a_sound_or_thing_alone_makes_no_event_among_what_is_said(
    text: str, source: MemorySource, word: str
) -> None:
    alone = WindowLine(0, span(0, 1), text, source, (1.0, 0.0))
    words = "The harbour bridge was opened by the mayor in spring."
    talk = WindowLine(0, span(0, 1), words, MemorySource.SAID, (1.0, 0.0))
    assert word not in Salience([alone, talk]).label([alone, talk], 8).lower()
    assert summarise([alone, talk]) == summarise([talk])
    assert summarise([alone]) == text


def stored(text: str, start: float, end: float, source: str = "sound") -> Memory:
    return Memory(
        id=1,
        video="v",
        clip=0,
        kind=MemoryKind.EPISODIC,
        text=text,
        span=span(start, end),
        source=MemorySource(source),
    )


@pytest.mark.parametrize(
    ("before", "text"),
    [
        (stored("Heard: music.", 20, 30), "Heard: music, continued."),
        (stored("Heard: music, continued.", 20, 29), "Heard: music, continued."),
        (stored("Heard: music.", 5, 20), "Heard: music."),
        (stored("Heard: a dog barking.", 20, 30), "Heard: music."),
        (stored("Heard: music.", 20, 30, "said"), "Heard: music."),
    ],
)
def test_a_sound_that_goes_on_from_the_clip_before_says_so(before: Memory, text: str) -> None:
    (draft,) = drafts_of(percept(1, sounds=heard((30, 41), kind="music")))
    (made,) = continue_sounds([draft], [before], SETTINGS.sound_pause_ms)
    assert (made.text, made.span) == (text, draft.span)


def test_without_its_package_it_goes_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    profile = load_profile("local")
    assert list(_missing_models(profile)) == []
    monkeypatch.setattr(profiles, "LITERT", Extra(("no_such_module",), ("ai-edge-litert",)))
    assert Toolbox(profile, tmp_path).sounds is None
    assert models_used(profile)["sounds"] == "none"
    (remark,) = _missing_models(profile)
    assert "sounds other than speech are not recognised" in remark
    assert list(_missing_models(profile.model_copy(update={"sounds": "none"}))) == []


def test_a_file_that_is_no_model_is_named(tmp_path: Path) -> None:
    broken = tmp_path / "yamnet.tflite"
    broken.write_bytes(b"no model")
    with pytest.raises(WeightsMissing, match=r"yamnet\.tflite"):
        open_interpreter(broken)
    with pytest.raises(WeightsMissing, match="no labels"):
        YamnetClassifier(tmp_path)


def test_only_notes_of_native_code_are_left_out(capfd: pytest.CaptureFixture[str]) -> None:
    with yamnet._without_native_notes():
        os.write(2, b"INFO: a delegate was made\nERROR: it is broken\n")
    assert capfd.readouterr().err == "ERROR: it is broken\n"


def test_what_is_heard_at_the_ends_of_a_clip_reaches_them() -> None:
    assert sounds({"Music": during(0, 58)}) == [("music", CLIP.span.start_ms, CLIP.span.end_ms)]


def thing(time_s: float, label: str) -> SeenObject:
    return SeenObject(
        time_ms=round(1000 * time_s), label=label, score=0.7, box=Box(x0=1, y0=2, x1=3, y1=4)
    )


@pytest.mark.parametrize(
    ("label", "many"),
    [
        ("person", "people"),
        ("bus", "buses"),
        ("bench", "benches"),
        ("toothbrush", "toothbrushes"),
        ("knife", "knives"),
        ("wine glass", "wine glasses"),
        ("sheep", "sheep"),
    ],
)
def test_several_of_a_kind(label: str, many: str) -> None:
    assert label in coco_labels()
    assert plural(label) == many


def test_a_listing_reads_as_people_write() -> None:
    counts = {"person": 3, "umbrella": 1, "laptop": 1, "scissors": 2}
    assert describe_counts(counts) == "3 people, an umbrella, a laptop, scissors"


def test_a_thing_that_stays_in_view_is_one_thing() -> None:
    seen = [thing(1, "cup"), thing(1, "person"), thing(9, "cup"), thing(9, "cup"), thing(9, "cow")]
    assert count_objects(seen) == {"person": 1, "cup": 2, "cow": 1}
    assert describe_by_time(seen) == [(1000, "a person, a cup"), (9000, "2 cups, a cow")]


@given(st.lists(st.tuples(st.integers(0, 9), st.sampled_from(coco_labels()))))
def test_each_kind_is_reported_once_people_first(seen: list[tuple[int, str]]) -> None:
    counts = count_objects([thing(time, label) for time, label in seen])
    assert set(counts) == {label for _, label in seen}
    assert "person" not in list(counts)[1:]
    for label, count in counts.items():
        times = [time for time, of in seen if of == label]
        assert count == max(times.count(time) for time in times)


def test_the_local_writer_tells_them_in_one_line_with_its_time() -> None:
    one = percept(1, objects=(thing(33, "cup"), thing(48, "person"), thing(48, "person")))
    (draft,) = LocalClipWriter().write(one, ClipPeople(), ClipContext("")).drafts
    assert (draft.source, draft.text) == (MemorySource.OBJECTS, "Seen: 2 people, a cup.")
    assert draft.span == span(33, 49)
    assert LocalClipWriter().write(percept(1), ClipPeople(), ClipContext("")).drafts == ()


@pytest.mark.parametrize(
    ("lines", "kept"),
    [
        (1, ["said", "read"]),
        (2, ["said", "read"]),
        (3, ["said", "seen", "read"]),
        (4, ["said", "seen", "read", "objects"]),
        (24, ["said", "seen", "read", "objects"]),
    ],
)
def test_what_is_in_view_is_told_where_there_is_room(lines: int, kept: list[str]) -> None:
    one = percept(
        0,
        utterances=(said(1, "Good morning."),),
        screen_texts=(text_at(4, "EXIT"),),
        faces=(face(0, 1, (2, 3)),),
        objects=(thing(5, "cup"),),
    )
    known = ClipPeople({0: Identity(id=1, kind=IdentityKind.FACE, number=0, first_clip=0)})
    drafts = LocalClipWriter(lines).write(one, known, ClipContext("")).drafts
    assert [str(draft.source) for draft in drafts] == kept


@pytest.mark.parametrize(
    ("density", "lines"), [("sparse", 8), ("normal", 24), ("dense", 48), (5, 5)]
)
def test_density_is_a_name_or_a_number_of_lines(density: object, lines: int) -> None:
    assert MemorySettings.model_validate({"density": density}).lines == lines
    profile = Profile(name="p", settings=Settings(memory=MemorySettings(density=lines)))
    writer = make_writers(Toolbox(profile, Path("/nowhere")), profile).clip
    many = tuple(face(n, n, (n / 9, n / 9 + 0.1)) for n in range(60))
    people = ClipPeople(
        {n: Identity(id=n + 1, kind=IdentityKind.FACE, number=n, first_clip=0) for n in range(60)}
    )
    assert len(writer.write(percept(0, faces=many), people, ClipContext("")).drafts) == lines
