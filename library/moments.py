"""A moment of a video: what is remembered of it, strategy by strategy, and images of it."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from pydantic import Field
from sqlalchemy.orm import Session

from domain.asking import Citation, Evidence, names_image
from domain.built import BuiltFrame, entity_text
from domain.errors import BlobGone, NotFound
from domain.memories import Scope
from domain.moments import MemoryOfMoment, Moment, ShownMoment, image_path
from domain.people import tags_in_words
from domain.time import TimeSpan
from domain.words import marked
from library.memory import shown_clips
from library.params import AsOf, Span, VideoName
from library.videos import videos_named
from people.characters import ClipPeople, people_at
from retrieval.people_in_query import names_as_of, with_current_names
from store.database import Store
from store.files import create_private, make_private
from store.queries import outline
from store.queries.clips import KeyframeOnClip, clip_at, clips_of, memory_view
from store.queries.events import patch_writers
from store.queries.keyframes import frame_near, frame_of, frames_of, kept_frame
from store.queries.videos import find_video

NEAR_MS = 20_000
"""A frame further from a moment than this many milliseconds does not show it."""
MAX_NODES = 40
"""Nodes of a strategy that are shown."""
MAX_RELATIONS = 20
MAX_FRAMES = 6
EVENT, LINE = marked("event"), marked("line")
"""Kinds of what all strategies share: segments of the event graph, and memories."""

_IMAGE = re.compile(r"([kf])([1-9]\d{0,17})")

Names = Mapping[str, str]


def show_moment(
    store: Store,
    video: VideoName,
    at: Annotated[Span, Field(description="The moment: seconds, MM:SS, H:MM:SS or d2 H:MM:SS.")],
    image: Annotated[
        str,
        Field(
            pattern=r"^([kf][1-9]\d{0,17})?$",
            description="The image to show, k7 or f7; else the nearest.",
        ),
    ] = "",
    as_of: AsOf = None,
) -> ShownMoment:
    """Show what is remembered of a moment of a video, with an image: the nearest, or `image`.

    What all strategies share comes first, then what each built of its own: nodes are those whose
    span holds the moment, relations those that hold then, frames those near it.

    Raises:
        NotFound: there is no such video or image.
    """
    with store.begin() as session:
        known = find_video(session, video).id
    found = [
        one.model_copy(
            update={
                "nodes": tuple(node.in_words() for node in one.nodes),
                "relations": tuple(relation.in_words() for relation in one.relations),
                "entities": {ref: tags_in_words(text) for ref, text in one.entities.items()},
            }
        )
        for one in load_moment(store, known, at.start_ms, as_of)
    ]
    frame = frame_at(store, known, at.start_ms, image, as_of)
    if frame is None and image:
        raise NotFound(f"video {known} has no image {image}")
    return ShownMoment(video=known, at_ms=at.start_ms, memory=tuple(found), image=frame)


def load_moment(
    store: Store, video: str, at_ms: int, as_of_ms: int | None = None
) -> tuple[MemoryOfMoment, ...]:
    """Return what is remembered of a moment, first what all strategies share.

    Args:
        at_ms: the moment, in milliseconds of video time.
        as_of_ms: only what a question as of then may see; None: what is known now.
    """
    with store.begin(snapshot=True) as session:
        scope = memory_view(session, [video], as_of_ms).scopes[0]
        clip = clip_at(session, video, at_ms)
        if clip is None or clip > scope.last_clip:
            return (MemoryOfMoment(),)
        names = names_as_of(session, scope)
        shared = _shared(session, scope, clip, at_ms, names)
        return shared, *_built(session, scope, clip, at_ms, names)


def _shared(session: Session, scope: Scope, clip: int, at_ms: int, names: Names) -> MemoryOfMoment:
    video, last = scope.video, scope.last_clip
    segments = outline.segments_of_clip(session, video, last, clip)
    edges = [edge for one in segments for edge in outline.edges_touching(session, one.id, last)]
    ends = {end for edge in edges for end in (edge.source, edge.target)}
    labels = {one.id: one for one in outline.segments_named(session, video, last, sorted(ends))}
    events = [
        Moment(
            ref=f"s{one.id}",
            kind=EVENT,
            label=with_current_names(one.label, names),
            text=with_current_names(one.summary, names),
            span=one.span,
        )
        for one in segments
    ]
    relations = [
        Moment(
            ref=f"s{source.id}",
            kind=EVENT,
            text=with_current_names(f"{source.label} {edge.relation} {target.label}", names),
            span=source.span,
        )
        for edge in {edge.id: edge for edge in edges}.values()
        if (source := labels.get(edge.source)) and (target := labels.get(edge.target))
    ]
    stored = [one for one in clips_of(session, video) if one.index == clip]
    (shown,) = shown_clips(session, video, stored, people_at(session, video, last), last)
    # A line is of the moment if it holds it, or is an instant of its second.
    lines = [
        one.model_copy(update={"kind": LINE})
        for one in shown.lines
        if one.span.start_ms <= at_ms < max(one.span.end_ms, one.span.start_ms + 1_000)
    ]
    around = [number for number in (clip - 1, clip, clip + 1) if 0 <= number <= last]
    frames = _nearest(frames_of(session, video, around), at_ms, MAX_FRAMES)
    return MemoryOfMoment(
        writers=patch_writers(session, [video]),
        nodes=(*lines, *events),
        relations=tuple(relations),
        relations_total=len(relations),
        frames=tuple(_image(video, f"k{one.id}", one) for one in frames),
    )


def _nearest(frames: Sequence[KeyframeOnClip], at_ms: int, most: int) -> list[KeyframeOnClip]:
    near = [one for one in frames if abs(one.time_ms - at_ms) <= NEAR_MS]
    nearest = sorted(near, key=lambda one: (abs(one.time_ms - at_ms), one.time_ms))[:most]
    return sorted(nearest, key=lambda one: (one.time_ms, one.id))


def _image(
    video: str, ref: str, frame: KeyframeOnClip | BuiltFrame, source: str = "", text: str = ""
) -> Moment:
    return Moment(
        ref=ref,
        span=TimeSpan.of(frame.time_ms, frame.time_ms),
        source=source,
        text=text,
        image=image_path(video, ref),
        blob=frame.blob,
    )


def _built(
    session: Session, scope: Scope, clip: int, at_ms: int, names: Names
) -> Iterator[MemoryOfMoment]:
    nodes = outline.nodes_at(session, scope, at_ms, MAX_NODES)
    relations = outline.relations_at(session, scope, at_ms, clip, MAX_RELATIONS)
    frames = outline.frames_near(session, scope, at_ms, NEAR_MS, MAX_FRAMES)
    known = outline.entities_named(
        session, [end for one in relations for end in (one.subject, one.target)]
    )
    for builder, writers in outline.builders_of(session, scope.video).items():
        own = [one for one in relations if one.builder == builder]
        told = list[Moment]()
        for one in own:
            subject, target = (known[end].key.name for end in (one.subject, one.target))
            # A relation to itself only says that the entity is there.
            text = subject if one.subject == one.target else f"{subject} {one.predicate} {target}"
            text = with_current_names(text, names)
            told.append(Moment(ref=f"r{one.id}", kind=one.level, text=text, span=one.span))
        yield MemoryOfMoment(
            strategy=builder,
            writers=writers,
            nodes=tuple(
                Moment(
                    ref=one.ref,
                    kind=one.level,
                    label=with_current_names(one.label, names),
                    text=with_current_names(one.text, names),
                    span=one.span,
                )
                for one in nodes
                if one.builder == builder
            ),
            relations=tuple(told),
            relations_total=own[0].total if own else 0,
            entities={
                f"e{end}": with_current_names(
                    entity_text(known[end].key, known[end].attributes), names
                )
                for one in own
                for end in (one.subject, one.target)
            },
            frames=tuple(
                _image(scope.video, f"f{one.id}", one, source=one.reason)
                for one in frames
                if one.builder == builder
            ),
        )


def frame_at(
    store: Store, video: str, at_ms: int, ref: str = "", as_of_ms: int | None = None
) -> Moment | None:
    """Return the image that ``ref`` names, else the keyframe nearest to the moment.

    ``k7`` names a keyframe, ``f7`` a frame that a strategy kept. None if there is no such image or
    video, or no keyframe near. With ``as_of_ms`` only frames count that a question as of then may
    see.
    """
    with store.begin() as session:
        return _frame(session, video, at_ms, ref, as_of_ms)


def _frame(
    session: Session, video: str, at_ms: int, ref: str, as_of_ms: int | None
) -> Moment | None:
    named = _IMAGE.fullmatch(ref)
    kind = named[1] if named else "k"
    last: float = math.inf
    if as_of_ms is not None:
        last = -1
        # It was deleted in the meantime.
        with suppress(NotFound):
            last = memory_view(session, [video], as_of_ms).scopes[0].last_clip
    frame: BuiltFrame | KeyframeOnClip | None
    if named:
        find = kept_frame if kind == "f" else frame_of
        frame = find(session, video, int(named[2]))
    else:
        clip = clip_at(session, video, at_ms)
        around = [] if clip is None else [clip - 1, clip, clip + 1]
        visible = [number for number in around if number <= last]
        frame = frame_near(session, video, at_ms, visible)
        if frame is not None and abs(frame.time_ms - at_ms) > NEAR_MS:
            frame = None
    if frame is None or frame.clip > last:
        return None
    return _image(video, f"{kind}{frame.id}", frame)


def frames_around(store: Store, video: str, at_ms: int) -> list[Moment]:
    """Return the few keyframes nearest to a moment, in order of time, with known names."""
    people = ClipPeople()
    with store.begin() as session:
        clip = clip_at(session, video, at_ms)
        frames = [] if clip is None else frames_of(session, video, [clip - 1, clip, clip + 1])
        nearest = _nearest(frames, at_ms, MAX_FRAMES)
        # Who is in a video is read only where a description may name somebody.
        if any(frame.description for frame in nearest):
            last = memory_view(session, [video]).scopes[0].last_clip
            people = people_at(session, video, last)
    return [
        _image(video, f"k{one.id}", one, text=people.display(one.description or ""))
        for one in nearest
    ]


def moments_of(
    store: Store, items: Sequence[Citation | Evidence], as_of_ms: int | None = None
) -> list[Moment]:
    """Return what a search found, or an answer cites, as moments with titles and images.

    With ``as_of_ms`` there are no images of later frames.
    """
    titles = videos_named(store, [item.video for item in items])
    with store.begin(snapshot=True) as session:
        frames = [_frame(session, one.video, one.span.start_ms, one.ref, as_of_ms) for one in items]
    return [
        Moment(
            ref=item.ref,
            video=item.video,
            title=titles[item.video].title if item.video in titles else item.video,
            span=item.span,
            clip=item.clip,
            text=tags_in_words(item.full_text),
            score=item.score if isinstance(item, Evidence) else item.support,
            image=None if frame is None else frame.image,
        )
        for item, frame in zip(items, frames, strict=True)
    ]


def cited_images(store: Store, cited: Iterable[Moment]) -> list[Path]:
    """Write the images among what an answer cites to files, instead of those of an earlier answer.

    Their names are their refs.
    """
    folder = store.home.run / "pictures"
    make_private(folder)
    for old in folder.glob("[kf]*.jpg"):
        old.unlink(missing_ok=True)
    files = []
    for one in cited:
        frame = None
        if names_image(one.ref):
            frame = frame_at(store, one.video, one.span.start_ms, one.ref)
        if frame is None:
            continue
        # One that is missing or damaged is left out.
        with suppress(BlobGone):
            image = store.blobs.get(frame.blob)
            file = folder / f"{frame.ref}.jpg"
            with os.fdopen(create_private(file, new=True), "wb") as stream:
                stream.write(image)
            files.append(file)
    return files
