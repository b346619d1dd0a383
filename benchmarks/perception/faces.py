"""Evaluation of face identities, within a clip and across clips.

Perception and the memory of identities run as in an ingestion, but without sound and screen text,
so that only the face identifies a person.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.perception.joining import WIDTH, Scene, person_at
from benchmarks.perception.metrics import Pairs, count_pairs
from benchmarks.perception.senses import OnlyPeople
from domain.media import IdentityKind
from flows.ingest_video import open_video
from flows.workspace import Workspace
from memory.write_clip import ClipWriter
from memory.writers import make_writers
from perception.decode import read_clips
from perception.faces_and_voices import box_iou
from perception.perceive_clip import perceive
from perception.source import probe
from store.queries.identities import sightings_of

MATCHED = 0.4
"""Least intersection over union of a detection with an annotated face."""

Corners = tuple[int, int, int, int]


@dataclass(frozen=True)
class FaceSeen:
    """A face on a frame, and the number of its assigned identity."""

    time_ms: int
    box: Corners
    identity: int


@dataclass(frozen=True)
class FaceReport:
    """The figures of one video's faces.

    ``strangers``: detections of nobody known to be there; each counts as a person of its own.
    ``missed``: the annotated faces, of ``marked``, that were not detected on the analysed frames.
    ``twice``: the frames with one identity on two faces.
    """

    name: str
    engine: str
    sightings: int
    people: int
    identities: int
    pairs: Pairs
    strangers: int
    twice: int
    marked: int = 0
    missed: int = 0


def watch_faces(workspace: Workspace, path: Path, on_clip: Callable[[], None]) -> list[FaceSeen]:
    """Return the faces of a video as they are remembered, clip after clip.

    Args:
        workspace: a library to store the video in.
        path: the video.
        on_clip: called after each clip.
    """
    tools = OnlyPeople(workspace.toolbox, voices=False)
    writers = make_writers(workspace.toolbox, workspace.profile)
    with open_video(workspace, path) as work:
        for raw in read_clips(path, probe(path), workspace.settings.watch):
            seen = perceive(raw, tools, workspace.settings.watch)
            ClipWriter(
                workspace.store, work.video.id, writers, workspace.toolbox, workspace.settings
            ).remember(seen)
            on_clip()
        with workspace.store.begin() as session:
            rows = sightings_of(session, work.video.id, IdentityKind.FACE)
    return [FaceSeen(row.start_ms, _corners(row.box), row.number) for row in rows if row.box]


def _corners(box: Sequence[int]) -> Corners:
    x0, y0, x1, y1 = box
    return x0, y0, x1, y1


Truth = dict[int, list[tuple[str, Corners]]]
"""Who is where on each annotated frame, by its number."""


def marked_faces(path: Path) -> Truth:
    """Read a CSV file with rows of frame, "face", who, x0, y0, x1, y1."""
    truth: Truth = {}
    with path.open(encoding="utf-8", newline="") as file:
        for frame, _, who, *numbers in csv.reader(file):
            x0, y0, x1, y1 = (int(number) for number in numbers[:4])
            truth.setdefault(int(frame), []).append((who, (x0, y0, x1, y1)))
    return truth


def judge_marked(
    name: str, engine: str, seen: Sequence[FaceSeen], truth: Truth, frame_rate: float
) -> FaceReport:
    """Compare faces with the annotated ones of the same frame, matched one to one."""
    people: list[str | None] = []
    marked = missed = 0
    frames = _by(seen, lambda face: round(face.time_ms * frame_rate / 1000))
    for frame, faces in frames.items():
        marked_here = truth.get(frame, [])
        who = match_faces([face.box for face in faces], marked_here)
        people += who
        marked += len(marked_here)
        missed += len(marked_here) - sum(name is not None for name in who)
    all_seen = [face for faces in frames.values() for face in faces]
    return _report(name, engine, all_seen, people, marked, missed)


def match_faces(boxes: Sequence[Corners], truth: Sequence[tuple[str, Corners]]) -> list[str | None]:
    """Return whom each box shows: annotated faces by overlap, best first."""
    people_shown: list[str | None] = [None] * len(boxes)
    taken: set[int] = set()
    pairs = [
        (box_iou(box, face), position, place)
        for position, box in enumerate(boxes)
        for place, (_, face) in enumerate(truth)
    ]
    for share, position, place in sorted(pairs, key=lambda pair: (-pair[0], pair[1], pair[2])):
        if share >= MATCHED and people_shown[position] is None and place not in taken:
            people_shown[position] = truth[place][0]
            taken.add(place)
    return people_shown


def judge_joined(
    name: str, engine: str, seen: Sequence[FaceSeen], scenes: Sequence[Scene]
) -> FaceReport:
    """Score the faces of a joined video, where scene and position say who it is."""
    people = [person_at(scenes, s.time_ms, (s.box[0] + s.box[2]) / 2 / WIDTH) for s in seen]
    return _report(name, engine, seen, people)


def _report(
    name: str,
    engine: str,
    seen: Sequence[FaceSeen],
    people: Sequence[str | None],
    marked: int = 0,
    missed: int = 0,
) -> FaceReport:
    labels = [who if who is not None else at for at, who in enumerate(people)]
    on_frames = Counter((face.time_ms, face.identity) for face in seen)
    return FaceReport(
        name=name,
        engine=engine,
        sightings=len(seen),
        people=len({who for who in people if who is not None}),
        identities=len({face.identity for face in seen}),
        pairs=count_pairs((who, face.identity) for who, face in zip(labels, seen, strict=True)),
        strangers=sum(who is None for who in people),
        twice=len({time for (time, _), count in on_frames.items() if count > 1}),
        marked=marked,
        missed=missed,
    )


def _by(seen: Sequence[FaceSeen], key: Callable[[FaceSeen], int]) -> dict[int, list[FaceSeen]]:
    groups: dict[int, list[FaceSeen]] = {}
    for face in seen:
        groups.setdefault(key(face), []).append(face)
    return groups
