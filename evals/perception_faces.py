"""Are people known again by their faces, within a clip and from clip to clip?

Perception and the memory of identities run as they do in an ingestion, without sound and without
reading: so nothing else can help a face to be known.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from domain.media import IdentityKind
from evals.joining import WIDTH, Scene, person_at
from evals.pairs import Pairs, count_pairs
from evals.senses import OnlyPeople
from flows.ingest_video import open_video
from flows.workspace import Workspace
from memory.write_clip import remember
from memory.writers import make_writers
from perception.decode import read_clips
from perception.faces import overlap
from perception.perceive_clip import perceive
from perception.source import probe
from store.queries.identities import sightings_of

MATCHED = 0.4
"""Intersection over union from which a detection is of a marked face."""

Corners = tuple[int, int, int, int]


@dataclass(frozen=True)
class FaceSeen:
    """A face on a frame, and the number of the identity that it was taken for."""

    time_ms: int
    box: Corners
    identity: int


@dataclass(frozen=True)
class FaceReport:
    """What the faces of one video came to.

    ``strangers`` are detections of nobody who is known to be there; each counts as a person of
    its own. ``missed`` are the marked faces, of ``marked``, on frames that were looked at without
    finding them. ``twice`` counts the frames with one identity on two faces.
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


def watch_faces(desk: Workspace, path: Path, told: Callable[[], None]) -> list[FaceSeen]:
    """The faces of a video as they are remembered, clip after clip.

    Args:
        desk: a library that may keep the video.
        path: the video.
        told: called after each clip.
    """
    tools = OnlyPeople(desk.toolbox, voices=False)
    writers = make_writers(desk.toolbox, desk.profile)
    with open_video(desk, path) as work:
        for raw in read_clips(path, probe(path), desk.settings.watch):
            seen = perceive(raw, tools, desk.settings.watch)
            remember(desk.store, work.video.id, seen, writers, desk.toolbox, desk.settings)
            told()
        with desk.store.begin() as session:
            rows = sightings_of(session, work.video.id, IdentityKind.FACE)
    return [FaceSeen(row.start_ms, _corners(row.box), row.number) for row in rows if row.box]


def _corners(box: Sequence[int]) -> Corners:
    x0, y0, x1, y1 = box
    return x0, y0, x1, y1


Truth = dict[int, list[tuple[str, Corners]]]
"""Who is where on each marked frame, by its number."""


def marked_faces(path: Path) -> Truth:
    """The faces of a CSV file with rows of frame, "face", who, x0, y0, x1, y1."""
    found: Truth = {}
    with path.open(encoding="utf-8", newline="") as file:
        for frame, _, who, *numbers in csv.reader(file):
            x0, y0, x1, y1 = (int(number) for number in numbers[:4])
            found.setdefault(int(frame), []).append((who, (x0, y0, x1, y1)))
    return found


def judge_marked(
    name: str, engine: str, seen: Sequence[FaceSeen], truth: Truth, frame_rate: float
) -> FaceReport:
    """Faces beside marked ones of the same frame; each marked face is found by one at most."""
    people: list[str | None] = []
    marked = missed = 0
    frames = _by(seen, lambda one: round(one.time_ms * frame_rate / 1000))
    for frame, faces in frames.items():
        here = truth.get(frame, [])
        who = matched([one.box for one in faces], here)
        people += who
        marked += len(here)
        missed += len(here) - sum(name is not None for name in who)
    every = [one for faces in frames.values() for one in faces]
    return _report(name, engine, every, people, marked, missed)


def matched(boxes: Sequence[Corners], truth: Sequence[tuple[str, Corners]]) -> list[str | None]:
    """Who each box shows: the marked faces it overlaps enough, best overlap first."""
    who: list[str | None] = [None] * len(boxes)
    taken: set[int] = set()
    pairs = [
        (overlap(box, face), at, place)
        for at, box in enumerate(boxes)
        for place, (_, face) in enumerate(truth)
    ]
    for share, at, place in sorted(pairs, key=lambda pair: (-pair[0], pair[1], pair[2])):
        if share >= MATCHED and who[at] is None and place not in taken:
            who[at] = truth[place][0]
            taken.add(place)
    return who


def judge_joined(
    name: str, engine: str, seen: Sequence[FaceSeen], scenes: Sequence[Scene]
) -> FaceReport:
    """Faces of a joined video: who is known by the scene, and in it by the place."""
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
    own = [who if who is not None else at for at, who in enumerate(people)]
    on_frames = Counter((one.time_ms, one.identity) for one in seen)
    return FaceReport(
        name=name,
        engine=engine,
        sightings=len(seen),
        people=len({who for who in people if who is not None}),
        identities=len({one.identity for one in seen}),
        pairs=count_pairs((who, one.identity) for who, one in zip(own, seen, strict=True)),
        strangers=sum(who is None for who in people),
        twice=len({time for (time, _), count in on_frames.items() if count > 1}),
        marked=marked,
        missed=missed,
    )


def _by(seen: Sequence[FaceSeen], key: Callable[[FaceSeen], int]) -> dict[int, list[FaceSeen]]:
    groups: dict[int, list[FaceSeen]] = {}
    for one in seen:
        groups.setdefault(key(one), []).append(one)
    return groups
