"""Evaluation of joining voices to faces over a whole video.

Words are not transcribed, so no name can help: only who is in view while a voice is heard.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.perception.joining import WIDTH, Scene, person_at, speakers_at
from benchmarks.perception.senses import OnlyPeople
from domain.media import IdentityKind
from flows.ingest_video import open_video
from flows.workspace import Workspace
from memory.write_clip import ClipWriter
from memory.writers import make_writers
from perception.decode import read_clips
from perception.perceive_clip import perceive
from perception.source import probe
from store.queries.characters import characters_at
from store.queries.identities import SightingAt, sightings_of


@dataclass(frozen=True)
class VideoIdentities:
    """A video's face and voice sightings, and which belong to one character.

    ``joined``: the face and voice numbers of each pair that one character has.
    """

    faces: tuple[SightingAt, ...]
    voices: tuple[SightingAt, ...]
    joined: tuple[tuple[int, int], ...]


@dataclass(frozen=True)
class JoinReport:
    """The speakers in view that were joined to their own voice.

    ``speakers`` are known to speak in view; ``right`` of them have a voice that is mostly theirs;
    ``wrong`` counts faces with a voice that is mostly another's, or that of nobody in view.
    """

    name: str
    speakers: tuple[str, ...]
    right: tuple[str, ...]
    wrong: int


def watch_people(workspace: Workspace, path: Path, on_clip: Callable[[], None]) -> VideoIdentities:
    """Return the faces and voices of a video as remembered, clip after clip.

    Args:
        workspace: a library to store the video in.
        path: the video.
        on_clip: called after each clip.
    """
    tools = OnlyPeople(workspace.toolbox, voices=True)
    writers = make_writers(workspace.toolbox, workspace.profile)
    with open_video(workspace, path) as work:
        video, last = work.video.id, -1
        for raw in read_clips(path, probe(path), workspace.settings.watch):
            seen = perceive(raw, tools, workspace.settings.watch)
            ClipWriter(
                workspace.store, video, writers, workspace.toolbox, workspace.settings
            ).remember(seen)
            last = raw.clip.index
            on_clip()
        with workspace.store.begin() as session:
            return VideoIdentities(
                tuple(sightings_of(session, video, IdentityKind.FACE)),
                tuple(sightings_of(session, video, IdentityKind.VOICE)),
                tuple(
                    (face, voice)
                    for row in characters_at(session, video, last)
                    for face in row.character.faces
                    for voice in row.character.voices
                ),
            )


def judge_joins(name: str, identities: VideoIdentities, scenes: Sequence[Scene]) -> JoinReport:
    """Compare what was joined with who is known to speak, each by most of their time."""
    face_labels = _mostly(
        (sighting.number, _seen(scenes, sighting), 1) for sighting in identities.faces
    )
    voice_labels = _mostly(
        (sighting.number, who, ms)
        for sighting in identities.voices
        for who, ms in _heard(scenes, sighting).items()
    )
    pairs = [(face_labels.get(face), voice_labels.get(voice)) for face, voice in identities.joined]
    right = {face for face, voice in pairs if face and face == voice}
    speakers = sorted({scene.heard for scene in scenes if scene.heard})
    wrong = sum(face != voice for face, voice in pairs)
    return JoinReport(name, tuple(speakers), tuple(sorted(right)), wrong)


def _seen(scenes: Sequence[Scene], face: SightingAt) -> str:
    x0, _, x1, _ = face.box or (0, 0, 0, 0)
    return person_at(scenes, face.start_ms, (x0 + x1) / 2 / WIDTH) or ""


def _heard(scenes: Sequence[Scene], voice: SightingAt) -> Counter[str]:
    """Count the milliseconds of the sighting by known speaker; "" where unknown."""
    return speakers_at(scenes, voice.start_ms, voice.end_ms)


def _mostly(labelled: Iterable[tuple[int, str, int]]) -> dict[int, str]:
    """Return the most frequent label of each number."""
    totals: dict[int, Counter[str]] = {}
    for number, who, weight in labelled:
        totals.setdefault(number, Counter())[who] += weight
    return {
        number: max(sorted(counts), key=counts.__getitem__) for number, counts in totals.items()
    }
