"""Videos in which the same people are seen and heard, with vectors made by hand."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from domain.media import Group, Sighting, Video
from domain.people import PersonOfVideo
from library.params import MAX_LIMIT
from library.people import people_of_video
from store.database import Store
from store.queries.videos import add_video
from tests.support.memory import clip, direction, face, memorise, percept, voice

TALK, INTERVIEW, LECTURE = "a" * 16, "b" * 16, "c" * 16
TITLES = {TALK: "talk", INTERVIEW: "interview", LECTURE: "lecture"}
MODELS = {"faces": "insightface", "speaker": "wespeaker"}
SIZE = 512
"""Numbers of a vector: so many that those of different people are far apart."""


def looking(group: Group, who: int, share: float = 1.0, take: int = 0) -> Group:
    """Give a group the look of a person: of cosine ``share`` with that of the same in another."""
    own = np.array(direction(10_000 * (take + 1) + who, SIZE))
    look = share**0.5 * np.array(direction(who, SIZE)) + (1 - share) ** 0.5 * own
    vector = tuple((look / np.linalg.norm(look)).tolist())
    sightings = [one.model_copy(update={"vector": vector}) for one in group.sightings]
    return group.model_copy(update={"sightings": tuple[Sighting, ...](sightings)})


def watch_people(
    store: Store,
    video: str,
    faces: Mapping[int, float],
    voices: Mapping[int, float] | None = None,
    models: Mapping[str, str] = MODELS,
) -> None:
    """Add a video of one clip with these people, by the cosine with those of other videos.

    Faces have the first numbers, in their order; then come the voices.
    """
    row = Video(id=video, title=TITLES.get(video, video), path=None, duration_ms=30_000)
    with store.begin() as session:
        add_video(session, row, [clip(0)], models)
    take = int(video[:1], 16)
    seen = [
        looking(face(n, who, (4 * n, 4 * n + 3)), who, share, take)
        for n, (who, share) in enumerate(faces.items())
    ]
    heard = [
        looking(voice(n, who, (4 * n, 4 * n + 3)), 500 + who, share, take)
        for n, (who, share) in enumerate((voices or {}).items())
    ]
    memorise(store, percept(0, faces=tuple(seen), voices=tuple(heard)), video=video)


def list_people(store: Store, video: str) -> list[PersonOfVideo]:
    """Return the people of a video as they are now, by number."""
    return list(people_of_video(store, video, limit=MAX_LIMIT).items)


def labels(store: Store, video: str) -> list[str]:
    """Return how the people of a video are shown, by number."""
    return [person.label for person in list_people(store, video)]


__all__ = [
    *("INTERVIEW", "LECTURE", "MODELS", "TALK", "IdentityKind"),
    *("labels", "list_people", "watch_people"),
]
