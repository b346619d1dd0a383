"""A talk of six clips, of which the third and fourth hold what is to be deleted."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from domain.media import Group, Percept
from domain.settings import Settings
from domain.time import TimeSpan
from memory.delete_span import SpanDeletion, delete_span
from store.database import Store
from tests.support.event_graphs import update_event_graph
from tests.support.memory import (
    VIDEO,
    Perceived,
    Tools,
    WordVectors,
    face,
    keyframe,
    known_video,
    local_writers,
    percept,
    remember,
    said,
    text_at,
    voice,
)

KEPT, CROP, FRAME, BOTH = b"a frame of Ada", b"a crop of Omar", b"a map", b"two of them"
SHA = {data: hashlib.sha256(data).hexdigest() for data in (KEPT, CROP, FRAME, BOTH)}
SETTINGS = Settings().model_copy(
    update={"memory": Settings().memory.model_copy(update={"patch_every": 3})}
)
SPAN = TimeSpan.of(65_000, 91_000)
"""Touches the third clip and the fourth."""
SECRETS = ("zanzibar", "marmalade", "treasure", "petra", *(SHA[one] for one in (CROP, FRAME, BOTH)))


def cropped(group: Group, data: bytes) -> Group:
    seen = tuple(one.model_copy(update={"blob": SHA[data]}) for one in group.sightings)
    return group.model_copy(update={"sightings": seen})


def scenes() -> Iterator[Percept]:
    """Ada opens; Omar and Petra tell a secret; Ada goes on, and Omar is met again."""
    yield percept(
        0,
        faces=(face(0, 1, (0, 9)),),
        voices=(voice(0, 1, (0, 9)),),
        utterances=(said(0, "My name is Ada Lovelace. The lighthouse is green.", 0, seconds=9),),
        keyframes=(keyframe(4, SHA[KEPT]),),
    )
    yield percept(
        1,
        voices=(voice(0, 1, (30, 39)),),
        utterances=(said(30, "The boats sail to the green lighthouse every morning.", 0),),
    )
    yield percept(
        2,
        faces=(cropped(face(0, 2, (60, 69)), CROP),),
        voices=(voice(0, 2, (60, 69)),),
        utterances=(
            said(60, "My name is Omar Zanzibar. The treasure lies in the marmalade.", 0, seconds=9),
        ),
        keyframes=(keyframe(64, SHA[FRAME]),),
        screen_texts=(text_at(64, "TREASURE MAP"),),
    )
    yield percept(
        3,
        faces=(cropped(face(0, 3, (90, 99)), BOTH), face(1, 1, (90, 99))),
        voices=(voice(0, 3, (90, 99)),),
        utterances=(
            said(90, "My name is Petra. The marmalade boils because fire is hot.", 0, seconds=9),
        ),
        keyframes=(keyframe(94, SHA[BOTH]),),
    )
    yield percept(
        4,
        faces=(face(0, 1, (120, 129)),),
        voices=(voice(0, 1, (120, 129)),),
        utterances=(said(120, "The boats come home to the green lighthouse at night.", 0),),
    )
    yield percept(
        5,
        faces=(face(0, 2, (150, 159)),),
        voices=(voice(0, 2, (150, 159)),),
        utterances=(said(150, "Omar says good night to the boats and the lighthouse.", 0),),
    )


def watch_talk(store: Store, upto: int = 6, text: WordVectors | None = None) -> None:
    """Watch the first clips of the talk, with a patch after every three.

    ``text`` is the text encoder; None: the words' own.
    """
    tools = Tools() if text is None else Tools(text)
    if not upto:
        return
    known_video(store, 6)
    files = {SHA[data]: data for data in (KEPT, CROP, FRAME, BOTH)}
    for one in list(scenes())[:upto]:
        of = {s.blob for group in one.faces for s in group.sightings if s.blob}
        blobs = {sha: files[sha] for sha in of | {k.blob for k in one.keyframes}}
        remember(store, VIDEO, Perceived(one, blobs), local_writers(), tools, SETTINGS)
        update_graph(store, tools)


def update_graph(store: Store, tools: Tools | None = None) -> int:
    return update_event_graph(store, VIDEO, local_writers(), tools or Tools(), SETTINGS)


def cut(store: Store, span: TimeSpan = SPAN) -> SpanDeletion:
    return delete_span(store, VIDEO, span, WordVectors(), SETTINGS.memory)
