"""Films that a program can read, and the perception that finds the people in them.

The number of a second, and that of the film, are bars along the upper edge. In a film of people a
face is six stripes, and a voice is a tone; ``BarToolbox`` tells them apart without fault, and hears
what is said. What Homer makes of faces, voices and words is its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

import av
import numpy as np

from models.ports import Face, Image, Samples, Speech, Vector, Word
from models.toolbox import Toolbox

SIZE, FPS, HZ = (640, 360), 5, 16_000
CLIP_S = 30
BITS, BAR = 16, 40
FILM_BIT = 14
"""From this bit on it is the number of the film."""
PLACES = ("left", "middle", "right")
FACE_X, FACE_Y, STRIPE, FACE_HEIGHT = (55, 260, 465), 80, 20, 100
STRIPES = 6
"""Stripes of a face: a white one, the number of the person in black and white, a black one."""
LOWEST_HZ, STEP_HZ, SPOKEN_S = 300, 150, 3
NAMES = ["Ada", "Boris", "Carla", "Dmitri", "Edda", "Farid", "Greta", "Henk", "Ines", "Jarl"]
SEEN = 5
"""So many of them have faces and voices."""
ACTS = ["lifts", "breaks", "cleans", "hides", "sells", "burns", "opens", "paints"]
KINDS = ["copper", "paper", "glass", "velvet", "marble", "rusty", "plastic", "silken", "clay"]
THINGS = ["bowl", "mirror", "flute", "kite", "globe", "candle", "wheel", "anchor", "puppet"]
WHERE = ["at the harbour", "in the attic", "by the well", "on the roof", "under the arch"]
COATS = ["red", "green", "white", "grey", "violet", "amber"]


@dataclass(frozen=True)
class Shown:
    """What some seconds of a film show; only a look tells the colour of the coat.

    ``faces``: who is seen from left to right, empty where nobody is; ``speaks``: they say who they
    are.
    """

    start_s: int
    end_s: int
    who: str
    act: str
    thing: str
    where: str
    coat: str
    faces: tuple[str, ...] = ()
    speaks: bool = False

    @property
    def deed(self) -> str:
        """Return what is done, without who does it."""
        return f"{self.act} the {self.thing} {self.where}"

    @property
    def text(self) -> str:
        """Return it as a sentence."""
        return f"{self.who} {self.deed}."


Film = tuple[Shown, ...]


class _Drawing:
    """Draws events at random, of which no two are alike; with faces of the first few people."""

    def __init__(self, number: int, *, faces: bool) -> None:
        self.pick, self._faces = Random(number), faces  # noqa: S311
        self._used = set[tuple[str, str]]()

    def event(self, start_s: int, end_s: int, who: str = "") -> Shown:
        drawn = self.pick.choice
        while True:
            whom, act = who or drawn(NAMES[: SEEN if self._faces else None]), drawn(ACTS)
            thing = f"{drawn(KINDS)} {drawn(THINGS)}"
            # Of people with faces it is asked who did it: nobody else does the same.
            keys = {(whom, thing), *([(act, thing)] if self._faces else [])}
            if not keys & self._used:
                break
        self._used |= keys
        event = Shown(
            start_s, end_s, whom, act, thing, drawn(WHERE), drawn(COATS), speaks=bool(who)
        )
        return self.seen(event) if self._faces else event

    def seen(self, event: Shown) -> Shown:
        """Return the event with who is seen where: mostly somebody looks on."""
        others = [name for name in NAMES[:SEEN] if name != event.who and not event.speaks]
        faces = [event.who, self.pick.choice(["", *others]), ""]
        self.pick.shuffle(faces)
        return replace(event, faces=tuple(faces))


def nameless_film(seconds: int, number: int) -> Film:
    """Return events one after the other, whose people are told by the picture as a whole."""
    drawing, shown = _Drawing(number, faces=False), list[Shown]()
    while (start := shown[-1].end_s if shown else 0) < seconds:
        end = min(seconds, start + drawing.pick.choice((3, 4, 6, 8, 11)))
        shown.append(drawing.event(start, end))
    return tuple(shown)


def peopled_film(seconds: int, number: int) -> Film:
    """Return events of people with faces, most of whom say who they are after they were seen.

    In every second clip the same is done some times, with something else in between.
    """
    drawing, shown = _Drawing(number, faces=True), list[Shown]()
    for clip in range(seconds // CLIP_S):
        at, end = clip * CLIP_S, (clip + 1) * CLIP_S
        again = drawing.event(at, at + 3)
        says = NAMES[clip // 2] if clip % 2 == 0 and clip // 2 < SEEN else ""
        plan = [(3, "again"), (4, "")] * drawing.pick.choice((2, 3, 4)) if clip % 2 else []
        plan += [(5, ""), (4, says)] if says else []
        while at < end:
            length, what = plan.pop(0) if plan else (drawing.pick.choice((4, 5, 6)), "")
            until = at + length if at + length + 3 <= end else end
            if what == "again":
                shown.append(drawing.seen(replace(again, start_s=at, end_s=until)))
            else:
                shown.append(drawing.event(at, until, what))
            at = until
    return tuple(shown)


def write_film(path: Path, film: Film, number: int) -> None:
    """Write a film, each event with a background of its own; with sound if somebody speaks."""
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=FPS, options={"crf": "20", "bf": "0"})
        stream.width, stream.height, stream.pix_fmt = *SIZE, "yuv420p"
        heard = any(event.speaks for event in film)
        sound = container.add_stream("aac", rate=HZ, layout="mono") if heard else None
        for n, event in enumerate(film):
            for second in range(event.start_s, event.end_s):
                for image in _pictures(event, n, second, number):
                    picture = av.VideoFrame.from_ndarray(image, format="rgb24")
                    container.mux(stream.encode(picture))
                if sound is not None:
                    part = av.AudioFrame.from_ndarray(_tone(event, second), "fltp", "mono")
                    # AAC begins a frame early; pictures and sound are to begin together.
                    part.sample_rate, part.pts = HZ, second * HZ + 1_024
                    container.mux(sound.encode(part))
        container.mux(stream.encode(None))
        if sound is not None:
            container.mux(sound.encode(None))


def _pictures(event: Shown, n: int, second: int, number: int) -> list[Image]:
    # A cut between faces is plainly one: the background is light after dark.
    darkest, lightest = ((40, 90), (160, 210))[n % 2] if any(event.faces) else (40, 210)
    colour = np.random.default_rng(event.start_s).integers(darkest, lightest, 3)
    image = np.full((SIZE[1], SIZE[0], 3), colour, np.uint8)
    for bit in range(BITS):
        lit = (second | number << FILM_BIT) >> bit & 1
        image[:BAR, bit * BAR : (bit + 1) * BAR] = 240 if lit else 15
    for x, who in zip(FACE_X, event.faces, strict=False):
        code = f"1{NAMES.index(who):04b}0" if who else ""
        for stripe, lit in enumerate(map(int, code)):
            left = x + stripe * STRIPE
            image[FACE_Y : FACE_Y + FACE_HEIGHT, left : left + STRIPE] = 240 if lit else 15
    frames = [image.copy() for _ in range(FPS)]
    for moment, frame in enumerate(frames):
        x = 40 * (second % 10) + 8 * moment
        frame[200:260, x : x + 60] = 255 - colour
        # A mouth that moves: a face that never does is taken for a picture.
        for left, who in zip(FACE_X, event.faces, strict=False):
            if who:
                down = FACE_Y + FACE_HEIGHT // 2 + 10 * ((second + moment) % 4)
                frame[down : down + 10, left : left + STRIPES * STRIPE] = 128
    return frames


def _tone(event: Shown, second: int) -> Samples:
    times = second + np.arange(HZ) / HZ
    said = event.speaks and second < event.start_s + SPOKEN_S
    hz = LOWEST_HZ + STEP_HZ * NAMES.index(event.who) if said else 0
    return np.asarray(0.3 * np.sin(2 * np.pi * hz * times), np.float32)[None]


def read_bars(image: Image) -> tuple[int, int] | None:
    """Return the number of the film and of the second that an RGB image shows; None for a crop."""
    grey, scale = image.mean(axis=2), image.shape[1] / SIZE[0]
    if image.shape[1] < 1.5 * image.shape[0]:
        return None
    middles = [int((bit + 0.5) * BAR * scale) for bit in range(BITS)]
    lit = [bool(grey[int(BAR / 2 * scale), x] > 128) for x in middles]
    number = sum(one << bit for bit, one in enumerate(lit))
    return number >> FILM_BIT, number % (1 << FILM_BIT)


def _vector(person: int) -> Vector:
    return np.asarray(np.eye(1 << 4)[person], np.float32)


class _Faces:
    name, same_person, min_score, min_quality = "stripes", 0.5, 0.5, 1.0

    def faces(self, image: Image) -> list[Face]:
        grey, scale, found = image.mean(axis=2), image.shape[1] / SIZE[0], list[Face]()
        for x in FACE_X:
            y = int((FACE_Y + FACE_HEIGHT / 4) * scale)
            row = [grey[y, int((x + (n + 0.5) * STRIPE) * scale)] for n in range(STRIPES)]
            if row[0] > 220 and row[-1] < 35:
                person = sum(int(one > 128) << 3 - n for n, one in enumerate(row[1:-1]))
                edges = (x, FACE_Y, x + STRIPES * STRIPE, FACE_Y + FACE_HEIGHT)
                x0, y0, x1, y1 = (int(one * scale) for one in edges)
                found.append(Face((x0, y0, x1, y1), 1.0, 30.0, _vector(person)))
        return found


class _Voices:
    """Hears tones: when there is one, whose it is, and what is said."""

    name, same_speaker, languages = "tones", 0.5, ("en",)

    def spans(self, samples: Samples) -> list[tuple[int, int]]:
        frame = HZ // 50
        loud = [bool(part.std() > 0.05) for part in _parts(samples, frame)]
        edges = np.flatnonzero(np.diff([False, *loud, False]))
        return [(20 * int(a), 20 * int(b)) for a, b in edges.reshape(-1, 2) if b - a > 20]

    def transcribe(self, samples: Samples) -> list[Speech]:
        said = list[Speech]()
        for start, end in self.spans(samples):
            who = NAMES[self._person(samples[start * HZ // 1000 : end * HZ // 1000])]
            step = (end - start) // 3
            words = [
                Word(start + n * step, start + (n + 1) * step, text)
                for n, text in enumerate((" I", " am", f" {who}."))
            ]
            said.append(Speech(tuple(words), "en", 0.9))
        return said

    def embed(self, samples: Samples) -> Vector:
        return _vector(self._person(samples))

    def _person(self, samples: Samples) -> int:
        hz = float(np.argmax(np.abs(np.fft.rfft(samples)))) * HZ / len(samples)
        return min(SEEN - 1, max(0, round((hz - LOWEST_HZ) / STEP_HZ)))


def _parts(samples: Samples, length: int) -> Sequence[Samples]:
    return [samples[at : at + length] for at in range(0, len(samples) - length + 1, length)]


class _Blank:
    name = "blank"

    def read(self, _: Image) -> list[Any]:
        return []


class BarToolbox(Toolbox):
    """The models of a profile, with a perception that reads stripes and tones."""

    @property
    def faces(self) -> Any:
        """Reads stripes."""
        return _Faces()

    @property
    def activity(self) -> Any:
        """Hears tones."""
        return _Voices()

    speech = speaker = activity

    @property
    def screen(self) -> Any:
        """Nothing is written on the screen."""
        return _Blank()

    @property
    def objects(self) -> Any:
        """Nothing is detected."""
        return None

    sounds = objects
