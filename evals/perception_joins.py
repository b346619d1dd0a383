"""Is a voice joined to the face of who speaks, over a whole video?

Words are not listened to, so no name can help: only who is in view while a voice is heard.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from domain.media import IdentityKind
from evals.joining import WIDTH, Scene, heard_at, person_at
from evals.senses import OnlyPeople
from flows.ingest_video import open_video
from flows.workspace import Workspace
from memory.write_clip import remember
from memory.writers import make_writers
from perception.decode import read_clips
from perception.perceive_clip import perceive
from perception.source import probe
from store.queries.characters import characters_at
from store.queries.identities import SightingAt, sightings_of


@dataclass(frozen=True)
class VideoIdentities:
    """A video's faces and voices as they were met, and which are of one character.

    ``joined``: a face's and a voice's number for each pair that one character has.
    """

    faces: tuple[SightingAt, ...]
    voices: tuple[SightingAt, ...]
    joined: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class JoinReport:
    """Who, of those who speak in view, was joined to their own voice.

    ``speakers`` are known to speak in view; ``right`` of them have a voice that is mostly theirs;
    ``wrong`` counts faces with a voice that is mostly another's, or nobody's in view.
    """

    name: str
    speakers: tuple[str, ...]
    right: tuple[str, ...]
    wrong: int


def watch_people(desk: Workspace, path: Path, told: Callable[[], None]) -> VideoIdentities:
    """The faces and voices of a video as they are remembered, clip after clip.

    Args:
        desk: a library that may keep the video.
        path: the video.
        told: called after each clip.
    """
    tools = OnlyPeople(desk.toolbox, voices=True)
    writers = make_writers(desk.toolbox, desk.profile)
    with open_video(desk, path) as work:
        video, last = work.video.id, -1
        for raw in read_clips(path, probe(path), desk.settings.watch):
            seen = perceive(raw, tools, desk.settings.watch)
            remember(desk.store, video, seen, writers, desk.toolbox, desk.settings)
            last = raw.clip.index
            told()
        with desk.store.begin() as session:
            return VideoIdentities(
                tuple(sightings_of(session, video, IdentityKind.FACE)),
                tuple(sightings_of(session, video, IdentityKind.VOICE)),
                tuple(
                    (face, voice)
                    for one in characters_at(session, video, last)
                    for face in one.character.faces
                    for voice in one.character.voices
                ),
            )


def judge_joins(name: str, met: VideoIdentities, scenes: Sequence[Scene]) -> JoinReport:
    """What was joined beside who is known to speak, by most of the time of each."""
    shown = _mostly((one.number, _seen(scenes, one), 1) for one in met.faces)
    heard = _mostly(
        (one.number, who, ms) for one in met.voices for who, ms in _heard(scenes, one).items()
    )
    pairs = [(shown.get(face), heard.get(voice)) for face, voice in met.joined]
    right = {face for face, voice in pairs if face and face == voice}
    speakers = sorted({scene.heard for scene in scenes if scene.heard})
    wrong = sum(face != voice for face, voice in pairs)
    return JoinReport(name, tuple(speakers), tuple(sorted(right)), wrong)


def _seen(scenes: Sequence[Scene], face: SightingAt) -> str:
    x0, _, x1, _ = face.box or (0, 0, 0, 0)
    return person_at(scenes, face.start_ms, (x0 + x1) / 2 / WIDTH) or ""


def _heard(scenes: Sequence[Scene], voice: SightingAt) -> Counter[str]:
    """Milliseconds of the sighting by who is known to speak; "" is nobody known."""
    return heard_at(scenes, voice.start_ms, voice.end_ms)


def _mostly(found: Iterable[tuple[int, str, int]]) -> dict[int, str]:
    """For each number what it is for the most part."""
    totals: dict[int, Counter[str]] = {}
    for number, who, weight in found:
        totals.setdefault(number, Counter())[who] += weight
    return {number: max(sorted(one), key=one.__getitem__) for number, one in totals.items()}
