"""One clip through every sense, and the texts of its keyframes."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from threading import Barrier, current_thread
from typing import NoReturn

import av
import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from domain.errors import ModelError
from domain.media import Clip, Gap, GapReason, Keyframe, Percept
from domain.settings import WatchSettings
from domain.time import TimeSpan
from models.onnx import allow_threads
from models.ports import Face, Image, Samples, Speech, TextLine, Thing, Vector, Word
from perception.decode import RawClip
from perception.frames import Frame, FrameMetrics
from perception.hearing import sound_kinds
from perception.keyframes import ChosenKeyframe, read_screen, same_text
from perception.perceive_clip import Perceived, perceive

SETTINGS = WatchSettings()
CLIP = Clip(index=1, span=TimeSpan.of(30_000, 36_000))
SOUND = (0.1 * np.random.default_rng(1).normal(size=96_000)).astype(np.float32)


@dataclass
class Senses:
    """All five models in one, and a list of what was asked of them."""

    calls: list[str] = field(default_factory=list)
    name: str = "scripted"
    languages: tuple[str, ...] = ("en",)
    same_person: float = 0.3
    same_speaker: float = 0.5
    min_score: float = 0.5
    min_quality: float = 10.0
    spoken: list[tuple[int, int]] = field(default_factory=lambda: [(500, 5_500)])

    def __post_init__(self) -> None:
        self.speech = self.activity = self.faces_of = self.speaker = self.screen = self
        self.objects = ThingSense(self)
        self.sounds: SoundSense | None = SoundSense(self)
        self.images = None

    @property
    def faces(self) -> FaceSense:
        return FaceSense(self)

    def transcribe(self, samples: Samples) -> list[Speech]:
        self.calls.append("speech")
        return [Speech((Word(500, 900, " Good"), Word(900, 1_500, " morning.")), "en", 0.9)]

    def spans(self, samples: Samples) -> list[tuple[int, int]]:
        self.calls.append("activity")
        return self.spoken

    def embed(self, samples: Samples) -> Vector:
        return np.array([1, 0, 0], np.float32)

    def read(self, image: Image) -> list[TextLine]:
        self.calls.append("screen")
        return [TextLine((1, 1, 30, 10), "BREAKFAST", 0.95)]


@dataclass
class SoundSense:
    """The classifier of ``Senses``: music all the time."""

    senses: Senses
    name: str = "scripted"
    labels: tuple[str, ...] = tuple(one for classes in sound_kinds().values() for one in classes)
    window: int = 16_000
    hop: int = 8_000

    def scores(self, samples: Samples) -> NDArray[np.float32]:
        self.senses.calls.append("sounds")
        music = [label == "Music" for label in self.labels]
        return np.repeat(np.array([music], np.float32), 5, axis=0)


@dataclass
class ThingSense:
    """The detector of ``Senses``."""

    senses: Senses
    name: str = "scripted"
    min_score: float = 0.5
    labels: tuple[str, ...] = ("cup", "person")

    def objects(self, image: Image) -> list[Thing]:
        self.senses.calls.append("objects")
        return [Thing((2, 3, 20, 30), "cup", 0.8)]


@dataclass
class FaceSense:
    """The face engine of ``Senses``."""

    senses: Senses
    name: str = "scripted"
    same_person: float = 0.3
    min_score: float = 0.5
    min_quality: float = 10.0

    def faces(self, image: Image) -> list[Face]:
        self.senses.calls.append("faces")
        return [Face((5, 5, 25, 25), 0.9, 30.0, np.array([0, 1, 0], np.float32))]


def frames(count: int = 30) -> list[Frame]:
    made = []
    for i in range(count):
        picture = av.VideoFrame.from_ndarray(np.full((48, 64, 3), i * 8, np.uint8), format="rgb24")
        made.append(Frame(30_000 + i * 200, FrameMetrics(1.0, float(i), 1.0), picture))
    return made


RAW = RawClip(CLIP, frames(), SOUND)


def perceived(raw: RawClip = RAW, senses: Senses | None = None) -> Perceived:
    return perceive(replace(raw, frames=list(raw.frames)), senses or Senses(), SETTINGS)


def test_everything_of_a_clip_is_perceived() -> None:
    percept = perceived().percept
    assert [key.time_ms for key in percept.keyframes] == [31_800, 33_800, 35_800]
    assert [(u.text, u.voice) for u in percept.utterances] == [("Good morning.", 0)]
    assert percept.utterances[0].span == TimeSpan.of(30_500, 31_500)
    assert [(t.time_ms, t.text) for t in percept.screen_texts] == [(31_800, "BREAKFAST")]
    assert [len(group.sightings) for group in percept.faces] == [9]
    assert [group.number for group in percept.voices] == [0]
    assert [(sound.kind, sound.span) for sound in percept.sounds] == [("music", CLIP.span)]
    assert percept.error is None


def test_blobs_are_exactly_those_that_the_percept_names() -> None:
    found = perceived()
    named = {key.blob for key in found.percept.keyframes}
    named |= {s.blob for group in found.percept.faces for s in group.sightings if s.blob}
    assert set(found.blobs) == named
    assert all(data.startswith(b"\xff\xd8") for data in found.blobs.values())


def test_frames_are_held_no_longer_than_faces_are_looked_for() -> None:
    raw = replace(RAW, frames=frames())

    class Watchful(Senses):
        def read(self, image: Image) -> list[TextLine]:
            self.calls.append(f"{len(raw.frames)} frames")
            return super().read(image)

    senses = Watchful()
    assert perceive(raw, senses, SETTINGS) == perceived()
    assert set(senses.calls) >= {"faces", "0 frames", "screen"}
    assert len([call for call in senses.calls if "frames" in call]) == 3


def test_sound_alone_is_listened_to_and_nothing_is_looked_at() -> None:
    senses = Senses()
    found = perceived(replace(RAW, frames=[]), senses).percept
    assert found.utterances
    assert (found.keyframes, found.faces, found.screen_texts) == ((), (), ())
    assert set(senses.calls) == {"activity", "speech", "sounds"}


@pytest.mark.parametrize("samples", [np.zeros(0, np.float32), np.zeros(96_000, np.float32)])
def test_silence_is_not_listened_to(samples: Samples) -> None:
    senses = Senses()
    found = perceived(replace(RAW, samples=samples), senses).percept
    assert (found.utterances, found.voices, found.sounds) == ((), (), ())
    assert not {"activity", "speech", "sounds"} & set(senses.calls)
    assert found.keyframes


def test_what_did_not_decode_is_reported_on() -> None:
    gap = TimeSpan.of(31_000, 32_000)
    bad = RawClip(CLIP, [], np.zeros(0, np.float32), (gap,), "damaged")
    senses = Senses()
    assert perceived(bad, senses).percept == Percept(
        clip=CLIP, gaps=(Gap(span=gap, reason=GapReason.DAMAGED),), error="damaged"
    )
    assert senses.calls == []


def test_what_is_heard_is_recognised_beside_what_is_seen() -> None:
    met = Barrier(2, timeout=20)

    class Slow(Senses):
        def transcribe(self, samples: Samples) -> list[Speech]:
            met.wait()
            return super().transcribe(samples)

        def read(self, image: Image) -> list[TextLine]:
            if not met.broken and "screen" not in self.calls:
                met.wait()
            return super().read(image)

    only = replace(RAW, frames=frames(1))
    assert perceived(only, Slow()) == perceived(only)


def test_whoever_watches_in_one_thread_does_one_after_the_other() -> None:
    class Here(Senses):
        def __post_init__(self) -> None:
            super().__post_init__()
            self.me = current_thread()

        def transcribe(self, samples: Samples) -> list[Speech]:
            assert current_thread() is self.me
            return super().transcribe(samples)

        def embed(self, samples: Samples) -> Vector:
            assert current_thread() is self.me
            return super().embed(samples)

        def read(self, image: Image) -> list[TextLine]:
            assert current_thread() is self.me
            return super().read(image)

    allow_threads(1)
    try:
        senses = Here()
        assert perceived(senses=senses) == perceived()
        assert senses.calls.index("speech") < senses.calls.index("screen")
    finally:
        allow_threads(2)


@pytest.mark.parametrize("model", ["transcribe", "read"])
def test_a_model_that_fails_fails_the_clip(monkeypatch: pytest.MonkeyPatch, model: str) -> None:
    def fail(*_: object) -> NoReturn:
        raise ModelError(f"{model} stopped")

    monkeypatch.setattr(Senses, model, fail)
    with pytest.raises(ModelError, match=f"{model} stopped"):
        perceived()


@dataclass
class Reader:
    """Reads what was put in for a keyframe, in the order of the calls."""

    pages: list[list[TextLine]]
    name: str = "scripted"
    shapes: list[tuple[int, ...]] = field(default_factory=list)

    def read(self, image: Image) -> list[TextLine]:
        self.shapes.append(image.shape)
        return self.pages[len(self.shapes) - 1]


def line(
    text: str, score: float = 0.9, box: tuple[int, int, int, int] = (4, 5, 60, 20)
) -> TextLine:
    return TextLine(box, text, score)


def chosen(
    ms: int, size: tuple[int, int] = (640, 360), image: Image | None = None
) -> ChosenKeyframe:
    """A keyframe; each second has another grey unless ``image`` says what it shows."""
    width, height = size
    key = Keyframe(
        time_ms=ms, shot=0, sharpness=1, entropy=1, quality=1, width=width, height=height, blob="0"
    )
    grey = np.full((height, width, 3), ms // 1_000 * 20 % 256, np.uint8)
    return ChosenKeyframe(0, key, grey if image is None else image)


def slide(words: str, noise: int = 0) -> Image:
    """A white picture with small words on it, as a lossy codec gives it back."""
    image = np.full((360, 640, 3), 230, np.uint8)
    cv2.putText(image, words, (40, 180), cv2.FONT_HERSHEY_SIMPLEX, 0.4, (20, 20, 20), 1)
    random = np.random.default_rng(7).integers(0, noise + 1, image.shape)
    return np.asarray(image + random, np.uint8)


def texts(*pages: list[TextLine]) -> list[tuple[int, str]]:
    keys = [chosen(i * 1_000) for i in range(len(pages))]
    return [(t.time_ms, t.text) for t in read_screen(keys, Reader(list(pages)))]


def test_lines_come_in_reading_order_with_the_time_of_their_keyframe() -> None:
    found = texts([line("Agenda"), line("Budget 2026")], [line("Questions?")])
    assert found == [(0, "Agenda"), (0, "Budget 2026"), (1_000, "Questions?")]


def test_what_stands_there_for_longer_is_stored_once_where_first_seen() -> None:
    page = [line("Omar"), line("Software Engineer")]
    found = texts(page, [line("OMAR"), line("Software Englneer"), line("Paris office")], page)
    assert found == [(0, "Omar"), (0, "Software Engineer"), (1_000, "Paris office")]


def test_a_picture_that_shows_the_same_is_read_once() -> None:
    images = [slide("12 Mbit"), slide("12 Mbit", noise=6), slide("Questions?"), slide("12 Mbit")]
    reader = Reader([[line("12 Mbit")], [line("Questions?")]])
    found = read_screen([chosen(n * 1_000, image=one) for n, one in enumerate(images)], reader)
    assert [(one.time_ms, one.text) for one in found] == [(0, "12 Mbit"), (2_000, "Questions?")]
    assert len(reader.shapes) == 2


@pytest.mark.parametrize("words", ["12 Mb1t", "72 Mbit", "12,Mbit"])
def test_one_small_letter_makes_another_picture(words: str) -> None:
    reader = Reader([[line("12 Mbit")], [line(words)]])
    images = [slide("12 Mbit"), slide(words)]
    read_screen([chosen(n * 1_000, image=one) for n, one in enumerate(images)], reader)
    assert len(reader.shapes) == 2


@pytest.mark.parametrize(
    ("found", "kept"),
    [
        (line("ok", 0.61), True),
        (line("ok", 0.6), False),
        (line("a!"), False),
        (line("||| --"), False),
        (line("42"), True),
        (line("東京"), True),
    ],
)
def test_doubtful_readings_and_specks_are_left_out(found: TextLine, kept: bool) -> None:
    assert bool(texts([found])) == kept


def test_a_wide_picture_is_read_smaller_and_boxes_are_of_the_keyframe() -> None:
    reader = Reader([[line("Wide", box=(10, 20, 640, 100))]])
    (text,) = read_screen([chosen(0, (2_560, 720))], reader)
    assert reader.shapes == [(360, 1_280, 3)]
    assert (text.box.x0, text.box.y0, text.box.x1, text.box.y1) == (20, 40, 1_280, 200)


def test_boxes_are_clipped_and_what_is_outside_is_left_out() -> None:
    page = [line("Edge", box=(-5, 300, 700, 400)), line("Gone", box=(650, 0, 700, 9))]
    (text,) = read_screen([chosen(0)], Reader([page]))
    assert (text.box.x0, text.box.y0, text.box.x1, text.box.y1) == (0, 300, 640, 360)


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        ("Paris Office", "paris office!", True),
        ("Software Engineer", "Software Englneer", True),
        ("Room 101", "Room 102", False),
        ("Omar", "Osar", False),
        ("cat", "dog", False),
    ],
)
def test_slip_in_long_line_is_same_line_and_in_number_it_is_not(a: str, b: str, same: bool) -> None:
    assert same_text(a, b) is same


@given(st.text(max_size=30), st.text(max_size=30))
def test_sameness_is_mutual_and_with_oneself(a: str, b: str) -> None:
    assert same_text(a, a)
    assert same_text(a, b) == same_text(b, a)
