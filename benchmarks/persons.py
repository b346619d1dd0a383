"""The same person in several videos: what a new face costs, and who is joined rightly.

* A face is compared with those of a library of ``FACES`` faces, of one exemplar each, through the
  HNSW index. The bar is in milliseconds of the processor: what else runs says nothing about us.
* Scenes of the shared clips become videos of their own, whose people are known. Pairs of people
  of different videos are counted: those that ``homer people join-sure`` joins, of which all
  must be right, and those that are suggested.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from itertools import combinations
from pathlib import Path

import numpy as np
import psutil
from sqlalchemy import text
from sqlalchemy.orm import Session

from benchmarks.grown import Vectors, scratch_store, unit
from benchmarks.keyframes import SHARED
from benchmarks.lines import Line, Taken, milliseconds
from benchmarks.perception.joining import WIDTH, Scene, join, person_at, speakers_at
from benchmarks.perception.joins import watch_people
from benchmarks.perception.report import scratch_workspace
from benchmarks.perception.scenes import PEOPLE
from domain.media import IdentityKind
from domain.people import CharacterRef
from models.profile import load_profile
from people.across_videos import person_links
from people.corrections import LAST_CLIP
from people.likely_same import NEAREST, join_sure, likely_in_other_videos
from store.database import Store
from store.driver import copy_rows
from store.home import Home
from store.queries.characters import characters_at
from store.queries.identities import SightingAt, sightings_of
from store.queries.people_in_view import nearest_identities
from store.queries.videos import video_titles
from store.vector_index import EXEMPLARS, VectorIndex, build_index
from tests.support.library import Quiet

FACES, OF_VIDEO = 100_000, 20
SIZE = 512
"""Numbers of a face's vector."""
SPACE = 128
"""Dimensions that the vectors lie in: those of a face model do not fill all of theirs."""
SEARCHES = 25
BAR_MS = 20.0
THRESHOLD, MODEL = 0.3, "insightface"
NOISE = 0.7
"""Length of what differs between two looks of a face of length 1."""

Pair = frozenset[CharacterRef]


def lines() -> Iterator[Line]:
    """Yield the cost of a new face, then the shares of right pairs and of pairs found."""
    with scratch_store() as store:
        yield from _costs(store)
    yield from _shares(PEOPLE)


def _costs(store: Store) -> Iterator[Line]:
    """Yield milliseconds of one search by the processor, and by the clock."""
    _fill(store)
    build_index(store, Quiet(), [VectorIndex(EXEMPLARS, SIZE)])
    found: list[bool] = []
    with store.begin() as session:
        searches = [_search(session, face, found) for face in range(0, FACES, FACES // SEARCHES)]
        searches[0]()  # The first one reads the index from disk.
        before = _processor_ms(session)
        taken = Taken(tuple(milliseconds(search) for search in searches))
        spent = Taken(((_processor_ms(session) - before) / len(searches),))
    what = f"a new face among kept ones, {100 * sum(found) / len(found):.0f} % found"
    bar = Taken((BAR_MS,))
    for how, ours, least in (("CPU", spent, 1.0), ("by the clock", taken, None)):
        ratio = ours.median / BAR_MS
        yield Line(f"{what}, {how}", ours, bar, "the bar", ratio, least, more=False, size=FACES)


def _processor_ms(session: Session) -> float:
    """Return what this process and its database connection have taken so far."""
    connection = psutil.Process(session.scalar(text("SELECT pg_backend_pid()")) or 0)
    spent = [process.cpu_times() for process in (psutil.Process(), connection)]
    return 1000 * sum(times.user + times.system for times in spent)


def _search(session: Session, face: int, found: list[bool]) -> Callable[[], None]:
    """Return a search for a new look of a face, which notes whether that face is found."""
    vector = _looks(face // OF_VIDEO, seed=1)[face % OF_VIDEO][None]

    def search() -> None:
        kind = IdentityKind.FACE
        near = nearest_identities(session, kind, vector, "none", MODEL, NEAREST, THRESHOLD)
        found.append(face + 1 in near)

    return search


def _looks(video: int, seed: int = 0) -> Vectors:
    """Return a vector of each face of a video, shape (OF_VIDEO, SIZE); ``seed``: which look."""
    own = np.random.default_rng((video, 7)).standard_normal((OF_VIDEO, SPACE))
    look = np.random.default_rng((video, seed)).standard_normal((OF_VIDEO, SPACE))
    return unit((own + NOISE * look) @ _space())


@cache
def _space() -> Vectors:
    """Return random directions, shape (SPACE, SIZE)."""
    return unit(np.random.default_rng(3).standard_normal((SPACE, SIZE)))


def _fill(store: Store) -> None:
    """Fill a library with faces."""
    videos = FACES // OF_VIDEO
    made = {"model": MODEL, "videos": videos, "of_video": OF_VIDEO}
    with store.begin() as session:
        for statement in _FILL:
            session.execute(text(statement), made)
        for video in range(videos):
            copy_rows(session, "sightings", _SIGHTING, list(_sightings(video)))
            copy_rows(session, "exemplars", _EXEMPLAR, list(_exemplars(video)))
    with store.begin() as session:
        session.execute(text("ANALYZE"))


_FILL = (
    """INSERT INTO videos (id, title, duration_ms, width, height, has_video, has_audio, profile,
                           state, models)
       SELECT n, n, 30000, 1, 1, true, true, 'local', 'done',
              jsonb_build_object('faces', CAST(:model AS text))
       FROM generate_series(0, :videos - 1) AS n""",
    """INSERT INTO clips (video_id, clip, start_ms, end_ms, state, attempts, gaps, text)
       SELECT n, 0, 0, 30000, 'done', 1, '[]', '' FROM generate_series(0, :videos - 1) AS n""",
    """INSERT INTO identities (video_id, kind, number, first_clip)
       SELECT n / CAST(:of_video AS int), 'face', n % CAST(:of_video AS int), 0
       FROM generate_series(0, CAST(:videos AS int) * CAST(:of_video AS int) - 1) AS n
       ORDER BY n""",
)
_SIGHTING = {
    "id": "int8",
    "video_id": "text",
    "clip": "int4",
    "identity_id": "int8",
    "start_ms": "int8",
    "end_ms": "int8",
    "score": "float8",
    "quality": "float8",
}
_EXEMPLAR = {
    "id": "int8",
    "identity_id": "int8",
    "sighting_id": "int8",
    "quality": "float8",
    "vector": "bytea",
}


def _sightings(video: int) -> Iterator[tuple[object, ...]]:
    for row in range(video * OF_VIDEO + 1, (video + 1) * OF_VIDEO + 1):
        yield row, str(video), 0, row, 0, 1000, 1.0, 1.0


def _exemplars(video: int) -> Iterator[tuple[object, ...]]:
    for row, vector in enumerate(_looks(video), video * OF_VIDEO + 1):
        yield row, row, row, 1.0, _packed(vector)


def _packed(vector: Vectors) -> bytes:
    """Pack a vector as pgvector's binary ``vector``: size, two zero bytes, 32-bit floats."""
    return len(vector).to_bytes(2, "big") + b"\0\0" + vector.astype(">f4").tobytes()


def _shares(scenes: tuple[Scene, ...]) -> Iterator[Line]:
    """Watch each scene as a video; yield precision and recall of its pairs of people."""
    profile, home = load_profile("local"), Home.default()
    with (
        tempfile.TemporaryDirectory() as folder,
        scratch_workspace(profile, home) as workspace,
    ):
        for number, scene in enumerate(scenes):
            path = join([scene], SHARED, Path(folder) / f"{number}.mp4")
            watch_people(workspace, path, lambda: None)
        store = workspace.store
        people = _known_people(store, scenes)
        with store.begin() as session:
            videos = list(video_titles(session))
            suggested = {
                frozenset((pair.one, pair.other))
                for video in videos
                for pair in likely_in_other_videos(session, video)
            }
        for video in videos:
            join_sure(store, video)
        with store.begin() as session:
            persons = person_links(session).joined_persons()
    joined = {pair for person in persons for pair in _pairs(person)}
    yield from compare_pairs("pairs joined without a question", joined, people, bar=1.0)
    yield from compare_pairs("pairs suggested", suggested, people)


def _known_people(store: Store, scenes: tuple[Scene, ...]) -> dict[CharacterRef, str]:
    """Return who each character is: by the faces, else by who speaks; others are left out."""
    people: dict[CharacterRef, str] = {}
    with store.begin() as session:
        for video, title in video_titles(session).items():
            scene = [scenes[int(title)]]
            names = {
                (kind, one.number): name
                for kind in IdentityKind
                for one in sightings_of(session, video, kind)
                if (name := _name_of(scene, kind, one))
            }
            for row in characters_at(session, video, LAST_CLIP):
                faces = [(IdentityKind.FACE, number) for number in row.character.faces]
                voices = [(IdentityKind.VOICE, number) for number in row.character.voices]
                known = Counter(names[key] for key in faces if key in names)
                known = known or Counter(names[key] for key in voices if key in names)
                if known:
                    ref = CharacterRef(video=video, number=row.character.number)
                    people[ref] = known.most_common(1)[0][0]
    return people


def _name_of(scene: list[Scene], kind: IdentityKind, sighting: SightingAt) -> str | None:
    if kind is IdentityKind.FACE:
        x0, _, x1, _ = sighting.box or (0, 0, 0, 0)
        return person_at(scene, sighting.start_ms, (x0 + x1) / 2 / WIDTH)
    heard = speakers_at(scene, sighting.start_ms, sighting.end_ms)
    return max(heard, key=lambda name: heard[name], default=None) or None


def _pairs(characters: Iterable[CharacterRef]) -> Iterator[Pair]:
    """Yield the pairs of different videos."""
    for one, other in combinations(characters, 2):
        if one.video != other.video:
            yield frozenset((one, other))


def compare_pairs(
    what: str, found: set[Pair], people: Mapping[CharacterRef, str], bar: float | None = None
) -> Iterator[Line]:
    """Yield the share of found pairs that are of one person, and that of such pairs found."""
    same = {pair for pair in _pairs(people) if len({people[ref] for ref in pair}) == 1}
    # Somebody who is not known is nobody of the scenes: joined with anybody, the pair is wrong.
    right = len(found & same)
    for name, share, of, least in (
        ("precision", right / len(found) if found else 1.0, len(found), bar),
        ("recall", right / len(same) if same else 1.0, len(same), None),
    ):
        percent, whole = Taken((100 * share,), "%"), Taken((100.0,), "%")
        yield Line(f"{what}: {name} of {of}", percent, whole, "all", share, least)
