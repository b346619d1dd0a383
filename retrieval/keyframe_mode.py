"""KEYFRAME: images of the focus segment's clips, ranked by the query, or those of a time.

Frames of a time that a question names are decoded from the video's file, else stored ones nearest.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np

from domain.asking import Evidence, Mode
from domain.errors import InputError, MediaError
from domain.memories import Scope, Segment
from domain.moments import Retrieval, ShownImage
from domain.people import escape_tags
from domain.sentences import describe_picture
from domain.settings import WatchSettings
from domain.time import TimeSpan, format_clock
from domain.words import plural
from models.ports import ImageEncoder
from perception.decode import decode_frames
from perception.images import Blobs
from perception.source import original_file
from retrieval.lines import Ints, Scores
from retrieval.people_in_query import line_text, with_names
from retrieval.query_context import QueryContext, nothing_close
from retrieval.ranking import LINE, line_scores
from retrieval.relevance import decayed
from retrieval.terms import terms
from store.database import Store
from store.queries.blobs import lock_blobs_shared
from store.queries.clips import ClipContents, KeyframeOnClip, StoredClip, clip_contents, clips_of
from store.queries.keyframes import StoredFrame, add_looked_frames
from store.queries.percepts import lock_video
from store.queries.rights import is_erased
from store.queries.videos import find_video

STEP_MS = 1_000
"""Decoded frames are at least so far apart."""
ERASED = "parts of the video were or may have been erased, so its file is not looked at"
AROUND_CLIPS = 2
"""So many clips before and after a time are looked through for stored images."""


@dataclass(frozen=True)
class Look:
    """The frames of a time, in order of time, and ``how`` they came to be, said plainly."""

    span: TimeSpan
    frames: tuple[KeyframeOnClip, ...]
    clips: tuple[int, ...]
    how: str

    def away_ms(self, frame: KeyframeOnClip) -> int:
        """Return how far a frame is from the time that was asked for; 0 within it."""
        before, after = self.span.start_ms - frame.time_ms, frame.time_ms - self.span.end_ms
        return max(0, before, after)

    def describe(self, frame: KeyframeOnClip) -> str:
        """Return what a frame is to the time that was asked for."""
        away = self.away_ms(frame)
        far = f", {away / 1000:.0f} s away" if away else ""
        return f"{self.how} at {format_clock(frame.time_ms)}{far}"


# The file is used only where its content is still the video's, and nothing of the video was erased:
# what somebody had forgotten or deleted must not come back from the file. Whoever may only look is
# shown stored frames: what is decoded is stored, and would be seen by all.
def look_at(store: Store, settings: WatchSettings, scope: Scope, span: TimeSpan, most: int) -> Look:
    """Return at most ``most`` frames of a time of a video.

    Args:
        store: has the video, and gets the frames that are decoded.
        settings: the size and quality of frames.
        scope: the video, up to the clip that may be seen.
        most: frames at most.

    Raises:
        InputError: nothing at that time is in view.
    """
    with store.begin() as session:
        clips = [one for one in clips_of(session, scope.video) if one.index <= scope.last_clip]
    end_ms = max((clip.span.end_ms for clip in clips), default=0)
    if span.start_ms >= end_ms:
        raise InputError(f"{format_clock(span.start_ms)} is after {format_clock(end_ms)}, the end")
    seen = TimeSpan.of(span.start_ms, max(span.start_ms + 1, min(span.end_ms, end_ms)))
    decoded, why = _decoded(store, settings, scope, seen, clips, most)
    around = AROUND_CLIPS * settings.clip_ms
    wide = TimeSpan.of(max(0, seen.start_ms - around), seen.end_ms + around)
    near = tuple(clip.index for clip in clips if clip.span.overlap_ms(wide))
    if decoded:
        return Look(seen, decoded, near, "decoded from the video's file")
    with store.begin() as session:
        frames = clip_contents(session, scope, near).frames
    look = Look(seen, (), (), "")
    nearest = sorted(frames, key=lambda one: (look.away_ms(one), one.time_ms, one.id))[:most]
    return Look(
        seen,
        tuple(sorted(nearest, key=lambda one: (one.time_ms, one.id))),
        near,
        f"stored image ({why})",
    )


def _decoded(
    store: Store,
    settings: WatchSettings,
    scope: Scope,
    span: TimeSpan,
    clips: list[StoredClip],
    most: int,
) -> tuple[tuple[KeyframeOnClip, ...], str]:
    """Return frames decoded from the file and stored; else none, and why."""
    if not store.may_change:
        return (), "the file is decoded only for who may change the library"
    with store.begin() as session:
        if is_erased(session, scope.video):
            return (), ERASED
        path = find_video(session, scope.video).path
    file = original_file(store.home, scope.video, path)
    if file is None:
        return (), "the video's file is gone or has changed"
    # Spread over the span, at least a second apart.
    count = min(most, max(1, span.length_ms // STEP_MS))
    edges = [span.start_ms + span.length_ms * n // count for n in range(count + 1)]
    times = [span.start_ms] if count == 1 else [(a + b) // 2 for a, b in pairwise(edges)]
    try:
        pictures = decode_frames(file, settings, times)
    except (MediaError, OSError):
        return (), "the video's file cannot be decoded there"
    frames, blobs = [], Blobs()
    for time, image in pictures:
        name = blobs.add(image, settings.jpeg_quality)
        height, width = image.shape[:2]
        clip = next(c.index for c in clips if c.span.start_ms <= time < c.span.end_ms)
        size = len(blobs[name])
        frames.append(StoredFrame(0, clip, time, 0.0, width, height, name, size))
    with store.begin() as session:
        lock_video(session, scope.video)
        if is_erased(session, scope.video):
            return (), ERASED
        lock_blobs_shared(session)
        for data in blobs.values():
            store.blobs.put(data)
        stored = add_looked_frames(session, scope.video, frames)
    return tuple(stored), "the video's file shows nothing there"


NEAR_MS = 1_000
"""Time around a frame in which a sighting counts as on it; length of an image's span."""

NO_LINES_SCORE = -100.0
"""The score of an image of a clip without lines: below all others."""
OVERLAP_WEIGHT = 6.0
"""Standard deviations added if all words of the query are on a frame."""
FAR_MS = 10_000
"""Time between an image and a line that lowers its score by one standard deviation."""


@dataclass(frozen=True)
class VideoKeyframes:
    """Keyframes of one video with the contents of their clips.

    ``image_cosines``: the cosine of each frame with the query, if the profile has an image-text
    model. ``description_cosines``: the cosine of each frame's description with the question.
    """

    video: str
    contents: ClipContents
    image_cosines: Mapping[int, float]
    description_cosines: Mapping[int, float] = field(default_factory=dict)


def describe(
    contents: ClipContents,
    time_ms: int,
    names: Mapping[str, str],
    description: str | None = None,
    nearby_line: str = "",
) -> str:
    """Describe the frame of a time for text-only models.

    Its description, and what was recognised on it that the description does not mention.
    """
    description = with_names(description or "", names)
    tags = [
        f"<{kind}_{number}>"
        for start, end, kind, number in contents.sightings
        if kind == "face" and start - NEAR_MS <= time_ms <= end + NEAR_MS
    ]
    people = dict.fromkeys(with_names(tag, names) for tag in tags)
    texts = [text for time, text in contents.texts if time == time_ms]
    objects = [item for item in contents.objects if item.time_ms == time_ms]
    recognised = describe_picture(
        [person for person in people if person not in description],
        [] if description else objects,
        [text for text in texts if escape_tags(text) not in description],
    )
    parts = [description, recognised, f"at that time: {nearby_line}" if nearby_line else ""]
    return "; ".join(part for part in parts if part) or "nothing was recognised on it"


def keyframe(
    context: QueryContext,
    focus: Segment | None,
    videos: Sequence[VideoKeyframes],
    images: int,
    images_model: ImageEncoder | None = None,
    seen: Collection[str] = (),
) -> Retrieval:
    """Return at most ``images`` images: each clip's best before any clip's second.

    Images that were shown already come after all others.

    Args:
        focus: The segment whose clips are searched; None: all clips in view.
        images: Maximum number of images.
        images_model: The image-text model, if the profile has one.
        seen: Refs that were shown already.
    """
    scored = [image for keyframes in videos for image in _score_keyframes(context, keyframes)]
    image_cosines = {
        frame: value for keyframes in videos for frame, value in keyframes.image_cosines.items()
    }
    if images_model is not None:
        scored = [_with_likeness(image_cosines, image, images_model) for image in scored]
    fresh = [image for image in scored if f"k{image.frame.id}" not in seen]
    shown_before = [image for image in scored if f"k{image.frame.id}" in seen]
    chosen = [*spread_over_clips(fresh), *spread_over_clips(shown_before)][:images]
    by_video = {keyframes.video: keyframes for keyframes in videos}
    # Closeness in [0, 1] of images: of those with an image cosine, this.
    by_words = [image for image in chosen if image.frame.id not in image_cosines]
    words = iter(_closeness_by_words(context, videos, by_words))
    scores = [
        float(np.clip(image_cosines[image.frame.id], 0, 1))
        if image.frame.id in image_cosines
        else next(words)
        for image in chosen
    ]
    shown = tuple(
        shown_image(
            image.video, image.frame, _description(context, by_video[image.video], image), score
        )
        for image, score in zip(chosen, scores, strict=True)
    )
    evidence = tuple(image_evidence(image) for image in shown)
    # Closeness is checked by the image-text model's threshold, else by that of lines.
    lines = context.candidates.view_lines
    if not image_cosines or images_model is None:
        is_far = nothing_close(evidence, lines)
    else:
        others = [piece for piece in evidence if int(piece.ref[1:]) not in image_cosines]
        is_far = nothing_close(others, lines) and max(image_cosines.values()) < images_model.close
    clips = sum(len({frame.clip for frame in keyframes.contents.frames}) for keyframes in videos)
    how = ranking_method(videos, len(image_cosines), images_model)
    return Retrieval(
        mode=Mode.KEYFRAME,
        query=context.query,
        focus=focus,
        evidence=evidence,
        images=shown,
        nothing_close=is_far,
        searched=context.searched(f"the keyframes of {clips} clips {how}"),
    )


def keyframes_at(
    context: QueryContext, focus: Segment | None, keyframes: VideoKeyframes, look: Look
) -> Retrieval:
    """Return the images of a time, in order of time, whatever the query is.

    Args:
        context: The search, with the lines of the clips around that time.
        focus: The segment in focus, which stays so.
        keyframes: The contents of these clips.
    """
    at_time = replace(keyframes, contents=keyframes.contents._replace(frames=look.frames))
    shown = tuple(
        shown_image(
            image.video,
            image.frame,
            f"{look.describe(image.frame)}; {_description(context, at_time, image)}",
            FAR_MS / (FAR_MS + look.away_ms(image.frame)),
        )
        for image in _score_keyframes(context, at_time)
    )
    return Retrieval(
        mode=Mode.KEYFRAME,
        query=context.query,
        focus=focus,
        evidence=tuple(image_evidence(image) for image in shown),
        images=shown,
        nothing_close=not shown,
        searched=f"the images of {look.span}: {look.how}",
    )


def ranking_method(
    videos: Sequence[VideoKeyframes], compared: int, images_model: ImageEncoder | None
) -> str:
    """Describe in words what images are ranked by, ``compared`` of which have image cosines."""
    has_descriptions = any(keyframes.description_cosines for keyframes in videos)
    words = f"by {'their descriptions and ' if has_descriptions else ''}the words of their time"
    if images_model is None:
        return f"{words} (this profile has no image-text model)"
    frames = sum(len(keyframes.contents.frames) for keyframes in videos)
    if not compared:
        return f"{words} (they have no vectors of {images_model.name}: homer reembed makes them)"
    rest = "" if compared >= frames else f", {frames - compared} of {frames} {words}"
    return f"by their likeness under {images_model.name}{rest}"


@dataclass(frozen=True)
class ScoredKeyframe:
    """A frame with its score, and the best of the lines closest in time, if any."""

    video: str
    frame: KeyframeOnClip
    score: float
    line: int | None


def spread_over_clips(scored: Sequence[ScoredKeyframe]) -> list[ScoredKeyframe]:
    """Sort best first, but every clip's n-th image before any clip's next."""
    ranked = sorted(scored, key=lambda image: (-image.score, image.video, image.frame.time_ms))
    images_of_clip: dict[tuple[str, int], int] = {}
    rounds = []
    for image in ranked:
        clip = (image.video, image.frame.clip)
        images_of_clip[clip] = images_of_clip.get(clip, -1) + 1
        rounds.append(images_of_clip[clip])
    return [ranked[i] for i in sorted(range(len(ranked)), key=lambda i: (rounds[i], i))]


def _score_keyframes(context: QueryContext, keyframes: VideoKeyframes) -> list[ScoredKeyframe]:
    clips = {frame.clip for frame in keyframes.contents.frames}
    lines_by_clip = {clip: _lines_of_clip(context, keyframes.video, clip) for clip in clips}
    scored = []
    for frame in keyframes.contents.frames:
        numbers, (starts, ends), scores = lines_by_clip[frame.clip]
        line: int | None = None
        score = NO_LINES_SCORE
        if len(numbers):
            # The best of the lines nearest in time.
            distance = np.maximum(np.maximum(starts - frame.time_ms, frame.time_ms - ends), 0)
            nearest = np.flatnonzero(distance == distance.min())
            best = int(nearest[scores[nearest].argmax()])
            line = int(numbers[best])
            score = float(scores[best]) - float(distance[best]) / FAR_MS
        cosine = keyframes.description_cosines.get(frame.id)
        if cosine is None or context.relevance is None:
            described = NO_LINES_SCORE
        else:
            described = LINE * float(context.relevance.scales[0].of(np.array([cosine]))[0])
            cells = context.lines.cells_of(keyframes.video, [frame.clip])
            described += float(context.relevance.cells[cells[0]]) if len(cells) else 0.0
        score = max(score, described)
        # The share of the query's words in a frame's description and contents, in [0, 1].
        texts = [text for time, text in keyframes.contents.texts if time == frame.time_ms]
        labels = [
            item.label for item in keyframes.contents.objects if item.time_ms == frame.time_ms
        ]
        description = with_names(frame.description or "", context.people.names(keyframes.video))
        shown = " ".join([description, *texts, *labels, *map(plural, labels)])
        words = set(terms(shown, english=False))
        word_overlap = len(context.words & words) / max(1, len(context.words))
        score += OVERLAP_WEIGHT * word_overlap
        scored.append(ScoredKeyframe(keyframes.video, frame, score, line))
    return scored


def _with_likeness(
    cosines: Mapping[int, float], image: ScoredKeyframe, images_model: ImageEncoder
) -> ScoredKeyframe:
    """Set an image's score to its image cosine.

    Images without one come after all that are close to the query and before all others, ranked by
    words: while a library is changed to an image encoder, both ways find something.
    """
    cosine = cosines.get(image.frame.id)
    if cosine is None:
        return image
    is_close = cosine >= images_model.close
    return replace(image, score=cosine - 10 * NO_LINES_SCORE * (1 if is_close else -1))


def _lines_of_clip(context: QueryContext, video: str, clip: int) -> tuple[Ints, Ints, Scores]:
    """Return the L lines of a clip, with starts and ends in ms (2, L) and scores (L,)."""
    lines = context.lines
    cells = lines.cells_of(video, [clip])
    if not len(cells) or context.relevance is None:
        return np.zeros(0, np.int64), np.zeros((2, 0), np.int64), np.zeros(0)
    numbers = lines.lines_of(cells.tolist())
    scores = line_scores(context.candidates, context.relevance, numbers).max(axis=0)
    spans = np.stack([lines.arrays.start_ms[numbers], lines.arrays.end_ms[numbers]])
    return numbers, spans, scores


def _description(context: QueryContext, keyframes: VideoKeyframes, image: ScoredKeyframe) -> str:
    names, text = context.people.names(keyframes.video), ""
    if image.line is not None:
        row = context.lines.line(image.line)[1]
        if row.start_ms - NEAR_MS <= image.frame.time_ms <= row.end_ms + NEAR_MS:
            text = line_text(row, names)
    frame = image.frame
    return describe(keyframes.contents, frame.time_ms, names, frame.description, text)


def _closeness_by_words(
    context: QueryContext, videos: Sequence[VideoKeyframes], chosen: Sequence[ScoredKeyframe]
) -> list[float]:
    """Return closeness in [0, 1] of images by lines and descriptions, falling from the closest."""
    if not chosen:
        return []
    lines = [image.line for image in chosen if image.line is not None]
    description_cosines = {
        frame: cosine
        for keyframes in videos
        for frame, cosine in keyframes.description_cosines.items()
    }
    close = [context.closeness(line) for line in lines]
    close += [
        context.text_closeness(description_cosines[image.frame.id], image.frame.description or "")
        for image in chosen
        if image.frame.id in description_cosines
    ]
    best = max(close, default=0.0)
    falling = np.minimum.accumulate([image.score for image in chosen])
    return decayed(best, [float(score) for score in falling])


def shown_image(video: str, frame: KeyframeOnClip, description: str, score: float) -> ShownImage:
    known = {name: getattr(frame, name) for name in ("id", "clip", "time_ms", "blob")}
    return ShownImage(video=video, description=description, score=score, **known)


def image_evidence(shown: ShownImage) -> Evidence:
    return Evidence(
        ref=shown.ref,
        video=shown.video,
        span=TimeSpan.of(shown.time_ms, shown.time_ms + NEAR_MS),
        text=shown.description,
        score=shown.score,
        clip=shown.clip,
    )


# Frames that strategies kept, as evidence: what is known to be on them.


def describe_kept(contents: ClipContents, at: int, names: Mapping[str, str]) -> str:
    """Describe a kept frame of a time for text-only models: what was recognised around it.

    Args:
        contents: of the frame's clip.
        names: of people, by tag.
    """
    # Text and things are recognised on keyframes only, so those of the nearest keyframe count.
    recognised = [time for time, _ in contents.texts] + [item.time_ms for item in contents.objects]
    near = [time for time in recognised if abs(time - at) <= NEAR_MS]
    nearest = min(near, key=lambda time: (abs(time - at), time), default=-1)
    on_frame = contents._replace(
        texts=[(at, text) for time, text in contents.texts if time == nearest],
        objects=[
            item.model_copy(update={"time_ms": at})
            for item in contents.objects
            if item.time_ms == nearest
        ],
    )
    return describe(on_frame, at, names)
